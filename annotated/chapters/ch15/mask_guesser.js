// The BERT that chapter 15 pretrains guesses hidden tokens in the reader's browser: body of
// function (state, data, view, numbers).

const { argmax, linear, plus, range, softmax } = numbers;
const HIDDEN = "?", UNKNOWN = 1, MASK = 4, SPECIAL = 5;
const model = view.once("model", () => {
  const symbols = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ...data.model.words.split(" ")];
  const ids = new Map(symbols.map((symbol, i) => [symbol, i]).slice(SPECIAL));
  return { symbols, id: (token) => ids.get(token), weights: numbers.unpackModel(data.model) };
});
const { symbols } = model;

// ---- tokens, as `tokens_of` in Python finds them
const KINDS = [
  ["hidden", /\?|\[MASK\]/y],
  ["string", /(?:[rR][bBfF]?|[bBfF][rR]?|[uU])?(?:"""(?:[^\\]|\\[^])*?"""|'''(?:[^\\]|\\[^])*?'''|(?!"""|''')(?:"(?:[^"\\\n]|\\[^])*"|'(?:[^'\\\n]|\\[^])*'))/y],
  ["open", /(?:[rR][bBfF]?|[bBfF][rR]?|[uU])?["']/y],
  ["number", /0[xX](?:_?[\da-fA-F])+|0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|(?:\d(?:_?\d)*(?:\.(?:\d(?:_?\d)*)?)?|\.\d(?:_?\d)*)(?:[eE][-+]?\d(?:_?\d)*)?[jJ]?/y],
  ["name", /[\p{XIDS}_][\p{XIDC}]*/uy],
  ["sign", /\*\*=|\/\/=|>>=|<<=|\.\.\.|[-+*/%&|^@=!<>:]=|->|\*\*|\/\/|<<|>>|[^\s]/uy],
];
// Tokens with the line and column where they stand; a bracket that is open goes on in the
// next line if `brackets` says so.
function tokenised(text, brackets) {
  const tokens = [], indents = [0];
  let at = 0, depth = 0, line = 0, begins = 0, fresh = true, trouble = "";
  const add = (token, kind, length = 0) =>
    tokens.push({ token, kind, line, column: at - begins, ends: at - begins + length });
  while (at < text.length && !trouble) {
    const rest = text.slice(at);
    if (fresh) { // the first token of a line: blank lines and comments don't count
      const blank = /^[^\S\n]*(?:#.*)?(?:\n|$)/.exec(rest);
      if (blank) {
        at += blank[0].length;
        [line, begins] = [line + 1, at];
        continue;
      }
      const space = /^[^\S\n]*/.exec(rest)[0];
      const width = [...space].reduce((n, c) => (c === "\t" ? n - (n % 8) + 8 : n + 1), 0);
      at += space.length;
      if (width > indents[indents.length - 1]) {
        indents.push(width);
        add("⇥", "mark");
      }
      while (width < indents[indents.length - 1]) {
        indents.pop();
        add("⇤", "mark");
      }
      if (width > indents[indents.length - 1]) trouble = "A line begins where no line before it does.";
      fresh = false;
      continue;
    }
    const skip = /^(?:[^\S\n]+|\\\n|#.*)/.exec(rest);
    if (skip) {
      at += skip[0].length;
      if (skip[0] === "\\\n") [line, begins] = [line + 1, at];
      continue;
    }
    if (rest[0] === "\n") {
      if (!(depth && brackets)) {
        add("⏎", "mark");
        fresh = true;
      }
      at += 1;
      [line, begins] = [line + 1, at];
      continue;
    }
    const [kind, found] = KINDS.map(([name, pattern]) => {
      pattern.lastIndex = at;
      return [name, pattern.exec(text)];
    }).find((pair) => pair[1]);
    const written = found[0];
    if (kind === "open") trouble = "A string doesn't end.";
    if (kind === "sign" && "([{".includes(written)) depth += 1;
    if (kind === "sign" && ")]}".includes(written)) depth = Math.max(0, depth - 1);
    add({ hidden: HIDDEN, string: '"…"', number: "0" }[kind] || written, kind, written.length);
    at += written.length;
    const breaks = written.split("\n").length - 1; // inside a string
    if (breaks) [line, begins] = [line + breaks, at - written.length + written.lastIndexOf("\n") + 1];
  }
  if (!fresh) add("⏎", "mark");
  for (const width of indents) if (width) add("⇤", "mark");
  return { tokens, trouble, open: depth > 0 };
}
// phones type curly quotation marks
const typed = state.text.replace(/\r/g, "").replace(/[‘’]/g, "'").replace(/[“”]/g, '"');
let read = tokenised(typed, true);
if (read.open) read = tokenised(typed, false); // its other end is hidden, or forgotten
const { tokens } = read;
const hidden = range(tokens.length).filter((i) => tokens[i].kind === "hidden");

// ---- the model
// Chances of all tokens at some places.
function chances(ids, places) {
  const { weights } = model, { config } = data.model;
  const normed = (name, x) => numbers.normalise(weights, name, x, config.norm_epsilon);
  const xs = ids.map((id, place) => normed("norm", plus(
    plus(weights["embedding.weight"][id], weights["segments.weight"][0]),
    weights["positions.table"][place])));
  const { states } = numbers.encode(weights, config, xs);
  return places.map((place) => {
    const inner = linear(weights, "transform", states[place]).map(numbers.activations[config.activation]);
    const scores = numbers.times(weights["embedding.weight"], normed("transform_norm", inner));
    // special tokens are never an answer
    return softmax(plus(scores, weights["output.bias"]).map((z, i) => (i < SPECIAL ? -Infinity : z)));
  });
}
const best = (row) => range(row.length).sort((i, j) => row[j] - row[i] || i - j).slice(0, data.best)
  .map((i) => [symbols[i], row[i]]);
function guess() {
  const ids = tokens.map(({ token, kind }) => (kind === "hidden" ? MASK : model.id(token) ?? UNKNOWN));
  const key = ids.join(" ");
  const atOnce = view.once(key, () => chances(ids, hidden));
  const values = {
    tokens: tokens.map(({ token }) => token), unknown: ids.map((id) => id === UNKNOWN),
    guesses: atOnce.map(best), first: null, again: null,
  };
  const order = data.orders.indexOf(state.order);
  if (hidden.length < 2 || !order) return { rows: atOnce, values };
  const tops = atOnce.map((row) => Math.max(...row));
  const first = order === 3 ? argmax(tops) : order - 1, other = 1 - first;
  const filled = [...ids];
  filled[hidden[first]] = argmax(atOnce[first]);
  const [again] = view.once(filled.join(" "), () => chances(filled, [hidden[other]]));
  const before = argmax(atOnce[other]);
  Object.assign(values, {
    first, again: best(again), kept: again[before], changed: argmax(again) !== before,
  });
  return { rows: atOnce, again, values };
}

// ---- the drawing: two panels, each with the lines as guessed, and the guesses below them
const across = Math.min(view.width() - 1, 680), phone = across < 560;
const wide = phone ? across : (across - 28) / 2; // of a panel
const letter = 8.4, high = 26, bar = 22;
const clip = (text, most) => ([...text].length > most ? `${[...text].slice(0, most - 1).join("")}…` : text);
// Where tokens stand in a panel, with texts in the hidden places.
function placed(list, texts) {
  const found = [];
  let row = -1, x = 0, indent = 0, last = null, number = 0;
  for (const one of list) {
    if (one.kind === "mark") continue;
    const box = one.kind === "hidden", text = clip(box ? texts[number] : one.token, 26);
    if (box) number += 1;
    const width = letter * [...text].length + (box ? 24 : 0);
    if (!last || one.line !== last.line) {
      indent = letter * Math.min(one.column, 8);
      [row, x] = [row + 1, indent];
    } else {
      if (one.column > last.ends) x += letter;
      if (x + width > wide) [row, x] = [row + 1, indent + 2 * letter];
    }
    found.push({ ...one, text, x, row, width, number: box && number });
    x += width + (box ? 2 : 0);
    last = one;
  }
  return { found, rows: row + 1 };
}
// as many rows as the longest suggestion needs, so that nothing moves
const least = Math.max(...data.known.map(({ text, hidden: those }) =>
  placed(tokenised(text, true).tokens, those.map(() => "nine wide")).rows));
const under = 22 + bar * data.best + 44; // what the guesses take, and what stood there
const height = (rows) => (phone ? 2 : 1) * (30 + high * rows + under) + (phone ? 14 : 0);
const full = state.text.length < data.letters ? ""
  : ` The field is full: it takes ${data.letters} characters.`;
function blank(says) {
  view.svg(across, height(least), "nothing to guess");
  view.text(0, 20, "–");
  return { values: { tokens: tokens.map(({ token }) => token) }, says: says + full, room: data.room };
}
const most = data.model.config.max_len;
if (!tokens.length) return blank("Type a line of Python, with a ? for each token to be guessed.");
if (read.trouble) return blank(read.trouble);
if (tokens.length > most) {
  return blank(`The model has ${most} positions, and these are ${tokens.length} tokens, with the ends `
    + "of lines. It can't read them, and doesn't cut them.");
}
if (!hidden.length) return blank("No token is hidden: type a ? in place of one or two of them.");
if (hidden.length > 2) return blank(`Hide one token or two: these are ${hidden.length}.`);

const { rows, again, values } = guess();
const { guesses, first } = values, two = hidden.length === 2, other = two && first !== null ? 1 - first : null;
const percent = (p) => (p > 0.995 ? "over 99 %" : p < 0.005 ? "under 1 %" : `${Math.round(100 * p)} %`);
const short = (p) => percent(p).replace("over ", ">").replace("under ", "<");
const top = guesses.map((list) => list[0][0]);
const after = first === null ? null : top.map((token, i) => (i === first ? token : values.again[0][0]));
const known = data.known.find(({ text }) => text.trim() === typed.trim());

const rowed = [top, after || top].map((texts) => placed(tokens, texts));
const count = Math.max(least, ...rowed.map((one) => one.rows));
view.svg(across, height(count), `${tokens.length} tokens, ${hidden.length} of them hidden, and the `
  + `best ${data.best} guesses for each`);
const write = view.text;
const coded = (x, y, text, options = {}) => write(x, y, text, {
  class: "code", style: "font-size: 14px; white-space: pre", textLength: letter * [...text].length,
  lengthAdjust: "spacingAndGlyphs", ...options,
});
const unknown = new Set(tokens.filter((_, i) => values.unknown[i]).map(({ token }) => token));
function code({ found }, left, y) {
  for (const { kind, token, text, x, row, width, number } of found) {
    const up = y + high * row, box = kind === "hidden";
    if (box) {
      view.rect(left + x + 1, up, width - 2, 22, {
        rx: 3, fill: "var(--at-this)", "fill-opacity": 0.16, stroke: "var(--at-this)",
        "stroke-width": 1.5,
      });
      if (two) write(left + x + 5, up + 15, number, { style: "font-size: 12px", "fill-opacity": 0.75 });
    } else if (unknown.has(token)) {
      view.rect(left + x - 1, up + 1, width + 2, 20, {
        rx: 3, fill: "none", stroke: "currentColor", "stroke-dasharray": "3 3",
      });
    }
    coded(left + x + (box ? (two ? 17 : 12) : 0), up + 16, text);
  }
}
// The best guesses for a hidden place, or what was filled in, and below it what stood there.
const column = two ? (wide - 12) / 2 : Math.min(wide, 240);
function bars(i, list, row, left, y) {
  list.forEach(([token, p], k) => {
    const up = y + bar * k;
    view.rect(left + 0.5, up + 0.5, column - 1, bar - 4, {
      rx: 3, fill: "none", stroke: "currentColor", "stroke-opacity": 0.2,
    });
    view.rect(left + 0.5, up + 0.5, (column - 1) * p, bar - 4, {
      rx: 3, fill: "var(--at-this)", "fill-opacity": 0.3,
    });
    coded(left + 5, up + 14, clip(token, Math.floor((column - 52) / letter)));
    write(left + column - 5, up + 14, short(p), { "text-anchor": "end" });
  });
  if (!state.shown || !known) return;
  const id = model.id(known.hidden[i]), end = y + bar * data.best + 14;
  write(left, end, `It was “${known.hidden[i]}”:`, { class: "strong" });
  write(left, end + 18, id === undefined ? "unknown to the model"
    : `${short(row[id])}, guess number ${1 + row.filter((p) => p > row[id]).length}`);
}
function panel(title, left, y, texts, draw) {
  write(left, y + 14, title, { class: "strong" });
  if (texts) code(texts, left, y + 28);
  const down = y + 30 + high * count;
  hidden.forEach((_, i) => draw(i, left + i * (column + 12), down));
}
panel("Guessed at once", 0, 0, rowed[0], (i, left, y) => {
  write(left, y + 12, two ? `number ${i + 1}` : "the hidden one");
  bars(i, guesses[i], rows[i], left, y + 20);
});
const [right, below] = phone ? [0, height(count) / 2 + 7] : [wide + 28, 0];
panel("One after the other", right, below, after && rowed[1], (i, left, y) => {
  if (first === null) return;
  write(left, y + 12, `number ${i + 1}${i === first ? ", filled in" : ", again"}`);
  if (i !== first) {
    bars(i, values.again, again, left, y + 20);
    return;
  }
  const text = clip(top[i], Math.floor((column - 10) / letter));
  view.rect(left + 1, y + 19, letter * [...text].length + 10, 21, {
    rx: 3, fill: "var(--at-this)", "fill-opacity": 0.16, stroke: "var(--at-this)",
    "stroke-width": 1.5,
  });
  coded(left + 6, y + 34, text);
});
if (!after) {
  (two ? ["Choose which one to fill in first:", "the other one is then guessed again."]
    : ["Hide a second token: one of the two", "can then be filled in first."])
    .forEach((text, i) => write(right, below + 44 + 18 * i, text));
}

// ---- in words
const named = (token, p) => `“${token}” (${percent(p)})`;
const said = [];
if (!two) said.push(`The best guess is ${named(...guesses[0][0])}.`);
else if (!after) {
  said.push(`Guessed at once: ${guesses.map((list) => named(...list[0])).join(" and ")}. Neither guess `
    + "knows of the other.");
} else {
  const [is, p] = values.again[0], [was, before] = guesses[other][0];
  said.push(`With “${top[first]}” filled in as number ${first + 1}, number ${other + 1} is guessed again.`);
  said.push(values.changed
    ? `Its best guess changes from “${was}” to “${is}”: “${was}” goes from ${percent(before)} to `
      + `${percent(values.kept)}, “${is}” from ${percent(rows[other][symbols.indexOf(is)])} to ${percent(p)}.`
    : `Its best guess stays “${is}”, ${percent(before) === percent(p) ? `with ${percent(p)} as before`
      : `which goes from ${percent(before)} to ${percent(p)}`}.`);
}
if (state.shown && !known) said.push("What stood there is known for the suggestions alone.");
return { values, says: said.join(" ") + full, room: data.room };
