// Chapter 17: a pattern, who sees whom, and who hears from whom by layers; body of function
// (state, data, view, numbers). Every number is computed here but for the trained bits.

const { range, sum } = numbers;
const { t, block, long } = data, w = Number(state.window), layers = Number(state.layers);
const stride = data.strides[state.stride], every = data.globals[state.global], { causal } = state;

// ---- the pattern: distances that all may see, and positions that see all

const near = (apart) => apart < w || (stride > 0 && apart % stride === 0);
const global = (i) => every > 0 && i % every === 0; // the first: every t-th
const may = (i, j) => (j <= i || !causal) && (near(Math.abs(i - j)) || global(i) || global(j));
const all = range(t), mask = all.map((i) => all.map((j) => may(i, j)));
const wanted = (i, j) => j <= i || !causal;
const whole = causal ? (t * (t + 1)) / 2 : t * t;
const count = (rows) => sum(rows.map((row) => row.filter(Boolean).length));

// The layer after which i has first heard from j, 0 for never: in each layer i hears what
// those whom it sees had heard before.
const first = all.map((i) => all.map((j) => Number(i === j || mask[i][j])));
for (let layer = 2, grows = true; grows; layer += 1) {
  const before = first.map((row) => row.map((l) => l > 0 && l < layer));
  grows = false;
  for (const i of all) {
    for (const j of all) {
      if (!before[i][j] && all.some((k) => mask[i][k] && before[k][j])) {
        first[i][j] = layer;
        grows = true;
      }
    }
  }
}
const pairs = count(mask), heard = count(first.map((row) => row.map((l) => l > 0 && l <= layers)));
const missing = all.some((i) => all.some((j) => wanted(i, j) && !first[i][j]));
const until = missing ? 0 : Math.max(...first.flat());
const parts = range(t / block), most = causal ? (parts.length * (parts.length + 1)) / 2 : parts.length ** 2;
const blocks = sum(parts.map((a) => parts.filter((b) => range(block).some((i) => range(block)
  .some((j) => mask[a * block + i][b * block + j]))).length));

// Pairs of a long text: t − δ of them are δ apart. Of those that aren't near, one is global.
function keeps(length) {
  const multiples = (from, to) => Math.floor(to / every) - Math.ceil(from / every) + 1;
  const one = (apart) => {
    if (!every) return 0;
    if (every === t) return 1;
    const low = multiples(0, length - 1 - apart);
    return low + multiples(apart, length - 1) - (apart % every ? 0 : low);
  };
  const each = range(length).map((apart) => (near(apart) ? length - apart : one(apart)));
  return causal ? sum(each) : 2 * sum(each) - each[0];
}
const kept = view.once(`keeps ${w} ${stride} ${every} ${causal}`, () => keeps(long));
const full = causal ? (long * (long + 1)) / 2 : long * long;

// ---- the button that adds a layer

const over = layers === t - 1;
// the slider counts from 0
view.step("layers", over ? 0 : layers, over ? "back to one" : "one more layer", "9.5rem");

// ---- the two matrices

const wide = Math.min(view.width() - 1, 640), phone = wide < 480, gap = phone ? 12 : 32;
const cell = Math.floor((10 * (wide - gap)) / (2 * t)) / 10, side = cell * t, right = side + gap;
const top = 24, lines = top + side + 30, row = phone ? 44 : 27, table = 5, below = phone ? 17 : 0;
const strip = lines + row * table, svg = view.svg(wide, strip + below + 54,
  `A mask of ${pairs} pairs; ${heard} of ${whole} pairs heard after ${layers} layers`);
