// The recorded speller of chapter 09, run in the reader's browser: body of function
// (state, data, view, numbers). A Transformer of any depth, pre-norm; keys and values of
// what was read are kept. A sequence is an array of vectors.

const { plus, range, softmax, sum } = numbers;
const packed = (globalThis.annotatedModels || {})[data.name];
if (!packed) {
  view.svg(1, 1, "nothing yet").parentNode.replaceChildren(view.loader(data));
  return { values: { loaded: false }, says: data.before };
}

const model = view.once("model", () => numbers.unpackModel(packed));
const { config } = packed, START = 1, END = 2;

const linear = (name, x) => numbers.linear(model, name, x);
const normalise = (name, x) => numbers.normalise(model, name, x);
const attend = (name, ...read) => numbers.attend(model, name, config.heads, ...read);
const embed = (table, id, place) => numbers.embed(model, table, id, place);

// The source is read once: for each layer of the decoder its keys and values.
function readSource(ids) {
  const xs = ids.map((id, place) => embed("source_embedding", id, place));
  const memory = numbers.encode(model, config, xs).states;
  return range(config.layers).map((l) => ["key", "value"].map((part) =>
    memory.map((x) => linear(`decoder.layers.${l}.cross_attention.${part}_map`, x))));
}
// One symbol more: its logits, where each head looked, and what is kept for the next.
function readTarget(source, id, past) {
  let x = embed("target_embedding", id, past.length);
  const kept = [], maps = [];
  for (let l = 0; l < config.layers; l += 1) {
    const layer = `decoder.layers.${l}`, self = `${layer}.attention`, cross = `${layer}.cross_attention`;
    const read = normalise(`${layer}.residuals.0.norm`, x);
    kept.push(["key", "value"].map((part) => linear(`${self}.${part}_map`, read)));
    const [keys, values] = [0, 1].map((side) => [...past.map((step) => step[l][side]), kept[l][side]]);
    x = plus(x, attend(self, linear(`${self}.query_map`, read), keys, values).found);
    const asked = linear(`${cross}.query_map`, normalise(`${layer}.residuals.1.norm`, x));
    const looked = attend(cross, asked, ...source[l]);
    maps.push(...looked.maps);
    x = numbers.feedForward(model, layer, 2, plus(x, looked.found));
  }
  const logits = [...linear("output", normalise("decoder.norm", x))];
  return { logits, maps, past: [...past, kept] };
}

// The k likeliest beginnings live on; greedy decoding is a beam of one. As `beam_search`
// does with stop="first" and alpha=0.
function search(ids, k) {
  const source = readSource(ids), most = Math.min(config.max_len, 2 * ids.length + 10);
  let alive = [{ total: 0, id: START, past: [], steps: [] }];
  const done = [];
  for (let length = 1; length <= most && done.length < k && alive.length; length += 1) {
    const grown = alive.flatMap(({ total, id, past, steps }) => {
      const read = readTarget(source, id, past), chances = softmax(read.logits);
      return chances.map((chance, next) => ({
        total: next === 0 ? -Infinity : total + Math.log(chance), id: next, past: read.past,
        steps: [...steps, { ...read, chances, id: next }],
      }));
    }).sort((a, b) => b.total - a.total).slice(0, 2 * k);
    const over = (one) => one.id === END;
    done.push(...grown.slice(0, k).filter((one) => over(one) || length === most));
    alive = grown.filter((one) => !over(one)).slice(0, k);
  }
  return done.sort((a, b) => b.total - a.total).slice(0, k);
}

const word = state.word.trim().toLowerCase();
const strange = [...word].filter((letter) => packed.source.indexOf(letter) < 3);
const longest = Math.min(data.most, config.max_len);
if (!word || strange.length || word.length > longest) {
  view.svg(320, 30, "nothing to say");
  view.text(0, 20, "–");
  return {
    values: { loaded: true, written: "", strange: strange[0] || "" },
    says: !word ? "Type a word, and it is pronounced."
      : strange[0] === " " ? "One word at a time, please: the model knows no spaces."
      : strange.length ? `The model has never met “${strange[0]}”: it knows the letters a to z, `
        + "apostrophe, hyphen and full stop."
        : `The model reads at most ${longest} letters.`,
    room: 230,
  };
}
const k = state.search === data.searches[0] ? 1 : 4;
const found = view.once(`${word}|${k}`, () => search([...word].map((letter) => packed.source.indexOf(letter)), k));
const { steps, total } = found[0];
const symbol = (id) => (id === END ? "end" : packed.target[id]);
const spoken = (one) => one.steps.filter(({ id }) => id !== END).map(({ id }) => symbol(id)).join(" ");
const percent = (p) => (p >= 0.995 ? "100 %" : p < 0.001 ? "below 0.1 %" : `${(100 * p).toFixed(p < 0.095 ? 1 : 0)} %`);

