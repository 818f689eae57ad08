// Page 16b: what a cache holds, for published models and for sizes of one's own; body of
// function (state, data, view, numbers). A model that is chosen sets the sliders; a slider
// that is moved makes it "your own".

const names = Object.keys(data.models), rows = names.length + 1;
const wide = Math.min(view.width(), 640), left = 104, right = 16, top = 42, step = 27;
const svg = view.svg(wide, top + step * rows + 30,
  "what a cache holds, for the chosen sizes and for published models, on a scale from 100 kB to 10 TB");
view.preset(data.models, data.own);

// ---- what is kept

const perLayer = ({ heads, width, latent }) =>
  (latent === "none" ? 2 * heads * width : latent + data.turned);
const token = (sizes) => sizes.layers * perLayer(sizes) * state.bytes;
const kept = ({ window }) => (window === "all" ? state.length : Math.min(state.length, window));
const total = (sizes) => token(sizes) * kept(sizes) * state.texts;
function readable(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let i = 0, size = bytes;
  while (size >= 999.5 && i < units.length - 1) { size /= 1000; i += 1; }
  return `${size.toFixed(size < 9.95 && i ? 1 : 0)} ${units[i]}`;
}

// ---- the drawing

const [least, most] = [5, 13]; // powers of ten
const place = (bytes) => Math.min(Math.max(Math.log10(bytes), least), most);
const x = (bytes) => left + ((wide - left - right) * (place(bytes) - least)) / (most - least);
const foot = top + step * rows;
const line = (from, to, y1, y2, style) =>
  view.line(from, y1, to, y2, { stroke: "currentColor", ...style });
const { text } = view;
[6, 9, 12].forEach((power) => {
  line(x(10 ** power), x(10 ** power), top, foot, { "stroke-opacity": 0.2 });
  text(x(10 ** power), foot + 16, readable(10 ** power).replace(".0", ""), { "text-anchor": "middle" });
});
[[16e9, "a laptop's 16 GB", 32], [80e9, "a card's 80 GB", 14]].forEach(([size, words, y]) => {
  line(x(size), x(size), y - 10, foot, { "stroke-width": 1.6, "stroke-dasharray": "5 3" });
  text(x(size) - 5, y, words, { "text-anchor": "end" });
});
line(left, wide - right, foot, foot, { "stroke-opacity": 0.5 });
function row(i, name, sizes, lit) {
  const y = top + step * (i + 0.5), bytes = total(sizes), at = x(bytes);
  const color = lit ? "var(--at-this)" : "var(--at-other)";
  if (lit) view.rect(0, y - step / 2 + 1, wide, step - 2, {
    rx: 5, fill: "var(--at-this)", "fill-opacity": 0.12,
  });
  text(left - 10, y + 5, name, { "text-anchor": "end", class: lit ? "strong" : "" });
  line(left, at, y, y, { stroke: color, "stroke-width": 2, "stroke-opacity": 0.6 });
  view.add(svg, "circle", { cx: at, cy: y, r: 6, fill: lit ? color : "var(--at-paper)", stroke: color, "stroke-width": 2 });
  const beyond = Math.log10(bytes) > most, words = readable(bytes) + (beyond ? " →" : "");
  const late = at > wide - right - 78;
  text(late ? at - 12 : at + 12, y + 5, words, {
    "text-anchor": late ? "end" : "start", class: lit ? "strong" : "",
    style: "paint-order: stroke; stroke: var(--at-paper); stroke-width: 4px; stroke-linejoin: round",
  });
}
const chosen = Object.fromEntries(["layers", "heads", "width", "latent", "window"].map((name) => [name, state[name]]));
row(0, state.model === data.own ? "yours" : "chosen", chosen, true);
names.forEach((name, i) => row(i + 1, name, data.models[name], false));

// ---- what is said

const one = total(chosen) / state.texts, fits = Math.floor(80e9 / one);
const how = state.latent === "none" ? `2 × ${state.heads} × ${state.width}` : `(${state.latent} + ${data.turned})`;
const number = (n) => n.toLocaleString("en-US");
const texts = state.texts === 1 ? "one text" : `${state.texts} texts`;
return {
  values: { token: token(chosen), total: total(chosen) },
  says: `One token: ${state.layers} layers × ${how} numbers × ${state.bytes} bytes = ${readable(token(chosen))}. `
    + `${number(kept(chosen))} of ${number(state.length)} tokens kept, ${texts}: ${readable(total(chosen))}. In 80 GB: `
    + `${fits ? number(fits) : "not one"} such text${fits === 1 || !fits ? "" : "s"}.`,
  room: 150,
};
