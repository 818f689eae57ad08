// Chapter 06: one token's residual stream in a trained decoder; body of
// function (state, data, view, numbers). Python gives the start of each stream, what each
// sublayer adds and the layer norms; sums, norms and readings are computed here.

const { argmax, fixed, layerNorm, norm, plus, softmax, times } = numbers;
const model = data.orders[state.order];
const pre = state.order === "pre-norm";
const place = data.places.indexOf(state.place);
const stage = data.stages.indexOf(state.stage);
const width = model.start[0].length;
const streams = [model.start[place]];
model.added.forEach((rows, j) => {
  const sum = plus(streams[j], rows[place]);
  streams.push(pre ? sum : layerNorm(sum, ...model.norms[j]));
});
// what the output layer would say if the stream ended here
const read = (x) => {
  const end = model.last.length ? layerNorm(x, ...model.last[0]) : x;
  return softmax(times(model.table, end));
};
const shares = streams.map(read);
const best = shares.map(argmax);
const says = best.map((i) => data.letters[i]);
const lengths = streams.map(norm);
const added = stage ? model.added[stage - 1][place] : Array(width).fill(0);

// Two rows of bars on top, then the table of stages, then the letters.
const narrow = view.width() < 560;
const wide = narrow ? 330 : 620;
const tableTop = 240, rowHigh = 24;
const lettersTop = tableTop + rowHigh * (data.stages.length + 1) + 34;
view.svg(wide, lettersTop + 118, `the stream of position ${state.place}, `
  + `${state.order}, after ${state.stage}`);
const { text } = view;
const biggest = Math.max(1, ...streams.flat().map(Math.abs),
  ...model.added.flatMap((rows) => rows[place]).map(Math.abs));
const step = (wide - 20) / width;
const bars = (numbers, top, title, color, more) => {
  const middle = top + 54, high = 40;
  text(10, top, title, { class: "strong" });
  view.line(10, middle, wide - 10, middle, { stroke: "currentColor", "stroke-opacity": 0.5 });
  numbers.forEach((z, i) => {
    const size = (Math.abs(z) / biggest) * high;
    view.rect(10 + step * i + 1, z > 0 ? middle - size : middle, step - 2, size, {
      ...more, stroke: color,
    });
  });
};
bars(added, 16, stage ? `added by ${state.stage}: length ${fixed(norm(added), 1)}`
  : "added: nothing yet", "var(--second)", { fill: "none", "stroke-width": 1.5 });
bars(streams[stage], 124, `the stream${stage && !pre ? ", normalised" : ""}: length `
  + fixed(lengths[stage], 1), "var(--accent)", { fill: "var(--accent)" });

const columns = narrow ? [28, 200, 262] : [28, 250, 330];
text(columns[0], tableTop, "stage", { class: "strong" });
text(columns[1], tableTop, "length", { class: "strong" });
text(columns[2], tableTop, "says", { class: "strong" });
data.stages.forEach((name, j) => {
  const y = tableTop + rowHigh * (j + 1);
  const bold = j === stage ? { class: "strong" } : {};
  if (j === stage) text(10, y, "▸", bold);
  text(columns[0], y, name, bold);
  text(columns[1], y, fixed(lengths[j], 1), bold);
  const note = says[j] === data.next[place] ? "next" : says[j] === data.written[place]
    ? "written" : "";
  text(columns[2], y, `${says[j]}${note ? (narrow ? ` ${note}` : `  (the ${note} one)`) : ""}`, bold);
});

text(10, lettersTop, "the output layer would say", { class: "strong" });
const each = (wide - 20) / data.letters.length;
shares[stage].forEach((p, i) => {
  const x = 10 + each * (i + 0.5), base = lettersTop + 84;
  view.rect(x - each * 0.3, base - Math.max(1, 64 * p), each * 0.6, Math.max(1, 64 * p), {
    fill: "var(--accent)",
  });
  const letter = data.letters[i];
  text(x, base + 16, letter, {
    "text-anchor": "middle", ...(letter === data.next[place] ? { class: "strong" } : {}),
  });
  const mark = letter === data.next[place] ? "next" : letter === data.written[place]
    ? (narrow ? "now" : "written") : "";
  if (mark) text(x, base + 31, mark, { "text-anchor": "middle" });
});
const share = shares[stage][best[stage]];
return {
  values: { stream: streams[stage], added, lengths, says, shares: shares[stage] },
  room: 130,
  says: `Written: ${data.written[place]}; to be written: ${data.next[place]}. After `
    + `${state.stage} the stream has the length ${fixed(lengths[stage], 1)} and says `
    + `${says[stage]}, with a probability of ${fixed(share, 2)}.`,
};