// a row for each sound: how sure the model was, its rivals, and where the heads looked
const head = data.heads.indexOf(state.look) - 1;
const weights = ({ maps }) => (head >= 0 ? maps[head]
  : maps[0].map((_, j) => sum(maps.map((map) => map[j])) / maps.length));
const letters = [...word], room = view.width(), wide = room >= 560;
const left = 96, right = wide ? 190 : 4;
const size = Math.max(15, Math.min(28, Math.floor((Math.min(room, 640) - left - right) / letters.length)));
const high = 26, top = 34, lower = top + high * steps.length + 8;
const across = Math.max(left + size * letters.length + right, 300);
// what the beam kept, in lines that fit
const lines = (found.length > 1 ? found : []).flatMap((one) => {
  const parts = [""];
  for (const sound of spoken(one).split(" ")) {
    const longer = `${parts[parts.length - 1]} ${sound}`.trim();
    if (58 + 9.1 * longer.length > across) parts.push(sound);
    else parts[parts.length - 1] = longer;
  }
  return parts.map((text, i) => [i ? "" : percent(Math.exp(one.total)).replace("below", "<"), text || "(nothing)"]);
});
// what a beam keeps has its room in any case, so that nothing moves
view.svg(across, lower + 26 + 22 * Math.max(lines.length, 4),
  `where the heads look in ${letters.length} letters while ${steps.length} symbols are written`);
const write = view.text;
letters.forEach((letter, j) => write(left + size * (j + 0.5), 22, letter, { "text-anchor": "middle", class: "code strong" }));
steps.forEach((step, i) => {
  const y = top + high * i, base = y + high / 2 + 5;
  write(0, base, symbol(step.id), { class: step.id === END ? "" : "code strong" });
  write(left - 10, base, percent(step.chances[step.id]), { "text-anchor": "end" });
  weights(step).forEach((weight, j) => view.rect(left + size * j + 1.5, y + 2, size - 3, high - 4, {
    rx: 2, fill: "var(--at-weight)", "fill-opacity": weight.toFixed(3), stroke: "currentColor",
    "stroke-opacity": 0.18,
  }));
  const rivals = range(step.chances.length).filter((id) => id && id !== step.id)
    .sort((a, b) => step.chances[b] - step.chances[a]).slice(0, 2).filter((id) => step.chances[id] >= 0.01);
  if (wide) {
    write(left + size * letters.length + 14, base,
      rivals.map((id) => `${symbol(id)} ${percent(step.chances[id])}`).join(", "));
  }
});
if (lines.length) write(0, lower + 16, "what the beam kept:", { class: "strong" });
lines.forEach(([chance, text], i) => {
  write(0, lower + 38 + 22 * i, chance);
  write(58, lower + 38 + 22 * i, text, { class: "code" });
});
// What the dictionary says, if the word is one of those that training never saw: they are
// listed as `;word ABC,ABD;`, A for the first sound.
const named = `;${word} `, at = packed.held_out.indexOf(named);
const answers = at < 0 ? [] : packed.held_out
  .slice(at + named.length, packed.held_out.indexOf(";", at + 1)).split(",")
  .map((answer) => [...answer].map((c) => packed.target[c.charCodeAt(0) - 62]).join(" "));
const said = spoken(found[0]), unsure = [...steps].sort((a, b) => a.chances[a.id] - b.chances[b.id])[0];
return {
  values: {
    loaded: true, written: said, total, strange: "", several: found.map(spoken), answers,
    logits: steps.map((step) => step.logits), first: weights(steps[0]),
  },
  says: `The model says ${said || "nothing"}, with a probability of ${percent(Math.exp(total))}; it is `
    + `least sure of ${symbol(unsure.id)}, ${percent(unsure.chances[unsure.id])}. `
    + (answers.length ? `It never saw this word; the dictionary says ${answers.join(" or ")}.`
      : "It isn't one of the test words, so the model may have trained on it.")
    + (word.length === longest ? ` No more than ${longest} letters fit.` : ""),
  room: 230,
};
