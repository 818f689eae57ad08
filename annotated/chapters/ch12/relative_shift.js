// Chapter 12: the steps of relative_shift on a matrix of addresses, and the line that the
// computer sees; body of function (state, data, view, numbers). All is counted from 1.

const { range } = numbers;
const t = Number(state.queries), s = Number(state.keys), step = Number(state.step);
const query = Math.min(Number(state.query), t);
const distance = Math.min(Number(state.distance), s - 1);

// the line of padded rows; a cell knows its old row, and its distance if it is no zero
const line = [];
for (let row = 1; row <= t; row++) {
  line.push({ row, text: "0" });
  for (let d = s - 1; d >= 0; d--) line.push({ row, distance: d, text: String(10 * row + d) });
}
const cut = (cells, width) => range(t).map((i) => cells.slice(i * width, (i + 1) * width));
const result = cut(line.slice(t), s);
const position = s - t + query, key = position - distance; // among the keys

const rows = step === 0 ? cut(line.filter((cell) => cell.distance !== undefined), s)
  : step < 3 ? cut(line, s + 1) : result;
const columns = step < 3 ? [...(step ? [""] : []), ...range(s).map((c) => String(s - 1 - c))]
  : range(s).map((j) => String(j + 1));
const before = view.once("before", () => ({})); // what the last drawing showed
const moves = step === 3 && before.step === 2 && before.sizes === `${t} ${s}`
  && !window.matchMedia("(prefers-reduced-motion: reduce)").matches;
Object.assign(before, { step, sizes: `${t} ${s}` });

const side = (keys) => Math.max(24, Math.min(38, Math.floor((view.width() - 64) / (keys + 1))));
const size = side(s), [fewest, most] = data.keys;
// the line stands below the largest matrix, with room for the longest: nothing moves
const left = 58, top = 44, under = top + side(fewest) * data.queries + 34;
const small = 22, across = Math.floor((view.width() - 4) / small); // cells of the line
const svg = view.svg(
  Math.max(left + size * (s + 1), small * Math.min(across, line.length)) + 4,
  under + 30 * Math.ceil(data.queries * (most + 1) / across),
  `step ${step}: a matrix of ${t} rows and ${columns.length} columns, and below it its cells in one line`,
);
const write = (x, y, text, anchor) => view.text(x, y, text, { "text-anchor": anchor });
write(0, 14, step < 3 ? "distance →" : "key →", "start");
write(0, 36, "query ↓", "start");
write(0, under - 8, "the same cells, as one line", "start");
columns.forEach((name, c) => write(left + size * (c + 0.5), top - 8, name, "middle"));

const bars = [];
function draw(cell, at, hidden, x, y, width, height, from) {
  const follows = cell.row === query && cell.distance === distance;
  const skipped = step === 2 && at < t;
  const box = view.add(svg, "g", {});
  if (from) { // from where it stood in the old rows
    box.animate(
      [{ transform: `translate(${from[0]}px, ${from[1]}px)` }, { transform: "none" }],
      { duration: 1500, easing: "ease-in-out" },
    );
  }
  const zero = cell.distance === undefined; // a shade for each old row, wherever its cells go
  view.add(box, "rect", {
    x: x + 1, y: y + 1, width: width - 2, height: height - 2, fill: "var(--accent)",
    "fill-opacity": zero || skipped || hidden ? 0 : 0.08 + 0.36 * (cell.row - 1) / (t - 1),
    stroke: follows ? "var(--second)" : "currentColor",
    "stroke-width": follows ? 3 : 1, "stroke-opacity": follows ? 1 : 0.3,
    "stroke-dasharray": skipped || hidden ? "3 3" : "none",
  });
  if (hidden) {
    view.add(box, "path", {
      d: [0.5, 1, 1.5].map((far) => `M${x + Math.max(far - 1, 0) * width} ${y + Math.min(far, 1) * height}`
        + `L${x + Math.min(far, 1) * width} ${y + Math.max(far - 1, 0) * height}`).join(""),
      stroke: "currentColor", "stroke-opacity": 0.3,
    });
  }
  view.add(box, "text", {
    x: x + width / 2, y: y + height / 2 + 5, "text-anchor": "middle",
    text: hidden ? "" : cell.text, class: follows ? "strong" : "",
  });
  if (step === 2 && at >= t && (at - t) % s === 0) bars.push([x, y, height]);
}
let at = 0;
rows.forEach((cells, i) => {
  write(left - 12, top + size * (i + 0.5) + 5, String(i + 1), "end");
  cells.forEach((cell, c) => {
    const was = t + at; // in the old rows
    const from = moves && [
      size * (was % (s + 1) - c), size * (Math.floor(was / (s + 1)) - i),
    ];
    const hidden = step === 4 && c > s - t + i;
    draw(cell, at, hidden, left + size * c, top + size * i, size, size, from);
    draw(cell, at, hidden, small * (at % across), under + 30 * Math.floor(at / across), small, 26);
    at += 1;
  });
});
for (const [x, y, height] of bars) { // last, so that no cell covers them
  view.line(x, y, x, y + height, { stroke: "currentColor", "stroke-width": 4 });
}

const name = 10 * query + distance;
const plural = (n) => `${n} ${n === 1 ? "column" : "columns"}`;
const lands = (words) => (key > 0 ? words
  : `${name} belongs to a key before the first one: it's skipped, or stands where the mask hides it.`);
const says = [
  `What we have: for each query, a score for each distance from ${s - 1} to 0. You follow ${name}: query ${query}, distance ${distance}.`,
  `A zero before each row: ${t} × ${s + 1} = ${t * (s + 1)} cells.`,
  `Read as one line, skip the first ${t} (dashed), and cut the rest every ${s}: a bar begins each piece.`,
  `The pieces, stacked. Row ${query} has moved left by ${plural(t - query)}. `
    + lands(`${name} stands at key ${key}, ${distance} back from its query, which stands at key ${position}.`),
  `The causal mask hides what comes after each query: query ${query} stands at key ${position}. `
    + lands(`${name} is where it belongs.`),
][step];
// a slider may stand past what this matrix has: then the last one is followed
const past = query < Number(state.query) || distance < Number(state.distance);
return {
  values: { result: result.map((cells) => cells.map((cell) => Number(cell.text))), key: Math.max(key, 0) },
  room: 220,
  says: `Step ${step}. ${says}`
    + (past ? ` (Here are ${t} queries, and distances up to ${s - 1}.)` : ""),
};
