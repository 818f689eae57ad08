// Chapter 12: the weights of one query, by any of the four terms of its scores; body of
// function (state, data, view, numbers). The terms come from Python.

const { fixed, range, softmax } = numbers;
const names = ["a", "b", "c", "d"];
const off = new Set(state.terms.map(([, j]) => j));
const i = data.queries.indexOf(state.query);
const n = data.keys.length, visible = n - data.queries.length + i + 1;
const scoresOf = (chosen) => range(n).map((j) => (j < visible
  ? chosen.reduce((total, term) => total + data.terms[term][i][j], 0) / Math.SQRT2 : -Infinity));
const on = range(4).filter((term) => !off.has(term));
const weights = softmax(scoresOf(on)), all = softmax(scoresOf(range(4)));

view.names("terms", ["terms"], names.map((name) => `(${name})`));
names.forEach((name, j) => view.cell("terms", 0, j, {
  on: !off.has(j), text: off.has(j) ? "–" : "✓",
  label: `term ${name}: ${off.has(j) ? "off" : "on"}`,
}));

const left = 34, step = Math.max(44, Math.min(70, Math.floor((view.width() - left - 8) / n)));
const top = 22, tall = 120, base = top + tall;
const svg = view.svg(left + step * n + 8, base + 42,
  `bars: the weights that ${state.query} gives to ${data.keys.join(", ")}`);
[0, 0.5, 1].forEach((level) => {
  const y = base - tall * level;
  view.add(svg, "line", {
    x1: left, x2: left + step * n, y1: y, y2: y, stroke: "currentColor", "stroke-opacity": 0.2,
  });
  view.add(svg, "text", { x: left - 6, y: y + 5, "text-anchor": "end", text: String(level) });
});
range(n).forEach((j) => {
  const x = left + step * j, hidden = j >= visible;
  view.add(svg, "rect", {
    x: x + 6, y: base - tall * weights[j], width: step - 12, height: tall * weights[j],
    fill: "var(--accent)", "fill-opacity": 0.75,
  });
  if (!hidden) {
    view.add(svg, "rect", {
      x: x + 6, y: base - tall * all[j], width: step - 12, height: tall * all[j],
      fill: "none", stroke: "currentColor", "stroke-dasharray": "3 3", "stroke-opacity": 0.7,
    });
    view.add(svg, "text", {
      x: x + step / 2, y: base - tall * weights[j] - 5, "text-anchor": "middle",
      text: fixed(weights[j], 2),
    });
  }
  view.add(svg, "text", {
    x: x + step / 2, y: base + 18, "text-anchor": "middle", class: "code",
    text: data.keys[j], opacity: hidden ? 0.4 : 1,
  });
  view.add(svg, "text", {
    x: x + step / 2, y: base + 36, "text-anchor": "middle",
    text: hidden ? "hidden" : `${visible - 1 - j} back`, opacity: hidden ? 0.4 : 1,
  });
});
const best = Math.max(...weights);
const most = range(visible).filter((j) => weights[j] > best - 1e-9).map((j) => data.keys[j]);
const with_ = on.length ? `With ${on.map((j) => `(${names[j]})`).join(", ")}` : "Without any term";
const share = `${Math.round(100 * best)} %`;
return {
  values: { weights },
  says: `${with_}, “${state.query}” looks most at ${most.map((k) => `“${k}”`).join(", ")}: `
    + `${share}${most.length > 1 ? " each" : ""}.`,
};
