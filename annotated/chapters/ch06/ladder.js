// Chapter 06: what a model with some of the parts loses, and what it writes; body of
// function (state, data, view, numbers). Losses and texts come from recorded runs.

const { fixed } = numbers;
const on = data.parts.map((_, j) => state.parts.some(([, k]) => k === j));
const model = data.models[on.map(Number).join("")];
const index = data.examples.indexOf(state.date);
const answer = [...data.answers[index]], written = [...model.written[index]];

// the fewest edits that make `answer` of `written`, from the ends backwards
const cost = Array.from({ length: answer.length + 1 }, (_, i) => (
  Array.from({ length: written.length + 1 }, (__, j) => (i && j ? 0 : i + j))));
answer.forEach((wanted, i) => written.forEach((given, j) => {
  cost[i + 1][j + 1] = Math.min(cost[i][j] + (wanted === given ? 0 : 1),
    cost[i][j + 1] + 1, cost[i + 1][j] + 1);
}));
const edits = cost[answer.length][written.length];
const pairs = [];
for (let i = answer.length, j = written.length; i || j;) {
  const same = i && j && answer[i - 1] === written[j - 1];
  if (i && j && cost[i][j] === cost[i - 1][j - 1] + (same ? 0 : 1)) {
    pairs.unshift([answer[i -= 1], written[j -= 1]]);
  } else if (i && cost[i][j] === cost[i - 1][j] + 1) pairs.unshift([answer[i -= 1], null]);
  else pairs.unshift([null, written[j -= 1]]);
}

const wide = Math.max(300, Math.min(view.width(), 640));
view.svg(wide, 206, `loss and text of a model with ${on.filter(Boolean).length} parts`);
const text = (x, y, words, more) => view.text(x, y, words, { style: "font-size: 14px", ...more });
// the axis is logarithmic, and the same for all models
const at = (loss) => 10 + (wide - 60) * Math.log(loss / 0.05) / Math.log(3.2 / 0.05);
const line = (x1, y1, x2, y2, more) =>
  view.line(x1, y1, x2, y2, { stroke: "currentColor", "stroke-opacity": 0.6, ...more });
text(4, 14, "loss on unseen dates, nats per symbol (log axis)", { class: "strong" });
[[data.all, "all on"], [data.none, "all off"]].forEach(([loss, name]) => {
  line(at(loss), 38, at(loss), 66, { "stroke-dasharray": "3 3" });
  text(at(loss), 34, name, { "text-anchor": "middle" });
});
view.circle(at(model.loss), 53, 8, { fill: "var(--accent)" });
text(at(model.loss) + 13, 58, fixed(model.loss, 2), { class: "strong" });
line(10, 66, wide - 30, 66);
[0.1, 0.2, 0.5, 1, 2].forEach((tick) => {
  line(at(tick), 66, at(tick), 71);
  text(at(tick), 84, tick, { "text-anchor": "middle" });
});

text(4, 114, `${state.date} should become`);
const size = Math.min(19, (wide - 8) / pairs.length);
const code = { "text-anchor": "middle", class: "code", style: `font-size: ${Math.min(16, size + 2)}px` };
const shown = (symbol) => (symbol === " " ? "␣" : symbol ?? "");
pairs.forEach(([wanted, given], k) => {
  const x = 4 + size * k;
  text(x + size / 2, 136, shown(wanted), code);
  text(x + size / 2, 192, given === null ? "–" : shown(given), code);
  if (wanted === given) return;
  view.rect(x + 1, 176, size - 2, 22, {
    rx: 3, fill: "none", stroke: "var(--second)", "stroke-width": 2,
  });
});
text(4, 166, edits ? `it writes: ${edits} ${edits === 1 ? "edit" : "edits"} away` : "it writes: ✓ exact");

// the switches: a button for each part, with its name on it
const grid = view.switches("parts", { height: "2.1rem", padding: "0 0.7rem", boxShadow: "none" });
Object.assign(grid.style, { flexWrap: "wrap", gap: "0.4rem" });
data.parts.forEach((name, j) => view.cell("parts", 0, j, {
  on: on[j], text: `${on[j] ? "✓" : "+"} ${name}`, label: name,
}));
const names = data.parts.filter((_, j) => on[j]);
return {
  values: { loss: model.loss, edits },
  room: 95,
  says: `Cross-attention ${names.length ? `with ${names.join(", ")}` : "alone"}: loss `
    + `${fixed(model.loss, 2)}, ${model.exact} of 1000 unseen dates exact. This date: `
    + `${edits ? `${edits} ${edits === 1 ? "edit" : "edits"} away` : "exact"}.`,
};
