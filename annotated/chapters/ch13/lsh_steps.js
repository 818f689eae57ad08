// Chapter 13: hash, sort, cut into chunks, look one back, undo the sort, beside exact
// attention; body of function (state, data, view, numbers). All is computed here.

const { range } = numbers;
const names = data.names, n = names.length, stage = Number(state.step);
const buckets = Number(state.buckets), size = 2; // of a chunk
const width = 360 / buckets, follow = names.indexOf(state.query);
const degrees = (angle) => ((angle % 360) + 360) % 360;
const angles = data.points.map(([x, y]) => degrees(Math.atan2(y, x) * 180 / Math.PI));

// one round: order[p] is who stands at place p once sorted, by bucket and position
function hashed(turn) {
  const bucket = angles.map((angle) => Math.floor(degrees(angle - turn + width / 2) / width));
  const order = range(n).sort((i, j) => bucket[i] - bucket[j] || i - j);
  const chunk = range(n);
  order.forEach((i, p) => { chunk[i] = Math.floor(p / size); });
  const before = (c) => (c ? c - 1 : 1); // the first one has the second
  const inWindow = (i, j) => chunk[j] === chunk[i] || chunk[j] === before(chunk[i]);
  const found = range(n).map((i) => range(i).filter((j) => inWindow(i, j)));
  return { bucket, order, inWindow, found };
}
const rounds = data.turns.slice(0, Number(state.rounds))
  .map((turn) => hashed(Number(state.turn) + turn));
const { bucket, order, inWindow, found } = rounds[0];
const together = range(n).map((i) => range(i).filter((j) => rounds.some((r) => r.found[i].includes(j))));
const wanted = (i, j) => bucket[i] === bucket[j] && j < i;
const lost = range(n).flatMap((i) => range(i).filter((j) => wanted(i, j) && !inWindow(i, j))
  .map((j) => [i, j]));

// weights of a query over these keys; over itself if there are none
function weigh(i, keys) {
  const of = keys.length ? keys : [i], [qx, qy] = data.points[i];
  const scores = of.map((j) => {
    const [kx, ky] = data.points[j];
    return (qx * kx + qy * ky) / Math.hypot(kx, ky);
  });
  const row = range(n).map(() => 0);
  numbers.softmax(scores).forEach((weight, k) => { row[of[k]] = weight; });
  return row;
}
const weights = together.map((keys, i) => weigh(i, keys));
const exact = range(n).map((i) => weigh(i, range(i)));
const output = (row) => numbers.dot(row, data.sizes);

// ---- the strip, and two matrices: what each query may look at, what it should

const shown = stage < 3 || stage === 7 ? range(n) : order, sorted = shown === order;
const both = view.width() >= 560, left = 28, gap = 44;
const cell = Math.min(36, Math.floor((view.width() - (both ? 2 * left + gap : left) - 6) / (both ? 2 * n : n)));
const strip = 30, top = strip + 74, across = left + cell * n;
const svg = view.svg(both ? 2 * across + gap + 4 : across + 4, top + cell * n + 8,
  `step ${stage}, ${data.stages[stage - 1]}: a strip of ${n} points, and below it a matrix, `
  + "a row for each query and a column for each key");
const hatch = view.hatch(svg);

