// Chapter 08: cross-attention while the copy task is learned; body of function
// (state, data, view, numbers). data.maps[step][head][query][key]; at query i the symbol to be
// written is that of source position i + 1.

const { argmax, sum } = numbers;
const step = data.steps.indexOf(state.step);
const head = data.heads.indexOf(state.head);
const heads = data.maps[step];
const rows = head > 0 ? heads[head - 1] : heads[0].map((row, i) =>
  row.map((_, j) => sum(heads.map((map) => map[i][j])) / heads.length));
const mean = sum(rows.map((row, i) => row[i + 1])) / rows.length;
const most = rows.filter((row, i) => argmax(row) === i + 1).length;
const written = data.written[step];
const right = [...written].filter((symbol, i) => symbol === data.source[i + 1]).length;

view.copy([...data.source], rows.map((weights, i) => ({ symbol: written[i], weights })));
return {
  values: { mean, most, right, loss: data.losses[step] },
  says: `After ${state.step} steps the loss is ${data.losses[step].toPrecision(2)} and `
    + `${right} of ${rows.length} symbols are written right. Of the weight, `
    + `${(100 * mean).toFixed(0)} % lies on the framed positions, those of the symbols to be `
    + `written; ${most} of ${rows.length} rows look most at theirs.`,
};
