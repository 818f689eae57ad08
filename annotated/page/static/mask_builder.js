// Chapter 04: a mask is built, and scores and weights follow; body of
// function (state, data, view, numbers). The vectors come from Python, the rest is computed here.

const { dot, fixed, softmax, sum } = numbers;
const n = data.words.length;
const length = Number(state.length), prefix = Number(state.prefix);
const causal = state.causality === data.causal;
const switched = new Set(state.cells.map(([i, j]) => i * n + j));
const words = data.words.map((word, j) => (j < length ? word : "pad"));
const row = (table, j) => (j < length ? table[j] : table[n]); // the last one is pad's

const share = (w) => w.toFixed(Math.abs(w - 1 / 8) < 1e-6 ? 3 : 2).slice(1);

const mask = [], scores = [], weights = [];
for (let i = 0; i < n; i++) {
  mask.push([]); scores.push([]);
  for (let j = 0; j < n; j++) {
    const seen = j < length && (!causal || j <= i || j < prefix);
    mask[i].push(seen !== switched.has(i * n + j));
    const q = row(data.queries, i), k = row(data.keys, j);
    scores[i].push(dot(q, k) / Math.sqrt(q.length));
  }
  // what stands in the hidden entries, as each way of masking has it
  const filled = scores[i].map((e, j) => {
    if (mask[i][j]) return e;
    return state.hiding === data.hidings[2] ? -1e9 : -Infinity;
  });
  const lost = state.hiding === data.hidings[1] && !mask[i].some(Boolean); // 0 / 0
  weights.push(lost ? filled.map(() => null) : softmax(filled)); // null stands for NaN
}
const leaked = weights.map(
  (w, i) => (w.includes(null) ? null : sum(w.filter((_, j) => !mask[i][j]))),
);
const empty = mask.flatMap((r, i) => (r.some(Boolean) ? [] : [i]));

view.names("cells", words, words);
for (let i = 0; i < n; i++) {
  for (let j = 0; j < n; j++) {
    view.cell("cells", i, j, {
      on: mask[i][j],
      text: mask[i][j] ? "1" : "0",
      label: `query ${i + 1} ${words[i]}, key ${j + 1} ${words[j]}: `
        + (mask[i][j] ? "1, visible" : "0, hidden"),
    });
  }
}

// two panels, side by side; on a phone one below the other, the weights first, so that
// a click and its effect share the screen
const cell = 31, left = 56, head = 62, gap = 10;
const side = left + n * cell, high = head + n * cell + 6;
const wide = view.width() >= 2 * side + gap;
const svg = view.svg(
  wide ? 2 * side + gap : side, wide ? high : 2 * high + gap,
  "two tables, a row for each query and a column for each key: scores and weights",
);
view.once("watch", () => { // for the first drawing alone
  const root = svg.closest(".annotated-explorer");
  // a click counts for the mask that it was made in
  root.addEventListener("input", ({ target }) => {
    if (!["length", "prefix", "causality"].includes(target.dataset.name)) return;
    for (const entry of root.querySelectorAll("[data-switched]")) {
      delete entry.dataset.switched;
    }
  }, true);
  let before = view.width();
  new ResizeObserver(() => {
    const now = view.width();
    if (now !== before) root.explorer.set({});
    before = now;
  }).observe(svg.parentNode);
});
["scores", "weights after the softmax"].forEach((title, panel) => {
  const x0 = wide ? panel * (side + gap) : 0;
  const y0 = wide || panel ? 0 : high + gap;
  view.add(svg, "text", { x: x0 + left, y: y0 + 14, text: title, class: "strong" });
  for (let j = 0; j < n; j++) {
    const x = x0 + left + (j + 0.5) * cell;
    view.add(svg, "text", {
      x, y: y0 + head - 8, text: words[j], "text-anchor": "start",
      transform: `rotate(-45 ${x} ${y0 + head - 8})`,
    });
    view.add(svg, "text", {
      x: x0 + left - 6, y: y0 + head + (j + 0.5) * cell + 5, text: words[j],
      "text-anchor": "end",
    });
  }
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) {
      const w = weights[i][j];
      const x = x0 + left + j * cell, y = y0 + head + i * cell;
      view.add(svg, "rect", {
        x, y, width: cell - 1, height: cell - 1,
        stroke: panel && !mask[i][j] ? "var(--second)" : "currentColor",
        "stroke-opacity": panel && !mask[i][j] ? 1 : 0.35,
        "stroke-dasharray": panel && !mask[i][j] ? "3 3" : "none",
        fill: panel ? "var(--accent)" : "none", "fill-opacity": panel ? w ?? 0 : 0,
      });
      let text = fixed(scores[i][j], 1);
      if (!mask[i][j]) text = state.hiding === data.hidings[2] ? "−1e9" : "−∞";
      if (panel) text = w === null ? "NaN" : w >= 0.995 ? "1" : share(w);
      if (panel && w === 0) text = "0";
      const digits = view.add(svg, "text", {
        x: x + cell / 2, y: y + cell / 2 + 4, text, "text-anchor": "middle",
      });
      digits.style.fontSize = "11px";
      if (panel && w > 0.72) digits.style.fill = "var(--on-accent)";
    }
  }
});

const visible = mask.flat().filter(Boolean).length;
const worst = Math.max(...leaked.map((leak) => leak ?? 0));
const names = empty.map((i) => `${i + 1} (${words[i]})`).join(", ");
const total = !empty.length ? "" : leaked[empty[0]] === null ? "NaN"
  : sum(weights[empty[0]]).toFixed(0);
const none = empty.length > 1
  ? `No key is left for the queries ${names}: their rows of weights sum to ${total}. `
  : `No key is left for query ${names}: its row of weights sums to ${total}. `;
return {
  values: { mask, weights, visible, leaked, empty },
  says: `${visible} of ${n * n} entries ${visible === 1 ? "is" : "are"} visible. `
    + (empty.length ? none : "Every query has a key. ")
    + (worst > 0.995 ? "All the weight of such a row lies on hidden keys."
      : worst > 1e-6 ? `Up to ${(100 * worst).toFixed(0)} % of a row's weight lies on hidden keys.`
      : total === "NaN" && empty.length === n ? ""
      : `No weight lies on a hidden key${total === "NaN" ? " in any other row" : ""}.`),
};
