// Chapter 07: the Noam schedule by width, warm-up and factor, over the paper's in grey;
// body of function (state, data, view, numbers).

const { width, warmup, factor } = state;
const rateOf = (d, w, f) => (n) => (f / Math.sqrt(d)) * Math.min(n * w ** -1.5, n ** -0.5);
const rate = rateOf(width, warmup, factor);
const paper = rateOf(512, 4000, 1);
const peak = rate(warmup);
const grey = paper(4000);
const number = (value) => numbers.scientific(value, 2);

const all = Math.max(300, Math.min(620, view.width() - 8));
const left = 48, right = all - 18, high = 44, base = 240;
const x = (n) => left + (right - left) * n / data.last;
const y = (value) => base - (base - high) * Math.min(value, data.top) / data.top;
const svg = view.svg(all, base + 46, `the learning rate of ${data.last} steps`);
for (const level of [0, 0.25, 0.5, 0.75, 1]) {
  view.add(svg, "line", {
    x1: left, x2: right, y1: y(level * data.top), y2: y(level * data.top),
    stroke: "currentColor", "stroke-opacity": level ? 0.2 : 0.8,
  });
  view.add(svg, "text", {
    x: left - 8, y: y(level * data.top) + 4, "text-anchor": "end",
    text: (level * data.top * 1000).toFixed(1),
  });
}
for (const part of [0, 0.5, 1]) {
  view.add(svg, "text", {
    x: x(part * data.last), y: base + 18, text: part * data.last,
    "text-anchor": part === 0 ? "start" : part === 1 ? "end" : "middle",
  });
}
view.add(svg, "text", {
  x: (left + right) / 2, y: base + 38, "text-anchor": "middle", text: "training step",
});
view.add(svg, "text", { x: 4, y: 16, text: "learning rate (thousandths)" });

// steps closer together where the curve bends, and the corner itself
const path = (of, corner, more) => {
  const steps = [corner];
  for (let i = 0; i <= 200; i += 1) steps.push(1 + (data.last - 1) * (i / 200) ** 2);
  const points = steps.sort((one, other) => one - other)
    .map((n) => `${x(n).toFixed(1)},${y(of(n)).toFixed(1)}`);
  view.add(svg, "polyline", { points: points.join(" "), fill: "none", ...more });
};
path(paper, 4000, { stroke: "currentColor", "stroke-opacity": 0.35, "stroke-width": 7 });
path(rate, warmup, { stroke: "var(--accent)", "stroke-width": 3 });
view.add(svg, "circle", { cx: x(warmup), cy: y(peak), r: 6, fill: "var(--second)" });

const times = peak / grey;
const first = rate(1) / paper(1), last = rate(data.last) / paper(data.last);
const equal = (share) => Math.abs(share - 1) < 0.015;
const height = equal(times) ? "as high as the paper's" : `${times.toFixed(2)} times the paper's`;
const place = warmup === 4000 ? "at the same step"
  : `${Math.abs(warmup - 4000)} steps ${warmup < 4000 ? "earlier" : "later"}`;
const part = equal(first) && equal(last) ? "The whole curve lies on the grey one."
  : equal(last) ? "After the peak the curves are the same."
    : equal(first) ? "Up to the first peak the curves are the same."
      : `Step 1 has ${first.toFixed(2)} times the paper's rate, `
        + `step ${data.last} has ${last.toFixed(2)} times.`;
return {
  values: { peak: peak * 1000, times, first, last },
  says: `The peak is ${number(peak)}, ${height}, ${place}. ${part}`
    + (peak > data.top ? " It is beyond the top of the axis." : ""),
};
