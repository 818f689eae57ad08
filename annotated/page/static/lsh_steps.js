// Chapter 13: hash, sort, cut into chunks, look one back, undo the sort; body of
// function (state, data, view, numbers). Everything is computed here.

const { range } = numbers;
const names = data.names, n = names.length, stage = Number(state.step);
const buckets = Number(state.buckets), size = 2; // of a chunk
const width = 360 / buckets, follow = names.indexOf(state.query);
const degrees = (angle) => ((angle % 360) + 360) % 360;

// one round: order[p] is who stands at place p once sorted, by bucket and position
function hashed(turn) {
  const bucket = data.points.map(([x, y]) => Math.floor(degrees(
    Math.atan2(y, x) * 180 / Math.PI - turn + width / 2) / width));
  const order = range(n).sort((i, j) => bucket[i] - bucket[j] || i - j);
  const chunk = range(n);
  order.forEach((i, p) => { chunk[i] = Math.floor(p / size); });
  const before = (c) => (c ? c - 1 : 1); // the first one has the second
  const inWindow = (i, j) => chunk[j] === chunk[i] || chunk[j] === before(chunk[i]);
  const found = range(n).map((i) => range(n).filter((j) => j < i && inWindow(i, j)));
  return { bucket, order, inWindow, found };
}
const { bucket, order, inWindow, found } = hashed(Number(state.turn));
const other = Number(state.rounds) === 2 ? hashed(Number(state.turn) + 45) : null;
const wanted = (i, j) => bucket[i] === bucket[j] && j < i;
const orSelf = (keys, i) => (keys.length ? keys : [i]);
const attends = found.map(orSelf);
const together = found.map((keys, i) => orSelf(range(n).filter((j) => keys.includes(j)
  || (other && other.found[i].includes(j))), i));
const lost = range(n).flatMap((i) => range(n).filter((j) => wanted(i, j) && !inWindow(i, j))
  .map((j) => [i, j]));

// what the joined rounds give the followed one: a softmax over all keys found
const [qx, qy] = data.points[follow];
const powers = together[follow].map((j) => {
  const [kx, ky] = data.points[j];
  return Math.exp((qx * kx + qy * ky) / Math.hypot(kx, ky));
});
const sum = powers.reduce((a, b) => a + b, 0);
const shares = powers.map((p) => p / sum);
const output = together[follow].reduce((a, j, k) => a + shares[k] * data.sizes[j], 0);

const shown = stage < 3 || stage === 7 ? range(n) : order;
const sorted = shown === order;
const cell = Math.max(26, Math.min(38, Math.floor((view.width() - 44) / n)));
const left = 40, strip = 22, top = strip + (stage > 1 ? 78 : 58);
const svg = view.svg(left + cell * n + 4, top + cell * n + 30,
  `step ${stage}, ${data.stages[stage - 1]}: a strip of ${n} points, and below it a matrix, `
  + "a row for each query and a column for each key");
view.add(svg, "text", { x: 0, y: 13, text: sorted ? "sorted by bucket →" : "in the order of the sequence →" });
const place = (p) => left + cell * p;
shown.forEach((i, p) => {
  const x = place(p) + cell / 2;
  const dim = stage >= 5 && stage < 7 && !inWindow(follow, i);
  view.add(svg, "circle", {
    cx: x, cy: strip + 12, r: 8, stroke: "currentColor", "stroke-width": i === follow ? 3.5 : 1,
    fill: `hsl(${Math.round(degrees(Math.atan2(data.points[i][1], data.points[i][0]) * 180 / Math.PI))}, 80%, 50%)`,
    "fill-opacity": dim ? 0.25 : 1,
  });
  view.add(svg, "text", {
    x, y: strip + 38, "text-anchor": "middle", class: i === follow ? "code strong" : "code",
    text: names[i], opacity: dim ? 0.7 : 1,
  });
  if (stage > 1) {
    view.add(svg, "text", {
      x, y: strip + 56, "text-anchor": "middle", text: String(bucket[i]),
    });
  }
});
if (stage > 1) view.add(svg, "text", { x: 0, y: strip + 56, text: "bucket" });

