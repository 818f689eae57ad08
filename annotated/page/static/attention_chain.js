// Chapter 02: self-attention with its numbers, of words that the reader changes; body of
// function (state, data, view, numbers). Everything is computed here, from data.x.

const { argmax, dot, fixed, range, softmax } = numbers;
const n = data.words.length, lit = data.words.indexOf(state.row);
const product = (a, b) => a.map((row) => range(b[0].length).map((j) => dot(row, b.map((r) => r[j]))));
const turned = (a) => range(a[0].length).map((j) => a.map((row) => row[j]));
function attend(x) {
  const scores = product(x, turned(x)), weights = scores.map(softmax);
  return { x, scores, weights, mixed: product(weights, x) };
}
const look = (x) => (state.look === data.looks[0] ? attend(attend(x).mixed) : attend(x));
const changed = data.x.map((row) => [...row]);
for (const [name, i, j] of data.sliders) changed[i][j] = Number(state[name]);
const now = look(changed), before = look(data.x);

// the same six matrices as on paper where there is room; on a phone, what each step gives
const wide = view.width() >= 620;
const label = wide ? 46 : 40, gap = wide ? 24 : 8, head = 34, foot = 26, high = 24;
const across = wide ? 3 : 2;
const cell = Math.max(26, Math.min(40,
  Math.floor((view.width() - across * label - (across - 1) * gap) / (4 * across))));
const size = cell < 34 ? "10.5px" : "13px", side = label + 4 * cell, tall = head + n * high + foot;
const x = state.look === data.looks[0] ? "mixed" : "x";
const mixed = state.look === data.looks[0] ? "mixed again" : "mixed";
const traits = data.traits; // said of places rather than of animals, “tired” becomes “wide”
const words = data.words.map((word) => (
  word === "tired" && Number(state.place) > Number(state.animal) ? "wide" : word));
const all = {
  x: [now.x, x, words, traits, before.x, 2],
  xT: [turned(now.x), `${x} transposed`, traits, words, turned(before.x), 2],
  scores: [now.scores, "scores", words, words, before.scores, 5],
  weights: [now.weights, "weights", words, words, before.weights, 1],
  mixed: [now.mixed, mixed, words, traits, before.mixed, 2],
};
const plan = wide
  ? [["x", "·", "xT", "=", "scores", ""], ["weights", "·", "x", "=", "mixed", ""]]
  : [["x", "", "scores", ""], ["weights", "", "mixed", ""]];
const bars = tall * plan.length + 8;
const svg = view.svg(across * side + (across - 1) * gap, bars + 26 + 22 * n,
  `the matrices of self-attention with their numbers, the row of ${words[lit]} highlighted`);
const text = (attributes, style = "") => view.add(svg, "text", { style, ...attributes });

plan.forEach((parts, line) => {
  const top = line * tall;
  for (let p = 0; p < parts.length; p += 2) {
    const left = (p / 2) * (side + gap), name = parts[p];
    const [table, title, rows, columns, old, most] = all[name];
    columns.forEach((column, j) => text({
      x: left + label + (j + 0.5) * cell, y: top + head - 8, "text-anchor": "middle", text: column,
    }, cell < 36 ? "font-size: 9.5px" : "font-size: 12px"));
    rows.forEach((row, i) => {
      const chosen = name === "xT" || (name === "x" && line) || i === lit;
      text({
        x: left + label - 5, y: top + head + (i + 0.5) * high + 5, "text-anchor": "end", text: row,
        class: i === lit && rows === words ? "strong" : "",
      }, "font-size: 12px");
      columns.forEach((_, j) => {
        const value = table[i][j], moved = (wide || i === lit) && Math.abs(value - old[i][j]) > 0.095;
        view.add(svg, "rect", {
          x: left + label + j * cell + 1, y: top + head + i * high + 1, width: cell - 2, height: high - 2,
          fill: value < 0 ? "var(--second)" : "var(--accent)",
          "fill-opacity": (Math.min(0.5, (0.5 * Math.abs(value)) / most) * (chosen ? 1 : 0.4)).toFixed(3),
          stroke: moved ? "var(--second)" : "currentColor", "stroke-width": moved ? 2 : 1,
          "stroke-dasharray": moved ? "4 2" : "none",
          "stroke-opacity": moved || (chosen && i === lit) ? 1 : 0.3,
        });
        const [whole, digits] = fixed(value, 2).split(".");
        const short = digits.replace(/0+$/, "");
        text({
          x: left + label + (j + 0.5) * cell, y: top + head + (i + 0.5) * high + 4.5,
          "text-anchor": "middle", "fill-opacity": chosen ? 1 : 0.72,
          class: chosen && i === lit && !(line && name === "x") && name !== "xT" ? "strong" : "",
          text: short ? `${whole}.${short}` : whole,
        }, `font-size: ${size}`);
      });
    });
    text({
      x: left + label + 2 * cell, y: top + head + n * high + 17, "text-anchor": "middle",
      class: "strong", text: title,
    });
    if (wide && parts[p + 1]) text({
      x: left + side + gap / 2, y: top + head + (n * high) / 2 + 5, "text-anchor": "middle",
      text: parts[p + 1],
    }, "font-size: 17px");
  }
});
text({ x: 0, y: bars + 14, text: `weights of “${words[lit]}”; grey: before you changed anything` });
words.forEach((word, j) => {
  const y = bars + 24 + 22 * j, long = 200, w = now.weights[lit][j];
  text({ x: label + 6, y: y + 14, "text-anchor": "end", text: word });
  view.add(svg, "rect", {
    x: label + 12, y: y + 1, width: Math.max(1, long * before.weights[lit][j]), height: 18,
    fill: "none", stroke: "currentColor", "stroke-opacity": 0.6, "stroke-width": 2,
  });
  view.add(svg, "rect", {
    x: label + 12, y: y + 4, width: Math.max(1, long * w), height: 12, fill: "var(--accent)",
  });
  text({
    x: label + 20 + long * Math.max(w, before.weights[lit][j]), y: y + 14, text: fixed(w, 2),
  });
});

const weights = now.weights[lit], output = now.mixed[lit];
const top = Math.max(...weights);
const most = words.filter((_, j) => top - weights[j] < 0.005);
const [animal, place] = output;
const rather = Math.abs(animal - place) < 0.005 ? "as much an animal as a place"
  : `more of ${animal > place ? "an animal" : "a place"}`;
return {
  values: { weights, output, scores: now.scores[lit] },
  says: `“${words[lit]}” looks most at ${most.map((w) => `“${w}”`).join(" and ")} `
    + `(${fixed(top, 2)}${most.length > 1 ? " each" : ""}). Mixed, it is ${rather}: animal `
    + `${fixed(animal, 2)}, place ${fixed(place, 2)}.`,
};
