// The trained model of chapter 08, run in the reader's browser: body of function
// (state, data, view, numbers). One layer of encoder and decoder, pre-norm, read from packed
// weights; matrices are arrays of rows, and a sequence is an array of vectors.

const { argmax, dot, layerNorm, plus, range, softmax, sum, times, unpack } = numbers;
const w = view.once("weights", () => Object.fromEntries(
  Object.entries(data.weights).map(([name, packed]) => [name, unpack(packed)])));

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
  const may = (i, j) => j <= i && tokens[j] !== data.pad;
  let x = embed("target_embedding.weight", tokens);
  const read = norms(`${layer}.residuals.0.norm`, x);
  x = add(x, attend(`${layer}.attention`, read, read, may).out);
  const asked = norms(`${layer}.residuals.1.norm`, x);
  const found = attend(`${layer}.cross_attention`, asked, memory, () => true);
  x = add(x, found.out);
  const mapped = norms(`${layer}.residuals.2.norm`, x);
  x = add(x, mapped.map((v) => feed(`${layer}.feed_forward`, v)));
  const last = normalise("decoder.norm", x[x.length - 1]);
  return { maps: found.maps.map((m) => m[m.length - 1]), logits: linear("output", last) };
}
function write(ids, start) {
  const memory = encode(ids);
  const tokens = [start], steps = [];
  for (let i = 1; i < ids.length; i += 1) {
    const { maps, logits } = decode(tokens, memory);
    const chances = softmax(logits);
    const token = argmax(chances);
    const a = ids.map((_, j) => sum(maps.map((map) => map[j])) / maps.length);
    tokens.push(token);
    steps.push({ token, a, chance: chances[token] });
  }
  return steps;
}

const text = [...state.letters];
const strange = text.filter((symbol) => data.letters.indexOf(symbol) < 1);
if (!text.length || strange.length) {
  const svg = view.svg(320, 30, "nothing to copy");
  view.add(svg, "text", { x: 0, y: 20, text: "–" });
  return {
    values: { output: "", strange: strange[0] || "" },
    says: text.length ? `The model has no symbol “${strange[0]}”: only a to j.`
      : "Type some letters from a to j.",
  };
}
const ids = [data.start, ...text.map((symbol) => data.letters.indexOf(symbol))];
const steps = view.once(`${state.letters}|${state.first}`, () =>
  write(ids, data.letters.indexOf(state.first)));
const output = steps.map((step) => data.letters[step.token]).join("");
const right = steps.filter((step, i) => step.token === ids[i + 1]).length;

view.copy(ids.map((id) => data.letters[id]), steps.map((step) => (
  { symbol: data.letters[step.token], weights: step.a })));
const surest = Math.min(...steps.map((step) => step.chance));
return {
  values: { output, right, first: steps[0].a, last: steps[steps.length - 1].a, surest },
  says: `Reads ${text.join("")} and writes ${output}: ${right} of ${steps.length} symbols `
    + `are right. The least sure of all symbols written had a probability of ${surest.toFixed(2)}.`,
};
