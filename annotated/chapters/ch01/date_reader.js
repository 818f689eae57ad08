// The trained date reader of chapter 01, run in the reader's browser: body of
// function (state, data, view, numbers). Letters: h the encoder's states, s the
// decoder's state, e the scores, a the weights, c the context.

const { argmax, dot, plus, sigmoid, softmax, sum, times, unpackAll } = numbers;
// One GRU step, PyTorch's order of gates: reset, update, candidate.
function gru(w, x, s) {
  const fromInput = plus(times(w.input, x), w.inputBias);
  const fromState = plus(times(w.state, s), w.stateBias);
  const n = s.length;
  return s.map((old, i) => {
    const reset = sigmoid(fromInput[i] + fromState[i]);
    const update = sigmoid(fromInput[n + i] + fromState[n + i]);
    const candidate = Math.tanh(fromInput[2 * n + i] + reset * fromState[2 * n + i]);
    return (1 - update) * candidate + update * old;
  });
}

const model = view.once("model", () => {
  const w = unpackAll(data.weights);
  const cell = (prefix, suffix) => ({
    input: w[`${prefix}.weight_ih${suffix}`],
    state: w[`${prefix}.weight_hh${suffix}`],
    inputBias: w[`${prefix}.bias_ih${suffix}`],
    stateBias: w[`${prefix}.bias_hh${suffix}`],
  });
  return {
    w,
    forward: cell("encoder.rnn", "_l0"),
    backward: cell("encoder.rnn", "_l0_reverse"),
    decoder: cell("decoder.cell", ""),
  };
});
const { w } = model;

function encode(ids) {
  const walk = (weights, order) => {
    let s = new Array(weights.stateBias.length / 3).fill(0);
    const states = [];
    for (const i of order) {
      s = gru(weights, w["encoder.embedding.weight"][ids[i]], s);
      states[i] = s;
    }
    return { states, last: s };
  };
  const order = ids.map((_, i) => i);
  const right = walk(model.forward, order);
  const left = walk(model.backward, [...order].reverse());
  return {
    h: order.map((i) => [...right.states[i], ...left.states[i]]),
    summary: [...right.last, ...left.last],
  };
}
function decode(ids) {
  const { h, summary } = encode(ids);
  const keys = h.map((state) => times(w["decoder.attention.key_map.weight"], state));
  const direction = w["decoder.attention.direction.weight"][0];
  let s = plus(times(w["decoder.bridge.weight"], summary), w["decoder.bridge.bias"]);
  s = s.map(Math.tanh);
  let token = data.start;
  const steps = [];
  while (token !== data.end && steps.length < data.most) {
    const query = times(w["decoder.attention.query_map.weight"], s);
    const e = keys.map((key) => dot(direction, plus(query, key).map(Math.tanh)));
    const a = softmax(e);
    const c = summary.map((_, d) => sum(a.map((x, j) => x * h[j][d])));
    s = gru(model.decoder, [...w["decoder.embedding.weight"][token], ...c], s);
    const logits = times(w["decoder.head.weight"], [...s, ...c]);
    const chances = softmax(plus(logits, w["decoder.head.bias"]));
    token = argmax(chances);
    steps.push({ token, a, chances });
  }
  return steps;
}

// A date with slashes isn't taught, since 3/7/2024 is March in one country and July in
// another: it is rewritten with points, day first, where only one reading is possible
// and otherwise as in the United States.
const typed = state.date.trim().replace(/\s+/g, " ");
const slashes = /^(\d\d?)\/(\d\d?)\/(\d{4})$/.exec(typed);
const ordered = slashes && (slashes[1] > 12 ? [1, 2, 3] : [2, 1, 3])
  .map((part) => slashes[part].padStart(2, "0")).join(".");
// a letter known only as a lower one is read as that
const text = [...(ordered || typed)].map((symbol) => {
  const lower = symbol.toLowerCase();
  return !data.source.includes(symbol) && data.source.includes(lower) ? lower : symbol;
});
const unknown = text.filter((symbol) => !data.source.includes(symbol));
if (!text.length || unknown.length) {
  view.svg(320, 1, "nothing to read");
  const why = text.length
    ? `The model has never seen “${unknown[0]}”, so it cannot read this.`
    : "Type a date above.";
  return { values: { output: "", unknown: unknown[0] || "" }, says: why };
}
const steps = view.once(`of ${state.date}`, () =>
  decode(text.map((symbol) => data.source.indexOf(symbol))));
