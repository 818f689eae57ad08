// Chapter 14: what training takes by layers, length and width, for three ways of keeping;
// body of function (state, data, view, numbers). Scaled from what was measured.

const { fixed } = numbers;
const layers = Number(state.layers), length = Number(state.length), width = Number(state.width);
const scale = (length / data.length) * (width / data.width) / 1000; // MB to GB
const weights = layers * 12 * width * width * 16 / 1e9; // weights, gradients, two moments
const bars = Object.entries(data.ways).map(([name, { layer, once }]) => {
  const parts = [weights, once * scale, layers * layer * scale];
  return { name, parts, total: parts[0] + parts[1] + parts[2] };
});

const most = 48, left = 96, right = 26, top = 26, high = 30, step = 56;
const wide = Math.max(150, Math.min(460, view.width() - left - right));
const x = (gigabytes) => left + (wide * Math.min(gigabytes, most)) / most;
const svg = view.svg(left + wide + right, top + step * bars.length + 26,
  `${bars.length} bars: gigabytes for ${layers} layers of width ${width}, ${length} characters`);
[0, 12, 24, 36, 48].forEach((mark) => {
  view.line(x(mark), top - 8, x(mark), top + step * bars.length - 4, {
    stroke: "currentColor", "stroke-opacity": mark === data.room ? 1 : 0.2,
    "stroke-width": mark === data.room ? 2 : 1,
  });
  view.text(x(mark), top + step * bars.length + 14, mark === most ? `${mark} GB` : String(mark), {
    "text-anchor": "middle", class: mark === data.room ? "strong" : "",
  });
});
view.text(x(data.room), 12, "the GPU", { "text-anchor": "middle" });
bars.forEach((bar, i) => {
  const y = top + step * i;
  view.text(left - 8, y + 19, bar.name, { "text-anchor": "end" });
  let sum = 0;
  bar.parts.forEach((part, j) => {
    const from = x(sum), to = x(sum + part);
    sum += part;
    view.rect(from, y, Math.max(0, to - from), high, {
      stroke: "currentColor", "stroke-opacity": 0.6,
      fill: ["currentColor", "var(--second)", "var(--accent)"][j],
      "fill-opacity": [0.25, 0.6, 0.75][j],
    });
  });
  const over = bar.total > most, fits = bar.total <= data.room;
  view.add(svg, "text", {
    x: left + 2, y: y + high + 14, class: fits ? "" : "strong",
    text: `${fixed(bar.total, bar.total < 10 ? 1 : 0)} GB${over ? " →" : ""} ${fits ? "" : "✗"}`,
  });
});
const fitting = bars.map((bar) => `${bar.name} ${bar.total <= data.room ? "yes" : "no"}`);
return {
  values: Object.fromEntries(bars.map((bar) => [bar.name, bar.total])),
  room: 105,
  says: `Fits ${data.room} GB: ${fitting.join(", ")}. Weights, gradients and averages take `
    + `${fixed(weights, 1)} GB.`,
};
