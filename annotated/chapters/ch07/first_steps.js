// Chapter 07: the first sixty steps of recorded runs, by number and size of the small
// steps before the high rate; body of function (state, data, view, numbers). Three thin
// lines, one a seed, over the runs without small steps in grey.

const { number, size } = state;
const high = data.runs["0"], runs = data.runs[number ? `${number} ${size}` : "0"];
const wide = Math.max(290, Math.min(view.width(), 688));
const left = 52, right = wide - 14;
const x = (step) => left + (right - left) * step / data.steps;
view.svg(wide, 410, "loss and differences of three runs over sixty steps");
const text = (at, y, words, style = "", more = {}) => view.text(at, y, words, { style, ...more });
const line = (x1, y1, x2, y2, more) =>
  view.line(x1, y1, x2, y2, { stroke: "var(--at-rule)", ...more });
const end = { "text-anchor": "end" }, MUTED = "fill: var(--at-muted)";
const panel = (top, base, low, most, ticks, title) => {
  const y = (value) => base - (base - top) * (Math.max(low, Math.min(most, value)) - low)
    / (most - low);
  text(0, top - 10, title);
  for (const [value, name] of ticks) {
    line(left, y(value), right, y(value));
    text(left - 8, y(value) + 4, name, MUTED, end);
  }
  return y;
};

// what the lines are, in their colours
const first = number ? `${number} step${number > 1 ? "s" : ""} of ${size}, then 0.01` : "0.01 from step 1";
text(left, 14, first, "fill: var(--at-this); font-weight: 600");

const loss = panel(54, 200, 0.8, 3.5, [1, 2, 3].map((v) => [v, v]), "loss (nats)");
data.lines.forEach(([value, name], i) => {
  line(left, loss(value), right, loss(value), { stroke: "var(--at-ink)", "stroke-dasharray": "4 4" });
  text(right, loss(value) + (i ? 15 : -6), name, "", end);
});
const log = (value) => Math.log10(Math.max(value, 1e-5));
const differ = panel(240, 366, -5, 0, [[0, "1"], [-1, "0.1"], [-2, "0.01"], [-3, "0.001"],
  [-4, "0.0001"]], "how much the outputs differ");
if (number) {
  text(right, differ(-3) + 16, "0.01 from step 1", "fill: var(--at-other); font-weight: 600", end);
  view.rect(left, 54, x(number) - left, 312, { fill: "var(--at-this)", "fill-opacity": 0.12 });
}
const draw = (values, from, y, more) =>
  view.curve(values.map((value, i) => [x(from + data.every * i), y(value)]), more);
const middle = (data.every + 1) / 2; // the mean of five steps stands in their middle
for (const [those, colour] of [[high, "var(--at-other)"], [runs, "var(--at-this)"]]) {
  for (const run of those) {
    const look = { stroke: colour, "stroke-width": 2 };
    draw(run.losses, middle, loss, look);
    draw(run.differ.map(log), 0, differ, look);
  }
}
for (const step of [0, 20, 40, 60]) text(x(step), 384, step, MUTED, { "text-anchor": "middle" });
text((left + right) / 2, 404, "training step", "", { "text-anchor": "middle" });

const ends = runs.map((run) => run.losses.at(-1));
const alike = runs.filter((run) => run.differ.at(-1) < data.alike).length;
const flat = runs.filter((run) => run.losses.at(-1) > data.lines[0][0] - data.near).length;
const yet = alike || !flat ? "" : `, but ${["", "one still sits", "two still sit", "all still sit"][flat]} on the line`;
const verdict = ["no run has", "one run has", "two runs have", "all three have"][alike];
return {
  values: { alike, flat, mean: numbers.sum(ends) / ends.length },
  room: 125,
  says: `At step ${data.steps}, ${verdict} collapsed${yet}. `
    + `Losses: ${ends.map((value) => numbers.fixed(value, 2)).join(", ")}.`,
};
