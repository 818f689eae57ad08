// The trained model of chapter 08, run in the reader's browser: body of function
// (state, data, view). One layer of encoder and decoder, pre-norm, read from packed
// weights; matrices are arrays of rows, and a sequence is an array of vectors.

function unpack(packed) {
  const bytes = atob(packed.base64);
  const whole = new DataView(Uint8Array.from(bytes, (b) => b.charCodeAt(0)).buffer);
  const numbers = [];
  for (let i = 0; i < bytes.length; i += 2) {
    numbers.push(whole.getInt16(i, true) * packed.scale);
  }
  if (packed.shape.length < 2) return numbers;
  const [rows, columns] = packed.shape;
  return Array.from({ length: rows }, (_, r) =>
    numbers.slice(r * columns, (r + 1) * columns));
}
const w = view.once("weights", () => Object.fromEntries(
  Object.entries(data.weights).map(([name, packed]) => [name, unpack(packed)])));

const dot = (u, v) => {
  let sum = 0;
  for (let i = 0; i < u.length; i += 1) sum += u[i] * v[i];
  return sum;
};
const plus = (u, v) => u.map((x, i) => x + v[i]);
const linear = (name, x) => w[`${name}.weight`].map((row, i) =>
  dot(row, x) + (w[`${name}.bias`] ? w[`${name}.bias`][i] : 0));
function softmax(energies) {
  const top = Math.max(...energies);
  const parts = energies.map((e) => Math.exp(e - top));
  const total = parts.reduce((sum, p) => sum + p, 0);
  return parts.map((p) => p / total);
}
function normalise(name, x) {
  const mean = x.reduce((sum, v) => sum + v, 0) / x.length;
  const variance = x.reduce((sum, v) => sum + (v - mean) ** 2, 0) / x.length;
  return x.map((v, i) => ((v - mean) / Math.sqrt(variance + 1e-5))
    * w[`${name}.weight`][i] + w[`${name}.bias`][i]);
}
function embed(table, tokens) {
  const d = w[table][0].length;
  return tokens.map((token, p) => w[table][token].map((x, i) => {
    const angle = p * 10000 ** (-(i - (i % 2)) / d);
    return x * Math.sqrt(d) + (i % 2 ? Math.cos(angle) : Math.sin(angle));
  }));
}
// may(i, j): may query i attend to key j? A query with no key left gets zeros.
function attend(name, queries, keys, may) {
  const q = queries.map((x) => linear(`${name}.query_map`, x));
  const k = keys.map((x) => linear(`${name}.key_map`, x));
  const v = keys.map((x) => linear(`${name}.value_map`, x));
  const width = q[0].length / data.heads;
  const maps = [];
  const joined = q.map(() => []);
  for (let h = 0; h < data.heads; h += 1) {
    const cut = (x) => x.slice(h * width, (h + 1) * width);
    const map = q.map((query, i) => {
      const seen = k.map((_, j) => j).filter((j) => may(i, j));
      const row = k.map(() => 0);
      const energies = seen.map((j) => dot(cut(query), cut(k[j])) / Math.sqrt(width));
      softmax(energies).forEach((weight, n) => { row[seen[n]] = weight; });
      return row;
    });
    maps.push(map);
    map.forEach((row, i) => {
      for (let c = 0; c < width; c += 1) {
        joined[i].push(row.reduce((sum, a, j) => sum + a * v[j][h * width + c], 0));
      }
    });
  }
  return { maps, out: joined.map((x) => linear(`${name}.output_map`, x)) };
}
function feed(name, x) {
  return linear(`${name}.outer`, linear(`${name}.inner`, x).map((v) => Math.max(0, v)));
}
const add = (xs, ys) => xs.map((x, i) => plus(x, ys[i]));
const norms = (name, xs) => xs.map((x) => normalise(name, x));

