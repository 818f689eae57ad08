// Chapter 02: self-attention one product at a time, of words that the reader changes; body of
// function (state, data, view, numbers). Everything is computed here, from data.x.

const { dot, fixed, range, softmax } = numbers;
const { traits } = data, it = data.words.indexOf("it"), second = state.look === data.looks[0];
const turned = (a) => range(a[0].length).map((j) => a.map((row) => row[j]));
const product = (a, b) => a.map((row) => turned(b).map((column) => dot(row, column)));
function attend(x) {
  const xT = turned(x), scores = product(x, xT), weights = scores.map(softmax);
  const powers = scores.map((row) => row.map(Math.exp));
  return { x, xT, scores, powers, weights, mixed: product(weights, x) };
}
const look = (x) => (second ? attend(attend(x).mixed) : attend(x));
const changed = data.x.map((row) => [...row]);
const [animalSaid, placeSaid] = data.last[state.last];
changed[3].splice(0, 2, animalSaid, placeSaid);
const now = look(changed), before = look(data.x);

// said of places rather than of animals, “tired” becomes “wide”
const words = data.words.map((word) => (word === "tired" && placeSaid > animalSaid ? "wide" : word));
const x = second ? "mixed" : "x";
const tables = { // title, rows, columns, and the number that has the full color
  x: [x, words, traits, 4],
  xT: [`${x} transposed`, traits, words, 4],
  scores: ["scores", words, words, 10],
  powers: ["exp(scores)", words, words, 100],
  weights: ["weights", words, words, 1],
  mixed: [second ? "mixed again" : "mixed", words, traits, 4],
};
const steps = {
  score: ["x", "·", "xT", "=", "scores"],
  weigh: ["scores", "exp", "powers", "÷ sum", "weights"],
  mix: ["weights", "·", "x", "=", "mixed"],
};
const parts = steps[state.step];

// a row of three tables where there is room; on a phone a column, and of two the row of “it”
const wide = view.width() >= 600, label = wide ? 46 : 52, gap = wide ? 36 : 26;
const cell = wide ? Math.min(40, Math.floor((view.width() - 3 * label - 2 * gap) / 12)) : 46;
const high = wide ? 30 : 25, head = 24, foot = 28, side = label + 4 * cell;
const deep = wide ? head + 4 * high + foot : 3 * (head + foot) + 6 * high + 2 * gap;
const bars = deep + 30;
const svg = view.svg(wide ? 3 * side + 2 * gap : side + 10, bars + 24 * words.length,
  `step ${state.step} of self-attention with its numbers, the row of “it” in color`);
const text = (attributes, size = 13) => view.add(svg, "text", { style: `font-size: ${size}px`, ...attributes });
const short = (value) => {
  const [whole, digits] = fixed(value, value >= 100 ? 0 : 2).split(".");
  const kept = (digits || "").replace(/0+$/, "");
  return kept ? `${whole}.${kept}` : whole;
};

function draw(name, left, top, under) {
  const [title, rows, columns, most] = tables[name];
  const shown = range(rows.length).filter((i) => wide || !under || i === it);
  columns.forEach((column, j) => text({
    x: left + label + (j + 0.5) * cell, y: top + head - 8, "text-anchor": "middle", text: column,
  }, wide ? 12 : 13));
  shown.forEach((i, place) => {
    const y = top + head + place * high, lit = !under || i === it;
    text({
      x: left + label - 6, y: y + high / 2 + 5, "text-anchor": "end", text: rows[i],
      class: under && lit ? "strong" : "",
    });
    columns.forEach((_, j) => {
      const value = now[name][i][j];
      const hue = name === "weights" ? "weight" : value < 0 ? "minus" : "this";
      view.rect(left + label + j * cell + 1, y + 1, cell - 2, high - 2, {
        fill: `var(--at-${hue})`,
        "fill-opacity": lit ? Math.min(0.6, Math.abs(value) / most).toFixed(2) : 0,
        stroke: "currentColor", "stroke-opacity": under && lit ? 1 : 0.3,
      });
      text({
        x: left + label + (j + 0.5) * cell, y: y + high / 2 + 5, "text-anchor": "middle",
        class: under && lit ? "strong" : "", text: short(value),
      }, 14);
    });
  });
  text({
    x: left + label + 2 * cell, y: top + head + shown.length * high + 18, "text-anchor": "middle",
    class: "strong", text: title,
  });
  return head + shown.length * high + foot;
}
let left = 0, top = 0;
parts.forEach((part, p) => {
  if (p % 2) { // what happens between two tables
    text({
      x: wide ? left - gap / 2 + 2 : label + 2 * cell, y: wide ? head + 2 * high + 5 : top - 8,
      "text-anchor": "middle", text: part,
    }, part.length > 1 ? 13 : 17);
    return;
  }
  const tall = draw(part, left, top, !["x", "xT"].includes(part) || parts[0] === part);
  if (wide) left += side + gap;
  else top += tall + gap;
});
text({ x: 0, y: bars - 8, text: "weights of “it” (outlined: before your change)" });
words.forEach((word, j) => {
  const y = bars + 24 * j, long = wide ? 300 : 180, w = now.weights[it][j], was = before.weights[it][j];
  text({ x: label, y: y + 15, "text-anchor": "end", text: word });
  view.rect(label + 6, y + 4, Math.max(1, long * w), 12, { fill: "var(--at-weight)" });
  view.rect(label + 6, y + 1, Math.max(1, long * was), 18, {
    fill: "none", stroke: "currentColor", "stroke-opacity": 0.6, "stroke-width": 2,
  });
  text({ x: label + 14 + long * Math.max(w, was), y: y + 15, text: fixed(w, 2) });
});

const weights = now.weights[it], output = now.mixed[it], most = Math.max(...weights);
const found = words.filter((_, j) => most - weights[j] < 0.005);
const [animal, place] = output;
const rather = Math.abs(animal - place) < 0.005 ? "as much an animal as a place"
  : `more of ${animal > place ? "an animal" : "a place"}`;
return {
  values: { weights, output, scores: now.scores[it] },
  room: 125,
  says: `“it” looks most at ${found.map((w) => `“${w}”`).join(" and ")} `
    + `(${fixed(most, 2)}${found.length > 1 ? " each" : ""}). Mixed, it is ${rather}: animal `
    + `${fixed(animal, 2)}, place ${fixed(place, 2)}.`,
};
