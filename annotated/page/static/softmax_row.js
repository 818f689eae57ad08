// Chapter 02: one row of attention, its width and its temperature; body of
// function (state, data, view, numbers). The energies come from Python, for every width.

const { argmax, fixed, scientific, softmax } = numbers;
const width = Number(state.width);
const raw = data.energies[String(width)];
const root = Math.sqrt(width);
const divisor = (state.scale === data.divided ? root : 1) * state.temperature;
const scores = raw.map((e) => e / divisor);
const weights = softmax(scores), goal = softmax(raw.map((e) => e / root));
const best = argmax(weights);
// how much of a change of the best key's score arrives in its weight
const gain = softmax(scores.map((e, j) => (j === best ? e + 0.1 : e)))[best] - weights[best];

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
  view.add(svg, "rect", {
    x: left + step * j + 2, width: step - 4, y: base - high * goal[j], height: high * goal[j],
    fill: "none", stroke: "currentColor", "stroke-opacity": 0.55, "stroke-width": 2,
  });
  view.add(svg, "text", {
    x: left + step * (j + 0.5), y: base + 18, "text-anchor": "middle", text: j + 1,
  });
});
const match = Math.max(...weights.map((w, j) => Math.abs(w - goal[j]))) < 0.005;
const rise = gain < 0.0005 ? (gain > 0 ? scientific(gain, 0) : "0") : fixed(gain, 3);
return {
  values: { weights, gain },
  says: `Key ${best + 1} has the largest weight, ${weights[best].toFixed(weights[best] > 0.99 ? 4 : 2)}`
    + `${match ? "; the bars fill the grey outlines" : ""}. Raise its score by 0.1, and its `
    + `weight rises by ${rise}.`,
};
