// Chapter 03: a tensor on its way through two heads; body of
// function (state, data, view, numbers). Three words, width 4, two heads of width 2. Every
// number of the queries has a name, its word's letter and its place: g2. What comes
// out of a head is named by row, head and place, g1.0. All count from 0. The row of the
// followed word is framed, and what is really that word's own is filled.

const { dot, fixed, range, softmax } = numbers;
const words = data.words, t = words.length, d = data.q[0].length, h = 2, k = d / h;
const straight = state.way === data.straight;
const step = data.steps.indexOf(state.step);
const word = words.indexOf(state.word);
const flat = (rows) => rows.flat(Infinity);

// The same as torch's views: where number j of row i of head r lies in memory.
const place = (r, i, j) => (straight ? (r * t + i) * k + j : i * d + r * k + j);
const split = (rows) => range(h).map((r) => range(t).map((i) =>
  range(k).map((j) => flat(rows)[place(r, i, j)])));
const names = words.map((w) => range(d).map((j) => `${w[0]}${j}`));
const [q, key, v] = [data.q, data.k, data.v].map(split);
const scores = q.map((rows, r) => rows.map((one) =>
  key[r].map((other) => dot(one, other) / Math.sqrt(k))));
const weights = scores.map((rows) => rows.map(softmax));
const found = weights.map((rows, r) => rows.map((row) => range(k).map((j) =>
  dot(row, v[r].map((value) => value[j])))));
const merged = range(t).map(() => Array(d).fill(0));
const mergedNames = range(t).map(() => Array(d).fill(""));
const foundNames = range(h).map((r) => range(t).map((i) =>
  range(k).map((j) => `${words[i][0]}${r}.${j}`)));
found.forEach((rows, r) => rows.forEach((row, i) => row.forEach((x, j) => {
  const at = place(r, i, j);
  merged[Math.floor(at / d)][at % d] = x;
  mergedNames[Math.floor(at / d)][at % d] = foundNames[r][i][j];
})));
const output = merged.map((row) => data.out.map((line) => dot(row, line)));

// One table: rows of numbers, names above them, the rows' and columns' titles.
const heads = (numbers, labels, columns) => range(h).map((r) => ({
  title: `head ${r}`, numbers: numbers[r], names: labels && labels[r], rows: words, columns,
}));
const byWord = (numbers, labels) => range(t).map((i) => ({
  title: words[i], numbers: range(h).map((r) => numbers[r][i]),
  names: labels && range(h).map((r) => labels[r][i]), rows: range(h).map((r) => `head ${r}`),
}));
const whole = (title, numbers, labels) =>
  [{ title, numbers, names: labels, rows: words }];
const cut = split(names);
const owner = (label) => words.find((w) => w[0] === label[0]);
// The names in the followed word's row, where numbers have names.
const read = { 1: cut, 2: cut, 5: foundNames, 6: foundNames }[step];
const labels = read ? flat(range(h).map((r) => read[r][word]))
  : step === 0 ? names[word] : step === 7 ? mergedNames[word] : [];
const own = (label) => (!straight || step < 3) && owner(label) === state.word;
const lies = flat(names), lain = flat(foundNames);
const same = "the same memory";
const readAs = {
  whole: "(t, d) = (3, 4), strides (4, 1)",
  split: straight ? "(h, t, k) = (2, 3, 2), strides (6, 2, 1)"
    : "(t, h, k) = (3, 2, 2), strides (4, 2, 1)",
  swapped: straight ? "(h, t, k) = (2, 3, 2), strides (6, 2, 1)"
    : "(h, t, k) = (2, 3, 2), strides (2, 4, 1)",
  found: "(h, t, k) = (2, 3, 2), strides (6, 2, 1)",
  back: straight ? "(h, t, k) = (2, 3, 2), strides (6, 2, 1)"
    : "(t, h, k) = (3, 2, 2), strides (2, 6, 1)",
};
// Of each step: its tables, the memory, how it is read, and what became of the memory.
const stages = [
  [whole("queries", data.q, names), lies, readAs.whole, "words one after the other"],
  [straight ? heads(q, cut) : byWord(q, cut), lies, readAs.split, same],
  [heads(q, cut), lies, readAs.swapped, straight ? `${same}; nothing to transpose` : same],
  [heads(scores, null, words), null, "scores q·k / √k, (h, t, s) = (2, 3, 3)"],
  [heads(weights, null, words), null, "weights, each row sums to 1"],
  [heads(found, foundNames), lain, readAs.found, "new numbers, heads one after the other"],
  [straight ? heads(found, foundNames) : byWord(found, foundNames), lain, readAs.back,
    straight ? `${same}; nothing to transpose` : same],
  [whole("merged", merged, mergedNames), flat(mergedNames), readAs.whole,
    straight ? `${same}, cut into words` : "a copy, in another order"],
  [whole("output", output), null, "merged × W_oᵀ, (t, d) = (3, 4)"],
];
const [tables, memory, about, moved] = stages[step];

