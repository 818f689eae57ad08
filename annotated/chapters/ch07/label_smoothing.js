// Chapter 07: a smoothed target, a model of some confidence, and the loss between
// them; body of function (state, data, view, numbers). The model puts `confidence` on the
// right symbol and shares the rest evenly among the others, nothing on padding.

const { size, smoothing, confidence } = state;
const places = size - 2; // neither the right symbol nor the padding
const share = smoothing / places, own = 1 - smoothing;
const term = (goal, guess) => (goal > 0 ? goal * Math.log(goal / guess) : 0);
const loss = (p) => term(own, p) + places * term(share, (1 - p) / places);
const now = loss(confidence);
const slope = -own / confidence + (1 - own) / (1 - confidence);
const gap = share > 0 ? Math.log(own / share) : null;
const lead = Math.log(confidence * places / (1 - confidence)); // the model's own

const wide = Math.max(290, Math.min(view.width(), 688));
const left = 60, right = wide - 14, high = 34, base = 214, most = 4;
// even in the logit: both ends of the probabilities are stretched, or the rise towards
// certainty would be two pixels wide
const logit = (p) => Math.log(p / (1 - p));
const low = logit(0.005), top = logit(0.9997);
const x = (p) => left + (right - left)
  * (Math.max(low, Math.min(top, logit(p))) - low) / (top - low);
const y = (value) => base - (base - high) * Math.min(value, most) / most;
view.svg(wide, base + 128, "loss against confidence, and both distributions");
const text = (at, level, words, style = "", anchor = "start") =>
  view.text(at, level, words, { style, "text-anchor": anchor });
const MUTED = "fill: var(--at-muted)", MODEL = "var(--at-this)", TARGET = "var(--at-other)";
for (const level of [0, 1, 2, 3, 4]) {
  view.line(left, y(level), right, y(level), { stroke: level ? "var(--at-rule)" : TARGET });
  text(left - 8, y(level) + 4, level, MUTED, "end");
}
for (const p of [0.01, 0.1, 0.5, 0.9, 0.99, 0.999]) text(x(p), base + 18, p, MUTED, "middle");
text(0, 16, "loss (nats)");
text((left + right) / 2, base + 36, "probability of the right symbol", "", "middle");
const curve = (of, more) => {
  const points = [];
  for (let i = 0; i <= 400; i += 1) {
    const p = numbers.sigmoid(low + (top - low) * i / 400);
    const value = of(p);
    if (value <= most) points.push([x(p), y(value)]);
  }
  view.curve(points, more);
};
curve((p) => -Math.log(p), { stroke: TARGET, "stroke-width": 2, "stroke-dasharray": "2 3" });
curve(loss, { stroke: "var(--at-ink)", "stroke-width": 2.5 });
view.line(x(own), high - 8, x(own), base, { stroke: TARGET, "stroke-width": 2 });
text(x(0.05) + 4, y(-Math.log(0.05)) - 6, "without smoothing",
  `${MUTED}; paint-order: stroke; stroke: var(--at-paper); stroke-width: 5px`);
text(x(own) - 6, high - 10, `target ${own.toFixed(3)}`, MUTED, "end");
view.circle(x(confidence), y(now), 7, { fill: MODEL });

// two bars: what the target gives to the right symbol, and what the model gives
[["target", own, TARGET, share], ["model", confidence, MODEL, (1 - confidence) / places]]
  .forEach(([name, mine, colour, each], i) => {
    const edge = base + 52 + 40 * i, long = right - left;
    text(left - 8, edge + 14, name, `fill: ${colour}; font-weight: 600`, "end");
    view.rect(left, edge, long * mine, 18, { fill: colour });
    view.rect(left + 0.5, edge + 0.5, long - 1, 17, { fill: "none", stroke: TARGET });
    const little = each > 0 && each < 1e-3 ? numbers.scientific(each, 1) : each.toPrecision(2);
    text(left, edge + 32, `right ${mine.toFixed(3)}, ${places} other${places > 1 ? "s" : ""} at ${little}`);
  });
const ahead = `${Math.abs(lead).toFixed(2)} ${lead < 0 ? "behind" : "ahead"}`;
const verdict = Math.abs(slope) < 1e-6 ? "no push"
  : Math.abs(own - confidence) < 5e-4 ? "hardly any push"
    : slope < 0 ? "a push to more confidence" : "a push to less confidence";
return {
  values: { own, share, loss: now, slope, gap: gap === null ? 0 : gap },
  room: 150,
  says: `Loss ${numbers.fixed(now, 3)} nats, with ${verdict}. `
    + (gap === null ? "However far the right logit is ahead of every other logit, farther is "
      + `better; the model's is ${ahead}.`
      : `Best where the right logit is ${gap.toFixed(2)} ahead of every other logit; `
        + `the model's is ${ahead}.`),
};
