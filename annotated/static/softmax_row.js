// Chapter 02: one row of attention, its width and its temperature; body of
// function (state, data, view, numbers). The energies come from Python, for every width.

const { norm, softmax, sum } = numbers;
const width = Number(state.width);
const raw = data.energies[String(width)];
const divisor = (state.scale === data.divided ? Math.sqrt(width) : 1) * state.temperature;
const energies = raw.map((e) => e / divisor);
const weights = softmax(energies);
const entropy = -sum(weights.map((p) => (p > 0 ? p * Math.log(p) : 0)));
// Frobenius norm of the softmax's Jacobian, diag(p) − p pᵀ, over the divisor: how
// much of a change in a raw energy arrives in the weights
const jacobian = norm(weights.flatMap((p, i) =>
  weights.map((r, j) => (i === j ? p : 0) - p * r)));

const step = 34, high = 150, left = 40, base = high + 16;
const svg = view.svg(left + step * weights.length + 10, base + 28,
  `bars: the weights of ${weights.length} keys`);
for (const level of [0, 0.5, 1]) {
  const y = base - high * level;
  view.add(svg, "line", {
    x1: left, x2: left + step * weights.length, y1: y, y2: y,
    stroke: "currentColor", "stroke-opacity": 0.25,
  });
  view.add(svg, "text", { x: left - 6, y: y + 4, "text-anchor": "end", text: level });
}
weights.forEach((p, j) => {
  view.add(svg, "rect", {
    x: left + step * j + 4, width: step - 8,
    y: base - Math.max(1, high * p), height: Math.max(1, high * p), fill: "var(--accent)",
  });
  view.add(svg, "text", {
    x: left + step * (j + 0.5), y: base + 18, "text-anchor": "middle", text: j + 1,
  });
});
const largest = Math.max(...weights);
return {
  values: { weights, entropy, jacobian },
  says: `Largest weight ${largest.toFixed(2)}; entropy ${entropy.toFixed(2)} of at most `
    + `${Math.log(weights.length).toFixed(2)} nats; norm of the softmax's Jacobian `
    + `${jacobian < 0.001 ? jacobian.toExponential(1) : jacobian.toFixed(3)}.`,
};
