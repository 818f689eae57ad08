// Page 09b: the tree of beams; body of function (state, data, view, numbers). Python has
// grown each tree to the end, as a penalty and a way to stop only choose from it;
// penalty, stop and answer are computed here. A node is [parent, symbol, log p, fate].

const { range } = numbers;
const steps = data.trees[state.word][String(state.beam)];
const beam = Number(state.beam), alpha = Number(state.alpha), most = data.most;
const penalty = (n) => n ** alpha;
const name = (symbol) => (symbol === data.end ? "end" : data.symbols[symbol]);

// every node with the nodes that lead to it
let living = [], nodes = [];
const columns = steps.map((step, t) => {
  const column = step.map(([parent, symbol, log, fate]) => ({
    before: t ? living[parent] : null, symbol, log, fate, t,
  }));
  living = column.filter((node) => node.fate !== "dropped" && node.symbol !== data.end);
  return column;
});
const path = (node) => (node.before ? [...path(node.before), node] : [node]);
const sounds = (node) => path(node).map((one) => one.symbol)
  .filter((symbol) => symbol !== data.end).map(name).join(" ");

// search again, step by step, until it may stop
let finished = [], last = 0, hope = -Infinity;
for (const [t, column] of columns.entries()) {
  const n = t + 1;
  last = n;
  column.filter((node) => node.fate === "ends").forEach((node) => {
    finished.push({ node, n, score: node.log / penalty(n) });
  });
  finished.sort((p, q) => q.score - p.score);
  const alive = column.filter((node) => node.fate === "lives");
  const best = alive.length ? alive[0].log : -Infinity;
  hope = Math.max(best / penalty(n + 1), best / penalty(most));
  if (state.stop === "first" && finished.length >= beam) break;
  if (state.stop === "bound" && finished.length && finished[0].score >= hope) break;
}
const answer = finished[0], onPath = new Set(path(answer.node));
const right = data.answers[state.word].includes(sounds(answer.node));

// ---- the tree, a column for each step; below it, what is finished

const shown = columns.slice(0, last), rows = Math.max(...shown.map((column) => column.length));
const size = Math.max(38, Math.min(62, Math.floor((view.width() - 8) / last)));
const wide = Math.min(size - 10, 46), high = 36, gap = 7, top = 24;
const place = (node) => ({
  x: 4 + size * node.t + (size - wide) / 2,
  y: top + columns[node.t].indexOf(node) * (high + gap),
});
const list = finished.slice(0, 5), under = top + 10 * (high + gap) + 22;
const svg = view.svg(Math.max(size * last + 8, 330), under + 22 * 5 + 8,
  `the tree of beams for ${state.word}, ${last} steps, and below it what is finished`);
svg.style.maxWidth = "none"; // a long one scrolls, and stays as large
// room for what is said, so that nothing moves
svg.closest(".annotated-explorer").querySelector(".annotated-says").style.minHeight = view.width() < 560 ? "7.4em" : "3em";
const text = (x, y, words, more = {}) => view.add(svg, "text", { x, y, text: words, ...more });
range(last).forEach((t) => text(4 + size * (t + 0.5), 14, String(t + 1), { "text-anchor": "middle" }));
shown.flat().filter((node) => node.before).forEach((node) => {
  const to = place(node), from = place(node.before), thick = onPath.has(node);
  view.add(svg, "line", {
    x1: from.x + wide, y1: from.y + high / 2, x2: to.x, y2: to.y + high / 2,
    stroke: thick ? "var(--accent)" : "currentColor", "stroke-width": thick ? 3 : 1,
    "stroke-opacity": thick ? 1 : node.fate === "dropped" ? 0.25 : 0.55,
  });
});
const chance = (log) => {
  const p = Math.exp(log);
  return p >= 0.995 ? "1" : p >= 0.005 ? p.toFixed(2).replace("0.", ".") : "<.01";
};
shown.flat().forEach((node) => {
  const { x, y } = place(node), lives = node.fate === "lives", ends = node.fate === "ends";
  const thick = onPath.has(node);
  view.add(svg, "rect", {
    x, y, width: wide, height: high, rx: 5,
    fill: lives || ends ? "var(--accent)" : "var(--at-paper)",
    "fill-opacity": thick ? 1 : lives || ends ? 0.22 : 1,
    stroke: lives || ends ? "var(--accent)" : "currentColor",
    "stroke-opacity": lives || ends ? 1 : 0.4, "stroke-width": ends ? 1.5 : 1,
    "stroke-dasharray": lives || ends ? "none" : "3 3",
  });
  if (ends) view.add(svg, "rect", {
    x: x - 3, y: y - 3, width: wide + 6, height: high + 6, rx: 7, fill: "none",
    stroke: "var(--accent)", "stroke-width": 1.5,
  });
  const style = thick ? "fill: var(--on-accent)" : "";
  const look = { "text-anchor": "middle", style, "fill-opacity": lives || ends ? 1 : 0.75 };
  text(x + wide / 2, y + 15, name(node.symbol), { ...look, class: "strong" });
  text(x + wide / 2, y + 30, chance(node.log), look);
});
text(4, under - 8, "finished: score = log p ÷ n^α", { class: "strong" });
list.forEach(({ node, n, score }, i) => {
  const y = under + 14 + 22 * i, good = data.answers[state.word].includes(sounds(node));
  text(4, y, good ? "✓" : "✗", { style: `fill: var(--at-${good ? "right" : "wrong"})`, class: "strong" });
  text(24, y, sounds(node), { class: i ? "" : "strong" });
  const sum = alpha ? `${numbers.fixed(node.log, 2)} ÷ ${penalty(n).toFixed(2)} = ` : "";
  text(Math.max(size * last + 4, 326), y, `${sum}${numbers.fixed(score, 2)}`, {
    "text-anchor": "end", class: i ? "" : "strong",
  });
});
const bound = state.stop === "bound" && last < most
  ? ` It stops after step ${last}: no living one can beat ${numbers.fixed(answer.score, 2)} any more, the best could reach ${numbers.fixed(hope, 2)}.`
  : state.stop === "first" && last < most
    ? ` It stops after step ${last}, with ${finished.length} finished.`
    : ` It goes on to step ${most}, the last that it may take.`;
return {
  values: { best: sounds(answer.node), score: answer.score },
  says: `“${state.word}” becomes ${sounds(answer.node)}, ${right ? "which is right" : "which is wrong"}. `
    + (right ? "" : `Right: ${data.answers[state.word].join(" or ")}.`) + bound,
};
