// Chapter 07: a smoothed target, a model of some confidence, and the loss between
// them; body of function (state, data, view, numbers). The model puts `confidence` on the
// right symbol and shares the rest evenly among the others, nothing on padding.

const { size, smoothing, confidence } = state;
const all = state.spread === data.all;
const rest = size - 2; // neither the right symbol nor the padding
const share = smoothing / (all ? size : rest);
const own = 1 - smoothing + (all ? share : 0);
const term = (goal, guess) => (goal > 0 ? goal * Math.log(goal / guess) : 0);
// under "all" the padding gets a share as well: the model gives it what each other gets
const places = all ? rest + 1 : rest;
const loss = (p) => term(own, p) + places * term(share, (1 - p) / places);
const now = loss(confidence);
const slope = -own / confidence + (1 - own) / (1 - confidence);
const gap = share > 0 ? Math.log(own / share) : null;
const lead = Math.log(confidence * places / (1 - confidence)); // the model's own

const width = Math.max(300, Math.min(620, view.width() - 8));
const left = 30, right = width - 12, high = 34, base = 206, most = 4;
// even in the logit: both ends of the probabilities are stretched, or the rise towards
// certainty would be two pixels wide
const logit = (p) => Math.log(p / (1 - p));
const low = logit(0.005), top = logit(0.9997);
const x = (p) => left + (right - left)
  * (Math.max(low, Math.min(top, logit(p))) - low) / (top - low);
const y = (value) => base - (base - high) * Math.min(value, most) / most;
const svg = view.svg(width, base + 150, "loss against confidence, and both distributions");
for (const level of [0, 1, 2, 3, 4]) {
  view.add(svg, "line", {
    x1: left, x2: right, y1: y(level), y2: y(level), stroke: "currentColor",
    "stroke-opacity": level ? 0.2 : 0.8,
  });
  view.add(svg, "text", { x: left - 6, y: y(level) + 4, "text-anchor": "end", text: level });
}
for (const p of [0.01, 0.1, 0.5, 0.9, 0.99, 0.999]) {
  view.add(svg, "text", { x: x(p), y: base + 18, "text-anchor": "middle", text: p });
}
view.add(svg, "text", { x: left, y: 16, text: "loss (nats)" });
view.add(svg, "text", {
  x: (left + right) / 2, y: base + 36, "text-anchor": "middle",
  text: "probability of the right symbol",
});
const curve = (of, more) => {
  const points = [];
  for (let i = 0; i <= 400; i += 1) {
    const p = numbers.sigmoid(low + (top - low) * i / 400);
    const value = of(p);
    if (value <= most) points.push(`${x(p).toFixed(1)},${y(value).toFixed(1)}`);
  }
  view.add(svg, "polyline", { points: points.join(" "), fill: "none", ...more });
};
curve((p) => -Math.log(p), { stroke: "currentColor", "stroke-opacity": 0.35, "stroke-width": 5 });
curve(loss, { stroke: "var(--accent)", "stroke-width": 3 });
view.add(svg, "line", {
  x1: x(own), x2: x(own), y1: high, y2: base, stroke: "currentColor", "stroke-dasharray": "4 4",
});
view.add(svg, "text", {
  x: x(own) - 6, y: high + 10, "text-anchor": "end", text: `target ${own.toFixed(3)}`,
});
view.add(svg, "circle", {
  cx: x(confidence), cy: y(now), r: 6, fill: "var(--second)",
});

// two bars: what the target gives to the right symbol, and what the model gives
const rows = [["target", own, "var(--accent)"], ["model", confidence, "var(--second)"]];
const from = left + 36, long = right - from;
rows.forEach(([name, mine, colour], i) => {
  const edge = base + 56 + 46 * i;
  view.add(svg, "text", { x: from - 8, y: edge + 17, "text-anchor": "end", text: name });
  view.add(svg, "rect", { x: from, y: edge, width: long * mine, height: 24, fill: colour });
  view.add(svg, "rect", {
    x: from, y: edge, width: long, height: 24, fill: "none", stroke: "currentColor",
  });
  const each = i === 0 ? share : (1 - confidence) / places;
  const little = each > 0 && each < 1e-3 ? numbers.scientific(each, 1) : each.toPrecision(2);
  view.add(svg, "text", {
    x: left, y: edge + 38,
    text: `right ${mine.toFixed(3)}, ${places} other${places > 1 ? "s" : ""} at ${little}`,
  });
});
const verdict = Math.abs(slope) < 1e-6 ? "no push"
  : Math.abs(own - confidence) < 5e-4 ? "hardly any push"
    : slope < 0 ? "a push to more confidence" : "a push to less confidence";
return {
  values: { own, share, loss: now, slope, gap: gap === null ? 0 : gap },
  says: `Loss ${numbers.fixed(now, 3)} nats, with ${verdict}. `
    + (gap === null ? "No logit is ever far enough ahead."
      : `Best where the right logit is ${gap.toFixed(2)} ahead of every other logit; `
        + `the model's is ${lead.toFixed(2)}.`),
};
