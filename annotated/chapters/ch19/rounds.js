// Chapter 19: the reader's word, written in rounds, and beside it symbol by symbol; body of
// function (state, data, view, numbers). Both are Transformers of chapter 9's kind; the
// decoder of the first looks both ways.

const { plus, range, softmax, sum, argmax } = numbers;
const models = globalThis.annotatedModels || {}, masked = models[data.masked], causal = models[data.causal];
if (!masked || !causal) {
  view.svg(1, 1, "nothing yet").parentNode.replaceChildren(view.loader(data));
  return { values: { loaded: false }, says: data.before };
}
const SIDES = { masked, causal };
const weights = Object.fromEntries(Object.entries(SIDES).map(([side, packed]) =>
  [side, view.once(side, () => numbers.unpackModel(packed))]));
const START = 1, END = 2, MASK = masked.config.target_vocab - 1;

// ---- what both have: the source is read once, and its keys and values are kept

function readSource(side, ids) {
  const { config } = SIDES[side], model = weights[side];
  const xs = ids.map((id, place) => numbers.embed(model, "source_embedding", id, place));
  const memory = numbers.encode(model, config, xs).states;
  const kept = range(config.layers).map((l) => ["key", "value"].map((part) =>
    memory.map((x) => numbers.linear(model, `decoder.layers.${l}.cross_attention.${part}_map`, x))));
  return { memory, kept };
}
// New positions go through the decoder; `past` holds, for each layer, the keys and values
// of earlier ones, and gets those of the new.
function readTarget(side, source, xs, past) {
  const { config } = SIDES[side], model = weights[side];
  const linear = (name, x) => numbers.linear(model, name, x);
  const norm = (name, x) => numbers.normalise(model, name, x);
  range(config.layers).forEach((l) => {
    const layer = `decoder.layers.${l}`, self = `${layer}.attention`, cross = `${layer}.cross_attention`;
    const read = xs.map((x) => norm(`${layer}.residuals.0.norm`, x));
    ["key", "value"].forEach((part, i) => past[l][i].push(...read.map((x) => linear(`${self}.${part}_map`, x))));
    xs = xs.map((x, i) => {
      x = plus(x, numbers.attend(model, self, config.heads, linear(`${self}.query_map`, read[i]), ...past[l]).found);
      const asked = linear(`${cross}.query_map`, norm(`${layer}.residuals.1.norm`, x));
      x = plus(x, numbers.attend(model, cross, config.heads, asked, ...source.kept[l]).found);
      return numbers.feedForward(model, layer, 2, x);
    });
  });
  return xs.map((x) => [...linear("output", norm("decoder.norm", x))]);
}
const nothing = (side) => range(SIDES[side].config.layers).map(() => [[], []]);

// ---- in rounds

function guess(source, tokens) { // chances of all symbols at each position
  const xs = tokens.map((id, place) => numbers.embed(weights.masked, "target_embedding", id, place));
  return readTarget("masked", source, xs, nothing("masked")).map((logits) => {
    logits[0] = -Infinity;
    logits[MASK] = -Infinity;
    return softmax(logits);
  });
}
function lengths({ memory }) { // by how much longer than the source a target is
  const total = memory.reduce(plus), most = masked.config.max_len;
  const scores = numbers.linear(weights.masked, "length", total);
  return softmax(range(most + 1).map((n) => (n ? scores[n - memory.length + most] : -Infinity)));
}
let seed = 19;
const random = () => { seed = (seed * 48271) % 2147483647; return seed / 2147483647; };
function inRounds(ids, rounds, order, more) {
  const source = readSource("masked", ids), chances = lengths(source);
  const n = Math.max(1, Math.min(argmax(chances) + more, masked.config.max_len));
  let tokens = range(n).map(() => MASK), sure = range(n).map(() => 0);
  const rivals = range(n).map(() => []), steps = [];
  for (let r = 0; r < rounds; r += 1) {
    const again = order === data.orders[0];
    if (again) {
      const least = range(n).sort((i, j) => sure[i] - sure[j] || i - j).slice(0, Math.floor((n * (rounds - r)) / rounds));
      tokens = tokens.map((id, i) => (least.includes(i) ? MASK : id));
    }
    const hidden = range(n).filter((i) => tokens[i] === MASK);
    const count = again ? hidden.length : Math.ceil((n * (r + 1)) / rounds) - (n - hidden.length);
    if (count <= 0) continue;
    const read = tokens, all = guess(source, tokens), best = all.map(argmax);
    const rank = { // what comes first in each order
      [data.orders[0]]: () => 0, [data.orders[1]]: (i) => -all[i][best[i]],
      [data.orders[2]]: (i) => i, [data.orders[3]]: random,
    }[order];
    const places = new Map(hidden.map((i) => [i, rank(i)]));
    const chosen = hidden.sort((i, j) => places.get(i) - places.get(j) || i - j).slice(0, count);
    tokens = tokens.map((id, i) => (chosen.includes(i) ? best[i] : id));
    sure = sure.map((p, i) => (chosen.includes(i) ? all[i][best[i]] : p));
    chosen.forEach((i) => {
      [rivals[i]] = range(all[i].length).filter((id) => id !== best[i]).sort((a, b) => all[i][b] - all[i][a])
        .map((id) => [id, all[i][id]]);
    });
    steps.push({ read, tokens, chosen, sure: [...sure], rivals: [...rivals] });
  }
  return { steps, n, chance: chances[n] };
}

// ---- symbol by symbol, greedily, with a cache

