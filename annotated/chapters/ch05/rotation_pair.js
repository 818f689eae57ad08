// Chapter 05: one pair of dimensions as the hand of a clock; body of function
// (state, data, view, numbers).

const p = Number(state.position), s = Number(state.steps), i = Number(state.pair);
const speed = Math.pow(data.base, (-2 * i) / data.width);
const pair = (q) => [Math.sin(q * speed), Math.cos(q * speed)];
const now = pair(p), then = pair(p + s);
const between = (s * speed) / (2 * Math.PI);  // in turns
const matrix = [Math.cos(s * speed), Math.sin(s * speed),
  -Math.sin(s * speed), Math.cos(s * speed)];

// on a phone the numbers stand below the circle
const narrow = view.width() < 480;
const ring = 100, middle = narrow ? 122 : 140, level = 150;
const left = narrow ? 20 : 350, top = narrow ? 310 : 86;
view.svg(narrow ? 310 : 620, narrow ? 470 : 280,
  `a circle with the points of position ${p} and of position ${p + s}`);
// like the hand of a clock: at position 0 it points up, and it turns to the right
const at = ([sine, cosine], r) => [middle + r * sine, level - r * cosine];
const line = (from, to, more) => view.line(...from, ...to, { stroke: "currentColor", ...more });
view.circle(middle, level, ring, { fill: "none", stroke: "currentColor", "stroke-opacity": 0.4 });
line([middle - ring - 14, level], [middle + ring + 14, level], { "stroke-opacity": 0.25 });
line([middle, level - ring - 14], [middle, level + ring + 14], { "stroke-opacity": 0.25 });
view.text(middle, 20, `↑ dim ${2 * i + 1}, cosine`, { "text-anchor": "middle" });
view.text(middle + ring + 18, level - 4, `→ dim ${2 * i},`);
view.text(middle + ring + 18, level + 14, "sine");
// the way from the first point to the second, without the whole turns
const whole = Math.floor(between), rest = between - whole;
const turn = rest * 2 * Math.PI, arc = [];
for (let j = 0; j <= 60; j += 1) {
  const angle = p * speed + (turn * j) / 60;
  arc.push(at([Math.sin(angle), Math.cos(angle)], 40));
}
view.curve(arc, { stroke: "var(--second)", "stroke-width": 3 });
const tip = at(now, ring), end = at(then, ring);
line([middle, level], tip, { stroke: "var(--accent)", "stroke-width": 3 });
line([middle, level], end, {
  stroke: "var(--second)", "stroke-width": 3, "stroke-dasharray": "6 4",
});
view.circle(tip[0], tip[1], 6, { fill: "var(--accent)" });
view.rect(end[0] - 6, end[1] - 6, 12, 12, { fill: "var(--second)" });
const number = (z) => numbers.fixed(z, 2);
const lines = [
  ["strong", `pair ${i}: ${speed.toPrecision(3)} radians per position`],
  ["", `● p = ${p}, ■ p + s = ${p + s}`],
  ["", whole ? `the arc, without whole turns: ${rest.toFixed(3)}` : "the arc: from ● to ■"],
  ["strong", `the matrix for s = ${s}`],
];
const height = (j) => top + 24 * j + (j > 2 ? 10 : 0);
lines.forEach(([kind, text], j) => {
  view.text(left, height(j), text, (kind ? { class: kind } : {}));
});
matrix.forEach((z, j) => {
  view.text(left + 40 + 60 * (j % 2), height(4 + (j >> 1)), number(z), { "text-anchor": "end" });
});
return {
  values: { now, then, between, matrix },
  room: 95,
  says: `(Sine, cosine) of position ${p} is (${number(now[0])}, ${number(now[1])}), of ${p + s} `
    + `(${number(then[0])}, ${number(then[1])}), ${between.toFixed(3)} turns further.`,
};