// the matrix: what each row's query may look at
const lines = [];
shown.forEach((i, p) => {
  view.add(svg, "text", {
    x: left - 10, y: top + cell * (p + 0.5) + 5, "text-anchor": "end",
    class: i === follow ? "code strong" : "code", text: names[i],
  });
  shown.forEach((j, c) => {
    const same = bucket[i] === bucket[j], seen = attends[i].includes(j), window = inWindow(i, j);
    let shade = 0, mark = "", frame = "currentColor", thick = 1;
    if (stage === 1) shade = j < i ? 0.25 : 0;
    else if (stage < 5) shade = same && j < i ? 0.6 : 0;
    else if (stage === 5) shade = window ? 0.2 : 0;
    else if (stage === 6) shade = seen ? 0.75 : window ? 0.1 : 0;
    else shade = together[i].includes(j) ? 0.5 : 0;
    if (stage === 7 && other) {
      mark = [[found, "1"], [other.found, "2"]].filter(([list]) => list[i].includes(j))
        .map(([, name]) => name).join(" ");
    } else if (stage >= 5 && wanted(i, j) && !window) [mark, frame, thick] = ["×", "var(--second)", 2.5];
    else if (stage === 5 && same && j < i) mark = "●";
    else if (stage === 6 && window && !seen) mark = j === i ? "self" : "later";
    view.add(svg, "rect", {
      x: place(c) + 1, y: top + cell * p + 1, width: cell - 2, height: cell - 2,
      fill: "var(--accent)", "fill-opacity": shade, stroke: frame, "stroke-width": thick,
      "stroke-opacity": thick > 1 ? 1 : i === follow ? 0.9 : 0.25,
    });
    if (mark) {
      const node = view.add(svg, "text", {
        x: place(c) + cell / 2, y: top + cell * (p + 0.5) + (mark.length > 1 ? 3 : 5),
        "text-anchor": "middle", text: mark, class: "×12".includes(mark) ? "strong" : "",
      });
      if (mark.length > 1 && mark !== "1 2") node.setAttribute("style", "font-size: 10px");
    }
  });
});
if (sorted && stage >= 4) {
  range(n / size + 1).forEach((c) => {
    const at = size * c;
    lines.push({ x1: place(at), x2: place(at), y1: strip - 2, y2: top + cell * n });
    lines.push({ x1: left, x2: left + cell * n, y1: top + cell * at, y2: top + cell * at });
  });
}
lines.forEach((line) => view.add(svg, "line", {
  ...line, stroke: "currentColor", "stroke-width": 2,
}));
view.add(svg, "text", {
  x: left, y: top + cell * n + 20, text: "row: query, column: key",
});

const listed = (list) => list.map((i) => names[i]).join(", ");
const inner = range(n).filter((j) => inWindow(follow, j)).length;
const q = names[follow], keys = attends[follow];
const earlier = range(n).filter((j) => wanted(follow, j));
const missed = lost.filter(([i]) => i === follow).map(([, j]) => j);
const pairs = lost.map(([i, j]) => `${names[i]} and ${names[j]}`).join("; ");
const says = [
  `Full attention: each one compares itself with all before it, ${n * (n - 1) / 2} pairs.`,
  `Who shares a bucket? ${q} is in bucket ${bucket[follow]}`
    + `${earlier.length ? `, with ${listed(earlier)} before it` : "; nobody before it is"}.`,
  "Rows and columns in the order of the buckets: what was scattered lies next to the diagonal.",
  `Chunks of ${size}: ${n / size} of them, all the same length, wherever the buckets end.`,
  `Each chunk looks at itself and the one before; the first one, at the second. ${q} has ${inner} keys.`
    + (pairs ? ` In one bucket, yet out of sight (×): ${pairs}.` : ""),
  `Hidden: oneself, and those who come later in the sequence. ${keys[0] === follow
    ? `For ${q} nobody is left, so it looks at itself.` : `${q} looks at ${listed(keys)}.`}`
    + (missed.length ? ` It shares a bucket with ${listed(missed)}, but doesn't see it.` : ""),
  "Back in the order of the sequence. " + (other
    ? `In the first round ${q} sees ${listed(keys)}, in the second, turned by 45° more, `
      + `${listed(orSelf(other.found[follow], follow))}; together ${listed(together[follow])}.`
    : `${q} looks at ${listed(keys)}.`)
    + ` Shares: ${together[follow].map((j, k) => `${names[j]} ${shares[k].toFixed(2)}`).join(", ")};`
    + ` output ${output.toFixed(1)}.`,
][stage - 1];
return {
  values: { order: order.map((i) => names[i]), attends: together.map((k) => k.map((j) => names[j])), lost: lost.length, output },
  says: `Step ${stage}, ${data.stages[stage - 1]}. ${says}`,
};
