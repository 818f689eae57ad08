// Page 09b: the tree of beams; body of function (state, data, view, numbers). Python has
// grown each tree to the end, as a penalty and a way to stop only choose from it;
// penalty, stop and answer are computed here. A node is [parent, symbol, log p, fate].

const { range } = numbers;
const item = data.items[state.word], steps = item.trees[String(state.beam)];
const beam = Number(state.beam), alpha = Number(state.alpha), { most, pieces, right: answers } = item;
const penalty = (n) => n ** alpha;
const three = (value) => value.toPrecision(3).replace("-", "−"); // digits that tell
const name = (symbol) => (symbol === data.end ? "end" : (item.symbols || data.symbols)[symbol]);

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
const sounds = (node) => { // a sentence is in pieces, and ▁ its spaces
  const names = path(node).map((one) => one.symbol).filter((symbol) => symbol !== data.end).map(name);
  return pieces ? names.join("").replaceAll("▁", " ").trim() : names.join(" ");
};

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
const right = answers.includes(sounds(answer.node));

// ---- the tree, a column for each step; beside or above it, what is finished

const broad = view.width() >= 560, both = broad && !pieces, aside = both ? 236 : 0;
const listed = 22 * 5 + 24, top = both ? 24 : listed + 24, room = 8 * 43 + listed + 24 - top; // as high in any case
const shown = columns.slice(0, last).map((column) => { // of the dropped, two at most
  const kept = column.filter((node) => node.fate !== "dropped").length;
  const dropped = column.filter((node) => node.fate === "dropped")
    .slice(0, Math.min(2, Math.max(0, 8 - kept)));
  return column.filter((node) => node.fate !== "dropped" || dropped.includes(node));
});
const rows = Math.max(8, ...shown.map((column) => column.length));
const pitch = room / rows, gap = rows > 8 ? 4 : 7, high = Math.min(38, pitch - gap);
const letters = Math.max(...shown.flat().map((node) => name(node.symbol).length));
const size = pieces ? 8.5 * letters + 26 : Math.max(38, Math.min(62, Math.floor((view.width() - aside - 8) / last)));
const wide = pieces ? size - 14 : Math.min(size - 10, 46), list = finished.slice(0, 5);
const place = (node) => ({
  x: 4 + size * node.t + (size - wide) / 2,
  y: top + shown[node.t].indexOf(node) * pitch,
});
const svg = view.svg(Math.max(size * last + 8 + aside, Math.min(330, view.width())), top + room,
  `the tree of beams for ${state.word}, ${last} steps, and what is finished`);
svg.style.maxWidth = "none"; // a long one scrolls, and stays as large
// room for what is said, so that nothing moves
svg.closest(".annotated-explorer").querySelector(".annotated-says").style.minHeight = broad ? "6.5em" : "11em";
const { text } = view;
range(last).forEach((t) => text(4 + size * (t + 0.5), top - 10, String(t + 1), { "text-anchor": "middle" }));
shown.flat().filter((node) => node.before).forEach((node) => {
  const to = place(node), from = place(node.before), thick = onPath.has(node);
  view.line(from.x + wide, from.y + high / 2, to.x, to.y + high / 2, {
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
  const thick = onPath.has(node), left = lives && node.t === last - 1; // left alive
  view.rect(x, y, wide, high, {
    rx: 5, fill: lives || ends ? "var(--accent)" : "var(--at-paper)",
    "fill-opacity": thick ? 1 : left ? 0 : lives || ends ? 0.22 : 1,
    stroke: lives || ends ? "var(--accent)" : "currentColor",
    "stroke-opacity": lives || ends ? 1 : 0.4, "stroke-width": ends ? 1.5 : 1,
    "stroke-dasharray": lives || ends ? "none" : "3 3",
  });
  if (ends) view.rect(x - 3, y - 3, wide + 6, high + 6, {
    rx: 7, fill: "none", stroke: "var(--accent)", "stroke-width": 1.5,
  });
  const style = thick ? "fill: var(--on-accent)" : "";
  const look = { "text-anchor": "middle", style, "fill-opacity": lives || ends ? 1 : 0.75 };
  text(x + wide / 2, y + 0.42 * high, name(node.symbol), { ...look, class: "strong" });
  text(x + wide / 2, y + 0.86 * high, chance(node.log), look);
});
// of sentences in a narrow list, only what differs: from the word at which they part
const begins = pieces && view.width() < 560 ? list.map(({ node }) => sounds(node).split(" ")) : [[]];
let alike = 0;
while (begins.length > 1 && begins.every((words) => words.length > alike + 1 && words[alike] === begins[0][alike])) alike += 1;
const told = (words) => (alike ? "… " + words.split(" ").slice(alike).join(" ") : words);
const left = both ? size * last + 20 : 4, end = pieces ? 66 : Math.min(326, view.width() - 4);
text(left, both ? 14 : 16, alpha ? "finished: log p ÷ nᵅ = score" : "finished: log p", { class: "strong" });
list.forEach(({ node, n, score }, i) => {
  const y = (both ? 46 * i : 22 * i) + 40, own = sounds(node);
  const good = answers.includes(own), look = { class: i ? "" : "strong" };
  if (!pieces) text(left, y, good ? "✓" : "✗", { style: `fill: var(--at-${good ? "right" : "wrong"})`, class: "strong" });
  text(left + (pieces ? 76 : 18), y, told(own), look);
  const sum = alpha ? `${three(node.log)} ÷ ${three(penalty(n))} = ` : "";
  const said = three(score);
  if (both) text(left + 18, y + 18, sum + said, look);
  else text(end, y, said, { "text-anchor": "end", ...look });
});
const bound = state.stop === "bound" && last < most
  ? ` It stops after step ${last}: no living one can beat ${three(answer.score)} any more, the best could reach ${three(hope)}.`
  : state.stop === "first" && last < most
    ? ` It stops after step ${last}, with ${finished.length} finished.`
    : ` It goes on to step ${most}, the last that it may take.`;
return {
  values: { best: sounds(answer.node), score: answer.score },
  says: (pieces ? `“${item.source}” becomes “${sounds(answer.node)}” Its reference: “${answers[0]}”`
    : `“${state.word}” becomes ${sounds(answer.node)}, ${right ? "which is right" : "which is wrong"}.`
    + (right ? "" : ` Right: ${answers.join(" or ")}.`)) + bound,
};
