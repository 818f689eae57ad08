// GPT-2's tokenizer on the reader's own text, as annotated/data/byte_bpe.py does it: body of
// function (state, data, view, numbers). A byte is written by a letter, as in its files.

const { range } = numbers;
const END = "<|endoftext|>";
const tokenizer = view.once("tokenizer", () => {
  const tokens = data.tokens.split(" ");
  const ranks = new Map(tokens.map((token, rank) => [token, rank]));
  const letters = [...data.letters]; // the letter of byte 0, 1, 2, …
  const bytes = new Map(letters.map((letter, byte) => [letter, byte]));
  return { tokens, ranks, letters, bytes, known: new Map() };
});
const PIECE = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;
function join(piece) { // of all neighbours, those with the lowest rank
  let parts = [...piece];
  while (parts.length > 1) {
    const ranked = range(parts.length - 1).map((i) => tokenizer.ranks.get(parts[i] + parts[i + 1]) ?? Infinity);
    const best = Math.min(...ranked);
    if (best === Infinity) break;
    const joined = tokenizer.tokens[best], next = [];
    for (let i = 0; i < parts.length; i += 1) {
      if (parts[i] + parts[i + 1] === joined) {
        next.push(joined);
        i += 1;
      } else next.push(parts[i]);
    }
    parts = next;
  }
  return parts.map((token) => tokenizer.ranks.get(token));
}
const encoder = new TextEncoder(), decoder = new TextDecoder("utf-8", { fatal: true });
function encode(text) {
  return (text.match(PIECE) || []).flatMap((piece) => {
    const letters = [...encoder.encode(piece)].map((byte) => tokenizer.letters[byte]).join("");
    if (!tokenizer.known.has(letters)) tokenizer.known.set(letters, join(letters));
    return tokenizer.known.get(letters);
  });
}
const text = state.text;
const ids = state.special
  ? text.split(END).flatMap((part, i) => [...(i ? [data.end] : []), ...encode(part)])
  : encode(text);
const size = encoder.encode(text).length, characters = [...text].length;

// ---- tokens as chips: the text, or bytes that are no character by themselves
function written(id) {
  if (id === data.end) return END;
  const bytes = [...tokenizer.tokens[id]].map((letter) => tokenizer.bytes.get(letter));
  try {
    return decoder.decode(new Uint8Array(bytes)).replace(/ /g, "␣").replace(/\n/g, "⏎").replace(/\t/g, "⇥");
  } catch {
    return bytes.map((byte) => `·${byte.toString(16)}`).join("");
  }
}
const wide = Math.min(view.width(), 688), rows = wide < 500 ? 6 : 4, high = 46;
view.svg(wide, rows * high + 4, "the text in tokens, each with its id");
let x = 0, row = 0, shown = 0;
for (const id of ids) {
  const word = written(id), letters = [...word];
  const long = letters.reduce((w, c) => w + (c.codePointAt(0) > 0x1100 ? 15 : 8.2), 0);
  const width = Math.max(long, 8 * String(id).length) + 9;
  if (x + width > wide) [x, row] = [0, row + 1];
  if (row >= rows || (row === rows - 1 && x + width > wide - 70 && shown < ids.length - 1)) break;
  const special = id === data.end, bytes = word.startsWith("·") && word.length > 1;
  view.rect(x + 0.5, row * high + 1, Math.min(width, wide - 1), 24, {
    rx: 4, stroke: "currentColor", fill: special ? "var(--accent)" : "var(--at-other)",
    "fill-opacity": special ? 1 : shown % 2 ? 0.26 : 0.1, "stroke-opacity": 0.5,
    "stroke-dasharray": bytes ? "3 3" : "none",
  });
  view.text(x + width / 2, row * high + 18, word, {
    "text-anchor": "middle", class: "code", style: special ? "fill: var(--on-accent)" : "",
  });
  view.text(x + width / 2, row * high + 39, String(id), {
    "text-anchor": "middle", class: "muted", style: "font-size: 12px",
  });
  [x, shown] = [x + width + 3, shown + 1];
}
if (shown < ids.length) {
  view.text(wide, (rows - 1) * high + 18, `… ${ids.length - shown} more`, { "text-anchor": "end" });
}
const one = (n, name) => `${n} ${name}${n === 1 ? "" : "s"}`;
const per = ids.length ? ` ${(size / ids.length).toFixed(1)} bytes per token.` : "";
return {
  values: { ids, bytes: size, characters },
  says: `${one(characters, "character")}, ${one(size, "byte")} of UTF-8, ${one(ids.length, "token")}.${per}`,
  room: 90,
};
