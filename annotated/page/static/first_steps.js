// Chapter 07: the first sixty steps of recorded runs, by number and size of the small
// steps before the high rate; body of function (state, data, view, numbers). Three thin
// lines, one a seed, over the runs without small steps in grey.

const { number, size } = state;
const runs = data.runs[number ? `${number} ${size}` : "0"];
const high = data.runs["0"];
const { fixed } = numbers;

const wide = Math.max(290, Math.min(620, view.width() - 8));
const left = 52, right = wide - 14;
const x = (step) => left + (right - left) * step / data.steps;
const svg = view.svg(wide, 400, "loss and differences of three runs over sixty steps");
const text = (at, y, content, more) => view.add(svg, "text", { x: at, y, text: content, ...more });
const line = (x1, y1, x2, y2, more) => view.add(svg, "line", {
  x1, x2, y1, y2, stroke: "currentColor", "stroke-opacity": 0.2, ...more,
});
const panel = (top, base, low, most, ticks, title) => {
  const y = (value) => base - (base - top) * (Math.max(low, Math.min(most, value)) - low)
    / (most - low);
  text(4, top - 12, title);
  for (const [value, name] of ticks) {
    line(left, y(value), right, y(value));
    text(left - 8, y(value) + 4, name, { "text-anchor": "end" });
  }
  return y;
};
const draw = (values, first, y, more) => view.add(svg, "polyline", {
  points: values.map((value, i) => `${x(first + data.every * i).toFixed(1)},${y(value).toFixed(1)}`)
    .join(" "),
  fill: "none", ...more,
});
const grey = { stroke: "currentColor", "stroke-opacity": 0.3, "stroke-width": 4 };
const blue = { stroke: "var(--accent)", "stroke-width": 2 };

const loss = panel(34, 184, 0.8, 3.5, [1, 1.5, 2, 2.5, 3, 3.5].map((v) => [v, v.toFixed(1)]),
  "loss (nats)");
for (const [value, name] of data.lines) {
  line(left, loss(value), right, loss(value), { "stroke-opacity": 0.9, "stroke-dasharray": "5 4" });
  text(right, loss(value) + (value > 2 ? -5 : 14), name, { "text-anchor": "end" });
}
const log = (value) => Math.log10(Math.max(value, 1e-5));
const differ = panel(222, 356, -5, 0, [[0, "1"], [-1, "0.1"], [-2, "0.01"], [-3, "0.001"],
  [-4, "0.0001"]], "how much the outputs differ");
// the mean of five steps stands in their middle
const middle = (data.every + 1) / 2;
for (const [those, look] of [[high, grey], [runs, blue]]) {
  for (const run of those) {
    draw(run.losses, middle, loss, look);
    draw(run.differ.map(log), 0, differ, look);
  }
}
if (number) {
  line(x(number), 34, x(number), 356, {
    stroke: "var(--second)", "stroke-opacity": 1, "stroke-dasharray": "2 3", "stroke-width": 2,
  });
}
for (const step of [0, 20, 40, 60]) text(x(step), 374, step, { "text-anchor": "middle" });
text((left + right) / 2, 393, "training step", { "text-anchor": "middle" });

const ends = runs.map((run) => run.losses.at(-1));
const alike = runs.filter((run) => run.differ.at(-1) < data.alike).length;
const first = number
  ? `${number} step${number > 1 ? "s" : ""} of ${size}, then 0.01.` : "0.01 from step 1.";
const verdict = ["no run has", "one run of three has", "two runs of three have", "all three runs have"][alike];
return {
  values: { alike, mean: numbers.sum(ends) / ends.length },
  says: `${first} At step ${data.steps}, ${verdict} collapsed (its outputs then differ by less `
    + `than a hundredth). The losses are ${ends.map((end) => fixed(end, 2)).join(", ")}.`,
};