const name = (token) => (token === data.end ? "end" : data.target[token]);
const output = steps.filter((step) => step.token !== data.end)
  .map((step) => data.target[step.token]).join("");
const at = Math.min(state.step, steps.length) - 1;
const now = steps[at];

// cells as large as fit, down to a size that can still be read
const left = 48, top = 40;
const size = Math.max(11, Math.min(21, Math.floor((view.width() - left - 2) / text.length)));
const small = size < 16 ? "font-size: 12px" : "";
const wide = Math.max(left + size * text.length + 2, 300);
const below = top + size * steps.length + 14;
const svg = view.svg(wide, below + 62,
  `alignment of the first ${at + 1} steps over ${text.length} characters`);
svg.style.maxWidth = "none"; // a long text scrolls, and stays as large
view.text(0, 14, "what is read →");
view.text(0, 32, "written");
text.forEach((symbol, j) => view.add(svg, "text", {
  x: left + size * (j + 0.5), y: top - 7, "text-anchor": "middle", class: "code",
  style: small, text: symbol === " " ? "␣" : symbol,
}));
steps.forEach((step, i) => {
  const y = top + size * i, known = i <= at;
  if (known) {
    view.text(left - 8, y + size - 5, name(step.token), {
      "text-anchor": "end", style: small, class: i === at ? "code strong" : "code",
    });
  }
  step.a.forEach((weight, j) => view.rect(left + size * j + 1, y + 1, size - 2, size - 2, {
    fill: "var(--at-weight)", "fill-opacity": known ? weight.toFixed(3) : 0, stroke: "currentColor",
    "stroke-opacity": i === at ? 0.8 : known ? 0.2 : 0.08,
  }));
});
const percent = (chance) =>
  chance < 0.0005 ? "< 0.1 %" : `${(100 * chance).toFixed(1)} %`;
const best = now.chances.map((chance, token) => ({ chance, token }))
  .sort((p, q) => q.chance - p.chance).slice(0, 3);
best.forEach(({ chance, token }, i) => {
  const y = below + 20 * i;
  view.text(left - 8, y + 14, name(token), { "text-anchor": "end", class: "code" });
  view.rect(left, y + 3, Math.max(1, 160 * chance), 13, { fill: "var(--accent)" });
  view.text(left + 168, y + 14, percent(chance));
});
const peak = argmax(now.a), last = at + 1 === steps.length;
const line = text.join("");
// no line of the training looked like this: 4th, ISO, year first, no full year or two of
// them, or no day
const unlike = /\d-\d|\d(st|nd|rd|th)\b|^\d{4}[\d. ]*$/i.test(line)
  || (line.match(/\d{4}/g) || []).length !== 1 || (line.match(/\d+/g) || []).length < 2;
// (JavaScript reads 2024-02-31 as March 2)
const day = new Date(`${output}T00:00Z`);
const exists = !Number.isNaN(day.valueOf()) && day.toISOString().startsWith(output);
const both = slashes && slashes[1] < 13 && slashes[2] < 13 && slashes[1] !== slashes[2];
const seen = text[peak] === " " ? "a space" : `“${text[peak]}”`;
const late = (line.match(/\d+/g) || []).find((digits) => digits.length < 3 && digits > 31);
// it may end before the slider does
svg.closest("section").querySelector("output").textContent = at + 1;
const doubts = (late ? ` No month has a day ${late}: it can't say so, and makes one up.` : "")
  + (ordered ? ` It has read ${ordered}: nobody taught it slashes`
    + `${both ? ", since this one means another day in another country" : ""}.` : "")
  + (exists ? "" : ` There's no day ${output}: it has learned to write, not to check.`)
  + (unlike ? " It was never taught to read dates in this style, so don't trust it." : "");
return {
  values: { output, alignment: now.a, chance: best[0].chance },
  room: 145 + doubts.length,
  says: `Step ${at + 1} of ${steps.length}: writes “${name(now.token)}” with a `
    + `probability of ${percent(best[0].chance)}, looking most at ${seen} `
    + `(character ${peak + 1}, weight ${now.a[peak].toFixed(2)}). `
    + (last ? `The whole answer: ${output}.` : `Written so far: ${output.slice(0, at + 1)}.`)
    + doubts,
};
