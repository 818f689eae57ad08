// Chapter 05: the table of sinusoids and its dot products, for any base and width;
// body of function (state, data, view, numbers).

const width = Number(state.width), base = Number(state.base), p = Number(state.position);
const pairs = width / 2, length = data.length;
const speeds = Array.from({ length: pairs }, (_, i) => Math.pow(base, (-2 * i) / width));
const alike = Array.from({ length }, (_, q) =>
  numbers.sum(speeds.map((w) => Math.cos((p - q) * w))) / pairs);
const longest = (2 * Math.PI) / speeds[pairs - 1];
let twin = -1;
alike.forEach((value, q) => {
  if (Math.abs(q - p) >= data.apart && (twin < 0 || value > alike[twin])) twin = q;
});

const left = 52, step = Math.min(9, (view.width() - left - 12) / length), high = 128, top = 22;
const across = step * length, row = high / width, below = top + high + 52, tall = 110;
view.svg(left + across + 12, below + tall + 40,
  `the table of ${length} positions and ${width} dimensions, as shades, and below it the `
  + `similarity of every position to position ${p}`);
view.text(left, 14, "the table: orange = −1, blue = 1");
for (let q = 0; q < length; q += 1) {
  for (let i = 0; i < width; i += 1) {
    const angle = q * speeds[i >> 1];
    const value = i % 2 ? Math.cos(angle) : Math.sin(angle);
    view.rect(left + step * q, (top + row * i).toFixed(2), step, row.toFixed(2), {
      fill: value < 0 ? "var(--second)" : "var(--accent)",
      "fill-opacity": Math.abs(value).toFixed(3),
    });
  }
}
view.text(left - 6, top + 10, "dim 0", { "text-anchor": "end" });
view.text(left - 6, top + high, width - 1, { "text-anchor": "end" });
view.rect(left + step * p, top - 2, step, high + 4, {
  fill: "none", stroke: "currentColor", "stroke-width": 2,
});
const at = (q, value) => [left + step * (q + 0.5), below + (tall * (1 - value)) / 2];
view.text(left, below - 14, `similarity to position ${p}`);
for (const level of [-1, 0, 1]) {
  const y = at(0, level)[1];
  view.line(left, y, left + across, y, { stroke: "currentColor", "stroke-opacity": 0.25 });
  view.text(left - 6, y + 4, level, { "text-anchor": "end" });
}
view.curve(alike.map((value, q) => at(q, value)), { stroke: "var(--accent)", "stroke-width": 2 });
for (let q = 0; q < length; q += 8) {
  view.text(at(q, 0)[0], below + tall + 18, q, { "text-anchor": "middle" });
}
view.text(left + across / 2, below + tall + 35, "position", { "text-anchor": "middle" });
const [px, py] = at(p, 1);
view.circle(px, py, 5, { fill: "var(--second)" });
const [tx, ty] = at(twin, alike[twin]);
view.circle(tx, ty, 6, { fill: "none", stroke: "var(--second)", "stroke-width": 2 });
return {
  values: { alike, longest, twin: alike[twin] },
  room: 140,
  says: `The slowest pair needs ${longest < 1000 ? longest.toFixed(1) : longest.toFixed(0)} `
    + `positions for one turn. Of the positions at least ${data.apart} away from ${p}, the `
    + `most similar is ${twin} (ring), at ${alike[twin].toFixed(2)}.`,
};