const say = view.text;
const middle = { "text-anchor": "middle" };
function matrix(x0, title, look) {
  const place = (p) => x0 + left + cell * p;
  say(x0 + left, 14, title, { class: "strong" });
  shown.forEach((i, p) => {
    const x = place(p) + cell / 2, own = i === follow;
    view.circle(x, strip + 6, 8, {
      stroke: "currentColor", "stroke-width": own ? 3.5 : 1,
      fill: `hsl(${Math.round(angles[i])}, 80%, 50%)`,
    });
    say(x, strip + 31, names[i], { ...middle, class: own ? "code strong" : "code" });
    if (stage > 1) say(x, strip + 50, String(bucket[i]), middle);
    say(x0 + left - 8, top + cell * (p + 0.5) + 5, names[i], {
      "text-anchor": "end", class: own ? "code strong" : "code",
    });
  });
  shown.forEach((i, p) => shown.forEach((j, c) => {
    const { fill = "var(--accent)", shade = 0, mark = "", missed = false } = look(i, j);
    const y = top + cell * p;
    view.rect(place(c) + 1, y + 1, cell - 2, cell - 2, {
      fill, "fill-opacity": shade, stroke: missed ? "var(--at-wrong)" : "currentColor",
      "stroke-width": missed ? 2.5 : 1, "stroke-opacity": missed ? 1 : i === follow ? 0.9 : 0.25,
    });
    if (mark) {
      const text = say(place(c) + cell / 2, y + cell / 2 + 5, mark, middle);
      if (fill === "var(--at-weight)" && shade > 0.7) text.setAttribute("style", "fill: var(--at-on)");
    }
  }));
  if (sorted && stage >= 4) {
    range(n / size + 1).forEach((c) => {
      const x = place(size * c), y = top + cell * size * c;
      const ends = [[x, strip - 6, x, top + cell * n], [place(0), y, place(n), y]];
      ends.forEach(([x1, y1, x2, y2]) => view.line(x1, y1, x2, y2, {
        stroke: "currentColor", "stroke-width": 2,
      }));
    });
  }
}
// heavy, and met in no round
const overlooked = (i, j) => j < i && exact[i][j] >= 0.1 && !together[i].includes(j);
const weight = (w) => ({
  fill: "var(--at-weight)", shade: 0.9 * w, mark: w >= 0.005 ? String(Math.round(100 * w)) : "",
});
matrix(0, stage === 7 ? "LSH attention" : sorted ? "sorted by bucket" : "in sequence", (i, j) => {
  if (stage === 7) {
    return overlooked(i, j) ? { mark: "×", missed: true } : weight(weights[i][j]);
  }
  if (stage === 1) return { shade: j < i ? 0.25 : 0 };
  if (stage < 5) return { shade: wanted(i, j) ? 0.6 : 0 };
  if (!inWindow(i, j)) return wanted(i, j) ? { mark: "×", missed: true } : {};
  if (stage === 5) return { shade: 0.25, mark: wanted(i, j) ? "●" : "" };
  const alone = i === j && !found[i].length;
  return j < i || alone ? { shade: 0.6 } : { fill: hatch, shade: 1 };
});
if (both) matrix(across + gap, "exact attention", (i, j) => weight(exact[i][j]));

const q = names[follow], listed = (list) => list.map((i) => names[i]).join(", ");
const itself = (keys) => (keys.length ? listed(keys) : "only itself");
const earlier = range(follow).filter((j) => wanted(follow, j));
const alone = range(n).filter((i) => !found[i].length);
const pairs = lost.map(([i, j]) => `${names[i]} and ${names[j]}`).join("; ");
const says = [
  `Full attention: each one looks at all before it, ${n * (n - 1) / 2} pairs.`,
  `Dark: pairs of a bucket. ${q} is in bucket ${bucket[follow]}`
    + `${earlier.length ? `, with ${listed(earlier)} before it` : "; nobody before it is"}.`,
  "Rows and columns go by bucket now, and what was scattered stands next to the diagonal.",
  `${n / size} chunks of ${size}, wherever the buckets end.`,
  "Shaded: what is computed, the query's chunk and the one before (for the first chunk, the second). "
    + (pairs ? `● pairs of a bucket. × in one bucket, yet out of sight: ${pairs}.` : "● pairs of a bucket: all meet."),
  `Hatched: hidden, because it's later in the sequence or the query itself. ${q} looks at ${itself(found[follow])}. `
    + `Nobody is left for ${listed(alone)}: ${alone.length > 1 ? "they look at themselves" : "it looks at itself"}.`,
  `${rounds.map((r, k) => `${rounds.length > 1 ? `Round ${k + 1}: ` : ""}${q} sees ${itself(r.found[follow])}. `).join("")}`
    + `Output ${output(weights[follow]).toFixed(1)}; exact attention gives ${output(exact[follow]).toFixed(1)}.`
    + (range(n).some((i) => range(n).some((j) => overlooked(i, j))) ? " ×: missed in every round." : ""),
][stage - 1];
const drawn = rounds.length > 1 && stage > 1 && stage < 7
  ? ` (round 1 of ${rounds.length}; step 7 joins them all)` : "";
return {
  values: { order: order.map((i) => names[i]), weights, lost: lost.length, output: output(weights[follow]) },
  room: 250,
  says: `Step ${stage}, ${data.stages[stage - 1]}${drawn}. ${says}`,
};