function encode(tokens) {
  const layer = "encoder.layers.0";
  let x = embed("source_embedding.weight", tokens);
  const read = norms(`${layer}.residuals.0.norm`, x);
  x = add(x, attend(`${layer}.attention`, read, read, () => true).out);
  const mapped = norms(`${layer}.residuals.1.norm`, x);
  x = add(x, mapped.map((v) => feed(`${layer}.feed_forward`, v)));
  return norms("encoder.norm", x);
}
function decode(tokens, memory) {
  const layer = "decoder.layers.0";
  const may = (i, j) => j <= i && tokens[j] !== data.pad;
  let x = embed("target_embedding.weight", tokens);
  const read = norms(`${layer}.residuals.0.norm`, x);
  x = add(x, attend(`${layer}.attention`, read, read, may).out);
  const asked = norms(`${layer}.residuals.1.norm`, x);
  const found = attend(`${layer}.cross_attention`, asked, memory, () => true);
  x = add(x, found.out);
  const mapped = norms(`${layer}.residuals.2.norm`, x);
  x = add(x, mapped.map((v) => feed(`${layer}.feed_forward`, v)));
  const last = normalise("decoder.norm", x[x.length - 1]);
  return { maps: found.maps.map((m) => m[m.length - 1]), logits: linear("output", last) };
}
function write(ids, start) {
  const memory = encode(ids);
  const tokens = [start], steps = [];
  for (let i = 1; i < ids.length; i += 1) {
    const { maps, logits } = decode(tokens, memory);
    const chances = softmax(logits);
    const token = chances.indexOf(Math.max(...chances));
    const a = ids.map((_, j) => maps.reduce((sum, m) => sum + m[j], 0) / maps.length);
    tokens.push(token);
    steps.push({ token, a, chance: chances[token] });
  }
  return steps;
}

const text = [...state.letters];
const strange = text.filter((symbol) => data.letters.indexOf(symbol) < 1);
if (!text.length || strange.length) {
  const svg = view.svg(320, 30, "nothing to copy");
  view.add(svg, "text", { x: 0, y: 20, text: "–" });
  return {
    values: { output: "", strange: strange[0] || "" },
    says: text.length ? `The model has no symbol “${strange[0]}”: only a to j.`
      : "Type some letters from a to j.",
  };
}
const ids = [data.start, ...text.map((symbol) => data.letters.indexOf(symbol))];
const steps = view.once(`${state.letters}|${state.first}`, () =>
  write(ids, data.letters.indexOf(state.first)));
const output = steps.map((step) => data.letters[step.token]).join("");
const right = steps.filter((step, i) => step.token === ids[i + 1]).length;

const left = 62, top = 46, n = ids.length;
const size = Math.max(14, Math.min(27, Math.floor((view.width() - left - 4) / n)));
const svg = view.svg(Math.max(left + size * n + 4, 290), top + size * steps.length + 10,
  `attention of ${steps.length} steps to ${n} places of the source`);
view.add(svg, "text", { x: 0, y: 14, text: "source read →" });
view.add(svg, "text", { x: 0, y: 36, text: "written" });
ids.forEach((id, j) => view.add(svg, "text", {
  x: left + size * (j + 0.5), y: top - 8, "text-anchor": "middle", class: "code",
  text: data.letters[id],
}));
steps.forEach((step, i) => {
  const y = top + size * i, good = step.token === ids[i + 1];
  const name = data.letters[step.token];
  view.add(svg, "text", {
    x: left - 10, y: y + size / 2 + 5, "text-anchor": "end",
    class: good ? "code" : "code strong", text: good ? name : `✗ ${name}`,
  });
  step.a.forEach((weight, j) => {
    const here = j === i + 1;
    view.add(svg, "rect", {
      x: left + size * j + 2, y: y + 2, width: size - 4, height: size - 4,
      fill: "var(--accent)", "fill-opacity": weight.toFixed(3),
      stroke: here ? "var(--second)" : "currentColor",
      "stroke-width": here ? 2.5 : 1, "stroke-opacity": here ? 1 : 0.15,
    });
  });
});
const surest = Math.min(...steps.map((step) => step.chance));
return {
  values: { output, right, first: steps[0].a, last: steps[steps.length - 1].a, surest },
  says: `Reads ${text.join("")} and writes ${output}: ${right} of ${steps.length} symbols `
    + `are right. The least sure of all symbols written had a probability of ${surest.toFixed(2)}.`,
};
