// Chapter 11: a distribution of the page's model, tempered and cut by top-p; body of
// function (state, data, view, numbers).

const { softmax, sum, topP } = numbers;
const logits = data.logits[state.after];
const plain = softmax(logits);
const { chances, kept } = topP(logits, state.temperature, state.top_p);
const { order } = topP(logits, 1, 1);

// the likeliest characters of the model, in the same order whatever is set, and the rest
const shown = order.slice(0, 11), rest = order.slice(11);
const name = (i) => ({ "\n": "↵", " ": "␣" }[data.characters[i]] || data.characters[i]);
const bars = shown.map((i) => ({ text: name(i), now: chances[i], was: plain[i] }));
bars.push({
  text: "rest", now: sum(rest.map((i) => chances[i])),
  was: sum(rest.map((i) => plain[i])),
});
const left = 34, high = 150, base = high + 14;
const step = Math.min(46, (Math.min(view.width(), 600) - left - 24) / bars.length);
const svg = view.svg(left + step * bars.length + 24, base + 46,
  "bars: the probability of each next character, with grey outlines for the model's own");
for (const level of [0, 0.5, 1]) {
  const y = base - high * level;
  view.line(left, y, left + step * bars.length, y, {
    stroke: "currentColor", "stroke-opacity": 0.25,
  });
  view.text(left - 6, y + 4, level, { "text-anchor": "end" });
}
bars.forEach(({ text, now, was }, j) => {
  const x = left + step * j, middle = x + step / 2, last = j === bars.length - 1;
  view.add(svg, "rect", {
    x: x + 4, width: step - 8, y: base - high * now, height: high * now, fill: "var(--accent)",
    "fill-opacity": last ? 0.45 : 1, // many together: no peak
  });
  view.rect(x + 2, base - high * was, step - 4, high * was, {
    fill: "none", stroke: "currentColor", "stroke-opacity": 0.55, "stroke-width": 2,
  });
  view.text(middle, base + 18, text, { "text-anchor": "middle", class: last ? "" : "code" });
  view.add(svg, "text", {
    x: middle, y: base + 38, "text-anchor": "middle", style: "font-size: 12.5px",
    text: now === 0 ? "cut" : now >= 0.995 ? "1" : now.toFixed(2).replace("0.", "."),
  });
});
const best = order[0];
return {
  values: { chances, kept: kept.size },
  room: 130,
  says: `${kept.size} of ${chances.length} characters can be drawn. The likeliest, ${name(best)}, `
    + `has a probability of ${chances[best].toFixed(2)}; at temperature 1, with nothing cut, `
    + `it is ${plain[best].toFixed(2)}.`,
};
