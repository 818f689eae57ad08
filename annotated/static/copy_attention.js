// Chapter 08: cross-attention while the copy task is learned; body of function
// (state, data, view, numbers). data.maps[step][head][query][key]; at query i the symbol to be
// written is that of source position i + 1. Below it the loss, as far as the slider has come.

const { argmax, range, sum } = numbers;
const step = data.steps.indexOf(state.step);
const head = data.heads.indexOf(state.head);
const heads = data.maps[step];
const rows = head > 0 ? heads[head - 1] : heads[0].map((row, i) =>
  row.map((_, j) => sum(heads.map((map) => map[i][j])) / heads.length));
const mean = sum(rows.map((row, i) => row[i + 1])) / rows.length;
const most = rows.filter((row, i) => argmax(row) === i + 1).length;
const written = data.written[step];
const right = [...written].filter((symbol, i) => symbol === data.source[i + 1]).length;

const size = 24, left = 62, top = 46, wide = size * data.source.length;
const base = top + size * rows.length + 130, tall = 100;
const svg = view.svg(left + wide + 10, base + 26,
  `attention of ${rows.length} steps, and the loss below`);
const write = (x, y, text, more = {}) => view.add(svg, "text", { x, y, text, ...more });
write(0, 14, "source read →");
write(0, 36, "written");
[...data.source].forEach((symbol, j) => write(left + size * (j + 0.5), top - 8, symbol,
  { "text-anchor": "middle", class: "code" }));
rows.forEach((weights, i) => {
  const fine = written[i] === data.source[i + 1];
  write(left - 10, top + size * (i + 0.5) + 5, fine ? written[i] : `✗ ${written[i]}`,
    { "text-anchor": "end", class: fine ? "code" : "code strong" });
  weights.forEach((weight, j) => view.add(svg, "rect", {
    x: left + size * j + 2, y: top + size * i + 2, width: size - 4, height: size - 4,
    fill: "var(--accent)", "fill-opacity": weight.toFixed(3),
    stroke: j === i + 1 ? "var(--second)" : "currentColor",
    "stroke-width": j === i + 1 ? 2.5 : 1, "stroke-opacity": j === i + 1 ? 1 : 0.15,
  }));
});

const x = (n) => left + (wide * n) / data.steps[data.steps.length - 1];
const y = (loss) => base - (tall * loss) / data.losses[0];
const line = (last, stroke, opacity, width) => view.add(svg, "polyline", {
  points: range(last + 1).map((i) => `${x(data.steps[i])},${y(data.losses[i])}`).join(" "),
  fill: "none", stroke, "stroke-opacity": opacity, "stroke-width": width,
});
write(left - 10, base - tall + 5, "loss", { "text-anchor": "end" });
write(left - 10, base + 5, "0", { "text-anchor": "end" });
write(left + wide, base + 20, `step ${data.steps[data.steps.length - 1]}`,
  { "text-anchor": "end" });
view.add(svg, "line", { x1: left, y1: base, x2: left + wide, y2: base,
  stroke: "currentColor", "stroke-opacity": 0.4 });
for (const [name, level] of data.levels) {
  view.add(svg, "line", { x1: left, y1: y(level), x2: left + wide, y2: y(level),
    stroke: "currentColor", "stroke-opacity": 0.3, "stroke-dasharray": "4 3" });
  write(left + wide, y(level) - 4, `${name}: ${level.toFixed(2)}`, { "text-anchor": "end" });
}
line(data.steps.length - 1, "currentColor", 0.3, 1.5);
line(step, "var(--accent)", 1, 2.5);
view.add(svg, "circle", { cx: x(state.step), cy: y(data.losses[step]), r: 5,
  fill: "var(--accent)" });

return {
  values: { mean, most, right, loss: data.losses[step] },
  says: `After ${state.step} steps the loss is ${data.losses[step].toPrecision(2)} and `
    + `${right} of ${rows.length} symbols are written right. Of the weight, `
    + `${(100 * mean).toFixed(0)} % lies on the framed positions; ${most} of ${rows.length} `
    + "rows look most at theirs.",
};
