// Page 16c: speculative decoding, one reading after another; body of function (state, data,
// view, numbers). Python has written each text and says what was guessed, with which
// probabilities, and how many guesses were kept; counts and the formula are computed here.

const { range, sum } = numbers;
const run = data.runs[state.draft][state.guesses], most = Math.max(...Object.keys(data.runs[state.draft]));
const number = Math.min(Number(state.reading), run.length), now = run[number - 1];
const tokens = sum(run.slice(0, number).map((one) => one.kept + 1));
const formula = sum(range(Number(state.guesses) + 1).map((i) => data.kept[state.draft] ** i));

// ---- the controls: the slider ends with the run, and a button moves it

const over = number === run.length;
view.ends("reading", run.length - 1, number);
// the slider counts from 0
view.step("reading", over ? 0 : number, over ? "back to the first" : "next reading");

// ---- the text so far: as many lines as the longest text needs

const wide = Math.min(view.width() - 1, 680), phone = wide < 480, letter = 8.45, line = 25;
const spaced = (token) => token.replaceAll(" ", "␣").replaceAll("\n", "⏎");
function pieces(readings) {
  const written = [{ token: data.prompt, kind: "prompt", reading: -1 }];
  readings.forEach((one, reading) => {
    one.guesses.slice(0, one.kept).forEach(([token]) => written.push({ token, kind: "right", reading }));
    written.push({ token: one.more, kind: "this", reading });
  });
  let x = 0, y = 0;
  for (const piece of written) {
    piece.width = letter * [...spaced(piece.token)].length + 3;
    if (x + piece.width > wide) [x, y] = [0, y + line];
    Object.assign(piece, { x, y });
    x += piece.width;
  }
  return written;
}
const high = view.once(`high ${wide}`, () => Math.max(...Object.values(data.runs)
  .flatMap((runs) => Object.values(runs)).map((one) => pieces(one).pop().y)));

const row = 30, below = 26, top = below + row * (most + 1) + 30;
view.svg(wide, top + high + line + 4, `reading ${number} with the draft “${state.draft}”: `
  + `${now.kept} of ${now.guesses.length} guesses kept`);
const { rect, text } = view;
text(0, top - 10, "the text so far", { class: "strong" });
for (const { token, kind, reading, x, y, width } of pieces(run.slice(0, number))) {
  const fresh = reading === number - 1;
  if (kind !== "prompt") {
    rect(x + 0.5, top + y, width - 1, 21, {
      rx: 4, fill: `var(--at-${kind})`, "fill-opacity": fresh ? 0.3 : 0.1,
      stroke: fresh ? `var(--at-${kind})` : "none",
    });
  }
  text(x + 1.5, top + y + 15.5, spaced(token), {
    class: "code", style: "font-size: 14px", textLength: letter * [...spaced(token)].length, lengthAdjust: "spacingAndGlyphs",
  });
}

// ---- the guesses of this reading, and the verdicts

const chip = phone ? 76 : 120, bar = phone ? 36 : 160, from = chip + 8;
const chanced = from + bar + (phone ? 46 : 60), verdict = chanced + (phone ? 56 : 190);
const squeeze = (words, size, room) => (size * [...words].length > room ? { textLength: room, lengthAdjust: "spacingAndGlyphs" } : {});
text(0, below - 10, "guess", { class: "strong" });
text(from, below - 10, phone ? "q and p" : "draft's q, model's p", { class: "strong" });
text(chanced, below - 10, phone ? "kept with" : "kept with min(1, p / q)", { class: "strong" });
if (!phone) text(verdict, below - 10, "verdict", { class: "strong" });
function box(y, token, kind, dashed) {
  rect(0.5, y + 2, chip - 1, 23, {
    rx: 4, fill: dashed ? "none" : `var(--at-${kind})`, "fill-opacity": 0.25,
    stroke: dashed ? "currentColor" : `var(--at-${kind})`, "stroke-dasharray": dashed ? "4 3" : "none",
  });
  text(chip / 2, y + 18, spaced(token), {
    class: "code", style: "font-size: 14px", "text-anchor": "middle", ...squeeze(spaced(token), letter, chip - 8),
  });
}
const percent = (x) => (x < 0.00005 ? "< 0.01 %" : `${(100 * x).toFixed(x < 0.00995 ? 2 : x < 0.0995 ? 1 : 0)} %`);
function chance(q, p) { // of keeping the guess; q and p come rounded to 0.0001
  const words = p >= q ? "100 %" : p < 0.00005 ? `< ${Math.ceil(0.005 / q)} %` : `${Math.round((100 * p) / q)} %`;
  return p > 0 && p < q && q < 0.01 ? `≈ ${words}` : words;
}
now.guesses.forEach(([token, q, p], i) => {
  const y = below + row * i, kept = i < now.kept, first = i === now.kept;
  box(y, token, kept ? "right" : "wrong", !kept && !first);
  if (!kept && !first) {
    text(verdict, y + 18, "dropped");
    return;
  }
  [["other", q], ["this", p]].forEach(([color, chance], k) => {
    const long = Math.max(1, (bar * chance) / Math.max(q, p, 1e-4));
    rect(from, y + 3 + 12 * k, long, 9, { fill: `var(--at-${color})` });
    text(from + long + 5, y + 12 + 12 * k, percent(chance), { style: "font-size: 12px" });
  });
  text(chanced, y + 18, chance(q, p), { style: "font-size: 13px" });
  const words = kept ? "✓ kept" : `✗ → ${spaced(now.more)}`;
  text(verdict, y + 18, words, { class: "strong", ...squeeze(words, 8, wide - verdict - 4) });
});
const y = below + row * now.guesses.length;
if (now.kept === now.guesses.length) {
  box(y, now.more, "this", false);
  text(phone ? from : verdict, y + 18, now.guesses.length ? "one for free" : "the last one");
}

const round = (x) => x.toFixed(2);
return {
  values: { tokens, kept: now.kept, mean: tokens / number, formula },
  says: `${number} ${number === 1 ? "reading has" : "readings have"} given ${tokens} tokens: ${round(tokens / number)} per reading. `
    + `Equation 1 says ${round(formula)} in the long run.`,
  room: 120,
};
