// Chapter 04: a mask is built on scores, and the weights follow; body of
// function (state, data, view, numbers). The vectors come from Python, the rest is computed here.

const { dot, fixed, range, softmax, sum } = numbers;
const n = data.words.length, all = range(n), length = Number(state.length);
const [, plain, finite] = data.hidings; // the three ways to hide
const causal = state.causality === data.causal;
const switched = new Set(state.cells.map(([i, j]) => i * n + j));
const words = data.words.map((word, j) => (j < length ? word : "pad"));
const row = (table, j) => table[j < length ? j : n]; // the last one is pad's

const mask = all.map((i) => all.map((j) => (
  (i < n - 1 && j < length && (!causal || j <= i)) !== switched.has(i * n + j))));
const scores = all.map((i) => all.map((j) => {
  const q = row(data.queries, i);
  return dot(q, row(data.keys, j)) / Math.sqrt(q.length);
}));
const weights = all.map((i) => {
  if (state.hiding === plain && !mask[i].some(Boolean)) return mask[i].map(() => null); // NaN
  return softmax(scores[i].map((e, j) => {
    if (mask[i][j]) return e;
    return state.hiding === finite ? -1e9 : -Infinity;
  }));
});
const leaked = weights.map(
  (w, i) => (w.includes(null) ? null : sum(w.filter((_, j) => !mask[i][j]))),
);
const empty = all.filter((i) => !mask[i].some(Boolean));

// the scores are the grid's own cells; the weights stand beside them, or below on a phone
const svg = view.svg(10, 10, "a table of weights, a row for each query, a column for each key");
const root = svg.closest(".annotated-explorer"), box = svg.parentNode;
const grid = root.querySelector(".annotated-grid");
const buttons = [...grid.querySelectorAll("button")], cell = 40;
const memory = view.once("memory", () => { // for the first drawing alone
  Object.assign(grid.style, {
    gridTemplateColumns: `2.2rem repeat(${n}, ${cell - 2}px)`, gridTemplateRows: "1.3rem",
  });
  for (const name of grid.querySelectorAll(".annotated-above")) {
    Object.assign(name.style, { writingMode: "initial", transform: "none" });
  }
  for (const button of buttons) {
    Object.assign(button.style, { height: "32px", color: "inherit", padding: "0" });
  }
  grid.after(box);
  grid.parentNode.querySelector(".annotated-reset").style.marginTop = "0";
  // a click counts for the mask that it was made in
  root.addEventListener("input", ({ target }) => {
    if (!["length", "causality"].includes(target.dataset.name)) return;
    for (const button of buttons) delete button.dataset.switched;
  }, true);
  let before = grid.parentNode.clientWidth;
  new ResizeObserver(() => {
    const now = grid.parentNode.clientWidth;
    if (now !== before) root.explorer.set({});
    before = now;
  }).observe(grid.parentNode);
  return {};
});

const stripes = "repeating-linear-gradient(45deg, transparent 0 5px, "
  + "color-mix(in srgb, currentColor 18%, transparent) 5px 6px)"; // a number stays legible
view.names("cells", words, words);
for (const i of all) {
  for (const j of all) {
    view.cell("cells", i, j, {
      on: mask[i][j],
      text: mask[i][j] ? fixed(scores[i][j], 1) : state.hiding === finite ? "−1e9" : "−∞",
      label: `query ${i + 1} ${words[i]}, key ${j + 1} ${words[j]}: `
        + (mask[i][j] ? "1, visible" : "0, hidden"),
    });
    buttons[i * n + j].style.background = mask[i][j] ? "transparent" : stripes;
  }
}

const pitch = buttons[n].offsetTop - buttons[0].offsetTop;
const head = buttons[0].offsetTop - grid.offsetTop;
const wide = grid.parentNode.clientWidth > 2 * n * cell + 120;
const left = wide ? 80 : 36; // room for the arrow, or for the rows' names
const size = [left + n * cell, head + n * pitch];
svg.setAttribute("width", size[0]);
svg.setAttribute("height", size[1]);
svg.setAttribute("viewBox", `0 0 ${size[0]} ${size[1]}`);
const hatch = view.hatch(svg);
if (wide) {
  view.text(6, head + 3 * pitch + 4, "softmax →");
}
all.forEach((j) => view.text(left + (j + 0.5) * cell, head - 6, words[j], {
  "text-anchor": "middle",
}));
const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
for (const i of all) {
  if (!wide) {
    view.text(left - 5, head + (i + 0.5) * pitch + 4, words[i], { "text-anchor": "end" });
  }
  for (const j of all) {
    const w = weights[i][j], hidden = !mask[i][j];
    const place = {
      x: left + j * cell, y: head + i * pitch, width: cell - 2, height: pitch - 2, rx: 3,
    };
    view.add(svg, "rect", {
      ...place, stroke: "currentColor", "stroke-opacity": 0.35,
      fill: "var(--at-weight)", "fill-opacity": 0.5 * (w ?? 0), // a number stays legible
    });
    if (hidden) view.add(svg, "rect", { ...place, fill: hatch });
    if (memory.weights && !calm && Math.abs((w ?? 9) - (memory.weights[i][j] ?? 9)) > 0.005) {
      view.add(svg, "rect", {
        ...place, fill: "none", stroke: "var(--second)", "stroke-width": 3,
      }).animate([{ opacity: 1 }, { opacity: 0 }], { duration: 1200, fill: "forwards" });
    }
    const text = w === null ? "NaN" : w >= 0.995 ? "1" : w.toFixed(2).slice(1);
    if (!hidden || w !== 0) {
      view.text(place.x + place.width / 2, place.y + place.height / 2 + 5, text, {
        "text-anchor": "middle",
      });
    }
  }
}
memory.weights = weights;

const visible = sum(mask.flat().map(Number));
const worst = Math.max(...leaked.map((leak) => leak ?? 0));
const names = empty.map((i) => `${i + 1} (${words[i]})`).join(", ");
const total = !empty.length ? "" : leaked[empty[0]] === null ? "NaN"
  : sum(weights[empty[0]]).toFixed(0);
const none = empty.length > 1
  ? `No key is left for the queries ${names}: their weights sum to ${total}. `
  : `No key is left for query ${names}: its weights sum to ${total}. `;
return {
  values: { mask, weights, visible, leaked, empty },
  room: 180,
  says: `${visible} of ${n * n} entries ${visible === 1 ? "is" : "are"} visible. `
    + (empty.length ? none : "Every query has a key. ")
    + (worst > 0.995 ? "All of that weight lies on hidden keys."
      : worst > 1e-6 ? `Up to ${(100 * worst).toFixed(0)} % of a row's weight lies on hidden keys.`
      : total === "NaN" && empty.length === n ? ""
      : `No weight lies on a hidden key${total === "NaN" ? " in any other row" : ""}.`),
};
