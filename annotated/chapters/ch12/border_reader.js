// The trained Transformer-XL of chapter 12 reads a text in segments, with its memory and
// without: body of function (state, data, view, numbers). A position's keys and values never
// change, so each is computed once; what differs is how far back a segment may look.

const { dot, feedForward, normalise, plus, range, softmax, sum, times, unpackAll } = numbers;
const w = view.once("weights", () => unpackAll(data.weights));
const table = w["embedding.tables.0"], width = table[0].length, size = width / data.heads;

const layers = view.once("distances", () => {
  const sinusoids = range(64).map((distance) => range(width).map((c) => {
    const angle = distance / 10000 ** ((c - (c % 2)) / width);
    return c % 2 ? Math.cos(angle) : Math.sin(angle);
  }));
  return range(data.layers).map((i) => {
    const attention = `layers.${i}.attention`;
    return {
      name: `layers.${i}`, attention,
      r: sinusoids.map((vector) => times(w[`${attention}.position_map.weight`], vector)),
      u: w[`${attention}.content_bias`].flat(2), v: w[`${attention}.position_bias`].flat(2),
    };
  });
});
// the bits of each character but the first
function surprises(ids, length, memory) {
  const kept = layers.map(() => ({ keys: [], values: [] }));
  return ids.slice(1).map((target, p) => {
    const begin = p - (p % length), first = Math.max(0, begin - memory);
    let x = table[ids[p]].map((z) => z * Math.sqrt(width));
    layers.forEach(({ name, attention, r, u, v }, i) => {
      const read = normalise(w, `${name}.residuals.0.norm`, x), { keys, values } = kept[i];
      const map = (which, y) => times(w[`${attention}.${which}_map.weight`], y);
      const q = map("query", read), content = plus(q, u), distance = plus(q, v);
      keys.push(map("key", read));
      values.push(map("value", read));
      const heads = range(data.heads).map((h) => {
        const cut = (y) => y.slice(h * size, (h + 1) * size);
        const [c, d] = [cut(content), cut(distance)];
        const weights = softmax(range(p - first + 1).map((j) =>
          (dot(c, cut(keys[first + j])) + dot(d, cut(r[p - first - j]))) / Math.sqrt(size)));
        return range(size).map((e) =>
          sum(weights.map((weight, j) => weight * values[first + j][h * size + e])));
      });
      x = plus(x, map("output", heads.flat()));
      x = feedForward(w, name, 1, x);
    });
    return -Math.log2(softmax(times(table, normalise(w, "norm", x)))[target]);
  });
}

const symbols = [...state.text], strange = symbols.find((one) => !data.characters.includes(one));
if (symbols.length < 2 || strange !== undefined) {
  view.svg(320, 30, "nothing to read");
  view.text(0, 20, "–");
  return {
    values: { forgets: [], remembers: [] },
    says: strange === undefined ? "Type at least two characters."
      : `The model has never met the character “${strange}”.`,
  };
}
const ids = symbols.map((one) => data.characters.indexOf(one));
const rows = view.once([state.text, state.segment].join("|"), () => ({
  forgets: surprises(ids, state.segment, 0),
  remembers: surprises(ids, state.segment, data.memory),
}));

// a column for each character, wrapped; the first has no bits, since nothing is before it
const cell = 17, left = 64, tall = 118, most = 12; // left: the rows' names; most: bits
const dearer = rows.forgets.map((bits, i) => bits - rows.remembers[i]);
const columns = Math.max(8, Math.floor((Math.min(view.width(), 860) - left - 2) / cell));
const lines = Math.ceil(symbols.length / columns);
const svg = view.svg(Math.max(300, left + 2 + cell * Math.min(columns, symbols.length)), tall * lines + 22,
  "each character, with its bits without memory and with it, and below it what memory saves");
const shown = (symbol) => (symbol === " " ? "␣" : symbol);
const said = view.add(svg, "text", { x: 0, y: tall * lines + 14, class: "strong" });
function tell(i) {
  said.textContent = `“${shown(symbols[i])}”: ${rows.forgets[i - 1].toFixed(1)} bits emptied, `
    + `${rows.remembers[i - 1].toFixed(1)} kept, ${numbers.fixed(dearer[i - 1], 1)} saved`;
}
range(lines).forEach((line) => ["emptied", "kept", "saved"].forEach((name, row) => view.add(svg, "text", {
  x: left - 8, y: tall * line + [38, 58, 92][row], "text-anchor": "end", text: name,
})));
symbols.forEach((symbol, i) => {
  const x = left + cell * (i % columns), y = tall * Math.floor(i / columns);
  const column = view.add(svg, "g", {});
  view.add(column, "text", {
    x: x + cell / 2, y: y + 16, "text-anchor": "middle", class: "code", text: shown(symbol),
  });
  if (i === 0) return;
  [rows.forgets, rows.remembers].forEach((bits, row) => view.add(column, "rect", {
    x: x + 1, y: y + 24 + 20 * row, width: cell - 2, height: 18, fill: "var(--accent)",
    "fill-opacity": Math.min(bits[i - 1] / most, 1).toFixed(3), stroke: "currentColor",
    "stroke-opacity": 0.2,
  }));
  const bar = 3 * Math.max(-most / 3, Math.min(dearer[i - 1], most)), zero = y + 102; // 3 pixels a bit
  view.add(column, "rect", {
    x: x + 2, y: zero - Math.max(bar, 0), width: cell - 4, height: Math.max(Math.abs(bar), 0.5),
    fill: bar < 0 ? "var(--second)" : "var(--accent)",
  });
  view.add(column, "rect", { // what is pointed at
    x, y, width: cell, height: tall - 4, fill: "transparent", style: "cursor: pointer",
  });
  for (const event of ["pointerenter", "click"]) column.addEventListener(event, () => tell(i));
  // the border stands before the first character that a new segment guesses
  if ((i - 1) % state.segment === 0 && i > 1) {
    view.line(x, y + 2, x, y + tall - 4, { stroke: "currentColor", "stroke-width": 2 });
  }
});
const best = dearer.indexOf(Math.max(...dearer));
tell(best + 1);
const mean = (bits) => (sum(bits) / bits.length).toFixed(2);
return {
  values: rows,
  room: 110,
  says: `${mean(rows.forgets)} bits per character without memory, ${mean(rows.remembers)} with it. `
    + (dearer[best] < 0.05 ? "No character gains from memory." : `Memory saves most, `
    + `${dearer[best].toFixed(1)} bits, at “${shown(symbols[best + 1])}”, character ${best + 2}.`),
};
