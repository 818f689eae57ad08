// Chapter 06: what each rung of the ladder writes for one date; body of
// function (state, data, view, numbers). The texts come from the recorded run.

const index = data.examples.indexOf(state.date);
const right = data.answers[index];
const rows = data.rungs.map((rung) => ({ rung, text: data.written[state.seed][rung][index] }));
const wrong = rows.map(({ text }) => {
  let count = 0;
  for (let i = 0; i < Math.max(text.length, right.length); i++) count += text[i] !== right[i];
  return count;
});

const size = 17, rowHigh = 46;
const longest = Math.max(right.length, ...rows.map(({ text }) => text.length));
const svg = view.svg(Math.max(20 + size * longest, 300), rowHigh * (rows.length + 1) + 14,
  `what each rung writes for ${state.date}`);
const text = (x, y, content, more) => view.add(svg, "text", { x, y, text: content, ...more });
const line = (top, name, written, check) => {
  text(4, top + 12, name, { class: check ? "" : "strong" });
  [...written].forEach((symbol, i) => {
    const fault = check && symbol !== right[i];
    const x = 4 + size * i;
    if (fault) {
      view.add(svg, "rect", {
        x: x + 1, y: top + 18, width: size - 2, height: 20, rx: 3, fill: "none",
        stroke: "var(--second)", "stroke-width": 2,
      });
    }
    text(x + size / 2, top + 33, symbol === " " ? "␣" : symbol, {
      "text-anchor": "middle", class: fault ? "code strong" : "code",
    });
  });
};
line(4, "the right answer", right, false);
rows.forEach(({ rung, text: written }, i) => {
  const says = wrong[i] ? `${wrong[i]} wrong` : "✓ exact";
  line(4 + rowHigh * (i + 1), `${rung}: ${says}`, written, true);
});
return {
  values: { written: rows.map((row) => row.text), wrong },
  says: `${state.date} should become ${right}. `
    + rows.map(({ rung, text: written }) => `${rung}: ${written}`).join(". ") + ".",
};
