// Chapter 02: where *it* looks; body of function (state, data, view, numbers). All
// weights come from Python's trained reader, packed: (sentences, looks, words).

const chosen = { ...state, ...data.only };
const all = view.once("weights", () => numbers.unpack(data.weights));
const sure = view.once("sure", () => numbers.unpack(data.elle));
const place = (name) => data.options[name].indexOf(chosen[name]);
const sentence = (place("animal") * data.options.place.length + place("place"))
  * data.options.reason.length + place("reason");
const looks = all[sentence], elle = sure[sentence];
const words = data.frame.map((word) => chosen[word] || word);
const n = words.length, it = words.indexOf("it");
const look = state.look === "first" ? 0 : 1;
const weights = looks[look];

const narrow = view.width() < 540;
const label = `arcs from it to the words of its ${state.look} look`;
const arc = (d, w) => ({
  d, fill: "none", stroke: "var(--at-weight)", "stroke-linecap": "round",
  "stroke-width": (1 + 13 * w).toFixed(2), "stroke-opacity": (0.12 + 0.7 * w).toFixed(3),
});
const at = [], size = narrow ? 25 : 7.7;
let svg;
if (narrow) {
  svg = view.svg(300, size * n + 8, label);
  words.forEach((_, i) => at.push([100, size * (i + 0.5) + 4]));
} else {
  let x = 8;
  words.forEach((word) => {
    const wide = Math.max(34, size * word.length + 14);
    at.push([x + wide / 2, 128]);
    x += wide;
  });
  svg = view.svg(x + 8, 170, label);
}
weights.forEach((w, i) => {
  if (w < 0.01) return;
  const [x, y] = at[i], [fromX, fromY] = at[it];
  if (i === it) {
    view.add(svg, "path", arc(narrow
      ? `M ${x - 8} ${y - 5} C ${x - 34} ${y - 14}, ${x - 34} ${y + 14}, ${x - 8} ${y + 5}`
      : `M ${x - 7} ${y - 16} C ${x - 16} ${y - 44}, ${x + 16} ${y - 44}, ${x + 7} ${y - 16}`, w));
    return;
  }
  const far = Math.abs(narrow ? fromY - y : fromX - x);
  const bow = narrow ? Math.min(92, 14 + far * 0.42) : Math.min(106, 22 + far * 0.34);
  view.add(svg, "path", arc(narrow
    ? `M ${fromX - 8} ${fromY} Q ${fromX - 8 - bow * 1.3} ${(fromY + y) / 2} ${x - 8} ${y}`
    : `M ${fromX} ${fromY - 16} Q ${(fromX + x) / 2} ${y - 16 - bow * 1.3} ${x} ${y - 16}`, w));
});
words.forEach((word, i) => {
  const [x, y] = at[i], strong = i === it || weights[i] >= 0.2;
  view.text(x, y + 5, word, {
    "text-anchor": narrow ? "start" : "middle", class: strong ? "strong" : "",
  });
  if (weights[i] >= 0.05) {
    view.text(narrow ? x + 90 : x, narrow ? y + 5 : y + 26, `${Math.round(100 * weights[i])} %`, {
      "text-anchor": narrow ? "start" : "middle",
    });
  }
});
const most = numbers.argmax(weights), pronoun = elle > 0.5 ? "elle" : "il";
const pair = `${chosen.animal} ${chosen.place}`;
const unmet = data.unseen.includes(pair)
  ? " It never met this pair in training." : "";
return {
  values: { weights: looks, elle },
  room: 120,
  says: `“It” looks most at “${words[most]}” (${Math.round(100 * weights[most])} %)`
    + (look === 0 ? "." : ` and becomes “${pronoun}” `
      + `(${Math.round(100 * Math.max(elle, 1 - elle))} % sure).`) + unmet,
};
