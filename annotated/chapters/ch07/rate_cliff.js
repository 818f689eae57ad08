// Chapter 07: where recorded runs end, by peak learning rate and schedule; body of
// function (state, data, view, numbers). Left the rate, step by step; right the loss at
// the end. Blue is what was chosen, grey the other schedules.

const chosen = data.schedules.findIndex((one) => one.name === state.schedule);
const at = data.rates.indexOf(state.rate);
const wide = Math.max(290, Math.min(view.width(), 688));
const beside = wide >= 540;
view.svg(wide, beside ? 330 : 500, "the learning rate step by step, and the loss at the end");

const text = (x, y, words, style = "", anchor = "start") =>
  view.text(x, y, words, { style, "text-anchor": anchor });
const MUTED = "fill: var(--at-muted)";
const line = (x1, y1, x2, y2, more) =>
  view.line(x1, y1, x2, y2, { stroke: "var(--at-rule)", ...more });
const path = (points, i) => view.curve(points, {
  "stroke-linejoin": "round", ...(i === chosen ? { stroke: "var(--at-this)", "stroke-width": 3 }
    : { stroke: "var(--at-other)", "stroke-width": 1.75, "stroke-opacity": 0.7 }),
});
// the others first, so that the chosen one lies on top
const order = numbers.range(data.schedules.length).filter((i) => i !== chosen).concat(chosen);

// left: the rate over 300 steps
const left = 40, right = beside ? wide * 0.4 : wide - 16, high = 30, low = beside ? 272 : 150;
const x = (step) => left + (right - left) * step / data.steps;
const height = (rate) => low - (low - high) * rate / data.rates.at(-1);
text(0, 14, "learning rate");
for (const rate of [0, 0.01, 0.02, 0.03]) {
  line(left, height(rate), right, height(rate), rate ? {} : { stroke: "var(--at-other)" });
  text(left - 7, height(rate) + 4, rate, MUTED, "end");
}
for (const i of order) {
  path(data.schedules[i].shape.map((share, n) => [x(n * data.every), height(share * state.rate)]), i);
}
for (const step of [0, 100, 200, 300]) text(x(step), low + 18, step, MUTED, "middle");
text((left + right) / 2, low + 38, "training step", "", "middle");

// right: where three seeds end
const from = beside ? right + 52 : 40, to = wide - 16, top = beside ? 30 : 228, base = beside ? 272 : 440;
const y = (value) => base - (base - top) * value / 2.6;
const place = (i) => from + 16 + (to - from - 32) * i / (data.rates.length - 1);
text(from - 24, top - 16, "loss after 300 steps (nats)");
for (const level of [0, 1, 2]) {
  line(from, y(level), to, y(level), level ? {} : { stroke: "var(--at-other)" });
  text(from - 8, y(level) + 4, level, MUTED, "end");
}
line(from, y(data.floor), to, y(data.floor), { stroke: "var(--at-ink)", "stroke-dasharray": "4 4" });
text(from + 2, y(data.floor) - 7, "symbol frequencies alone");
line(place(at), top, place(at), base, { stroke: "var(--at-this)", "stroke-opacity": 0.12, "stroke-width": 34 });
for (const i of order) path(data.schedules[i].median.map((value, j) => [place(j), y(value)]), i);
const ends = data.schedules[chosen].ends[at], median = data.schedules[chosen].median[at];
for (const end of ends) {
  view.circle(place(at), y(end), 6, {
    fill: "var(--at-this)", stroke: "var(--at-paper)", "stroke-width": 1.5,
  });
}
data.rates.forEach((rate, i) => text(place(i), base + 18, rate, i === at ? "font-weight: 700" : MUTED, "middle"));
text((from + to) / 2, base + 38, "peak learning rate", "", "middle");

const least = Math.min(...ends), most = Math.max(...ends), near = data.floor - 0.05;
const verdict = least > near ? "No run has learned more than the symbol frequencies."
  : most > near ? "At least one is stuck at the symbol frequencies." : "All have learned more than the symbol frequencies.";
return {
  values: { median, least, most },
  room: 100,
  says: `Three runs end at ${ends.map((end) => numbers.fixed(end, 2)).join(", ")} nats. ${verdict}`,
};
