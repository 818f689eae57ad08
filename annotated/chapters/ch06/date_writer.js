// Chapter 06: a date being written, and where each symbol looks in the source; body of
// function (state, data, view, numbers). The weights are those of the trained model.

const { argmax } = numbers;
const date = data.dates[state.date];
const steps = Math.min(state.step, date.written.length);
const source = [...state.date];
const rows = date.weights.slice(0, steps);
const now = rows[steps - 1];
const most = argmax(now);
const shown = (symbol) => (symbol === " " ? "␣" : symbol);
const percent = (share) => `${Math.round(100 * share)} %`;

const left = 62, top = 144;
const cell = (symbols) =>
  Math.max(12, Math.min(24, Math.floor((view.width() - left - 4) / symbols)));
const row = (symbols) => Math.max(17, cell(symbols)); // its letter must fit
const size = cell(source.length), tall = row(source.length);
// for whichever date needs most, so that nothing moves
const notes = Object.keys(data.dates), length = (note) => [...note].length;
const bottom = top + Math.max(...notes.map((note) =>
  row(length(note)) * data.dates[note].written.length));
const right = left + Math.max(...notes.map((note) => cell(length(note)) * length(note)));
const svg = view.svg(Math.max(right + 4, 300), bottom + 6,
  `where ${steps} written symbols look in ${state.date}`);
const text = (x, y, words, more) => view.text(x, y, words, { style: "font-size: 15px", ...more });
const letter = { "text-anchor": "middle", class: "code", style: `font-size: ${Math.min(16, size + 2)}px` };
text(0, top - 28, "the note, read at once →");
text(0, top - 8, "written ↓", { style: "font-size: 13px" });
source.forEach((symbol, j) => text(left + size * (j + 0.5), top - 8, shown(symbol), letter));
date.weights.slice(steps).forEach((weights, i) => weights.forEach((_, j) => view.add(svg, "rect", {
  x: left + size * j + 1, y: top + tall * (steps + i) + 1, width: size - 2, height: tall - 2,
  fill: "none", stroke: "currentColor", "stroke-opacity": 0.12, "stroke-dasharray": "2 3",
})));
rows.forEach((weights, i) => {
  const y = top + tall * i, last = i === steps - 1;
  text(left - 14, y + tall / 2 + 5, shown(date.written[i]),
    { ...letter, class: last ? "code strong" : "code" });
  if (last) text(0, y + tall / 2 + 5, "now", { class: "strong", style: "font-size: 13px" });
  weights.forEach((weight, j) => view.rect(left + size * j + 1, y + 1, size - 2, tall - 2, {
    fill: "var(--accent)", "fill-opacity": weight.toFixed(3),
    stroke: last ? "var(--second)" : "currentColor", "stroke-width": last ? 1.5 : 1,
    "stroke-opacity": last ? 1 : 0.15,
  }));
});
text(0, 14, "what it would write now, likeliest first:");
date.likely[steps - 1].forEach(([symbol, share], i) => {
  const y = 24 + 21 * i;
  text(left - 14, y + 13, shown(symbol), { "text-anchor": "middle", class: "code" });
  view.rect(left, y + 2, Math.max(1, 160 * share), 13, {
    fill: i ? "currentColor" : "var(--accent)", "fill-opacity": i ? 0.4 : 1,
  });
  text(left + 168, y + 13, percent(share));
});

// the slider ends where the text does
view.ends("step", date.written.length - 1, `${steps} of ${date.written.length}`);

const before = date.written.slice(0, steps - 1).join("");
return {
  values: { symbol: date.written[steps - 1], most, before },
  room: 120,
  says: `Its own text so far: ▷${before.replaceAll(" ", "␣")}. To write `
    + `${shown(date.written[steps - 1])} it looks most at ${shown(source[most])}, symbol `
    + `${most + 1} of the note: ${percent(now[most])} of the weight.`,
};
