// Chapter 06: what each rung of the ladder writes for one date; body of
// function (state, data, view, numbers). The texts come from the recorded run.

const index = data.examples.indexOf(state.date);
const answer = data.answers[index];
const parts = (text) => [...text.matchAll(/[^ ,]+/g)];
const wanted = parts(answer).map(([part]) => part);
const rows = data.rungs.map((rung) => ({ rung, text: data.written[state.seed][rung][index] }));
// month, day, year, each compared with its own; whatever comes after them is too much
const right = rows.map(({ text }) => parts(text).filter(([part], k) => part === wanted[k]).length);

const size = 17, rowHigh = 46;
const longest = Math.max(answer.length, ...rows.map(({ text }) => text.length));
const svg = view.svg(Math.max(20 + size * longest, 300), rowHigh * (rows.length + 1) + 14,
  `what each rung writes for ${state.date}`);
const text = (x, y, content, more) => view.add(svg, "text", { x, y, text: content, ...more });
const line = (top, name, written) => {
  text(4, top + 12, name);
  parts(written).forEach((match, k) => {
    if (match[0] === wanted[k]) return;
    view.add(svg, "rect", {
      x: 5 + size * match.index, y: top + 18, width: size * match[0].length - 2, height: 20,
      rx: 3, fill: "none", stroke: "var(--second)", "stroke-width": 2,
    });
  });
  [...written].forEach((symbol, i) => {
    text(4 + size * (i + 0.5), top + 33, symbol === " " ? "␣" : symbol, {
      "text-anchor": "middle", class: "code",
    });
  });
};
line(4, "the right answer", answer);
rows.forEach(({ rung, text: written }, i) => {
  const says = written === answer ? "✓ exact" : `${right[i]} of 3 parts`;
  line(4 + rowHigh * (i + 1), `${rung}: ${says}`, written);
});
return {
  values: { written: rows.map((row) => row.text), right },
  says: `${state.date} should become ${answer}. Parts that are right: `
    + rows.map(({ rung }, i) => `${rung} ${right[i]} of 3`).join(", ") + ".",
};
