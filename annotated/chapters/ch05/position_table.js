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
const svg = view.svg(left + across + 12, below + tall + 40,
  `the table of ${length} positions and ${width} dimensions, as shades, and below it the `
  + `similarity of every position to position ${p}`);
view.add(svg, "text", { x: left, y: 14, text: "the table: orange = −1, blue = 1" });
for (let q = 0; q < length; q += 1) {
  for (let i = 0; i < width; i += 1) {
    const angle = q * speeds[i >> 1];
    const value = i % 2 ? Math.cos(angle) : Math.sin(angle);
    view.add(svg, "rect", {
      x: left + step * q, y: (top + row * i).toFixed(2), width: step, height: row.toFixed(2),
      fill: value < 0 ? "var(--second)" : "var(--accent)",
      "fill-opacity": Math.abs(value).toFixed(3),
    });
  }
}
view.add(svg, "text", { x: left - 6, y: top + 10, "text-anchor": "end", text: "dim 0" });
view.add(svg, "text", { x: left - 6, y: top + high, "text-anchor": "end", text: width - 1 });
view.add(svg, "rect", {
  x: left + step * p, y: top - 2, width: step, height: high + 4, fill: "none",
  stroke: "currentColor", "stroke-width": 2,
});
const at = (q, value) => [left + step * (q + 0.5), below + (tall * (1 - value)) / 2];
view.add(svg, "text", { x: left, y: below - 14, text: `similarity to position ${p}` });
for (const level of [-1, 0, 1]) {
  const y = at(0, level)[1];
  view.add(svg, "line", {
    x1: left, x2: left + across, y1: y, y2: y, stroke: "currentColor", "stroke-opacity": 0.25,
  });
  view.add(svg, "text", { x: left - 6, y: y + 4, "text-anchor": "end", text: level });
}
view.add(svg, "polyline", {
  points: alike.map((value, q) => at(q, value).map((z) => z.toFixed(1)).join(",")).join(" "),
  fill: "none", stroke: "var(--accent)", "stroke-width": 2,
});
for (let q = 0; q < length; q += 8) {
  view.add(svg, "text", {
    x: at(q, 0)[0], y: below + tall + 18, "text-anchor": "middle", text: q,
  });
}
view.add(svg, "text", {
  x: left + across / 2, y: below + tall + 35, "text-anchor": "middle", text: "position",
});
const [px, py] = at(p, 1);
view.add(svg, "circle", { cx: px, cy: py, r: 5, fill: "var(--second)" });
const [tx, ty] = at(twin, alike[twin]);
view.add(svg, "circle", {
  cx: tx, cy: ty, r: 6, fill: "none", stroke: "var(--second)", "stroke-width": 2,
});
return {
  values: { alike, longest, twin: alike[twin] },
  room: 140,
  says: `The slowest pair needs ${longest < 1000 ? longest.toFixed(1) : longest.toFixed(0)} `
    + `positions for one turn. Of the positions at least ${data.apart} away from ${p}, the `
    + `most similar is ${twin} (ring), at ${alike[twin].toFixed(2)}.`,
};
