// Chapter 18: what a training step takes, moment by moment; body of function (state, data,
// view, numbers). The arithmetic is that of annotated/memory.py. A model that is chosen sets
// the sliders; a slider that is moved makes it "your own". What stood there before the last
// change stays as an outline, for comparison; a slider that is dragged changes once.

const wide = Math.min(view.width(), 640), phone = wide < 480;
const left = 52, right = 10, top = 30, foot = 200;
const high = foot + 42 + 22 * (phone ? 12 : 6);
const svg = view.svg(wide, high, "bytes in use through a training step, stacked by what they are for, "
  + "and lines at what graphics cards have");
view.preset(data.models, data.own);

// ---- what is in use

const PARTS = ["parameters", "gradients", "optimizer", "activations", "temporary"];
const stage = data.stages.indexOf(state.shared);
const [large, small] = { float32: [4, 4], mixed: [4, 2], bfloat16: [2, 2] }[data.precisions[state.precision]];
const mixed = large > small, { layers, width: d, vocabulary: v, length } = state;
const perBlock = 12 * d * d + 13 * d, number = (v + length) * d + layers * perBlock + 2 * d;
const sum = (use) => PARTS.reduce((total, part) => total + use[part], 0);
function timeline(batch) {
  const tokens = batch * length, entry = large * tokens * d, logits = large * tokens * v;
  const norm = large * (tokens * d + 2 * tokens), inner = small * tokens * 4 * d;
  const copies = mixed ? 2 * 12 * d * d : 0;
  const block = 2 * norm + small * tokens * d * ((mixed ? 3 : 1) + 4 + 1) + 4 * tokens * (d / data.head)
    + 2 * inner + copies;
  const output = norm + small * tokens * d + (mixed ? 2 * v * d : 0) + large * (tokens * v + 1) + 8 * tokens;
  const held = state.checkpointed ? entry : block, ids = 8 * tokens, weights = large * number;
  const shared = (bytes, first) => (stage >= first ? Math.ceil(bytes / state.processes) : bytes);
  const moments = [];
  const add = (phase, where, gradients, activations, temporary) => moments.push({
    phase, where, parameters: shared(weights, 3),
    gradients: shared(state.accumulating ? weights : gradients, 2),
    optimizer: shared(2 * weights, 1), activations, temporary,
  });
  for (let i = 1; i <= layers; i += 1) add(0, `in block ${i}'s forward pass`, 0, ids + i * held, entry);
  const use = ids + layers * held + output;
  add(0, "at the logits", 0, use,
    logits + (mixed ? logits / 2 + (state.checkpointed ? layers * copies : 0) : 0));
  add(1, "as the backward pass begins", 0, use, 2 * logits);
  for (let i = layers; i >= 1; i -= 1) {
    add(1, `in block ${i}'s backward pass`, weights - large * i * perBlock,
      ids + (i - 1) * held + block - inner, entry + 2 * inner);
  }
  add(1, "as the backward pass ends", weights, ids, 2 * large * v * d);
  add(2, "in the update", weights, 0, shared(weights, 1));
  return moments;
}
const fullest = (moments) => moments.reduce((best, use) => (sum(use) > sum(best) ? use : best));
function largest(room) {
  const fits = (batch) => sum(fullest(timeline(batch))) <= room;
  let low = 0, over = 1; // the largest that is known to fit, and one that doesn't
  while (fits(over)) [low, over] = [over, 2 * over];
  while (over - low > 1) {
    const middle = Math.floor((low + over) / 2);
    if (fits(middle)) low = middle;
    else over = middle;
  }
  return low;
}
const moments = timeline(state.batch), peak = fullest(moments), total = sum(peak);
const batches = data.cards.map((card) => largest(card * 1e9 - data.use));
function readable(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let i = 0, size = bytes;
  while (size >= 999.5 && i < units.length - 1) { size /= 1000; i += 1; }
  return `${size.toFixed(size < 9.95 && i ? 1 : 0)} ${units[i]}`;
}

// ---- the drawing

const { text } = view;
const halo = "paint-order: stroke; stroke: var(--at-paper); stroke-width: 4px; stroke-linejoin: round";
const LOOKS = [
  ["parameters", "parameters", "var(--at-this)", 1],
  ["optimizer", "Adam's two numbers", "var(--at-this)", 0.66],
  ["gradients", "gradients", "var(--at-this)", 0.36],
  ["activations", "activations", "currentColor", 0.42],
  ["temporary", "temporary", "currentColor", 0.24],
];
const next = data.cards.find((card) => card * 1e9 >= total);
const memory = view.once("memory", () => ({}));
const touched = Object.keys(state).filter((name) => name !== "model" && state[name] !== memory.state?.[name]).join();
const drags = touched === memory.touched && view.input(touched)?.type === "range";
if (touched && !drags) memory.before = memory.drawn;
if (touched) memory.touched = touched;
const { before } = memory, lined = before && before.total !== total && before.total <= 3 * total;
const ceiling = Math.max(next && next * 1e9 < 1.6 * total ? 1.06 * next * 1e9 : 1.12 * total,
  lined ? 1.12 * before.total : 0);
