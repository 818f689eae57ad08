// Chapter 19: the reader's word, written in rounds, and beside it symbol by symbol; body of
// function (state, data, view, numbers), after refiner.js.

const { range, argmax } = numbers;
const models = globalThis.annotatedModels || {}, packed = models[data.masked];
if (!packed || !models[data.causal]) {
  view.svg(1, 1, "nothing yet").parentNode.replaceChildren(view.loader(data));
  return { values: { loaded: false }, says: data.before };
}
const masked = view.once("masked", () => refiner(packed, numbers));
const causal = view.once("causal", () => refiner(models[data.causal], numbers));
const END = 2, MASK = masked.mask;

function inRounds(ids, rounds, order, more) {
  const source = masked.readSource(ids), chances = masked.lengths(source);
  const n = Math.max(1, Math.min(argmax(chances) + more, masked.config.max_len));
  let seed = 19; // the same random order at every visit
  const random = () => { seed = (seed * 48271) % 2147483647; return seed / 2147483647; };
  const done = order === "least sure" ? masked.maskPredict(source, n, rounds)
    : masked.diffuse(source, n, rounds, order, { random });
  const sure = [], rivals = [];
  const steps = done.rounds.map(({ read, written, chances: all }) => {
    const chosen = range(n).filter((i) => read[i] === MASK && written[i] !== MASK);
    chosen.forEach((i) => {
      sure[i] = all[i][written[i]];
      [rivals[i]] = range(all[i].length).filter((id) => id !== written[i])
        .sort((x, y) => all[i][y] - all[i][x]).map((id) => [id, all[i][id]]);
    });
    return { read, tokens: written, chosen, sure: [...sure], rivals: [...rivals] };
  });
  return { steps, n };
}
const inOrder = (ids) => causal.greedy(causal.readSource(ids), Math.min(causal.config.max_len, 2 * ids.length + 10));

// ---- the word

const word = state.word.trim().toLowerCase();
const strange = [...word].filter((letter) => packed.source.indexOf(letter) < 3);
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
const ids = [...word].map((letter) => packed.source.indexOf(letter));
const timed = (name, make) => view.once(name, () => {
  const before = performance.now();
  return { ...make(), took: performance.now() - before };
});
const more = data.lengths.indexOf(state.length) - 1;
const rounds = timed([word, state.rounds, state.order, more].join("|"), () => inRounds(ids, state.rounds, data.orders[state.order], more));
const order = timed(`${word}|causal`, () => ({ written: inOrder(ids) }));
const { steps, n } = rounds, { written } = order;
const symbol = (id) => (id === END ? "." : id === MASK ? "" : packed.target[id]);
const passes = Math.max(steps.length, written.length), now = Math.min(state.passes, passes);
view.ends("passes", passes, now);
view.step("passes", now < passes ? now + 1 : 0, now < passes ? "next pass" : "back to the start");

const room = view.width(), left = room < 560 ? 0 : 62, columns = Math.max(n, written.length);
const size = Math.max(17, Math.min(44, Math.floor((room - left - 2) / columns))), high = 26;
const fit = Math.min(columns, Math.floor((room - left - 2) / size)); // what lies beyond isn't drawn
const label = left ? 0 : 18, block = 10 * high;
view.svg(Math.max(left + size * fit + 2, Math.min(room, 300)), 24 + block + 52 + 2 * high + 40,
  `${word} after ${now} passes: in rounds, and symbol by symbol`);
const cell = (i, y, text, { shade = 0, hidden = false, color = "this" } = {}) => {
  const x = left + size * i;
  if (i >= fit) return;
  view.rect(x + 1, y + 1, size - 3, high - 3, {
    rx: 3, fill: `var(--at-${hidden ? "weight" : color})`, "fill-opacity": hidden ? 0.55 : shade, stroke: "currentColor",
    "stroke-opacity": 0.25,
  });
  if (text) view.text(x + size / 2 - 0.5, y + high - 8, text, { "text-anchor": "middle", class: "code", style: size < 30 ? "font-size: 12px" : "" });
};
view.text(0, 16, `In rounds: ${Math.min(now, steps.length)} of ${steps.length}`, { class: "strong" });
if (!now) range(n).forEach((i) => cell(i, 24, "", { hidden: true }));
steps.slice(0, now).forEach(({ tokens, chosen }, r) => {
  if (left) view.text(0, 24 + high * r + 17, `round ${r + 1}`);
  tokens.forEach((id, i) => cell(i, 24 + high * r, symbol(id), {
    hidden: id === MASK, shade: chosen.includes(i) ? 0.3 : 0,
  }));
});
const last = steps[Math.min(now, steps.length) - 1], below = 24 + high * Math.max(1, Math.min(now, steps.length)) + 15;
if (last) last.tokens.forEach((id, i) => {
  if (id === MASK || i >= fit) return;
  const [rival, chance] = last.rivals[i], style = { "text-anchor": "middle", style: "font-size: 12px; fill: var(--at-muted)" };
  view.text(left + size * (i + 0.5), below, `${Math.min(99, Math.round(100 * last.sure[i]))}`, style);
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
  cell(i, top + label + 8, there ? symbol(id) : "", { shade: there && i === now - 1 ? 0.3 : 0, color: "other" });
});
view.text(0, top + label + 8 + high + 22,
  `Positions computed: ${n * Math.min(now, steps.length)}, and ${Math.min(now, written.length)}`);

const said = (list) => list.filter((id) => id !== END).map(symbol).join(" ");
// what the dictionary says of a word that neither has seen, as in chapter 9
const { held_out: held } = models[data.causal], at = held.indexOf(`;${word} `);
const answers = at < 0 ? [] : held.slice(at + word.length + 2, held.indexOf(";", at + 1)).split(",")
  .map((answer) => [...answer].map((c) => packed.target[c.charCodeAt(0) - 62]).join(" "));
const final = said(steps[steps.length - 1].tokens), other = said(written.map(({ id }) => id));
return {
  values: {
    loaded: true, written: final, other, n, answers, passes: [steps.length, written.length],
    sure: steps[steps.length - 1].sure,
  },
  says: `In rounds: ${final || "nothing"}, after ${steps.length} passes over ${n} positions each (${Math.round(rounds.took)} ms here). `
    + `One by one: ${other || "nothing"}, ${written.length} passes over one position (${Math.round(order.took)} ms).`
    + (answers.length ? ` The dictionary, which they never saw here: ${answers.join(" or ")}.` : ""),
  room: data.room,
};