function inOrder(ids) {
  const source = readSource("causal", ids), past = nothing("causal"), written = [];
  const most = Math.min(causal.config.max_len, 2 * ids.length + 10);
  for (let id = START; id !== END && written.length < most;) {
    const x = numbers.embed(weights.causal, "target_embedding", id, written.length);
    const chances = softmax(readTarget("causal", source, [x], past)[0].map((z, i) => (i ? z : -Infinity)));
    id = argmax(chances);
    written.push({ id, chance: chances[id] });
  }
  return written;
}

// ---- the word

const word = state.word.trim().toLowerCase();
const strange = [...word].filter((letter) => masked.source.indexOf(letter) < 3);
if (!word || strange.length || word.length > data.most) {
  view.svg(320, 30, "nothing to say");
  view.text(0, 20, "–");
  return {
    values: { loaded: true, written: "" },
    says: !word ? "Type a word, and it is pronounced."
      : strange.length ? `The models have never met “${strange[0]}”: they know the letters a to z, apostrophe, hyphen and full stop.`
        : `The models read at most ${data.most} letters.`,
    room: data.room,
  };
}
const ids = [...word].map((letter) => masked.source.indexOf(letter));
const timed = (name, make) => view.once(name, () => {
  const before = performance.now();
  return { ...make(), took: performance.now() - before };
});
const more = data.lengths.indexOf(state.length) - 1;
const rounds = timed([word, state.rounds, state.order, more].join("|"), () => inRounds(ids, state.rounds, state.order, more));
const order = timed(`${word}|causal`, () => ({ written: inOrder(ids) }));
const { steps, n } = rounds, { written } = order;
const symbol = (id) => (id === END ? "end" : id === MASK ? "" : masked.target[id]);
const passes = Math.max(steps.length, written.length), now = Math.min(state.passes, passes);
view.ends("passes", passes, now);
view.step("passes", now < passes ? now + 1 : 0, now < passes ? "next pass" : "back to the start");

const room = view.width(), left = room < 560 ? 0 : 62, columns = Math.max(n, written.length);
const size = Math.max(22, Math.min(44, Math.floor((room - left - 2) / columns))), high = 26;
const label = left ? 0 : 18, block = 10 * high;
view.svg(Math.max(left + size * columns + 2, Math.min(room, 340)), 24 + block + 52 + 2 * high + 40,
  `${word} after ${now} passes: in rounds, and symbol by symbol`);
const cell = (x, y, text, { shade = 0, hidden = false, color = "this" } = {}) => {
  view.rect(x + 1, y + 1, size - 3, high - 3, {
    rx: 3, fill: `var(--at-${hidden ? "weight" : color})`, "fill-opacity": hidden ? 0.55 : shade, stroke: "currentColor",
    "stroke-opacity": 0.25,
  });
  if (text) view.text(x + size / 2 - 0.5, y + high - 8, text, { "text-anchor": "middle", class: "code", style: size < 30 ? "font-size: 12px" : "" });
};
view.text(0, 16, `In rounds: ${Math.min(now, steps.length)} of ${steps.length}`, { class: "strong" });
if (!now) range(n).forEach((i) => cell(left + size * i, 24, "", { hidden: true }));
steps.slice(0, now).forEach(({ tokens, chosen }, r) => {
  if (left) view.text(0, 24 + high * r + 17, `round ${r + 1}`);
  tokens.forEach((id, i) => cell(left + size * i, 24 + high * r, symbol(id), {
    hidden: id === MASK, shade: chosen.includes(i) ? 0.3 : 0,
  }));
});
const last = steps[Math.min(now, steps.length) - 1], below = 24 + high * Math.max(1, Math.min(now, steps.length)) + 15;
if (last) last.tokens.forEach((id, i) => {
  if (id === MASK) return;
  const [rival, chance] = last.rivals[i], style = { "text-anchor": "middle", style: "font-size: 12px; fill: var(--at-muted)" };
  view.text(left + size * (i + 0.5), below, `${Math.round(100 * last.sure[i])}`, style);
  if (chance >= 0.01) view.text(left + size * (i + 0.5), below + 15, symbol(rival), style);
});
if (last && left) {
  view.text(0, below, "sure, %", { style: "font-size: 12px; fill: var(--at-muted)" });
  view.text(0, below + 15, "or else", { style: "font-size: 12px; fill: var(--at-muted)" });
}
const top = 24 + block + 52;
view.text(0, top + label, `Symbol by symbol: ${Math.min(now, written.length)} of ${written.length}`, { class: "strong" });
written.forEach(({ id }, i) => {
  const there = i < now;
  cell(left + size * i, top + label + 8, there ? symbol(id) : "", { shade: there && i === now - 1 ? 0.3 : 0, color: "other" });
});
view.text(0, top + label + 8 + high + 22, `Work so far: ${n * Math.min(now, steps.length)} positions in rounds, `
  + `${Math.min(now, written.length)} one by one`);

const said = (list) => list.filter((id) => id !== END).map(symbol).join(" ");
const final = said(steps[steps.length - 1].tokens), other = said(written.map(({ id }) => id));
return {
  values: {
    loaded: true, written: final, other, n, passes: [steps.length, written.length],
    sure: steps[steps.length - 1].sure, read: steps.map(({ read }) => said(read.map((id) => (id === MASK ? 0 : id)))),
  },
  says: `In rounds: ${final || "nothing"}, after ${steps.length} passes over ${n} positions each (${Math.round(rounds.took)} ms here). `
    + `One by one: ${other || "nothing"}, ${written.length} passes over one position (${Math.round(order.took)} ms).`,
  room: data.room,
};