const y = (bytes) => foot - ((foot - top) * bytes) / ceiling;
const ends = [0, 0.45, 0.9, 1].map((share) => left + share * (wide - left - right));
const rest = { ...moments[0], activations: 0, temporary: 0 }; // between two steps
const after = { ...rest, where: "", phase: 2 };
const points = [{ ...rest, x: ends[0] }];
[0, 1, 2].forEach((phase) => {
  const inside = [...moments, after].filter((use) => use.phase === phase);
  inside.forEach((use, i) => points.push({
    ...use, x: ends[phase] + ((ends[phase + 1] - ends[phase]) * (i + 0.5)) / inside.length,
  }));
});
points.push({ ...rest, x: ends[3] });
const below = points.map(() => 0);
LOOKS.forEach(([part, , fill, opacity]) => {
  const lower = points.map((point, i) => `${point.x.toFixed(1)},${y(below[i]).toFixed(1)}`);
  points.forEach((point, i) => { below[i] += point[part]; });
  const upper = points.map((point, i) => `${point.x.toFixed(1)},${y(below[i]).toFixed(1)}`);
  view.add(svg, "polygon", {
    points: [...lower, ...upper.reverse()].join(" "), fill, "fill-opacity": opacity,
    stroke: "var(--at-paper)", "stroke-width": 0.6,
  });
});
const line = (x1, x2, y1, y2, style) =>
  view.line(x1, y1, x2, y2, { stroke: "currentColor", ...style });
line(left, wide - right, foot, foot, { "stroke-opacity": 0.5 });
["forward", "backward", "update"].forEach((name, i) => {
  const middle = (ends[i] + ends[i + 1]) / 2;
  text(i === 2 ? wide - 2 : middle, foot + 17, name, { "text-anchor": i === 2 ? "end" : "middle" });
  if (i) line(ends[i], ends[i], foot, foot + 6, { "stroke-opacity": 0.5 });
});
let free = -Infinity;
[...data.cards].reverse().forEach((card) => {
  const at = y(card * 1e9);
  if (at < top - 20 || at - free < 15) return;
  free = at;
  line(left, wide - right, at, at, { "stroke-width": 1.6, "stroke-dasharray": "5 3" });
  text(left - 6, at + 5, `${card} GB`, { "text-anchor": "end" });
});
const place = points.find((point) => point.where === peak.where);
view.circle(place.x, y(total), 5, {
  fill: "var(--at-paper)", stroke: "currentColor", "stroke-width": 2,
});
memory.state = { ...state };
memory.drawn = {
  total, at: points.indexOf(place),
  outline: points.map((point, i) => [(point.x - left) / (wide - left - right), below[i]]),
};
const early = place.x < wide - 90;
if (lined) {
  const corners = before.outline.map(([share, bytes]) => [left + share * (wide - left - right), y(bytes)]);
  const points = corners.map((corner) => corner.map((n) => n.toFixed(1)).join()).join(" ");
  [["var(--at-paper)", 4, "none"], ["var(--at-other)", 2, "2 3"]].forEach(([stroke, width, dashes]) =>
    view.add(svg, "polyline", {
      points, fill: "none", stroke, "stroke-width": width, "stroke-dasharray": dashes,
    }));
  const [x, height] = corners[before.at], close = Math.abs(height - y(total)) < 16;
  text(x - 9, close ? y(total) + (before.total > total ? -22 : 10) : height - 6, `before: ${readable(before.total)}`, {
    "text-anchor": "end", style: halo,
  });
}
text(early ? place.x + 11 : place.x - 11, y(total) - 6, readable(total), {
  "text-anchor": early ? "start" : "end", class: "strong", style: halo,
});

// ---- its parts, and what fits

const start = foot + 52, column = phone ? wide : Math.round(wide / 2) - 12;
text(0, start, "where it's fullest", { class: "strong" });
[...LOOKS].reverse().forEach(([part, name, fill, opacity], i) => {
  const at = start + 22 * (i + 1);
  view.rect(1, at - 12, 14, 14, {
    fill, "fill-opacity": opacity, stroke: "currentColor", "stroke-opacity": 0.5,
  });
  text(24, at, name);
  text(column, at, peak[part] ? readable(peak[part]) : "none", { "text-anchor": "end" });
});
const [across, down] = phone ? [0, start + 22 * 6.4] : [column + 36, start];
const end = phone ? column : across + 190;
text(across, down, `largest batch (yours: ${state.batch})`, { class: "strong" });
data.cards.forEach((card, i) => {
  const at = down + 22 * (i + 1), n = batches[i];
  const style = { class: n >= state.batch ? "strong" : "" }; // it fits
  text(across, at, `on ${card} GB`, style);
  text(end, at, n ? n.toLocaleString("en-US") : "not even one", { "text-anchor": "end", ...style });
});

// ---- what is said

const percent = Math.round((100 * peak.activations) / total);
const share = percent ? `${percent}\u00a0% of it` : "none of it";
const note = () => {
  if (stage > 0 && state.processes === 1) return " A single card has nobody to share with.";
  if (stage === 0 && state.processes > 1) return " The cards share nothing yet.";
  if (stage === 2 && !peak.gradients) return " There are no gradients to share at that moment.";
  if (!before) return "";
  if (before.total === total) return " That's as before.";
  if (readable(before.total) !== readable(total)) return ` Before your last change, it was ${readable(before.total)}.`;
  const more = total - before.total;
  return ` That's ${readable(Math.abs(more))} ${more > 0 ? "more" : "less"} than before.`;
};
const cards = data.cards.filter((card) => card * 1e9 - data.use >= total);
return {
  values: {
    ...Object.fromEntries(PARTS.map((part) => [part, peak[part]])), total,
    ...Object.fromEntries(data.cards.map((card, i) => [card, batches[i]])),
  },
  says: `Memory is fullest ${peak.where}: ${readable(total)}, ${share} activations. `
    + (cards.length ? `That fits on ${cards[0]} GB.` : "That fits on none of these cards.") + note(),
  room: 170,
};
