// The packed models of chapter 19 in the reader's browser, to be put before an explorer's
// script: refiner(packed, numbers) writes as `mask_predict` and `diffusion_sample` do, or,
// where the model has no lengths, symbol by symbol as `cached_greedy_decode` does. Pre-norm.
function refiner(packed, numbers) {
  const { plus, range, softmax, sum } = numbers, { config } = packed;
  const weights = numbers.unpackModel(packed), START = 1, END = 2;
  const size = config.target_vocab, mask = weights["length.weight"] ? size - 1 : null;
  const linear = (name, x) => numbers.linear(weights, name, x);
  const normalise = (name, x) => numbers.normalise(weights, name, x, config.norm_epsilon);
  const embed = (table, id, place) => numbers.embed(weights, table, id, place);
  const attend = (name, ...read) => numbers.attend(weights, name, config.heads, ...read);

  // The source is read once: its states, and the keys and values that each layer asks.
  function readSource(ids) {
    const xs = ids.map((id, place) => embed("source_embedding", id, place));
    const { states } = numbers.encode(weights, config, xs);
    const asked = range(config.layers).map((l) => ["key", "value"].map((part) =>
      states.map((x) => linear(`decoder.layers.${l}.cross_attention.${part}_map`, x))));
    return { states, asked };
  }
  // Logits at new places, which see each other and what was kept of those before.
  function decode(source, ids, past = []) {
    let xs = ids.map((id, i) => embed("target_embedding", id, past.length + i));
    const kept = ids.map(() => []);
    for (let l = 0; l < config.layers; l += 1) {
      const layer = `decoder.layers.${l}`, self = `${layer}.attention`, cross = `${layer}.cross_attention`;
      const read = xs.map((x) => normalise(`${layer}.residuals.0.norm`, x));
      read.forEach((x, i) => kept[i].push(["key", "value"].map((part) => linear(`${self}.${part}_map`, x))));
      const [keys, values] = [0, 1].map((side) => [...past, ...kept].map((place) => place[l][side]));
      xs = xs.map((x, i) => plus(x, attend(self, linear(`${self}.query_map`, read[i]), keys, values).found))
        .map((x) => {
          const query = linear(`${cross}.query_map`, normalise(`${layer}.residuals.1.norm`, x));
          return plus(x, attend(cross, query, ...source.asked[l]).found);
        })
        .map((x) => numbers.feedForward(weights, layer, 2, x));
    }
    const logits = xs.map((x) => [...linear("output", normalise("decoder.norm", x))]
      .map((z, id) => (mask !== null && (id === mask || id === config.pad) ? -Infinity : z)));
    return { logits, past: [...past, ...kept] };
  }
  // The chance of each length from 0 on.
  function lengths({ states }) {
    const total = states.reduce(plus), scores = [...linear("length", total)];
    const first = config.max_len - states.length;
    return softmax(range(config.max_len + 1).map((n) => (n ? scores[n + first] : -Infinity)));
  }
  const likeliest = (chances, count) => range(chances.length)
    .sort((i, j) => chances[j] - chances[i] || i - j).slice(0, count);
  // Of some places, those with the largest scores.
  const largest = (scores, count, among) => new Set(among
    .slice().sort((i, j) => scores[j] - scores[i] || i - j).slice(0, Math.max(0, count)));

  // A round: { read, written, chances }, ids before and after it, and the chances of all
  // symbols at the places that were masked.
  function maskPredict(source, length, rounds) {
    let written = range(length).map(() => mask);
    const sure = range(length).map(() => -Infinity), done = [];
    for (let r = 0; r < rounds; r += 1) {
      const again = largest(sure.map((x) => -x), Math.floor((length * (rounds - r)) / rounds), range(length));
      if (!again.size) break;
      const read = written.map((id, i) => (again.has(i) ? mask : id));
      const chances = decode(source, read).logits.map((row, i) => (again.has(i) ? softmax(row) : null));
      written = read.map((id, i) => (again.has(i) ? numbers.argmax(chances[i]) : id));
      again.forEach((i) => { sure[i] = Math.log(chances[i][written[i]]); });
      done.push({ read, written, chances });
    }
    return { written, score: sum(sure) / length, rounds: done };
  }
  // The likeliest symbols, in an order: "surest", "blocks" of a width, or "random", where
  // `random()` draws the places.
  function diffuse(source, length, rounds, order, { block = 1, random = Math.random } = {}) {
    let written = range(length).map(() => mask);
    const done = [];
    for (let r = 1; r <= rounds; r += 1) {
      const masked = range(length).filter((i) => written[i] === mask);
      const count = Math.ceil((length * r) / rounds) - (length - masked.length);
      if (count <= 0) continue;
      const read = written, logits = decode(source, read).logits;
      const chances = logits.map((row, i) => (read[i] === mask ? softmax(row) : null));
      const first = chances.map((row, i) => (!row ? -Infinity : order === "random" ? random()
        : Math.max(...row) - (order === "blocks" ? 2 * Math.floor(i / block) : 0)));
      const chosen = largest(first, count, masked);
      written = read.map((id, i) => (chosen.has(i) ? numbers.argmax(chances[i]) : id));
      done.push({ read, written, chances });
    }
    return { written, rounds: done };
  }
  // Symbol by symbol: a step is { id, chances }, the end symbol's the last.
  function greedy(source, most) {
    const steps = [];
    let id = START, past = [];
    while (id !== END && steps.length < most) {
      const read = decode(source, [id], past), chances = softmax(read.logits[0]);
      past = read.past;
      id = numbers.argmax(chances);
      steps.push({ id, chances });
    }
    return steps;
  }
  return { config, mask, readSource, decode, lengths, likeliest, maskPredict, diffuse, greedy };
}
