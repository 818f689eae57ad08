// Page 09c: byte-pair encoding of the reader's own text, as annotated/data/bpe.py does it;
// body of function (state, data, view, numbers). Letters are code points, as in Python.

const { range, sum } = numbers;
const SPACE = "▁";
function splitWords(text) {
  const marked = text.split(/\s+/u).filter(Boolean).map((word) => SPACE + word).join("");
  return marked.match(/▁?(?:[\p{L}\p{N}_]+|[^\p{L}\p{N}_▁])|▁/gu) || [];
}
// A pair as a key: no piece holds a tab, because a text's blanks are all ▁.
const key = (one, other) => `${one}\t${other}`;
const pairs = (pieces) => range(Math.max(0, pieces.length - 1)).map((i) => key(pieces[i], pieces[i + 1]));
function merge(pieces, pair) {
  const joined = [];
  for (let i = 0; i < pieces.length; i += 1) {
    if (i + 1 < pieces.length && key(pieces[i], pieces[i + 1]) === pair) {
      joined.push(pieces[i] + pieces[i + 1]);
      i += 1;
    } else joined.push(pieces[i]);
  }
  return joined;
}
const byCodePoint = (one, other) => one.codePointAt(0) - other.codePointAt(0);

// Learn: all is counted anew at each merge, since a text here is short.
const text = splitWords(state.text), times = new Map();
for (const word of text) times.set(word, (times.get(word) || 0) + 1);
const pieces = new Map([...times.keys()].map((word) => [word, [...word]]));
const age = new Map([...new Set(text.flatMap((word) => [...word]))].sort(byCodePoint)
  .map((letter, i) => [letter, i]));
const letters = age.size;
function ranked() { // pairs by count; ties go to the older pieces
  const counts = new Map();
  for (const [word, cut] of pieces) {
    for (const pair of pairs(cut)) counts.set(pair, (counts.get(pair) || 0) + times.get(word));
  }
  const ages = (pair) => pair.split("\t").map((piece) => age.get(piece));
  return [...counts].sort(([p, m], [q, n]) => {
    const [a, b] = ages(p), [c, d] = ages(q);
    return n - m || a - c || b - d;
  });
}
const learned = [];
let last = 0;
function joinCommonest() { // whether there was a pair
  const [best] = ranked();
  if (!best) return false;
  const [pair, count] = best;
  last = count;
  learned.push(pair);
  const joined = pair.replace("\t", "");
  if (!age.has(joined)) age.set(joined, age.size);
  for (const [word, cut] of pieces) pieces.set(word, merge(cut, pair));
  return true;
}
while (learned.length < state.merges && joinCommonest());
// Apply: of the pairs that stand in a word, the one learned first is joined first.
const rank = new Map(learned.map((pair, i) => [pair, i]));
function apply(word) {
  let cut = [...word];
  for (;;) {
    const known = pairs(cut).filter((pair) => rank.has(pair));
    if (!known.length) return cut;
    cut = merge(cut, known.reduce((p, q) => (rank.get(q) < rank.get(p) ? q : p)));
  }
}
const cut = splitWords(state.word).flatMap(apply);
const total = sum(text.map((word) => pieces.get(word).length));
const values = {
  merges: learned.map((pair) => pair.split("\t")), pieces: total, word: cut,
};

// ---- the words of the text in pieces; what stands side by side most; the new word

const wide = Math.min(view.width(), 640), both = wide >= 560, most = 6;
const half = both ? Math.floor(wide * 0.56) : wide, line = 28;
const newest = learned.length ? learned[learned.length - 1].replace("\t", "") : null;
// where not all fit, those first that hold the piece just joined
const holds = (word) => Number(times.size > most && pieces.get(word).includes(newest));
const words = [...times].sort(([p, m], [q, n]) => holds(q) - holds(p) || n - m).slice(0, most);
const next = ranked().slice(0, 5), right = both ? half + 24 : 0;
const top = both ? 0 : 40 + line * most, foot = both ? 52 + line * most : top + 52 + 24 * 5;
view.svg(wide, foot + 52, `words of the text in pieces after ${learned.length} merges, `
  + "the commonest neighbours, and another word in pieces");
const write = view.text;
function chips(x, y, parts, limit) {
  for (const [i, piece] of parts.entries()) {
    const size = 8.8 * [...piece].length + 8;
    if (x + size > limit - (i + 1 < parts.length ? 16 : 0)) {
      write(x + 2, y, "…");
      return;
    }
    const fresh = piece === newest, strange = [...piece].some((letter) => !age.has(letter));
    view.rect(x, y - 16, size, 22, {
      rx: 4, fill: fresh ? "var(--accent)" : "none",
      stroke: fresh ? "var(--accent)" : "currentColor", "stroke-opacity": fresh ? 1 : 0.5,
      "stroke-dasharray": strange ? "3 3" : "none",
    });
    write(x + size / 2, y, piece, {
      "text-anchor": "middle", class: "code", textLength: 8.8 * [...piece].length,
      lengthAdjust: "spacingAndGlyphs", style: fresh ? "fill: var(--on-accent)" : "",
    });
    x += size + 3;
  }
}
const more = times.size - words.length;
write(0, 16, more > 0 ? `your text: ${words.length} of ${times.size} words` : "your text", { class: "strong" });
words.forEach(([word, n], i) => {
  const y = 44 + line * i;
  write(26, y, `${n}×`, { "text-anchor": "end" });
  chips(34, y, pieces.get(word), half);
});
write(right, top + 16, "pairs, and how often", { class: "strong" });
next.forEach(([pair, n], i) => {
  const y = top + 44 + 24 * i, long = 60 * (n / next[0][1]);
  write(right + 104, y, pair.replace("\t", " "), { "text-anchor": "end", class: "code" });
  view.rect(right + 112, y - 12, Math.max(2, long), 14, {
    fill: "var(--accent)", "fill-opacity": i ? 0.4 : 1,
  });
  write(right + 118 + long, y, String(n));
});
if (!next.length) write(right, top + 44, "nothing is left to join");
write(0, foot + 12, `${state.word}, cut by these merges`, { class: "strong" });
chips(0, foot + 40, cut, wide);

// merge by merge, without aiming at the slider; and texts to try
const by = (n) => () => view.move("merges", Number(view.input("merges").value) + n);
view.buttons({
  back: by(-1), "one merge more": by(1), // below, the next of `data.texts`, or the first
  "another text": () => view.move("text", data.texts[(data.texts.indexOf(state.text) + 1) % data.texts.length]),
});

const step = !text.length ? "Type a text to learn from."
  : !learned.length ? "Nothing is joined yet: every piece is a letter."
    : `Merge ${learned.length} joined “${values.merges[learned.length - 1].join("” and “")}”, which stood side by side ${last === 1 ? "once" : `${last} times`}.`;
const strange = [...new Set(cut.flatMap((piece) => [...piece]))].filter((letter) => !age.has(letter));
const says = `${step} ${letters} letters, with ▁, and ${learned.length} merges; the text takes ${total} pieces`
    + (cut.length ? `, and “${state.word}” ${cut.length}: ${cut.join(" ")}.` : ".")
    + (strange.length ? ` Not in the text, so without a symbol: “${strange.join("”, “")}”.` : "");
// the slider ends where nothing is left to join
const end = view.once(`merges of ${state.text}`, () => {
  while (joinCommonest());
  return learned.length;
});
view.ends("merges", end, Math.min(state.merges, end));
return { values, says, room: 190 + 3 * [...state.word].length + 6 * strange.length };
