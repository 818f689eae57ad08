// Two recorded models of chapter 10 judge a sentence on a film in the reader's browser:
// body of function (state, data, view, numbers). What they make of the suggestions comes
// with the page; for any other sentence the models have to be loaded.

const { argmax, fixed, plus, range, sigmoid, sum } = numbers;
const packed = (globalThis.annotatedModels || {})[data.name];
const press = view.once("button", () => view.control(view.loader(data)));
press.textContent = packed ? data.loaded : data.button;
press.setAttribute("aria-disabled", Boolean(packed));

// Words and signs, as `words_of` in Python finds them; phones type curly quotation marks.
const words = state.sentence.replace(/[‘’]/g, "'").replace(/[“”]/g, '"').toLowerCase()
  .match(/[\p{L}\p{N}_'-]+|[^\p{L}\p{N}_\s]/gu) || [];

const UNKNOWN = 1; // 0 is padding
const model = packed && view.once("model", () => {
  const symbols = packed.words.split(" ");
  const ids = new Map(symbols.map((symbol, i) => [symbol, i + 2]));
  return { weights: numbers.unpackModel(packed), id: (word) => ids.get(word) ?? UNKNOWN };
});
// The encoder's logit, and how much attention each word receives, over heads and queries.
function encoded(ids) {
  const { weights } = model, vectors = weights["embedding.weight"];
  const xs = ids.map((id, place) => plus(vectors[id], weights["positions.table"][place]));
  const { states, maps } = numbers.encode(weights, packed.config, xs);
  const mean = range(packed.config.d_model).map((c) => sum(states.map((x) => x[c])) / (ids.length || 1));
  return {
    logit: numbers.linear(weights, "output", mean)[0],
    received: ids.map((_, j) => sum(maps.flat().map((map) => map[j])) / maps.flat().length),
  };
}
function read() {
  const ids = words.map(model.id), { weights } = model;
  const each = ids.map((id) => weights["bag.weight"][id]);
  const whole = encoded(ids);
  const without = (i) => encoded(ids.filter((_, j) => j !== i)).logit;
  return {
    words, unknown: ids.map((id) => id === UNKNOWN),
    bag: { logit: sum(each) / ids.length + weights["bag.bias"][0], weights: each },
    encoder: { ...whole, changes: ids.map((_, i) => whole.logit - without(i)) },
  };
}

// ---- the drawing: lines of words, each with a box for the bag and one for the encoder
const across = Math.min(view.width(), 680), phone = across < 480;
const left = phone ? 72 : 96, high = 24, gap = 8, top = 62;
const letter = 9.1, block = 22 + 2 * high + 16;
const short = (word) => ([...word].length > 22 ? `${[...word].slice(0, 21).join("")}…` : word);
function lines(list) {
  const places = [];
  let x = left, line = 0;
  for (const word of list) {
    const width = Math.max(letter * [...short(word)].length + 4, 46);
    if (x > left && x + width > across) [x, line] = [left, line + 1];
    places.push({ x, width, y: top + block * line });
    x += width + gap;
  }
  return { places, number: line + 1 };
}
// as many as the longest suggestion needs, so that nothing moves
const least = Math.max(...data.known.map((one) => lines(one.words).number));
const full = state.sentence.length < data.letters ? ""
  : ` The field is full: it takes ${data.letters} characters.`;
function blank(says) {
  view.svg(across, top + block * least, "nothing to judge");
  view.text(0, 20, "–");
  return { values: { loaded: Boolean(packed), words }, says: says + full, room: data.room };
}

const most = data.most;
if (!words.length) return blank("Type a sentence on a film, and both models judge it.");
if (words.length > most) {
  return blank(`The encoder has places for ${most} words and signs, and these are ${words.length}. `
    + "It can't read the sentence, and doesn't cut it.");
}
const given = data.known.find((one) => one.words.join(" ") === words.join(" "));
if (!packed && !given) return blank(data.before);
const found = packed ? view.once(words.join(" "), read) : given;

const { bag, encoder } = found, attention = state.by === data.ways[1];
const percent = (p) => (p > 0.995 ? "over 99 %" : p < 0.005 ? "under 1 %" : `${Math.round(100 * p)} %`);
const chance = ({ logit }) => percent(sigmoid(logit));
const signed = (x) => (x > 0 && Number(x.toFixed(1)) ? "+" : "") + fixed(x, 1);
const verdict = ({ logit }) => (logit > 0 ? "yes" : "no");

const { places, number } = lines(words), count = Math.max(number, least);
const svg = view.svg(across, top + block * count,
  `${words.length} words and signs: what each weighs in the bag, and in the encoder`);
const write = view.text;
[["bag", bag], ["encoder", encoder]].forEach(([name, one], i) => {
  const y = 4 + 24 * i, wide = Math.min(240, across - left - 132);
  write(0, y + 14, name, { class: "strong" });
  view.rect(left, y + 2, wide, 14, { fill: "none", stroke: "currentColor", "stroke-opacity": 0.4 });
  view.rect(left, y + 2, wide * sigmoid(one.logit), 14, {
    fill: "currentColor", "fill-opacity": 0.55,
  });
  view.add(svg, "path", { d: `M${left + wide / 2} ${y - 1}v20`, stroke: "currentColor" });
  write(left + wide + 10, y + 14, `${chance(one)} praise: ${verdict(one)}`);
});
// A number in a box, shaded by its share of what counts as much; the sign is in the text.
function box({ x, width }, y, text, share, colour) {
  view.rect(x + 0.5, y, width - 1, high - 4, {
    rx: 3, fill: `var(${colour})`, "fill-opacity": (0.5 * Math.min(1, share)).toFixed(3),
    stroke: "currentColor", "stroke-opacity": 0.2,
  });
  write(x + width / 2, y + 15, text, { "text-anchor": "middle" });
}
const colour = (x) => (x < 0 ? "--at-minus" : "--at-this");
const largest = Math.max(...encoder.received);
places.forEach((place, i) => {
  const { x, width, y } = place, text = short(words[i]);
  write(x + width / 2, y + 14, text, {
    "text-anchor": "middle", class: "code", textLength: letter * [...text].length,
    lengthAdjust: "spacingAndGlyphs",
  });
  if (found.unknown[i]) {
    view.rect(x + 0.5, y - 1, width - 1, 20, {
      rx: 3, fill: "none", stroke: "currentColor", "stroke-dasharray": "3 3",
    });
  }
  box(place, y + 22, signed(bag.weights[i]), Math.abs(bag.weights[i]) / data.full.bag, colour(bag.weights[i]));
  const change = encoder.changes[i], share = encoder.received[i];
  if (attention) box(place, y + 22 + high, `${Math.round(100 * share)} %`, share / largest, "--at-weight");
  else box(place, y + 22 + high, signed(change), Math.abs(change) / data.full.encoder, colour(change));
});
// what the rows hold, since each has a scale of its own
const change = phone ? "change" : "change of logit";
range(number).forEach((line) => [
  [37, "bag: weight"], [61, "encoder:"], [75, attention ? "attention" : change],
].forEach(([y, name]) => write(0, top + block * line + y, name)));

// ---- in words
// Sentences of the same words, by their order, as they were read one after the other.
const order = words.join(" ");
const orders = view.once(`same|${[...words].sort().join(" ")}`, () => new Map());
orders.set(order, { text: state.sentence.trim(), logit: encoder.logit });
const before = [...orders].filter(([other]) => other !== order).map(([, one]) => one).pop();
const quoted = (text) => (text.length > 60 ? `“${text.slice(0, 59)}…”` : `“${text}”`);
const called = (i) => `“${short(words[i])}”`;
// The word that moves a logit furthest towards the answer given, if by enough: what a
// word weighs in the bag is shared by all words.
function pulling({ logit }, moves) {
  const towards = moves.map((x) => (logit > 0 ? x : -x)), strongest = argmax(towards);
  return towards[strongest] < data.decides ? null : strongest;
}
const heavy = pulling(bag, bag.weights.map((x) => x / words.length));
const looked = attention ? argmax(encoder.received) : pulling(encoder, encoder.changes);
const pulled = (i, one) => (i === null ? "no single word decides"
  : `${called(i)} pulls most towards ${verdict(one)}`);
const never = [...new Set(words.filter((_, i) => found.unknown[i]))].map((word) => `“${short(word)}”`);
const agree = (bag.logit > 0) === (encoder.logit > 0);
const parts = [`The chance of praise is ${chance(bag)} for the bag and ${chance(encoder)} for the encoder: `
  + (agree ? `both say ${verdict(bag)}.` : `the bag says ${verdict(bag)}, the encoder ${verdict(encoder)}.`)];
if (found.unknown.every(Boolean)) parts.push("They know none of these words: to both each is the same, unknown.");
else {
  if (attention) parts.push(`In the bag ${pulled(heavy, bag)}, and most attention goes to ${called(looked)}.`);
  else if (heavy === looked && (agree || heavy === null)) parts.push(`In both ${pulled(heavy, bag)}.`);
  else parts.push(`In the bag ${pulled(heavy, bag)}, in the encoder ${pulled(looked, encoder)}.`);
  if (never.length) {
    parts.push(`Unknown to both: ${never.slice(0, 3).join(", ")}`
      + `${never.length > 3 ? ` and ${never.length - 3} more` : ""}.`);
  }
}
if (before) {
  parts.push(`In the order of ${quoted(before.text)} the bag says the same, and the encoder's chance was `
    + `${percent(sigmoid(before.logit))}.`);
}
return {
  values: { loaded: Boolean(packed), ...found, heavy, looked, agree, before: before ? before.text : "" },
  says: parts.join(" ") + full, room: data.room,
};
