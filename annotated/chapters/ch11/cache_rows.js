// Page 11c: which positions a step computes, without a cache and with it; body of
// function (state, data, view, numbers). data.computed holds, for each way and step,
// how many positions went through the blocks of Python's model.

const { range, sum } = numbers;
const step = Number(state.step), n = data.letters.length, context = data.context;
const wide = Math.min(view.width(), 620), left = 4;
const size = Math.floor((wide - 2 * left) / n), gap = 3;
const svg = view.svg(left * 2 + size * n, 2 * (size + 62) + 46,
  `characters read at step ${step}, without a cache and with it`);
const text = (attributes, style = "") => view.add(svg, "text", { style, ...attributes });
const last = step - 1, first = Math.max(0, step - context); // those in the window

const totals = data.ways.map((way, row) => {
  const now = data.computed[way][last], total = sum(data.computed[way].slice(0, step));
  const top = row * (size + 62);
  text({ x: left, y: top + 15, class: "strong", text: way });
  range(n).forEach((i) => {
    const x = left + i * size, y = top + 24;
    const inside = i >= first && i < step, fresh = inside && i >= step - now;
    view.rect(x + gap / 2, y, size - gap, size - gap, {
      rx: 3, fill: fresh ? "var(--accent)" : "none",
      stroke: inside ? "var(--accent)" : "currentColor", "stroke-width": inside ? 2 : 1,
      "stroke-opacity": inside ? 1 : 0.3, "stroke-dasharray": inside ? "none" : "2 3",
    });
    if (i < step) view.text(x + size / 2, y + size / 2 + 4, data.letters[i], {
      "text-anchor": "middle", class: "code", "fill-opacity": inside ? 1 : 0.6,
      style: fresh ? "fill: var(--on-accent); font-weight: 700" : "",
    });
  });
  text({
    x: left, y: top + size + 40,
    text: `this step: ${now} computed, ${Math.min(step, context) - now} kept; so far: ${total} computed`,
  });
  return total;
});
const foot = 2 * (size + 62) + 14;
[["computed now", true, "none"], ["kept", false, "none"], ["not in the window", false, "2 3"]]
  .forEach(([label, filled, dash], i) => {
    const x = left + [0, 128, 196][i];
    view.rect(x, foot - 11, 13, 13, {
      rx: 2, "stroke-dasharray": dash, fill: filled ? "var(--accent)" : "none",
      stroke: i < 2 ? "var(--accent)" : "currentColor", "stroke-width": i < 2 ? 2 : 1,
      "stroke-opacity": i < 2 ? 1 : 0.5,
    });
    text({ x: x + 19, y: foot, text: label });
  });
const [plain, cached] = data.ways.map((way) => data.computed[way][last]);
return {
  values: { now: [plain, cached], totals },
  room: 105,
  says: `Step ${step}, after “${data.letters[last]}”: the model computes ${plain} `
    + `position${plain > 1 ? "s" : ""} without a cache and ${cached} with it; `
    + `so far ${totals[0]} and ${totals[1]}.`,
};
