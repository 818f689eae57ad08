// Chapter 03's trained guesser of a missing letter, run in the reader's browser: body of
// function (state, data, view, numbers). The blank alone has a query; its neighbours
// are keys and values. Heads can be removed.

const { argmax, attend, fixed, linear, plus, range, softmax, unpackAll } = numbers;
const model = view.once("model", () => unpackAll(data.weights));
const side = data.side, h = data.heads;
const removed = new Set(state.removed.map(([, r]) => r));
range(h).forEach((r) => view.cell("removed", 0, r, {
  on: !removed.has(r), text: removed.has(r) ? `✗${r}` : `${r}`,
  label: `head ${r}: ${removed.has(r) ? "removed" : "in use"}`,
}));

const text = state.text.toLowerCase();
const at = text.indexOf("_");
const unknown = [...text].filter((c) => c !== "_" && !data.alphabet.includes(c));
if (at < 0 || at !== text.lastIndexOf("_") || unknown.length) {
  const why = unknown.length
    ? `The model knows letters, spaces and . , ' - only, not “${unknown[0]}”.`
    : "Put one underscore _ where the letter is missing.";
  view.svg(320, 30, "nothing to guess");
  view.text(0, 20, why);
  return { values: { guess: "" }, says: why };
}

// The model sees so many letters on either side; beyond the text there are spaces.
const window = range(2 * side + 1).map((j) => text[at - side + j] || " ");
const x = window.map((c, j) => plus(
  model["letters.weight"][c === "_" ? data.alphabet.length : data.alphabet.indexOf(c)],
  model.positions[j],
));
const map = (part, v) => linear(model, `attention.${part}_map`, v);
const inHead = x[0].length / h;
// a head that is removed has values of zero
const values = x.map((v) => map("value", v).map((z, i) => (
  removed.has(Math.floor(i / inHead)) ? 0 : z)));
const keys = x.map((v) => map("key", v));
const { maps: weights, found } = attend(model, "attention", h, map("query", x[side]), keys, values);
const hidden = linear(model, "answer.0", found).map((z) => Math.max(0, z));
const chances = softmax(linear(model, "answer.2", hidden));

const left = 62, top = 30;
const size = Math.max(14, Math.min(26, Math.floor((view.width() - left - 4) / window.length)));
const below = top + size * h + 16;
view.svg(Math.max(left + size * window.length + 4, 300), below + 3 * 24 + 6,
  `where each of ${h} heads looks, and what the model guesses`);
window.forEach((c, j) => view.text(left + size * (j + 0.5), top - 9, c === " " ? "␣" : c, {
  "text-anchor": "middle", class: j === side ? "code strong" : "code",
}));
weights.forEach((row, r) => {
  const y = top + size * r;
  view.text(left - 8, y + size / 2 + 5, removed.has(r) ? `✗ head ${r}` : `head ${r}`, {
    "text-anchor": "end", style: "font-size: 13px",
  });
  row.forEach((weight, j) => view.rect(left + size * j + 1, y + 1, size - 2, size - 2, {
    fill: "var(--at-weight)", "fill-opacity": removed.has(r) ? 0 : weight.toFixed(3),
    stroke: "currentColor", "stroke-opacity": removed.has(r) ? 0.1 : 0.25,
  }));
});
view.switches("removed", { width: "1.7rem" });
const best = chances.map((chance, letter) => ({ chance, letter }))
  .sort((a, b) => b.chance - a.chance).slice(0, 3);
const name = (letter) => (data.alphabet[letter] === " " ? "␣" : data.alphabet[letter]);
best.forEach(({ chance, letter }, i) => {
  const y = below + 24 * i;
  view.text(left - 8, y + 16, name(letter), { "text-anchor": "end", class: "code strong" });
  view.rect(left, y + 3, Math.max(1, 160 * chance), 16, { fill: "var(--accent)" });
  view.text(left + 168, y + 16, `${fixed(100 * chance, 1)}%`);
});
const looks = weights.map((row, r) => {
  const step = argmax(row) - side;
  const where = step === 0 ? "the blank" : `${Math.abs(step)} ${step < 0 ? "left" : "right"}`;
  return `head ${r}: ${removed.has(r) ? "removed" : where}`;
});
return {
  values: { guess: data.alphabet[best[0].letter], chance: best[0].chance, looks: weights.map((row) => argmax(row) - side) },
  room: 205,
  says: `The guess is “${name(best[0].letter)}” with a probability of `
    + `${fixed(100 * best[0].chance, 1)}%. Each head looks most at: ${looks.join(", ")}.`,
};
