// The trained GPT of chapter 11, run in the reader's browser: body of function
// (state, data, view, numbers). Keys and values of what was read are kept; beyond the
// context its last symbols are read again at each step, as `sample(…, slide=True)` does.

const {
  attend, feedForward, linear, normalise, plus, range, softmax, times, topP, unpackAll,
} = numbers;
const w = view.once("weights", () => unpackAll(data.weights));
const vectors = w["embedding.weight"];

// A function that reads one token more, and gives the logits of the next.
function reader() {
  const kept = range(data.layers).map(() => ({ keys: [], values: [] }));
  let place = 0;
  return (token) => {
    let x = plus(vectors[token], w["positions.table"][place]);
    place += 1;
    kept.forEach(({ keys, values }, i) => {
      const name = `blocks.layers.${i}`;
      const read = normalise(w, `${name}.residuals.0.norm`, x);
      const map = (part) => linear(w, `${name}.attention.${part}_map`, read);
      keys.push(map("key"));
      values.push(map("value"));
      x = plus(x, attend(w, `${name}.attention`, data.heads, map("query"), keys, values).found);
      x = feedForward(w, name, 1, x);
    });
    return times(vectors, normalise(w, "blocks.norm", x));
  };
}
const distribution = (logits) => topP(logits, state.temperature, state.top_p);
// The symbol that a number from 0 to 1 falls on.
function chosen({ chances, kept }, draw) {
  const ids = range(chances.length).filter((i) => kept.has(i));
  let mass = 0;
  return ids.find((i) => { mass += chances[i]; return mass > draw; }) ?? ids[ids.length - 1];
}
function write(ids) {
  const all = [...ids], picked = [];
  let next = reader(), logits;
  for (const id of all.slice(-data.context)) logits = next(id);
  const first = distribution(logits), plain = softmax(logits);
  for (const draw of data.draws[state.seed - 1]) {
    const id = chosen(picked.length ? distribution(logits) : first, draw);
    all.push(id);
    picked.push(id);
    if (all.length <= data.context) logits = next(id);
    else {
      next = reader();
      for (const again of all.slice(-data.context)) logits = next(again);
    }
  }
  return { first: { ...first, plain }, written: picked.map((id) => data.characters[id]).join("") };
}

const prompt = state.prompt.replaceAll("\\n", "\n"); // one line holds no new line
const strange = [...prompt].filter((symbol) => data.characters.indexOf(symbol) < 0);
if (!prompt || strange.length) {
  view.svg(320, 30, "nothing to go on from");
  view.text(0, 20, "–");
  return {
    values: { written: "", strange: strange[0] || "" },
    says: prompt ? `The model has never met the character “${strange[0]}”.`
      : "Type how the text begins.",
  };
}
const ids = [...prompt].map((symbol) => data.characters.indexOf(symbol));
const key = [state.prompt, state.temperature, state.top_p, state.seed].join("|");
const { first, written } = view.once(key, () => write(ids));

// the text, wrapped; then the likeliest symbols for its first new place
const size = 9.4, columns = Math.max(20, Math.floor((Math.min(view.width(), 640) - 8) / size));
const lines = [[]];
[...prompt + written].forEach((symbol, i) => {
  if (lines[lines.length - 1].length === columns) lines.push([]);
  const given = i < prompt.length, line = lines[lines.length - 1];
  line.push({ symbol: symbol === "\n" ? "↵" : symbol, given });
  if (symbol === "\n") lines.push([]);
});
// as a rule no more than six lines are needed, seven on a phone: room for so many
const room = Math.max(lines.length, columns < 60 ? 7 : 6);
const shown = first.order.slice(0, 12), top = 20 * room + 52;
const svg = view.svg(columns * size + 8, top + 150, "the text so far, and what may come first");
lines.forEach((line, i) => [true, false].forEach((given) => {
  const start = line.findIndex((letter) => letter.given === given);
  if (start < 0) return;
  const text = line.filter((letter) => letter.given === given).map((l) => l.symbol).join("");
  view.text(size * start, 20 * i + 16, text, {
    class: given ? "code strong" : "code",
    style: `white-space: pre; font-size: 15px; fill: var(${given ? "--second" : "--accent"})`,
    textLength: size * text.length, lengthAdjust: "spacingAndGlyphs",
  });
}));
["the first new character: what it's drawn from", "(outlines: the model's own distribution)"].forEach(
  (text, i) => view.text(0, top - 28 + 18 * i, text));
const step = Math.min(44, (columns * size) / shown.length), most = first.chances[shown[0]];
const named = (id) => ({ "\n": "↵", " ": "␣" }[data.characters[id]] || data.characters[id]);
const share = (p) => (p >= 0.995 ? "1" : p.toFixed(2));
shown.forEach((id, i) => {
  const height = 110 * first.chances[id], was = 110 * first.plain[id];
  view.rect(i * step, top + 112 - height, step - 6, height, { fill: "var(--accent)" });
  view.rect(i * step - 1, top + 112 - was, step - 4, was, {
    fill: "none", stroke: "currentColor", "stroke-opacity": 0.55, "stroke-width": 2,
  });
  view.text(i * step + (step - 6) / 2, top + 128, named(id), {
    "text-anchor": "middle", class: "code",
  });
  view.add(svg, "text", {
    x: i * step + (step - 6) / 2, y: top + 144, "text-anchor": "middle",
    style: "font-size: 12.5px", text: first.kept.has(id) ? share(first.chances[id]).replace("0.", ".") : "cut",
  });
});
const full = state.prompt.length < data.context ? ""
  : ` The box is full: the model can read ${data.context} characters.`;
return {
  values: { written, chances: first.chances, kept: first.kept.size },
  room: 195 + full.length,
  says: (first.kept.size === 1 ? `Only “${named(shown[0])}” may come first, with a probability of 1.`
    : `${first.kept.size} characters may come first; the likeliest, “${named(shown[0])}”, has a `
    + `probability of ${share(most)}.`) + `${full} The model writes: ${written}`,
};
