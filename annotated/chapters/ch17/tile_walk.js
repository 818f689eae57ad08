// Page 17b: attention tile by tile; body of function (state, data, view, numbers). Scores
// and values come from Python; the running maximum, sum and output are computed here.

const { range, fixed } = numbers;
const count = data.values.length, size = Number(state.size), parts = count / size;
const all = range(parts * parts).map((i) => [Math.floor(i / parts), i % parts]);
const walked = all.filter(([a, b]) => !state.causal || b <= a);
const number = Math.min(Number(state.tile), walked.length), over = number === walked.length;
const [top, left] = walked[number - 1];
const seen = (i, j) => !state.causal || j <= i;
const within = (i, part) => Math.floor(i / size) === part;

// ---- the loop of the page, up to this tile

const rows = range(count).map(() => ({ m: -Infinity, factor: 0, total: 0, o: 0 }));
for (const [a, b] of walked.slice(0, number)) {
  for (const i of range(count).filter((i) => within(i, a))) {
    const row = rows[i], keys = range(count).filter((j) => within(j, b) && seen(i, j));
    if (keys.length) {
      const m = Math.max(row.m, ...keys.map((j) => data.scores[i][j]));
      row.factor = Math.exp(row.m - m);
      row.total *= row.factor;
      row.o *= row.factor;
      for (const j of keys) {
        const power = Math.exp(data.scores[i][j] - m);
        row.total += power;
        row.o += power * data.values[j];
      }
      row.m = m;
    }
  }
}
const lit = range(count).filter((i) => within(i, top));
const ended = number === walked.length || walked[number][0] !== top; // this block of rows is through

// ---- the controls: the slider ends with the walk, and a button moves it

view.ends("tile", walked.length - 1, number);
// the slider counts from 0
view.step("tile", over ? 0 : number, over ? "back to the first" : "next tile");

// ---- the matrix: scores are there while their tile is

const wide = Math.min(view.width() - 1, 680), phone = wide < 560, from = 44, head = 44;
const cell = phone ? Math.min(34, Math.floor((wide - from - 2) / count)) : 34;
const below = head + cell * count, high = below + (phone ? 40 + 58 + 28 * count : 44);
const svg = view.svg(wide, high, `tile ${number} of ${walked.length}: queries ${lit[0] + 1} to ${lit.at(-1) + 1}, `
  + `keys ${left * size + 1} to ${(left + 1) * size}`);
const { rect } = view;
const text = (x, y, words, more) => view.text(x, y, words, { "text-anchor": "middle", ...more });
const hatch = view.hatch(svg);

text(from + (cell * count) / 2, 14, "key", { class: "strong" });
text(0, head - 10, "query", { class: "strong", "text-anchor": "start" });
text(0, below + 28, "value", { class: "strong", "text-anchor": "start" });
const largest = Math.max(...data.scores.flat().map(Math.abs));
range(count).forEach((j) => {
  text(from + cell * (j + 0.5), head - 10, j + 1);
  text(from + cell * (j + 0.5), below + 28, fixed(data.values[j], 0), {
    style: "fill: var(--at-value)", class: within(j, left) ? "strong" : "",
  });
});
range(count).forEach((i) => {
  text(24, head + cell * (i + 0.5) + 5, i + 1, { class: within(i, top) ? "strong" : "" });
  range(count).forEach((j) => {
    const place = [from + cell * j + 1, head + cell * i + 1, cell - 2, cell - 2];
    const at = walked.findIndex(([a, b]) => within(i, a) && within(j, b));
    rect(...place, { fill: "none", stroke: "currentColor", "stroke-opacity": 0.2 });
    if (!seen(i, j)) rect(...place, { fill: hatch });
    else if (at === number - 1) {
      const score = data.scores[i][j];
      rect(...place, { fill: `var(--at-${score < 0 ? "minus" : "this"})`, "fill-opacity": (0.5 * Math.abs(score)) / largest });
      text(place[0] + cell / 2 - 1, place[1] + cell / 2 + 4, fixed(score, 1));
    } else if (at < number) rect(...place, { fill: "var(--at-other)", "fill-opacity": 0.25, class: "forgotten" });
  });
});
rect(from + cell * size * left, head + cell * size * top, cell * size, cell * size, {
  fill: "none", stroke: "var(--at-this)", "stroke-width": 3, class: "tile",
});

// ---- what is kept of each row

const start = phone ? 0 : from + cell * count + 14, line = phone ? 28 : cell, title = phone ? below + 66 : 14;
const names = ["m", "factor", "sum", "o", "o / sum"], label = phone ? 34 : 0;
const column = (wide - start - label) / names.length;
const middle = (c) => start + label + column * (c + 0.5);
text((start + wide) / 2, title, "kept for each row", { class: "strong" });
names.forEach((name, c) => text(middle(c), title + 20, name));
rows.forEach((row, i) => {
  const y = phone ? title + 30 + line * i : head + line * i, done = i < lit[0] || (within(i, top) && ended);
  if (within(i, top)) rect(start, y + 1, wide - start - 1, line - 2, { fill: "var(--at-this)", "fill-opacity": 0.1 });
  if (phone) text(label / 2, y + line / 2 + 5, i + 1, { class: within(i, top) ? "strong" : "" });
  if (row.total === 0) return;
  const shown = within(i, top) ? [fixed(row.m, 1), fixed(row.factor, 2), fixed(row.total, 2), fixed(row.o, 2)] : [];
  shown.forEach((words, c) => text(middle(c), y + line / 2 + 5, words, { class: c === 1 && row.factor > 0 && row.factor < 1 ? "strong" : "" }));
  if (done) text(middle(4), y + line / 2 + 5, fixed(row.o / row.total, 2), { class: "strong", style: "fill: var(--at-right)" });
});

const skipped = all.length - walked.length;
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
return {
  values: {
    alive: size * size, skipped, tiles: walked.length,
    m: lit.map((i) => rows[i].m), factor: lit.map((i) => rows[i].factor),
    total: lit.map((i) => rows[i].total), output: lit.map((i) => rows[i].o / rows[i].total),
  },
  says: `Tile ${number} of ${walked.length}: ${size * size} of ${count * count} scores in memory. `
    + (skipped ? `${plural(skipped, "tile")} above the diagonal ${skipped === 1 ? "is" : "are"} skipped.`
      : "No tile is skipped."),
  room: 84,
};
