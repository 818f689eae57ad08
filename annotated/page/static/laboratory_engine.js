// A Transformer that learns in the reader's browser. Read it from top to bottom: random
// numbers and matrix products, operations with their backward passes, the model, the
// tasks, training, and the messages by which a page speaks with it.
//
// It knows no page. `laboratory.js` runs it in a Worker made from this function's own
// text, which works from a disk as well. Parameters bear the names that they have in
// annotated/transformer.py, so that tests compare all of them with PyTorch.
//
// A seed gives the same run on every machine: training uses + − × ÷ and √ alone, which
// every processor rounds alike. Browsers differ in the last digit of Math.exp and
// Math.sin, and a few hundred steps make a visible difference of that.
function laboratoryEngine() {
  "use strict";

  // ---- Numbers ------------------------------------------------------------------

  // Numbers from 0 to 1 that a seed repeats (mulberry32), and what is made of them.
  class Random {
    constructor(seed) { this.state = Math.imul(seed + 1, 0x9e3779b1); }

    uniform() {
      this.state = (this.state + 0x6d2b79f5) | 0;
      let z = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
      z ^= z + Math.imul(z ^ (z >>> 7), 61 | z);
      return ((z ^ (z >>> 14)) >>> 0) / 2 ** 32;
    }

    below(n) { return Math.floor(this.uniform() * n); }

    // The sum of twelve has variance 1, and is as good as normal for a beginning.
    normal() {
      let sum = -6;
      for (let i = 0; i < 12; i += 1) sum += this.uniform();
      return sum;
    }
  }

  // e^x = 2^n · e^r with a remainder r of at most ln 2 / 2, whose series ends early.
  function exp(x) {
    if (x < -700) return 0;
    if (!(x < 700)) return x > 0 ? Infinity : NaN;
    const n = Math.round(x * 1.4426950408889634);
    const r = x - n * 0.6931471803691238 - n * 1.9082149292705877e-10; // ln 2 in two parts
    let sum = 1 / 479001600; // 12!
    for (let i = 11; i >= 0; i -= 1) sum = sum * r + SERIES[i];
    return sum * POWERS[n + 1024];
  }
  const SERIES = [1, 1];
  for (let i = 2; i < 12; i += 1) SERIES[i] = SERIES[i - 1] / i;
  const POWERS = new Float64Array(2048);
  POWERS[1024] = 1;
  for (let n = 1; n < 1024; n += 1) {
    POWERS[1024 + n] = 2 * POWERS[1023 + n];
    POWERS[1024 - n] = POWERS[1025 - n] / 2;
  }

  // Cosines and sines of t · 10000^(−2i / width), (length, width / 2) each: the angle of
  // position 1 by its series, every further position by one turn more.
  function turns(length, width) {
    const pairs = width / 2;
    const cosine = new Float64Array(length * pairs).fill(1);
    const sine = new Float64Array(length * pairs);
    for (let i = 0; i < pairs; i += 1) {
      const angle = exp((-2 * i * 9.210340371976184) / width); // ln 10000
      let c = 0, s = 0;
      for (let n = 20; n > 0; n -= 2) {
        c = (1 - c) * ((angle * angle) / (n * (n - 1)));
        s = (1 - s) * ((angle * angle) / (n * (n + 1)));
      }
      c = 1 - c;
      s = angle * (1 - s);
      for (let at = pairs + i; at < length * pairs; at += pairs) {
        cosine[at] = cosine[at - pairs] * c - sine[at - pairs] * s;
        sine[at] = sine[at - pairs] * c + cosine[at - pairs] * s;
      }
    }
    return { cosine, sine, pairs };
  }

  // C += A B, with A of (m, k), B of (k, n) and C of (m, n). How far it is to the next
  // row and column of A and B is an argument, so that transposes need no copy. Eight
  // sums at a time stay in registers: several times as fast as one sum after another.
  function addProduct(C, A, B, m, n, k, rowA, columnA, rowB, columnB) {
    const evenM = m - (m % 2), evenN = n - (n % 4);
    for (let i = 0; i < evenM; i += 2) {
      for (let j = 0; j < evenN; j += 4) {
        let s0 = 0, s1 = 0, s2 = 0, s3 = 0, t0 = 0, t1 = 0, t2 = 0, t3 = 0;
        for (let l = 0, p = i * rowA, q = j * columnB; l < k; l += 1, p += columnA, q += rowB) {
          const a = A[p], b = A[p + rowA];
          const x0 = B[q], x1 = B[q + columnB], x2 = B[q + 2 * columnB], x3 = B[q + 3 * columnB];
          s0 += a * x0; s1 += a * x1; s2 += a * x2; s3 += a * x3;
          t0 += b * x0; t1 += b * x1; t2 += b * x2; t3 += b * x3;
        }
        const upper = i * n + j, lower = upper + n;
        C[upper] += s0; C[upper + 1] += s1; C[upper + 2] += s2; C[upper + 3] += s3;
        C[lower] += t0; C[lower + 1] += t1; C[lower + 2] += t2; C[lower + 3] += t3;
      }
    }
    for (let i = 0; i < m; i += 1) { // the columns and the row that are left over
      for (let j = i < evenM ? evenN : 0; j < n; j += 1) {
        let sum = 0;
        for (let l = 0, p = i * rowA, q = j * columnB; l < k; l += 1, p += columnA, q += rowB) {
          sum += A[p] * B[q];
        }
        C[i * n + j] += sum;
      }
    }
  }

  // A matrix, and the gradient of the loss with respect to each of its numbers.
  class Matrix {
    constructor(rows, columns, value, grad) {
      this.rows = rows;
      this.columns = columns;
      this.value = value || new Float64Array(rows * columns);
      this.grad = grad || new Float64Array(rows * columns);
    }
  }

  // ---- Operations ---------------------------------------------------------------
  // A network is a list of operations, made once and run at every step. Each has a
  // forward pass, which fills its output, and a backward pass, which adds to the
  // gradients of what it has read. A row of a matrix is one position of one sequence.

  class Network {
    constructor() {
      this.operations = [];
      this.outputs = [];
    }

    output(rows, columns) {
      const made = new Matrix(rows, columns);
      this.outputs.push(made);
      return made;
    }

    add(forward, backward) { this.operations.push({ forward, backward }); }

    forward(from = 0) {
      for (let i = from; i < this.operations.length; i += 1) this.operations[i].forward();
    }

    backward() {
      for (const { grad } of this.outputs) grad.fill(0);
      for (let i = this.operations.length - 1; i >= 0; i -= 1) this.operations[i].backward();
    }

    // Rows of a table, chosen by ids, times √d.
    embedding(ids, table) {
      const d = table.columns, factor = Math.sqrt(d), out = this.output(ids.length, d);
      this.add(() => {
        for (let i = 0; i < out.value.length; i += 1) {
          out.value[i] = factor * table.value[ids[(i / d) | 0] * d + (i % d)];
        }
      }, () => {
        for (let i = 0; i < out.value.length; i += 1) {
          table.grad[ids[(i / d) | 0] * d + (i % d)] += factor * out.grad[i];
        }
      });
      return out;
    }

    // x plus the first rows of a table, over again for each sequence of a length.
    addPositions(x, table, length) {
      const out = this.output(x.rows, x.columns), size = length * x.columns;
      this.add(() => {
        for (let i = 0; i < x.value.length; i += 1) out.value[i] = x.value[i] + table.value[i % size];
      }, () => {
        for (let i = 0; i < x.value.length; i += 1) {
          x.grad[i] += out.grad[i];
          table.grad[i % size] += out.grad[i];
        }
      });
      return out;
    }

    // x Wᵀ + b, with W of (out, in) as in PyTorch.
    linear(x, weight, bias) {
      const m = x.rows, n = weight.rows, k = weight.columns, out = this.output(m, n);
      this.add(() => {
        out.value.fill(0);
        if (bias) for (let i = 0; i < m; i += 1) out.value.set(bias.value, i * n);
        addProduct(out.value, x.value, weight.value, m, n, k, k, 1, 1, k);
      }, () => {
        addProduct(x.grad, out.grad, weight.value, m, k, n, n, 1, k, 1);
        addProduct(weight.grad, out.grad, x.value, n, k, m, 1, n, k, 1);
        if (bias) for (let i = 0; i < m * n; i += 1) bias.grad[i % n] += out.grad[i];
      });
      return out;
    }

    relu(x) {
      const out = this.output(x.rows, x.columns);
      this.add(() => {
        for (let i = 0; i < x.value.length; i += 1) out.value[i] = x.value[i] > 0 ? x.value[i] : 0;
      }, () => {
        for (let i = 0; i < x.value.length; i += 1) if (x.value[i] > 0) x.grad[i] += out.grad[i];
      });
      return out;
    }

    sum(x, y) {
      const out = this.output(x.rows, x.columns);
      this.add(() => {
        for (let i = 0; i < x.value.length; i += 1) out.value[i] = x.value[i] + y.value[i];
      }, () => {
        for (let i = 0; i < x.value.length; i += 1) {
          x.grad[i] += out.grad[i];
          y.grad[i] += out.grad[i];
        }
      });
      return out;
    }

    // Each row with mean 0 and variance 1, then a gain and a bias.
    layerNorm(x, gain, bias) {
      const d = x.columns, out = this.output(x.rows, d);
      const normal = new Float64Array(x.rows * d), inverse = new Float64Array(x.rows);
      this.add(() => {
        for (let r = 0, start = 0; r < x.rows; r += 1, start += d) {
          let mean = 0, variance = 0;
          for (let c = start; c < start + d; c += 1) mean += x.value[c] / d;
          for (let c = start; c < start + d; c += 1) variance += (x.value[c] - mean) ** 2 / d;
          inverse[r] = 1 / Math.sqrt(variance + 1e-5);
          for (let c = 0, at = start; c < d; c += 1, at += 1) {
            normal[at] = (x.value[at] - mean) * inverse[r];
            out.value[at] = gain.value[c] * normal[at] + bias.value[c];
          }
        }
      }, () => {
        for (let r = 0, start = 0; r < x.rows; r += 1, start += d) {
          let mean = 0, slope = 0; // of the gradient: its mean, and its part along the row
          for (let c = 0, at = start; c < d; c += 1, at += 1) {
            const g = out.grad[at] * gain.value[c];
            mean += g / d;
            slope += (g * normal[at]) / d;
            gain.grad[c] += out.grad[at] * normal[at];
            bias.grad[c] += out.grad[at];
          }
          for (let c = 0, at = start; c < d; c += 1, at += 1) {
            const g = out.grad[at] * gain.value[c];
            x.grad[at] += inverse[r] * (g - mean - slope * normal[at]);
          }
        }
      });
      return out;
    }

    // Rotary positions: each pair of numbers of a head turns with its position. The
    // gradient turns back.
    rotate(x, length, heads) {
      const out = this.output(x.rows, x.columns), d = x.columns;
      const { cosine, sine, pairs } = turns(length, d / heads);
      this.add(() => {
        for (let i = 0; i < x.value.length; i += 2) {
          const at = (((i / d) | 0) % length) * pairs + ((i % d) / 2) % pairs;
          out.value[i] = cosine[at] * x.value[i] - sine[at] * x.value[i + 1];
          out.value[i + 1] = sine[at] * x.value[i] + cosine[at] * x.value[i + 1];
        }
      }, () => {
        for (let i = 0; i < x.value.length; i += 2) {
          const at = (((i / d) | 0) % length) * pairs + ((i % d) / 2) % pairs;
          x.grad[i] += cosine[at] * out.grad[i] + sine[at] * out.grad[i + 1];
          x.grad[i + 1] += cosine[at] * out.grad[i + 1] - sine[at] * out.grad[i];
        }
      });
      return out;
    }

    // softmax(q kᵀ · scale) v in each head. Queries are t positions of each sequence,
    // keys and values are s; visible(b, i) of them are seen, from the first one on, by
    // query i of sequence b. The weights, (b, h, t, s), stay for the pictures.
    attention(q, k, v, { t, s, heads, scale, visible }) {
      const d = q.columns, width = d / heads, batch = q.rows / t;
      const out = this.output(q.rows, d);
      const weights = out.weights = new Float64Array(batch * heads * t * s);
      const slopes = new Float64Array(s);
      const each = (visit) => {
        for (let b = 0; b < batch; b += 1) {
          for (let h = 0; h < heads; h += 1) {
            for (let i = 0; i < t; i += 1) {
              visit((b * t + i) * d + h * width, b * s * d + h * width,
                ((b * heads + h) * t + i) * s, visible(b, i));
            }
          }
        }
      };
      // query: where this head's query begins; keys: where its first key does, d
      // numbers before the next; row: where its weights begin; n: how many are seen
      this.add(() => each((query, keys, row, n) => {
        let largest = -Infinity, total = 0;
        for (let j = 0, key = keys; j < n; j += 1, key += d) {
          let score = 0;
          for (let c = 0; c < width; c += 1) score += q.value[query + c] * k.value[key + c];
          weights[row + j] = scale * score;
          if (scale * score > largest) largest = scale * score;
        }
        for (let j = row; j < row + n; j += 1) {
          weights[j] = exp(weights[j] - largest);
          total += weights[j];
        }
        weights.fill(0, row + n, row + s);
        out.value.fill(0, query, query + width);
        for (let j = 0, key = keys; j < n; j += 1, key += d) {
          weights[row + j] /= total;
          const weight = weights[row + j];
          for (let c = 0; c < width; c += 1) out.value[query + c] += weight * v.value[key + c];
        }
      }), () => each((query, keys, row, n) => {
        let mean = 0;
        for (let j = 0, key = keys; j < n; j += 1, key += d) {
          const weight = weights[row + j];
          let slope = 0;
          for (let c = 0; c < width; c += 1) {
            slope += out.grad[query + c] * v.value[key + c];
            v.grad[key + c] += weight * out.grad[query + c];
          }
          slopes[j] = slope;
          mean += weight * slope;
        }
        for (let j = 0, key = keys; j < n; j += 1, key += d) {
          const g = scale * weights[row + j] * (slopes[j] - mean); // of the score
          for (let c = 0; c < width; c += 1) {
            q.grad[query + c] += g * k.value[key + c];
            k.grad[key + c] += g * q.value[query + c];
          }
        }
      }));
      return out;
    }

    // How far the predictions are from the labels, in nats per label; PAD counts for
    // nothing. With smoothing ε the right symbol shall get 1 − ε, the others but PAD
    // share ε, and the loss is the divergence from that (annotated.training).
    loss(logits, labels, smoothing) {
      const v = logits.columns, slopes = new Float64Array(logits.rows * v);
      const share = smoothing / (v - 2);
      const least = smoothing ? (1 - smoothing) * Math.log(1 - smoothing)
        + smoothing * Math.log(share) : 0;
      const result = { loss: 0, count: 0, right: 0, guesses: new Int32Array(logits.rows) };
      this.add(() => {
        result.loss = result.count = result.right = 0;
        slopes.fill(0);
        for (let r = 0, at = 0; r < logits.rows; r += 1, at += v) {
          let best = END, largest = -Infinity, total = 0; // it never writes PAD or START
          for (let c = 0; c < v; c += 1) {
            if (logits.value[at + c] > largest) largest = logits.value[at + c];
            if (c > END && logits.value[at + c] > logits.value[at + best]) best = c;
          }
          result.guesses[r] = best;
          if (labels[r] === PAD) continue;
          for (let c = 0; c < v; c += 1) {
            slopes[at + c] = exp(logits.value[at + c] - largest);
            total += slopes[at + c];
          }
          const normaliser = largest + Math.log(total);
          result.loss += least;
          for (let c = 0; c < v; c += 1) {
            const wanted = c === labels[r] ? 1 - smoothing : c === PAD ? 0 : share;
            if (wanted) result.loss += wanted * (normaliser - logits.value[at + c]);
            slopes[at + c] = slopes[at + c] / total - wanted;
          }
          result.count += 1;
          result.right += best === labels[r];
        }
        result.loss /= result.count;
      }, () => {
        for (let i = 0; i < slopes.length; i += 1) logits.grad[i] += slopes[i] / result.count;
      });
      return result;
    }
  }

  // ---- Tasks --------------------------------------------------------------------

  const PAD = 0, START = 1, END = 2, LETTERS = 3; // the first letter has id 3
  const TASKS = {
    copy: (word) => [...word],
    reverse: (word) => [...word].reverse(),
    sort: (word) => [...word].sort((a, b) => a - b),
  };
  const spell = (ids) => ids.map((id) => String.fromCharCode(97 + id - LETTERS)).join("");
  const idsOf = (text) => [...text].map((letter) => letter.charCodeAt(0) - 97 + LETTERS);

  // ---- Model --------------------------------------------------------------------

  class Transformer {
    constructor(settings) {
      const s = this.settings = settings;
      this.alone = s.model === "decoder"; // source and target are one sequence
      this.sourceLength = s.longest + 1; // letters, END
      this.targetLength = s.longest + 1; // START, letters: the labels are letters, END
      if (this.alone) this.targetLength += this.sourceLength;
      this.vocabulary = LETTERS + s.letters;
      this.declare();
    }

    // All parameters lie in one array, their gradients and Adam's two means in others.
    declare() {
      const { width: d, inner, layers, positions, norm: order, seed } = this.settings;
      const shapes = [], random = new Random(seed);
      const add = (name, rows, columns, start) => shapes.push({ name, rows, columns, start });
      const linear = (name, rows, columns, bias = true) => {
        const bound = Math.sqrt(6 / (rows + columns)); // Glorot and Bengio (2010)
        add(`${name}.weight`, rows, columns, () => bound * (2 * random.uniform() - 1));
        const small = 1 / Math.sqrt(columns);
        if (bias) add(`${name}.bias`, 1, rows, () => small * (2 * random.uniform() - 1));
      };
      const norm = (name) => {
        add(`${name}.norm.weight`, 1, d, () => 1);
        add(`${name}.norm.bias`, 1, d, () => 0);
      };
      const stacks = this.alone ? ["decoder"] : ["encoder", "decoder"];
      for (const side of this.alone ? ["target"] : ["source", "target"]) {
        add(`${side}_embedding.weight`, this.vocabulary, d, () => random.normal() / Math.sqrt(d));
      }
      if (positions === "learned") add("positions.table", this.targetLength, d, () => 0.02 * random.normal());
      for (const stack of stacks) {
        for (let l = 0; l < layers; l += 1) {
          this.sublayers(stack).forEach((part, i) => {
            const layer = `${stack}.layers.${l}`;
            if (part === "feed_forward") {
              linear(`${layer}.${part}.inner`, inner, d);
              linear(`${layer}.${part}.outer`, d, inner);
            } else {
              for (const map of ["query", "key", "value", "output"]) linear(`${layer}.${part}.${map}_map`, d, d);
            }
            if (order !== "none") norm(`${layer}.residuals.${i}`);
          });
        }
        if (order === "pre") norm(stack);
      }
      linear("output", this.vocabulary, d, false);

      const size = shapes.reduce((total, { rows, columns }) => total + rows * columns, 0);
      for (const part of ["value", "grad", "mean", "square"]) this[part] = new Float64Array(size);
      this.parameters = {};
      let from = 0;
      for (const { name, rows, columns, start } of shapes) {
        const to = from + rows * columns;
        for (let i = from; i < to; i += 1) this.value[i] = start();
        this.parameters[name] = new Matrix(rows, columns,
          this.value.subarray(from, to), this.grad.subarray(from, to));
        from = to;
      }
    }

    sublayers(stack) {
      const parts = ["attention"];
      if (stack === "decoder" && !this.alone) parts.push("cross_attention");
      if (this.settings.feed_forward) parts.push("feed_forward");
      return parts;
    }

    // A network for so many sequences at once: places for their ids and lengths,
    // the operations, and the results.
    network(batch) {
      const { settings, parameters: p, sourceLength, targetLength } = this;
      const { width: d, heads, layers, norm: order } = settings;
      const net = new Network(), maps = {};
      const side = (length) => ({ ids: new Int32Array(batch * length), lengths: new Int32Array(batch) });
      const source = side(sourceLength), target = side(targetLength);
      const labels = new Int32Array(batch * targetLength);

      const linear = (x, name) => net.linear(x, p[`${name}.weight`], p[`${name}.bias`]);
      const norm = (x, name) => net.layerNorm(x, p[`${name}.norm.weight`], p[`${name}.norm.bias`]);
      const visibleSource = (b) => source.lengths[b];
      const visibleTarget = settings.causal ? (b, i) => Math.min(i + 1, target.lengths[b])
        : (b) => target.lengths[b];

      const attend = (name, x, t, memory, s, visible) => {
        let q = linear(x, `${name}.query_map`), k = linear(memory, `${name}.key_map`);
        const v = linear(memory, `${name}.value_map`);
        if (settings.positions === "rotary" && x === memory) {
          q = net.rotate(q, t, heads);
          k = net.rotate(k, s, heads);
        }
        const scale = settings.scaled ? 1 / Math.sqrt(d / heads) : 1;
        const mixed = net.attention(q, k, v, { t, s, heads, scale, visible });
        maps[name] = { name, heads, rows: t, columns: s, weights: mixed.weights };
        return linear(mixed, `${name}.output_map`);
      };

      const stack = (name, x, length, visible, memory) => {
        for (let l = 0; l < layers; l += 1) {
          this.sublayers(name).forEach((part, i) => {
            const layer = `${name}.layers.${l}`, residual = `${layer}.residuals.${i}`;
            const read = order === "pre" ? norm(x, residual) : x;
            let found;
            if (part === "attention") {
              found = attend(`${layer}.attention`, read, length, read, length, visible);
            } else if (part === "cross_attention") {
              found = attend(`${layer}.${part}`, read, length, memory, sourceLength, visibleSource);
            } else {
              const hidden = net.relu(linear(read, `${layer}.${part}.inner`));
              found = linear(hidden, `${layer}.${part}.outer`);
            }
            x = settings.residual ? net.sum(x, found) : found;
            if (order === "post") x = norm(x, residual);
          });
        }
        return order === "pre" ? norm(x, name) : x;
      };

      const table = this.positionTable();
      const embed = (name, ids, length) => {
        const x = net.embedding(ids, p[`${name}_embedding.weight`]);
        return table ? net.addPositions(x, table, length) : x;
      };
      let memory;
      if (!this.alone) {
        memory = stack("encoder", embed("source", source.ids, sourceLength), sourceLength, visibleSource);
      }
      const decoder = net.operations.length; // where it begins
      const x = stack("decoder", embed("target", target.ids, targetLength), targetLength, visibleTarget, memory);
      const logits = linear(x, "output");
      const result = net.loss(logits, labels, settings.smoothing);
      return { net, batch, source, target, labels, logits, result, maps, decoder };
    }

    positionTable() {
      const { positions, width: d } = this.settings, length = this.targetLength;
      if (positions === "learned") return this.parameters["positions.table"];
      if (positions !== "sinusoidal") return null;
      const table = new Matrix(length, d), { cosine, sine } = turns(length, d);
      for (let i = 0; i < cosine.length; i += 1) {
        table.value[2 * i] = sine[i];
        table.value[2 * i + 1] = cosine[i];
      }
      return table;
    }

    // Put a word into row b, with the answer, or with what is written of it so far.
    fill({ source, target, labels }, b, word, answer) {
      const read = [...word, END];
      const given = [START, ...answer], wanted = [...answer, END];
      const told = this.alone ? [...read, ...given] : given;
      if (this.alone) wanted.unshift(...read.map(() => PAD));
      const put = (ids, row, length) => {
        for (let i = 0; i < length; i += 1) ids[b * length + i] = i < row.length ? row[i] : PAD;
      };
      put(source.ids, read, this.sourceLength);
      put(target.ids, told, this.targetLength);
      put(labels, wanted, this.targetLength);
      source.lengths[b] = read.length;
      target.lengths[b] = told.length;
    }

    // Greedy decoding: each row is written symbol by symbol until END, or until it is as
    // long as an answer can be. Nothing that isn't written yet is there to be seen. After
    // each symbol `wrote` may look at what the network holds.
    write(network, words, wrote = () => {}) {
      const { net, target, result, decoder } = network, { longest } = this.settings;
      const written = words.map(() => []), open = new Set(words.keys());
      for (let step = 0; open.size; step += 1) {
        for (let b = 0; b < network.batch; b += 1) {
          this.fill(network, b, words[b % words.length], written[b % words.length]);
        }
        net.forward(step ? decoder : 0);
        wrote();
        for (const b of [...open]) {
          const next = result.guesses[b * this.targetLength + target.lengths[b] - 1];
          if (next !== END) written[b].push(next);
          if (next === END || written[b].length === longest) open.delete(b);
        }
      }
      return written;
    }
  }

  // ---- Training -----------------------------------------------------------------

  const BETA1 = 0.9, BETA2 = 0.98, EPSILON = 1e-9; // Vaswani et al. (2017), section 5.3

  class Training {
    constructor(settings) {
      this.settings = settings;
      this.model = new Transformer(settings);
      this.network = this.model.network(settings.batch);
      this.random = new Random(settings.seed + 1e6);
      this.step = 0;
      this.power1 = this.power2 = 1;
    }

    word(random) {
      const { shortest, longest, letters } = this.settings;
      const length = shortest + random.below(longest - shortest + 1);
      return Array.from({ length }, () => LETTERS + random.below(letters));
    }

    // Straight up to its peak in the warm-up, then down as 1/√step. Without warm-up it
    // begins at the peak, and falls in the same way.
    rate(step) {
      const { rate, warmup, hold } = this.settings;
      if (step < hold) return warmup ? (rate * step) / hold : rate;
      return rate * Math.sqrt(hold / step);
    }

    // One step of Adam on words that were never drawn before.
    train() {
      const { model, network, settings } = this;
      for (let b = 0; b < settings.batch; b += 1) {
        const word = this.word(this.random);
        model.fill(network, b, word, TASKS[settings.task](word));
      }
      model.grad.fill(0);
      network.net.forward();
      network.net.backward();
      this.step += 1;
      this.adam(this.rate(this.step));
      const { loss, right, count } = network.result;
      return { loss, right: right / count };
    }

    adam(rate) {
      const { value, grad, mean, square } = this.model;
      this.power1 *= BETA1;
      this.power2 *= BETA2;
      for (let i = 0; i < value.length; i += 1) {
        mean[i] = BETA1 * mean[i] + (1 - BETA1) * grad[i];
        square[i] = BETA2 * square[i] + (1 - BETA2) * grad[i] * grad[i];
        const size = Math.sqrt(square[i] / (1 - this.power2)) + EPSILON;
        value[i] -= (rate * mean[i]) / (1 - this.power1) / size;
      }
    }

    // How many of so many words, drawn by a seed of their own, the model writes exactly.
    // Under a causal mask, one pass over the right answers tells: a word is written
    // exactly if and only if each symbol is the likeliest after the right ones before.
    // Without that mask an answer must not be shown, and every word has to be written.
    exact(count, seed) {
      const { model, network, settings } = this, random = new Random(seed);
      const { result, labels, net } = network, t = model.targetLength;
      let right = 0;
      this.failed = []; // some of those that it got wrong
      for (let done = 0; done < count; done += settings.batch) {
        const words = Array.from({ length: Math.min(settings.batch, count - done) }, () => this.word(random));
        const answers = words.map(TASKS[settings.task]);
        if (settings.causal) {
          for (let b = 0; b < settings.batch; b += 1) {
            model.fill(network, b, words[b % words.length], answers[b % words.length]);
          }
          net.forward();
          right += words.filter((word, b) => {
            for (let i = b * t; i < (b + 1) * t; i += 1) {
              if (labels[i] !== PAD && labels[i] !== result.guesses[i]) return this.fails(word);
            }
            return true;
          }).length;
        } else {
          right += model.write(network, words).filter((ids, b) => spell(ids) === spell(answers[b]) || this.fails(words[b])).length;
        }
      }
      return right / count;
    }

    fails(word) {
      if (this.failed.length < 20) this.failed.push(spell(word));
      return false;
    }

    // What the model writes for a text by itself, and where each head looked for each
    // symbol, at the moment when it was written. Without a causal mask that is another
    // thing than in training, where the whole answer is in sight: `training` has that. With
    // a `value` the parameters are for once those.
    look(text, value = null) {
      const { model, settings } = this, now = value && Float64Array.from(model.value);
      if (value) model.value.set(value);
      this.single ||= model.network(1);
      const { net, target, maps } = this.single, every = Object.values(maps);
      const word = idsOf(text), answer = TASKS[settings.task](word);
      const copied = () => every.map((map) => ({ ...map, weights: Float32Array.from(map.weights) }));
      let seen = null;
      const [ids] = model.write(this.single, [word], () => {
        seen ||= copied();
        every.forEach(({ heads, rows, columns, weights }, m) => {
          for (let h = 0; h < heads; h += 1) {
            const at = (h * rows + target.lengths[0] - 1) * columns;
            seen[m].weights.set(weights.subarray(at, at + columns), at);
          }
        });
      });
      const told = (given) => ({ given: spell(given), length: target.lengths[0] });
      const look = { text, written: spell(ids), wanted: spell(answer), ...told(ids), maps: seen };
      if (!settings.causal) {
        model.fill(this.single, 0, word, answer);
        net.forward();
        look.training = { ...told(answer), maps: copied() };
      }
      if (value) model.value.set(now);
      return look;
    }
  }

  // ---- Messages -----------------------------------------------------------------
  // The page sends {train: id, settings, text}, {stop}, {pause}, {once}, {resume},
  // {greet: id, settings, text} for a model of which nothing is trained, and
  // {look: text, id, at}, of any model, as it was at one of the steps that were kept. It
  // gets {id, step, seconds, points, tests, look, kept, end, exam, words, failed}. A turn
  // of training lasts some 40 ms: no message is answered late.

  const TEST_EVERY = 25, TEST_WORDS = 64, PASS = 0.99;
  const KEPT = 1e6; // numbers of one run

  function serve(scope) {
    const again = new MessageChannel(); // setTimeout would wait
    const runs = new Map();
    let run = null, going = false, asked = false;
    again.port1.onmessage = () => {
      asked = false;
      if (going) turn();
    };
    function go() {
      if (!asked) again.port2.postMessage(null);
      going = asked = true;
    }

    function made(id, settings, text) {
      if (run && run.end === "untrained") runs.delete(run.id);
      const training = new Training(settings);
      run = { id, training, text, kept: [], seconds: 0, points: [], tests: [], sent: 0, end: null };
      run.words = settings.causal ? 1000 : 200; // which have to be written one by one
      runs.set(id, run);
    }

    function turn() {
      const began = performance.now();
      while (going && performance.now() - began < 40) step();
      run.seconds += (performance.now() - began) / 1000;
      if (!going || performance.now() - run.sent > 100) report();
      if (going) go();
    }

    function step() {
      const { training } = run, { loss, right } = training.train();
      run.points.push([training.step, loss, right]);
      if (!Number.isFinite(loss)) return finish("diverged");
      if (training.step % TEST_EVERY === 0) {
        const exact = training.exact(TEST_WORDS, 1);
        run.tests.push([training.step, exact]);
        if (exact >= PASS && training.exact(run.words, 2) >= PASS) return finish("learned");
      }
      return training.step < training.settings.steps || finish("steps");
    }

    function finish(end) {
      going = false;
      run.end = end;
      if (end !== "diverged") run.exam = run.training.exact(run.words, 2);
      run.training.network = null; // it trains no more, and a batch takes much room
    }

    // The parameters as they are, to be looked at later. Where there are too many, every
    // other one goes.
    function keep() {
      const { training: { model, step } } = run, most = Math.max(8, KEPT / model.value.length);
      if (run.kept.length >= most) run.kept = run.kept.filter((_, i) => i % 2 === 0);
      run.kept.push([step, Float64Array.from(model.value)]);
    }

    function report(due = run.end || performance.now() - run.looked > 250) {
      const { id, training, seconds, points, tests, end, exam, words } = run;
      const whole = due && end !== "diverged";
      if (whole) {
        run.looked = performance.now();
        keep();
      }
      const look = whole ? training.look(run.text) : null, kept = run.kept.map(([step]) => step);
      scope.postMessage({ id, step: training.step, seconds, points, tests, look, kept, end, exam, words, failed: training.failed });
      run.points = [];
      run.tests = [];
      run.sent = performance.now();
    }

    scope.onmessage = ({ data }) => {
      if ("train" in data) {
        made(data.train, data.settings, data.text);
        report(true); // before the first step
        go();
      } else if ("greet" in data) {
        made(data.greet, data.settings, data.text);
        run.end = "untrained";
        keep();
        scope.postMessage({ id: run.id, look: run.training.look(data.text) });
      } else if ("look" in data) {
        const asked = runs.get(data.id), kept = asked.kept.find(([step]) => step === data.at);
        asked.text = data.look;
        const look = asked.training.look(data.look, kept && kept[1]);
        scope.postMessage({ id: data.id, at: data.at, look });
      } else if (data.once && !run.end) {
        step();
        report(true);
      } else if (data.stop && !run.end) {
        finish("stopped");
        report();
      } else if (data.pause && !run.end) {
        going = false;
        report(true); // where it stands
      } else if (data.resume && !run.end) go();
    };
  }

  return { Random, Transformer, Training, TASKS, PAD, START, END, LETTERS, exp, turns, spell, idsOf, serve };
}
