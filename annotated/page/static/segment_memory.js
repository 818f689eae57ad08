// Chapter 12: what a segment with a memory can look back at; body of
// function (state, data, view, numbers). Everything is computed here.

const { range } = numbers;
const letters = [...data.text], n = letters.length, length = data.length;
const layers = Number(state.layers), most = Number(state.memory);
const now = Number(state.segment) - 1, begin = now * length, end = begin + length;
const wanted = (p) => Math.floor(p / length) * length - most; // first key seen from p
const first = (p) => Math.max(0, wanted(p));

// used[n][p]: the state of position p after n layers has a part in the last output
const used = range(layers + 1).map(() => range(n).map(() => false));
used[layers][end - 1] = true;
for (let layer = layers; layer > 0; layer--) {
  used[layer].forEach((is, p) => {
    if (is) for (let j = first(p); j <= p; j++) used[layer - 1][j] = true;
  });
}
const memory = range(n).filter((p) => p < begin && p >= begin - most);
const reached = range(n).filter((p) => used[0][p]);
const cut = used.slice(1).some((row) => row.some((is, p) => is && wanted(p) < 0));

const size = Math.max(12, Math.min(24, Math.floor((view.width() - 62) / n)));
const left = 58, top = 8, tall = 26;
const svg = view.svg(left + size * n + 4, top + tall * (layers + 1) + 52,
  `${n} characters, and above them a row of states for each of ${layers + 1} levels`);
for (let level = layers; level >= 0; level--) {
  const y = top + tall * (layers - level);
  view.add(svg, "text", {
    x: left - 6, y: y + 17, "text-anchor": "end", text: level ? `layer ${level}` : "input",
  });
  range(n).forEach((p) => {
    const read = p >= begin && p < end, kept = level < layers && memory.includes(p);
    if (p >= end) return;
    view.add(svg, "rect", {
      x: left + size * p + 1, y: y + 2, width: size - 2, height: tall - 4,
      fill: "var(--accent)", "fill-opacity": read ? 0.5 : 0.06,
      stroke: kept ? "var(--second)" : "currentColor",
      "stroke-width": kept ? 2.5 : 1, "stroke-opacity": kept || read ? 1 : 0.2,
    });
    if (used[level][p]) {
      view.add(svg, "circle", {
        cx: left + size * (p + 0.5), cy: y + tall / 2, r: 3.5, fill: "currentColor",
      });
    }
  });
}
const base = top + tall * (layers + 1) + 18;
letters.forEach((letter, p) => {
  view.add(svg, "text", {
    x: left + size * (p + 0.5), y: base, "text-anchor": "middle",
    class: used[0][p] ? "code strong" : "code", text: letter === " " ? "␣" : letter,
    opacity: p >= end ? 0.35 : 1,
  });
  if (p % length === 0) {
    view.add(svg, "line", {
      x1: left + size * p, x2: left + size * p, y1: top, y2: base + 10,
      stroke: "currentColor", "stroke-opacity": 0.5, "stroke-dasharray": "2 3",
    });
  }
});
const words = (list) => list.map((p) => (letters[p] === " " ? "␣" : letters[p])).join("");
return {
  values: { memory, reached },
  says: `Reading “${words(range(length).map((i) => begin + i))}”, in memory: `
    + `${memory.length ? `“${words(memory)}”` : "nothing"}. The last output can depend on `
    + `${reached.length} characters: “${words(reached)}”.`
    + (cut ? " The text begins here, or it would reach further back." : ""),
};
