// Chapter 12: the steps of relative_shift on a matrix of addresses; body of
// function (state, data, view, numbers). Everything is computed here.

const { range } = numbers;
const t = Number(state.queries), s = Number(state.keys);
const stage = Number(state.stage) + 1; // the reader counts from 0: nothing done yet
const query = Math.min(Number(state.query), t);
const distance = Math.min(Number(state.distance), s - 1);

// the line of padded rows; a cell knows its query (from 1) and its distance
const line = [];
for (let i = 1; i <= t; i++) {
  line.push({ zero: true, row: i - 1 });
  for (let c = 0; c < s; c++) line.push({ query: i, distance: s - 1 - c, row: i - 1 });
}
const text = (cell) => (cell.zero ? "0" : String(10 * cell.query + cell.distance));
const followed = (cell) => cell.query === query && cell.distance === distance;
const result = range(t).map((i) => line.slice(t + s * i, t + s * (i + 1)));
const position = s - t + query - 1, key = position - distance; // among the keys

// what is drawn: rows of cells, and what each column is
let rows, columns, skipped = () => false;
if (stage === 1) {
  rows = range(t).map((i) => line.slice(i * (s + 1) + 1, (i + 1) * (s + 1)));
  columns = range(s).map((c) => String(s - 1 - c));
} else if (stage <= 3) {
  rows = range(t).map((i) => line.slice(i * (s + 1), (i + 1) * (s + 1)));
  columns = ["", ...range(s).map((c) => String(s - 1 - c))];
  if (stage === 3) skipped = (at) => at < t;
} else {
  rows = result;
  columns = range(s).map((j) => String(j + 1));
}
const size = Math.max(24, Math.min(40, Math.floor((view.width() - 64) / (s + 1))));
const left = 58, top = 44;
const svg = view.svg(left + size * (s + 1) + 4, top + size * t + 8,
  `step ${stage - 1}, ${data.stages[stage - 1]}: a matrix of ${t} rows and ${columns.length} columns`);
view.add(svg, "text", { x: 0, y: 14, text: stage <= 3 ? "distance →" : "key →" });
view.add(svg, "text", { x: 0, y: 36, text: "query ↓" });
columns.forEach((name, c) => view.add(svg, "text", {
  x: left + size * (c + 0.5), y: top - 8, "text-anchor": "middle", text: name,
}));
const bars = [];
const before = view.once("before", () => ({})); // what the last drawing showed
const moves = stage === 4 && before.stage === 3 && before.sizes === `${t} ${s}`
  && !window.matchMedia("(prefers-reduced-motion: reduce)").matches;
Object.assign(before, { stage, sizes: `${t} ${s}` });
rows.forEach((cells, i) => {
  view.add(svg, "text", {
    x: left - 12, y: top + size * (i + 0.5) + 5, "text-anchor": "end", text: String(i + 1),
  });
  cells.forEach((cell, c) => {
    const at = i * columns.length + c;
    const x = left + size * c, y = top + size * i;
    const future = stage === 5 && c > s - t + i;
    const off = skipped(at) || future;
    // a shade an old row, kept wherever its cells go
    const shade = off || cell.zero && stage < 3 ? 0 : 0.08 + 0.36 * cell.row / (t - 1);
    const box = view.add(svg, "g", {});
    if (moves) { // from where it stood in the old rows
      const was = t + at, dx = was % (s + 1) - c, dy = Math.floor(was / (s + 1)) - i;
      box.animate(
        [{ transform: `translate(${size * dx}px, ${size * dy}px)` }, { transform: "none" }],
        { duration: 1500, easing: "ease-in-out" },
      );
    }
    view.add(box, "rect", {
      x: x + 1, y: y + 1, width: size - 2, height: size - 2,
      fill: "var(--accent)", "fill-opacity": shade,
      stroke: followed(cell) ? "var(--second)" : "currentColor",
      "stroke-width": followed(cell) ? 3.5 : 1, "stroke-opacity": followed(cell) ? 1 : 0.3,
      "stroke-dasharray": off ? "3 3" : "none",
    });
    if (stage === 3 && at >= t && (at - t) % s === 0) {
      bars.push({ x1: x, y1: y, x2: x, y2: y + size, stroke: "currentColor", "stroke-width": 4 });
    }
    const wrong = stage === 4 && c > s - t + i;
    const label = future ? "" : text(cell);
    const digits = view.add(box, "text", {
      x: x + size / 2, y: y + size / 2 + 5, "text-anchor": "middle", text: label,
      class: followed(cell) ? "strong" : "",
    });
    if (skipped(at) || wrong) digits.setAttribute("opacity", 0.75);
  });
});
bars.forEach((bar) => view.add(svg, "line", bar)); // last, so that no cell covers them

const name = 10 * query + distance;
const plural = (n) => `${n} ${n === 1 ? "column" : "columns"}`;
const lost = `${name} belongs to a key before the first one: it is skipped, or stands where the mask hides it`;
const says = [
  `Every query has a score for each distance from ${s - 1} to 0. You follow ${name}: query ${query}, distance ${distance}.`,
  `Each row has ${s + 1} cells now: ${t} × ${s + 1} = ${t * (s + 1)} numbers in one line.`,
  `Read as a line, the first ${t} numbers are skipped (dashed); a bar stands where each row of ${s} begins.`,
  `Each cell keeps the shade of its old row, so what ran over from the next row shows. Row ${query} has moved left by ${plural(t - query)}. `
    + (key >= 0 ? `${name} stands at key ${key + 1}, ${distance} back from the query, which stands at key ${position + 1}.`
      : `${lost}.`),
  `Query ${query} stands at key ${position + 1}; what lies to the right of it is hidden. `
    + (key >= 0 ? `${name} is where it belongs.` : `${lost}.`),
][stage - 1];
return {
  values: { result: result.map((cells) => cells.map((cell) => Number(text(cell)))), key: Math.max(key, -1) },
  says: `Step ${stage - 1}, ${data.stages[stage - 1]}. ${says}`,
};
