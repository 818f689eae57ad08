// Page 18b: who holds what; body of function (state, data, view, numbers). Each row is one of
// n processes. A stage of ZeRO gives each process an nth of what it divides.

const { range } = numbers;
const n = Number(state.processes), modes = Object.keys(data.modes), parts = Object.keys(data.bytes);
const size = (mode, part) => (data.bytes[part] * data.billions) / (data.modes[mode].includes(part) ? n : 1);
const sum = (list) => list.reduce((total, one) => total + one, 0);
const total = (mode) => sum(parts.map((part) => size(mode, part)));
const divided = data.modes[state.stage];
const least = sum(parts.filter((part) => !divided.includes(part)).map((part) => data.bytes[part] * data.billions));
const readable = (gigabytes) => gigabytes.toFixed(1);

// ---- above, the parts that each process holds, as wide as their bytes

const SHADES = { weights: 1, gradients: 0.36, "Adam's averages": 0.66 }; // as in chapter 18's calculator
const wide = Math.min(view.width() - 1, 620), from = wide < 480 ? 74 : 100, gap = 10;
const top = 24, room = 152, row = Math.min(38, room / n), space = Math.min(7, row / 4);
const foot = top + room, start = foot + 56, step = 28;
view.svg(wide, start + step * modes.length + 26, `${state.stage}, ${n} ${n === 1 ? "process" : "processes"}: `
  + `what each holds, and ${readable(total(state.stage))} GB per process`);
const { rect, text } = view;
const byte = (wide - from - 1 - gap * (parts.length - 1)) / sum(Object.values(data.bytes));
let left = from;
parts.forEach((part) => {
  const width = byte * data.bytes[part], split = n > 1 && divided.includes(part);
  const own = split ? Math.max(3, width / n) : width; // 64th parts could hardly be seen
  text(left + width / 2, 14, width < 100 ? part.replace(" averages", "") : part, { "text-anchor": "middle" });
  range(n).forEach((p) => {
    const y = top + row * p, high = row - space, x = left + (split ? ((width - own) * p) / (n - 1) : 0);
    rect(left, y, width, high, {
      fill: "currentColor", "fill-opacity": 0.05, stroke: "currentColor", "stroke-opacity": row < 6 ? 0 : 0.35,
    });
    rect(x, y, own, high, { fill: "var(--at-this)", "fill-opacity": SHADES[part], class: "held" });
  });
  text(left + width / 2, foot + 20, `${readable(size(state.stage, part))} GB`, { "text-anchor": "middle" });
  left += width + gap;
});
const named = row > 15 ? range(n) : [0, n - 1];
named.forEach((p) => text(0, top + row * p + (row - space) / 2 + 5, `process ${p}`));
if (named.length < n) text(24, top + room / 2 + 5, "⋮");
text(0, foot + 20, "each holds");

// ---- below, all of it, in each stage

const end = wide - 76, most = Math.max(...modes.map(total)), scale = (end - from) / most;
text(0, start - 8, "GB per process", { class: "strong" });
modes.forEach((mode, i) => {
  const y = start + step * i, chosen = mode === state.stage, look = chosen ? { class: "strong" } : {};
  text(0, y + 16, mode.split(",")[0], look);
  let x = from;
  parts.forEach((part) => {
    const width = size(mode, part) * scale;
    rect(x, y, width, step - 6, { fill: "var(--at-this)", "fill-opacity": SHADES[part] });
    x += width;
  });
  rect(from, y, x - from, step - 6, { fill: "none", stroke: "currentColor", "stroke-width": chosen ? 2.5 : 0 });
  text(wide - 1, y + 16, `${readable(total(mode))} GB`, { "text-anchor": "end", ...look });
});
const under = start + step * modes.length;
text(0, under + 18, "GPUs of");
data.cards.forEach((size) => {
  const card = from + size * scale;
  view.line(card, start - 6, card, under + 2, {
    stroke: "currentColor", "stroke-width": 1.6, "stroke-dasharray": "5 3",
  });
  text(card, under + 18, `${size} GB`, { "text-anchor": "middle" });
});

const plain = state.stage.split(",")[0];
return {
  values: {
    ...Object.fromEntries(parts.map((part) => [part, size(state.stage, part)])), total: total(state.stage), least,
  },
  says: `With ${plain} and ${n} ${n === 1 ? "process" : "processes"}, each holds ${readable(total(state.stage))} GB. `
    + (divided.length === 0 ? "More processes don't change that."
      : least ? `With more, it's never below ${least} GB.` : "With twice as many, it's half."),
  room: 88,
};