const { text } = view;
function fill(left, chosen, color, opacity) {
  const size = (0.92 * cell).toFixed(2), d = [];
  for (const i of all) {
    for (const j of all) {
      if (chosen(i, j)) d.push(`M${(left + j * cell).toFixed(1)} ${(top + i * cell).toFixed(1)}h${size}v${size}h-${size}z`);
    }
  }
  if (d.length) view.add(svg, "path", { d: d.join(""), fill: `var(--at-${color})`, "fill-opacity": opacity });
}
const plural = (n) => `${n} layer${n === 1 ? "" : "s"}`;
text(0, 14, "who sees whom", { class: "strong" });
text(right, 14, phone ? `heard, ${plural(layers)}` : `who has heard from whom, ${plural(layers)}`, { class: "strong" });
fill(0, (i, j) => wanted(i, j) && !mask[i][j], "other", 0.16);
fill(0, (i, j) => mask[i][j], "weight", 1);
fill(right, (i, j) => wanted(i, j) && !(first[i][j] && first[i][j] <= layers), "other", 0.16);
for (let layer = 1; layer <= Math.min(layers, Math.max(...first.flat())); layer += 1) {
  fill(right, (i, j) => first[i][j] === layer, "weight", (0.22 + 0.78 * 0.6 ** (layer - 1)).toFixed(3));
}

// ---- numbers

const percent = (part, of) => (part === of ? "100 %" : `${(100 * part / of).toFixed(part / of < 0.00995 ? 2 : part / of < 0.0995 ? 1 : 0)} %`);
const big = (x) => (x >= 1e9 ? `${(x / 1e9).toFixed(1)} billion` : x >= 1e6 ? `${(x / 1e6).toFixed(1)} million` : x.toLocaleString("en"));
const digits = (x) => x.toLocaleString("en");
const seen = causal ? data.bits[`${w} ${stride} ${every}`] : undefined;
const mean = seen && sum(seen) / seen.length;
const spread = seen && (seen.length === 1 ? "one seed" : `${seen[0].toFixed(3)} to ${seen[seen.length - 1].toFixed(3)}, ${seen.length} seeds`);
[
  ["pairs heard so far", `${heard} of ${whole} (${percent(heard, whole)})`],
  ["until everyone has heard from everyone", missing ? "never" : plural(until)],
  ["pairs kept", `${pairs} of ${whole} (${percent(pairs, whole)})`],
  [`pairs computed, in blocks of ${block}`, `${blocks * block * block} (${blocks} of ${most} blocks)`],
  [`pairs kept, with ${digits(long)} positions`, `${big(kept)} (${percent(kept, full)} of all)`],
].forEach(([name, value], n) => {
  text(0, lines + row * n, name);
  text(phone ? 0 : 310, lines + row * n + below, value, { class: "strong" });
});

// ---- what a model has learned under it, among all that were trained

text(0, strip, "bits per character, trained");
text(phone ? 0 : 310, strip + below, seen ? `${mean.toFixed(3)} (${spread})` : "none trained", { class: "strong" });
if (data.means.length) {
  const low = Math.min(...data.means), high = Math.max(...data.means);
  const place = (x) => 8 + ((wide - 16) * (x - low)) / (high - low || 1);
  view.add(svg, "path", { d: `M0 ${strip + below + 20}H${wide}`, stroke: "var(--at-rule)" });
  for (const x of data.means) view.add(svg, "circle", { cx: place(x), cy: strip + below + 20, r: 3.5, fill: "var(--at-other)", "fill-opacity": 0.55 });
  if (seen) view.circle(place(mean), strip + below + 20, 7, { fill: "var(--at-this)" });
  text(0, strip + below + 46, low.toFixed(2));
  text(wide, strip + below + 46, high.toFixed(2), { "text-anchor": "end" });
}

// ---- in words

function never() {
  if (!stride && !every) return "each sees only itself.";
  if (causal) return "a causal path only goes back, so the token just before must be seen directly, and a window of 1 hides it.";
  return `every hop is a multiple of ${stride}.`;
}
function untrained() {
  if (causal) return "No model was trained under this pattern.";
  return "No trained result: a model that sees later characters has nothing left to predict.";
}
const reached = missing ? `Not all are ever reached: ${never()}`
  : until <= layers ? `Everyone has heard from everyone after ${plural(until)}.`
    : `After ${plural(layers)}, ${percent(heard, whole)} of the pairs are reached; all are after ${plural(until)}.`;
return {
  values: {
    mask: mask.map((each) => each.map(Number)), first, pairs, computed: blocks * block * block,
    heard, layers: until, long: kept,
  },
  says: seen ? reached : `${reached} ${untrained()}`,
  room: 190,
};
