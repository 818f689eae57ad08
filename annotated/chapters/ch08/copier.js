// The trained model of chapter 08 and its twin without a causal mask, run in the reader's
// browser: body of function (state, data, view, numbers). One layer of encoder and decoder,
// pre-norm, read from packed weights; matrices are arrays of rows, and a sequence is an array
// of vectors.

const { argmax, dot, layerNorm, plus, range, softmax, sum, times, unpack } = numbers;

// A matrix of 8-bit integers with a scale for each row; anything else is 16 bits.
function unpackRows(packed) {
  if (!packed.scales) return unpack(packed);
  const bytes = Uint8Array.from(atob(packed.base64), (letter) => letter.charCodeAt(0));
  const whole = new Int8Array(bytes.buffer), scales = unpack(packed.scales);
  const n = whole.length / scales.length;
  return scales.map((scale, i) => range(n).map((j) => scale * whole[i * n + j]));
}
const w = view.once(`weights of ${state.model}`, () => Object.fromEntries(
  Object.entries(data.weights[state.model]).map(([name, p]) => [name, unpackRows(p)])));

const linear = (name, x) => {
  const product = times(w[`${name}.weight`], x), bias = w[`${name}.bias`];
  return bias ? plus(product, bias) : product;
};
const normalise = (name, x) => layerNorm(x, w[`${name}.weight`], w[`${name}.bias`]);
function embed(table, tokens) {
  const d = w[table][0].length;
  return tokens.map((token, p) => w[table][token].map((x, i) => {
    const angle = p * 10000 ** (-(i - (i % 2)) / d);
    return x * Math.sqrt(d) + (i % 2 ? Math.cos(angle) : Math.sin(angle));
  }));
}
// may(i, j): may query i attend to key j? A query with no key left gets zeros.
function attend(name, queries, keys, may) {
  const q = queries.map((x) => linear(`${name}.query_map`, x));
  const k = keys.map((x) => linear(`${name}.key_map`, x));
  const v = keys.map((x) => linear(`${name}.value_map`, x));
  const width = q[0].length / data.heads;
  const maps = [];
  const joined = q.map(() => []);
  for (let h = 0; h < data.heads; h += 1) {
    const cut = (x) => x.slice(h * width, (h + 1) * width);
    const map = q.map((query, i) => softmax(k.map((key, j) =>
      (may(i, j) ? dot(cut(query), cut(key)) / Math.sqrt(width) : -Infinity))));
    maps.push(map);
    map.forEach((row, i) => range(width).forEach((c) =>
      joined[i].push(sum(row.map((a, j) => a * v[j][h * width + c])))));
  }
  return { maps, out: joined.map((x) => linear(`${name}.output_map`, x)) };
}
function feed(name, x) {
  return linear(`${name}.outer`, linear(`${name}.inner`, x).map((v) => Math.max(0, v)));
}
const add = (xs, ys) => xs.map((x, i) => plus(x, ys[i]));
const norms = (name, xs) => xs.map((x) => normalise(name, x));

function encode(tokens) {
  const layer = "encoder.layers.0";
  let x = embed("source_embedding.weight", tokens);
  const read = norms(`${layer}.residuals.0.norm`, x);
  x = add(x, attend(`${layer}.attention`, read, read, () => true).out);
  const mapped = norms(`${layer}.residuals.1.norm`, x);
  x = add(x, mapped.map((v) => feed(`${layer}.feed_forward`, v)));
  return norms("encoder.norm", x);
}
function decode(tokens, memory) {
  const layer = "decoder.layers.0";
  const may = (i, j) => (j <= i || state.model === data.twin) && tokens[j] !== data.pad;
  let x = embed("target_embedding.weight", tokens);
  const read = norms(`${layer}.residuals.0.norm`, x);
  x = add(x, attend(`${layer}.attention`, read, read, may).out);
  const asked = norms(`${layer}.residuals.1.norm`, x);
  const found = attend(`${layer}.cross_attention`, asked, memory, () => true);
  x = add(x, found.out);
  const mapped = norms(`${layer}.residuals.2.norm`, x);
  x = add(x, mapped.map((v) => feed(`${layer}.feed_forward`, v)));
  const logits = norms("decoder.norm", x).map((v) => linear("output", v));
  return tokens.map((_, i) => ({ maps: found.maps.map((m) => m[i]), logits: logits[i] }));
}
// What the decoder says at a position, and where its heads look on average.
function step({ maps, logits }) {
  const chances = softmax(logits), token = argmax(chances);
  const a = maps[0].map((_, j) => sum(maps.map((map) => map[j])) / maps.length);
  return { token, a, chance: chances[token] };
}
function write(ids, start) {
  const memory = encode(ids);
  if (state.given !== data.alone) {
    const wanted = state.given === data.backwards ? ids.slice(1).reverse() : ids.slice(1);
    return decode([start, ...wanted.slice(0, -1)], memory).map(step);
  }
  const tokens = [start], steps = [];
  while (steps.length < ids.length - 1) {
    steps.push(step(decode(tokens, memory).pop()));
    tokens.push(steps[steps.length - 1].token);
  }
  return steps;
}

const text = [...state.letters.toLowerCase().replace(/[\s,;.]+/g, "")];
const strange = text.filter((symbol) => data.letters.indexOf(symbol) < 1);
if (!text.length || strange.length) {
  const svg = view.svg(320, 30, "nothing to copy");
  view.add(svg, "text", { x: 0, y: 20, text: "–" });
  return {
    values: { output: "", strange: strange[0] || "" },
    says: text.length ? `The model knows only the letters a to j, so “${strange[0]}” is not `
      + "among its symbols."
      : "Type some letters from a to j.",
  };
}
const ids = [data.start, ...text.map((symbol) => data.letters.indexOf(symbol))];
const name = [text.join(""), state.first, state.model, state.given].join("|");
const steps = view.once(name, () => write(ids, data.letters.indexOf(state.first)));
const output = steps.map((step) => data.letters[step.token]).join("");
const right = steps.filter((step, i) => step.token === ids[i + 1]).length;

view.copy(ids.map((id) => data.letters[id]), steps.map((step) => (
  { symbol: data.letters[step.token], weights: step.a })));
const given = state.given === data.alone ? " and writes"
  : state.given === data.backwards ? `, is given ${text.slice().reverse().join("")} and answers`
    : " and answers";
const surest = Math.min(...steps.map((step) => step.chance));
return {
  values: { output, right, first: steps[0].a, last: steps[steps.length - 1].a, surest },
  room: 155,
  says: `Reads ${text.join("")}${given} ${output}: ${right} of ${steps.length} `
    + `${steps.length === 1 ? "letter is" : "letters are"} as in the source. The least `
    + `certain answer had a probability of ${surest.toFixed(2)}.`,
};
