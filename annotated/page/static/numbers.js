// Arithmetic for the explorers, as PyTorch does it: a vector is an array, a matrix an
// array of rows. Nothing here is fast; what is computed in a page is small.
const numbers = (function () {
  const range = (n) => [...Array(n).keys()];
  const sum = (u) => u.reduce((total, x) => total + x, 0);
  const plus = (u, v) => u.map((x, i) => x + v[i]);
  function dot(u, v) {
    let total = 0;
    for (let i = 0; i < u.length; i += 1) total += u[i] * v[i];
    return total;
  }
  const norm = (u) => Math.sqrt(dot(u, u));
  const times = (matrix, v) => matrix.map((row) => dot(row, v));
  const argmax = (u) => u.indexOf(Math.max(...u));
  const sigmoid = (x) => 1 / (1 + Math.exp(-x));
  // The error function, by a series without a minus, so that no digits are lost; beyond 6
  // it is 1.
  function erf(x) {
    if (Math.abs(x) > 6) return Math.sign(x);
    let part = x, total = x;
    for (let n = 1; Math.abs(part) > 1e-17 * Math.abs(total); n += 1) {
      part *= (2 * x * x) / (2 * n + 1);
      total += part;
    }
    return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * total;
  }
  const activations = {
    relu: (x) => Math.max(0, x),
    gelu: (x) => (x * (1 + erf(x / Math.SQRT2))) / 2,
  };

  // A hidden key has the score -Infinity; a row that has no other gets zeros.
  function softmax(scores) {
    const top = Math.max(...scores);
    const powers = scores.map((score) => (top === -Infinity ? 0 : Math.exp(score - top)));
    const total = sum(powers);
    return powers.map((power) => (total ? power / total : 0));
  }
  // Chances at a temperature, of which top-p keeps the likeliest: they share the whole.
  function topP(logits, temperature, p) {
    const warm = softmax(logits.map((z) => z / temperature));
    const order = range(warm.length).sort((i, j) => warm[j] - warm[i] || i - j);
    const kept = new Set();
    let before = 0;
    for (const i of order) {
      if (before < p || p === 1) kept.add(i);
      before += warm[i];
    }
    const whole = sum(order.map((i) => (kept.has(i) ? warm[i] : 0)));
    return { chances: warm.map((q, i) => (kept.has(i) ? q / whole : 0)), order, kept };
  }
  function layerNorm(x, gain, bias, epsilon = 1e-5) {
    const mean = sum(x) / x.length;
    const variance = sum(x.map((z) => (z - mean) ** 2)) / x.length;
    return x.map((z, i) => (gain[i] * (z - mean)) / Math.sqrt(variance + epsilon) + bias[i]);
  }

  // What `pack` in frames.py packed: an array, of arrays where it has more axes.
  function unpack({ base64, scale, shape }) {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const whole = new DataView(bytes.buffer);
    const cut = ([length, ...inner], start) => {
      const size = inner.reduce((product, n) => product * n, 1);
      return range(length).map((i) => (inner.length ? cut(inner, start + i * size)
        : whole.getInt16(2 * (start + i), true) * scale));
    };
    return cut(shape, 0);
  }
  const unpackAll = (packed) => Object.fromEntries(
    Object.entries(packed).map(([name, tensor]) => [name, unpack(tensor)]));

  // What `packed.py` packed: parameters by their names. Matrices are 8-bit integers with a
  // scale for each row; vectors are as they were.
  function unpackModel(packed) {
    const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
    const whole = new Int8Array(bytes(packed.whole)), real = new DataView(bytes(packed.real));
    const weights = {};
    let at = 0, then = 0;
    for (const [name, [rows, columns]] of Object.entries(packed.shapes)) {
      const values = Float64Array.from(range(rows), (i) => real.getFloat32(4 * (then + i), true));
      then += rows;
      weights[name] = !columns ? values : range(rows).map((i) => {
        const row = Float64Array.from(whole.subarray(at, at + columns), (n) => n * values[i]);
        at += columns;
        return row;
      });
    }
    return weights;
  }
  // Parts of such a model: the vector of a symbol at a place, with sinusoids; the maps,
  // norms and networks of a name.
  function embed(weights, table, id, place) {
    const row = weights[`${table}.weight`][id], d = row.length;
    return row.map((x, i) => {
      const angle = place * 10000 ** (-(i - (i % 2)) / d);
      return x * Math.sqrt(d) + (i % 2 ? Math.cos(angle) : Math.sin(angle));
    });
  }
  function linear(weights, name, x) {
    const y = times(weights[`${name}.weight`], x), bias = weights[`${name}.bias`];
    return bias ? plus(y, bias) : y;
  }
  const normalise = (weights, name, x, epsilon) =>
    layerNorm(x, weights[`${name}.weight`], weights[`${name}.bias`], epsilon);
  // What one query finds among keys and values, and each head's weights.
  function attend(weights, name, heads, query, keys, values) {
    const width = query.length / heads, joined = new Float64Array(query.length);
    const maps = range(heads).map((h) => {
      const first = h * width, last = first + width;
      const map = softmax(keys.map((key) => {
        let score = 0;
        for (let c = first; c < last; c += 1) score += query[c] * key[c];
        return score / Math.sqrt(width);
      }));
      map.forEach((weight, j) => {
        for (let c = first; c < last; c += 1) joined[c] += weight * values[j][c];
      });
      return map;
    });
    return { maps, found: linear(weights, `${name}.output_map`, joined) };
  }
  function network(weights, layer, x, activation = "relu") {
    const inner = linear(weights, `${layer}.feed_forward.inner`, x).map(activations[activation]);
    return linear(weights, `${layer}.feed_forward.outer`, inner);
  }
  // x with what a layer's network adds in a pre-norm model; it reads by the norm of this number.
  const feedForward = (weights, layer, norm, x) =>
    plus(x, network(weights, layer, normalise(weights, `${layer}.residuals.${norm}.norm`, x)));
  // A whole encoder: its vectors, and the maps of its last layer by query and head.
  function encode(weights, { layers, heads, norm, activation, norm_epsilon: epsilon }, xs) {
    const normed = (name, x) => normalise(weights, name, x, epsilon);
    const pre = (name, x) => (norm === "pre" ? normed(name, x) : x);
    const post = (name, x) => (norm === "post" ? normed(name, x) : x);
    let maps = [];
    for (let l = 0; l < layers; l += 1) {
      const layer = `encoder.layers.${l}`, name = `${layer}.attention`;
      const [first, second] = [0, 1].map((i) => `${layer}.residuals.${i}.norm`);
      const read = xs.map((x) => pre(first, x));
      const [queries, keys, values] = ["query", "key", "value"].map((part) =>
        read.map((x) => linear(weights, `${name}.${part}_map`, x)));
      const looked = queries.map((query) => attend(weights, name, heads, query, keys, values));
      maps = looked.map((one) => one.maps);
      xs = xs.map((x, i) => post(first, plus(x, looked[i].found)))
        .map((x) => post(second, plus(x, network(weights, layer, pre(second, x), activation))));
    }
    return { states: xs.map((x) => pre("encoder.norm", x)), maps };
  }

  // Numbers for people: a minus that is as wide as a digit, and none before a zero.
  function fixed(x, digits) {
    const text = x.toFixed(digits);
    return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
  }
  // 3.1 · 10⁻⁴
  function scientific(x, digits) {
    const [mantissa, exponent] = x.toExponential(digits).split("e");
    const raised = [...exponent.replace("+", "")].map((letter) =>
      (letter === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[letter]));
    return `${mantissa} · 10${raised.join("")}`;
  }
  return {
    range, sum, plus, dot, norm, times, argmax, sigmoid, erf, activations, softmax, topP,
    layerNorm, unpack, unpackAll, unpackModel, embed, linear, normalise, attend, feedForward,
    encode, fixed, scientific,
  };
})();
