// Chapter 08: cross-attention while the copy task is learned; body of function
// (state, data, view, numbers). data.maps[step][head][query][key], all heads side by side; at
// query i the symbol to be written is that of source position i + 1. With them the loss, as
// far as the slider has come.

const { range, sum } = numbers;
const step = data.steps.indexOf(state.step);
const heads = data.maps[step], written = data.written[step];
const spots = heads.map((rows) => sum(rows.map((row, i) => row[i + 1])) / rows.length);
const right = [...written].filter((symbol, i) => symbol === data.source[i + 1]).length;
const percent = (share) => `${(100 * share).toFixed(0)} %`;

// where there is room, the loss stands beside the heads, else below them
const beside = view.width() >= 600, left = 36, gap = 16;
const across = beside ? 400 : Math.min(340, view.width() - left - gap - 4);
const size = Math.floor(across / (2 * data.source.length)), side = size * data.source.length;
const high = size * written.length, wide = 2 * side + gap;
const top = (h) => 42 + Math.floor(h / 2) * (high + 52);
const low = top(heads.length) - 50;
const chart = beside
  ? { left: left + wide + 44, base: low - 20, wide: view.width() - left - wide - 52 }
  : { left, base: low + 120, wide };
const { base } = chart, tall = beside ? base - 62 : 100;
const svg = view.svg(beside ? view.width() : left + wide + 4, beside ? low + 8 : base + 24,
  `attention of ${heads.length} heads, and the loss ${beside ? "beside them" : "below"}`);
const write = view.text;
heads.forEach((rows, h) => {
  const x0 = left + (h % 2) * (side + gap), y0 = top(h);
  write(x0, y0 - 24, `head ${h}: ${percent(spots[h])}`, { class: "strong" });
  [...data.source].forEach((symbol, j) => write(x0 + size * (j + 0.5), y0 - 5, symbol,
    { "text-anchor": "middle", class: "code" }));
  rows.forEach((weights, i) => {
    const fine = written[i] === data.source[i + 1];
    if (h % 2 === 0) write(left - 5, y0 + size * (i + 0.5) + 5,
      fine ? written[i] : `✗ ${written[i]}`,
      { "text-anchor": "end", class: fine ? "code" : "code strong" });
    weights.forEach((weight, j) => view.add(svg, "rect", {
      x: x0 + size * j + 1, y: y0 + size * i + 1, width: size - 2, height: size - 2,
      fill: "var(--accent)", "fill-opacity": weight.toFixed(3),
      stroke: j === i + 1 ? "var(--second)" : "currentColor",
      "stroke-width": j === i + 1 ? 2 : 1, "stroke-opacity": j === i + 1 ? 1 : 0.15,
    }));
  });
});

const x = (n) => chart.left + (chart.wide * n) / data.steps[data.steps.length - 1];
const y = (loss) => base - (tall * loss) / data.losses[0];
const line = (last, stroke, opacity, width) => view.add(svg, "polyline", {
  points: range(last + 1).map((i) => `${x(data.steps[i])},${y(data.losses[i])}`).join(" "),
  fill: "none", stroke, "stroke-opacity": opacity, "stroke-width": width,
});
write(chart.left - 5, base - tall + 5, "loss", { "text-anchor": "end" });
write(chart.left - 5, base + 5, "0", { "text-anchor": "end" });
write(chart.left + chart.wide, base + 19, `step ${data.steps[data.steps.length - 1]}`,
  { "text-anchor": "end" });
view.add(svg, "line", { x1: chart.left, y1: base, x2: chart.left + chart.wide, y2: base,
  stroke: "currentColor", "stroke-opacity": 0.4 });
for (const [name, level] of data.levels) {
  view.add(svg, "line", { x1: chart.left, y1: y(level), x2: chart.left + chart.wide, y2: y(level),
    stroke: "currentColor", "stroke-opacity": 0.3, "stroke-dasharray": "4 3" });
  write(chart.left + chart.wide, y(level) - 4, `${name}: ${level.toFixed(2)}`,
    { "text-anchor": "end" });
}
line(data.steps.length - 1, "currentColor", 0.3, 1.5);
line(step, "var(--accent)", 1, 2.5);
view.circle(x(state.step), y(data.losses[step]), 5, { fill: "var(--accent)" });

return {
  values: { spots, right, loss: data.losses[step] },
  room: 155,
  says: `After ${state.step} steps the loss is ${data.losses[step].toPrecision(2)} and `
    + `${right} of ${written.length} symbols are correct. The heads have `
    + `${spots.slice(0, -1).map(percent).join(", ")} and ${percent(spots[spots.length - 1])} `
    + "of their weight on the framed positions.",
};
