// The trained model of chapter 08 and its twin without a causal mask, run in the reader's
// browser: body of function (state, data, view, numbers). One layer of encoder and decoder,
// pre-norm, read from packed weights; matrices are arrays of rows, and a sequence is an array
// of vectors.

const {
  argmax, attend, encode, feedForward, linear, normalise, plus, softmax, sum, unpackModel,
} = numbers;

const w = view.once(`weights of ${state.model}`, () => unpackModel(data.weights[state.model]));

const embed = (table, tokens) => tokens.map((token, place) => numbers.embed(w, table, token, place));
const linearAll = (name, xs) => xs.map((x) => linear(w, name, x));
const norms = (name, xs) => xs.map((x) => normalise(w, name, x));
// What each of xs finds; may(i, j): may query i attend to key j?
function attendAll(name, xs, others, may = () => true) {
  const [keys, values] = ["key", "value"].map((part) => linearAll(`${name}.${part}_map`, others));
  return linearAll(`${name}.query_map`, xs).map((query, i) => {
    const seen = (_, j) => may(i, j);
    return attend(w, name, data.heads, query, keys.filter(seen), values.filter(seen));
  });
}
function decode(tokens, memory) {
  const layer = "decoder.layers.0";
  const may = (i, j) => (j <= i || state.model === data.twin) && tokens[j] !== data.pad;
  let x = embed("target_embedding", tokens);
  const read = norms(`${layer}.residuals.0.norm`, x);
  const own = attendAll(`${layer}.attention`, read, read, may);
  x = x.map((v, i) => plus(v, own[i].found));
  const asked = norms(`${layer}.residuals.1.norm`, x);
  const looks = attendAll(`${layer}.cross_attention`, asked, memory);
  return x.map((v, i) => {
    const last = feedForward(w, layer, 2, plus(v, looks[i].found));
    return { maps: looks[i].maps, logits: linear(w, "output", normalise(w, "decoder.norm", last)) };
  });
}
// What the decoder says at a position, and where its heads look on average.
function step({ maps, logits }) {
  const chances = softmax(logits), token = argmax(chances);
  const a = maps[0].map((_, j) => sum(maps.map((map) => map[j])) / maps.length);
  return { token, a, chance: chances[token] };
}
function write(ids, start) {
  const config = { layers: 1, heads: data.heads, norm: "pre", activation: "relu" };
  const memory = encode(w, config, embed("source_embedding", ids)).states;
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
  view.svg(320, 30, "nothing to copy");
  view.text(0, 20, "–");
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