// What is drawn: the memory on top, as it lies, then the tables.
// On a phone the first table alone has the names of rows: the others have the same.
const wide = Math.max(320, Math.min(640, view.width())), narrow = wide < 500;
const cell = narrow ? 40 : 46, high = 34, title = 52, gap = narrow ? 12 : 16;
const perLine = Math.min(t * d, Math.floor((wide - 4) / cell) >= t * d ? t * d : t * d / 2);
const lines = memory ? memory.length / perLine : 0;
const top = memory ? 44 + 28 * lines + 14 : 40;
// as tall as the tallest step, so that nothing moves
const height = 44 + 28 * Math.ceil((t * d) / perLine) + 14 + 56 + high * t;
const svg = view.svg(wide, height, `step ${state.step}: ${about}`);
const small = "font-size: 12.5px";
view.text(2, 15, about, { class: "strong" });
const box = (x, y, w, tallness, framed, filled) => view.rect(x, y, w, tallness, {
  fill: "var(--accent)", "fill-opacity": filled ? 0.22 : 0,
  stroke: framed ? "var(--accent)" : "currentColor", "stroke-width": framed ? 2.5 : 1,
  "stroke-opacity": framed ? 1 : 0.35,
});
if (memory) {
  view.text(2, 36, `in memory (${moved}):`);
  memory.forEach((label, n) => {
    const x = 2 + cell * (n % perLine), y = 44 + 28 * Math.floor(n / perLine);
    box(x + 1, y, cell - 3, 24, labels.includes(label), own(label));
    view.text(x + cell / 2, y + 17, label, { "text-anchor": "middle" });
  });
}
let left = 2;
tables.forEach((table, n) => {
  const named = !narrow || n === 0, first = top + (table.columns ? 36 : 20);
  view.text(left, top + 14, table.title, { class: "strong" });
  const numbered = left + (named ? title : 0); // where its numbers begin
  (table.columns || []).forEach((name, j) => view.add(svg, "text", {
    x: numbered + cell * (j + 0.5), y: first - 5, "text-anchor": "middle", text: name,
  }));
  table.numbers.forEach((row, i) => {
    const y = first + high * i;
    if (named) view.text(left, y + 21, table.rows[i]);
    row.forEach((number, j) => {
      const x = numbered + cell * j;
      const label = table.names ? table.names[i][j] : "";
      const here = table.title === state.word || (table.rows === words && i === word);
      box(x + 1, y, cell - 3, high - 3, here, label ? own(label) : here && !straight);
      view.text(x + cell / 2, y + (label ? 14 : 20), fixed(number, label && step < 3 ? 1 : 2), {
        "text-anchor": "middle",
      });
      if (label) {
        view.text(x + cell / 2, y + 27, label, { "text-anchor": "middle", style: small });
      }
    });
  });
  left = numbered + cell * table.numbers[0].length + gap;
});

// The row of the followed word, as the tensor of this step reads it.
const grid = [data.q, straight ? q : null, q, scores, weights, found, straight ? found : null,
  merged, output][step];
const words_first = [0, 7, 8].includes(step);
const split_by_word = (numbers) => range(t).map((i) => range(h).map((r) => numbers[r][i]));
const tensor = grid || split_by_word(step === 1 ? q : found);
const row = words_first || !grid ? tensor[word] : range(h).map((r) => tensor[r][word]);
const owners = [...new Set(labels.map(owner))];
const blends = straight ? "computed from mixed rows" : `blends made for ${state.word}`;
const source = step > 3 ? blends : labels.every(own) ? "its own numbers"
  : `numbers of ${owners.join(" and ")}`;
const holds = labels.length ? `${labels.join(", ")}: ${source}`
  : flat(row).map((x) => fixed(x, 2)).join(", ");
const where = memory ? ` In memory: ${moved}.` : "";
return {
  values: { numbers: flat(tensor), row: flat(row) },
  room: 170,
  says: `${about.charAt(0).toUpperCase()}${about.slice(1)}.${where} `
    + `The row of ${state.word} holds ${holds}.`,
};
