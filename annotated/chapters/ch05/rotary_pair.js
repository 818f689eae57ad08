// Chapter 05: one pair of a query and a key, turned by their positions; body of function
// (state, data, view, numbers).

const r = Number(state.key), p = r + Number(state.offset), speed = Number(state.speed);
const turned = ([a, b], angle) => [
  a * Math.cos(angle) - b * Math.sin(angle), a * Math.sin(angle) + b * Math.cos(angle),
];
const q = turned(data.query, p * speed), k = turned(data.key, r * speed);
const score = numbers.dot(q, k);

// on a phone the numbers stand below the circle
const narrow = view.width() < 480, size = 52, middle = narrow ? 150 : 140, level = 140;
const left = narrow ? 20 : 320, top = narrow ? 310 : 66;
view.svg(narrow ? 310 : 600, narrow ? 450 : 280,
  `a query turned for position ${p} and a key turned for position ${r}`);
const at = ([a, b]) => [middle + size * a, level - size * b];
view.circle(middle, level, size * 2.4, {
  fill: "none", stroke: "currentColor", "stroke-opacity": 0.25,
});
const arrow = (vector, more) => {
  const [x, y] = at(vector);
  view.line(middle, level, x, y, { "stroke-width": 3, ...more });
  return [x, y];
};
// where they point without a position
arrow(data.query, { stroke: "var(--at-query)", "stroke-width": 1.5, "stroke-opacity": 0.45 });
arrow(data.key, {
  stroke: "var(--at-key)", "stroke-width": 1.5, "stroke-opacity": 0.45,
  "stroke-dasharray": "6 4",
});
const [qx, qy] = arrow(q, { stroke: "var(--at-query)" });
const [kx, ky] = arrow(k, { stroke: "var(--at-key)", "stroke-dasharray": "6 4" });
view.circle(qx, qy, 6, { fill: "var(--at-query)" });
view.rect(kx - 6, ky - 6, 12, 12, { fill: "var(--at-key)" });
const number = (z) => numbers.fixed(z, 2);
const pair = (v) => `(${v.map(number).join(", ")})`;
const lines = [
  ["", `● query at ${p}`],
  ["", `■ key at ${r}`],
  ["", "faint: before turning"],
  ["", `offset p − r = ${String(p - r).replace("-", "−")}`],
  ["strong", `score = ${number(score)}`],
];
lines.forEach(([kind, text], j) => {
  view.text(left, top + 30 * j, text, (kind ? { class: kind } : {}));
});
return {
  values: { score, q, k },
  room: 125,
  says: `The query is turned to ${pair(q)}, the key to ${pair(k)}. ${p === r
    ? "They stand at the same position"
    : `The query stands ${Math.abs(p - r)} ${p < r ? "before" : "after"} the key`}: the score `
    + `is ${number(score)}.`,
};
