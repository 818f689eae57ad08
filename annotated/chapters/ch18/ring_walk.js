// Page 18b: a ring all-reduce, step by step; body of function (state, data, view, numbers).
// Each of n processes has n numbers. First they add up on their way around, then the sums
// go around.

const { range } = numbers;
const n = Number(state.processes), last = 2 * (n - 1), step = Math.min(Number(state.step), last);
const held = range(n).map((p) => data.numbers[p].slice(0, n));
const inside = range(n).map(() => range(n).map(() => 1)); // how many are in a sum
let moved = []; // in the step that is shown: to, which, number
for (let s = 0; s < step; s += 1) {
  const sent = range(n).map((p) => {
    const which = (((p - s) % n) + n) % n;
    return { to: (p + 1) % n, which, number: held[p][which], count: inside[p][which] };
  });
  for (const { to, which, number, count } of sent) {
    held[to][which] = (s < n - 1 ? held[to][which] : 0) + number;
    inside[to][which] = (s < n - 1 ? inside[to][which] : 0) + count;
  }
  moved = sent;
}
const complete = inside.flat().filter((count) => count === n).length;

// ---- the controls: the slider ends with the walk, and a button moves it

const over = step === last;
view.ends("step", last, step);
view.step("step", over ? 0 : step + 1, over ? "back to the start" : "next step");

// ---- a row for each process, and what came into it from the row above

const wide = Math.min(view.width() - 1, 620), phone = wide < 480;
const from = phone ? 74 : 100, cell = Math.min((wide - from) / n, 110), box = cell - 12;
const high = 34, gap = 30, row = high + gap, most = 5;
// a label stands beside its arrow: on a phone to the left, where there's room
const left = (which) => (phone && 2 * which >= n ? { x: from + cell * which + 4, "text-anchor": "end" } : {});
const adding = step > 0 && step < n;
const svg = view.svg(wide, most * row + gap + 30, `step ${step} of ${last}: ${complete} of ${n * n} sums are complete`);
const { text } = view;
const titles = ["before the first step", "adding up", "passing the sums on"];
text(0, 14, step === 0 ? titles[0] : titles[adding ? 1 : 2], { class: "strong" });
range(n).forEach((p) => {
  const y = 22 + gap + row * p;
  text(0, y + high / 2 + 5, `process ${p}`);
  range(n).forEach((which) => {
    const x = from + cell * which;
    const fresh = moved.find((one) => one.to === p && one.which === which);
    if (fresh) {
      const middle = x + 12, color = "currentColor";
      view.line(middle, y - gap + 2, middle, y - 8, { stroke: color, "stroke-width": 1.5 });
      view.add(svg, "polygon", { points: `${middle},${y - 1} ${middle - 4.5},${y - 9} ${middle + 4.5},${y - 9}`, fill: color });
      text(middle + 8, y - 11, adding ? `+ ${fresh.number}` : `${fresh.number}`, { style: "font-size: 13px", ...left(which) });
    }
    const share = inside[p][which] / n, whole = share === 1;
    view.rect(x, y, box, high, {
      rx: 4, fill: "var(--at-this)", "fill-opacity": (0.08 + 0.32 * share).toFixed(2),
      stroke: "currentColor", "stroke-width": whole ? 2.5 : 1, "stroke-opacity": whole ? 1 : 0.65,
    });
    text(x + box / 2, y + high / 2 + 5, `${held[p][which]}`, { "text-anchor": "middle", ...(whole ? { class: "strong" } : {}) });
  });
});
// what leaves the last row comes into the first
moved.filter((one) => one.to === 0).forEach(({ which }) => {
  const middle = from + cell * which + 12, y = 22 + gap + row * (n - 1) + high;
  view.line(middle, y + 1, middle, y + gap / 2, { stroke: "currentColor", "stroke-width": 1.5 });
  text(middle + 8, y + 16, "to process 0", { style: "font-size: 12px", ...left(which) });
});

return {
  values: { table: held, complete, sent: step / n },
  says: `After step ${step} of ${last}, ${complete} of ${n * n} sums are complete. Each process has sent ${step} ${step === 1 ? "piece" : "pieces"}, `
    + `${(step / n).toFixed(2)} times its gradient.`,
  room: 130,
};
