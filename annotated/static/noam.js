// Chapter 07: the Noam schedule by width, warm-up and factor, with one step marked;
// body of function (state, data, view, numbers).

const { width, warmup, factor, step } = state;
const scale = factor / Math.sqrt(width);
const line = (n) => scale * n * warmup ** -1.5;
const fall = (n) => scale / Math.sqrt(n);
const rate = (n) => Math.min(line(n), fall(n));
const peak = factor / Math.sqrt(width * warmup);

// the axis ends at a round number above the peak, and says which
const power = 10 ** Math.floor(Math.log10(peak));
const top = [1, 2, 5, 10].map((m) => m * power).find((level) => level >= peak * 1.05)
  ?? 20 * power;
const number = (value) => numbers.scientific(value, 2);

const all = Math.max(300, Math.min(620, view.width() - 8));
const left = 84, right = all - 18, high = 40, base = 220;
const x = (n) => left + (right - left) * n / data.last;
const y = (value) => base - (base - high) * Math.min(value, top) / top;
const svg = view.svg(all, base + 46, `the learning rate of ${data.last} steps`);
for (const level of [0, top / 2, top]) {
  view.add(svg, "line", {
    x1: left, x2: right, y1: y(level), y2: y(level), stroke: "currentColor",
    "stroke-opacity": level ? 0.25 : 0.8,
  });
}
for (const n of [0, data.last / 2, data.last]) {
  view.add(svg, "text", {
    x: x(n), y: base + 18, text: n,
    "text-anchor": n === 0 ? "start" : n === data.last ? "end" : "middle",
  });
}
view.add(svg, "text", {
  x: (left + right) / 2, y: base + 38, "text-anchor": "middle", text: "step of the optimiser",
});
view.add(svg, "text", { x: 4, y: 16, text: "learning rate" });

const path = (from, to, of, more) => {
  const points = [];
  for (let i = 0; i <= 200; i += 1) {
    const n = from + (to - from) * (i / 200) ** 2; // closer together where it bends
    if (of(n) <= top) points.push(`${x(n).toFixed(1)},${y(of(n)).toFixed(1)}`);
  }
  view.add(svg, "polyline", {
    points: points.join(" "), fill: "none", "stroke-width": 1.5, stroke: "currentColor", ...more,
  });
};
const dashed = { "stroke-dasharray": "4 4", "stroke-opacity": 0.6 };
path(1, data.last, line, dashed);
path(1, data.last, fall, dashed);
path(1, Math.min(warmup, data.last), line, { stroke: "var(--accent)", "stroke-width": 3 });
path(Math.min(warmup, data.last), data.last, fall, {
  stroke: "var(--accent)", "stroke-width": 3,
});
for (const level of [top / 2, top]) {
  view.add(svg, "text", {
    x: left - 8, y: y(level) + 4, "text-anchor": "end", text: number(level),
  });
}
const now = rate(step);
view.add(svg, "line", {
  x1: x(step), x2: x(step), y1: base, y2: y(now), stroke: "var(--second)",
  "stroke-width": 2, "stroke-dasharray": "2 3",
});
view.add(svg, "circle", { cx: x(step), cy: y(now), r: 6, fill: "var(--second)" });

const where = step < warmup ? "on the way up" : step > warmup ? "on the way down" : "at the peak";
return {
  values: {
    rate: now * 1000, peak: peak * 1000, share: now / peak,
    line: Math.min(line(step) * 1000, 1e6), fall: fall(step) * 1000,
  },
  says: `Step ${step} is ${where}: rate ${number(now)}, ${(100 * now / peak).toFixed(1)} % of the `
    + `peak. The peak is ${number(peak)}, at step ${warmup}.`,
};
