// Chapter 08: cross-attention while the copy task is learned; body of function
// (state, data, view). data.maps[step][head][query][key]; at query i the symbol to be
// written is that of source place i + 1.

const step = data.steps.indexOf(state.step);
const head = data.heads.indexOf(state.head);
const heads = data.maps[step];
const rows = head > 0 ? heads[head - 1] : heads[0].map((row, i) =>
  row.map((_, j) => heads.reduce((sum, map) => sum + map[i][j], 0) / heads.length));
const aimed = rows.map((row, i) => row[i + 1]);
const mean = aimed.reduce((sum, weight) => sum + weight, 0) / aimed.length;
const most = rows.filter((row, i) => row.indexOf(Math.max(...row)) === i + 1).length;
const written = data.written[step];
const right = [...written].filter((symbol, i) => symbol === data.source[i + 1]).length;

const n = data.source.length, left = 62, top = 46;
const size = Math.max(17, Math.min(27, Math.floor((view.width() - left - 4) / n)));
const svg = view.svg(Math.max(left + size * n + 4, 290), top + size * rows.length + 10,
  `attention of ${rows.length} queries to ${n} places after ${state.step} steps`);
view.add(svg, "text", { x: 0, y: 14, text: "source read →" });
view.add(svg, "text", { x: 0, y: 36, text: "written" });
[...data.source].forEach((symbol, j) => view.add(svg, "text", {
  x: left + size * (j + 0.5), y: top - 8, "text-anchor": "middle", class: "code",
  text: symbol,
}));
rows.forEach((row, i) => {
  const y = top + size * i, good = written[i] === data.source[i + 1];
  view.add(svg, "text", {
    x: left - 10, y: y + size / 2 + 5, "text-anchor": "end",
    class: good ? "code" : "code strong", text: good ? written[i] : `✗ ${written[i]}`,
  });
  row.forEach((weight, j) => {
    const here = j === i + 1;
    view.add(svg, "rect", {
      x: left + size * j + 2, y: y + 2, width: size - 4, height: size - 4,
      fill: "var(--accent)", "fill-opacity": weight.toFixed(3),
      stroke: here ? "var(--second)" : "currentColor",
      "stroke-width": here ? 2.5 : 1, "stroke-opacity": here ? 1 : 0.15,
    });
  });
});
return {
  values: { mean, most, right, loss: data.losses[step] },
  says: `After ${state.step} steps the loss is ${data.losses[step].toPrecision(2)} and `
    + `${right} of ${rows.length} symbols are written right. Of the weight, `
    + `${(100 * mean).toFixed(0)} % lies on the framed places, those of the symbols to be `
    + `written; ${most} of ${rows.length} rows look most at theirs.`,
};
