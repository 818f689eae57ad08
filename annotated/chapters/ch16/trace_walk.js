// A walk through one prediction; body of function (state, data, view, numbers). Python has
// traced the model: of each step its place, words, formula, source and values. All cards
// lie in one cell of a grid, as high as the highest: nothing moves when one steps on.

const { fixed, range, sum } = numbers;
const steps = data.steps, now = state.step - 1, step = steps[now], about = data.cards[step.card];
const clamp = (n, most) => Math.min(Number(n), most) - 1;
const tokens = data.tokens[step.rows], others = data.tokens[step.columns];
const row = clamp(state.position, tokens.length);
const shown = (token) => token.replace(/\n/g, "⏎").replace(/▁/g, " ").trim() || "␣";
const quoted = (token) => `“${shown(token)}”`;

// ---- what stays: the map of the model, the cards, and the place of the picture

const made = (tag, attributes, ...children) => {
  const node = Object.assign(document.createElement(tag), attributes);
  node.append(...children);
  return node;
};
const frame = view.once("frame", () => {
  const box = view.svg(1, 1, "").parentElement, explorer = box.closest(".annotated-explorer");
  const { input } = view;
  const set = (name, value) => {
    const index = JSON.parse(input(name).dataset.values).indexOf(value);
    if (index >= 0) view.move(name, index);
  };
  const move = (by) => set("step", Number(JSON.parse(input("step").dataset.values)[input("step").value]) + by);
  const buttons = [["← previous", -1], ["next →", 1]].map(([text, by]) => {
    const button = made("button", { type: "button", className: "annotated-suggestion", textContent: text });
    button.addEventListener("click", () => move(by));
    return button;
  });
  explorer.querySelector(".annotated-controls").prepend(made("div", { className: "walk-buttons" }, ...buttons));
  box.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    move(by);
  });
  // a button for each place, the places of a layer together
  const map = made("div", { className: "walk-map", role: "group" });
  map.setAttribute("aria-label", "places in the model");
  const jumps = new Map();
  let layer = "", group;
  steps.forEach(({ place }, i) => {
    if (jumps.has(place)) return;
    const [whole, part] = place.split(", ");
    if (!part || whole !== layer) {
      group = made("div", { className: "walk-layer" });
      if (part) group.append(made("span", { textContent: whole }));
      map.append(group);
    }
    layer = part ? whole : "";
    const button = made("button", { type: "button", textContent: part || whole });
    button.setAttribute("aria-label", place);
    button.addEventListener("click", () => set("step", i + 1));
    jumps.set(place, group.appendChild(button));
  });
  const cards = made("div", { className: "walk-cards" });
  steps.forEach((step) => {
    const one = data.cards[step.card], here = steps.filter(({ place }) => place === step.place);
    const card = made("div", { className: "walk-card" });
    const formula = made("div", { className: "walk-formula", innerHTML: one.math });
    const [before, part, after] = one.code;
    card.append(
      made("div", { className: "walk-place", textContent: `${step.place} · ${here.indexOf(step) + 1} of ${here.length}` }),
      made("div", { className: "walk-title", textContent: one.title }),
      made("div", { textContent: one.words }),
      formula,
      made("pre", { className: "walk-code" }, before, made("b", { textContent: part }), after),
      made("div", { className: "walk-file", textContent: one.file }),
      made("div", { className: "walk-shape", innerHTML: `${one.given} → ${one.symbol} ${one.shape}` }),
    );
    cards.append(card);
  });
  const picture = made("div", { className: "walk-picture" });
  const style = made("style", { textContent: `
    .walk-buttons { display: flex; gap: 0.5rem; }
    .walk-buttons button { min-height: 2rem; min-width: 6.2rem; text-align: center; }
    .walk-buttons [aria-disabled=true] { cursor: default; opacity: 0.5; }
    .walk-map { display: flex; flex-wrap: wrap; gap: 0.35rem; margin-bottom: 0.7rem; }
    .walk-layer { flex: none; display: flex; align-items: center; gap: 2px; border: 1px solid var(--at-rule); border-radius: 6px; padding: 2px; }
    @media (max-width: 540px) { .walk-map { flex-wrap: nowrap; overflow-x: auto; padding-bottom: 0.3rem; } }
    @media (max-width: 540px) { .walk-card .walk-formula { font-size: 0.86rem; } }
    .walk-card :is(msub, msup, msubsup, munder) > :not(:first-child) { font-size: 12.5px; }
    .walk-layer span { color: var(--at-muted); font-size: 13px; padding: 0 0.3rem; }
    .walk-layer button { background: transparent; border: 0; border-radius: 4px; color: inherit; cursor: pointer; font: 13px var(--at-sans); min-height: 1.7rem; padding: 0 0.4rem; }
    .walk-layer button[aria-current] { background: var(--accent); color: var(--on-accent); }
    .walk-layer button:hover:not([aria-current]) { background: color-mix(in srgb, var(--accent) 15%, transparent); }
    .walk-layer button:focus-visible { outline: 3px solid var(--second); }
    .walk-cards { display: grid; grid-template-columns: minmax(0, 1fr); }
    .walk-card { grid-area: 1 / 1; visibility: hidden; }
    .walk-card.walk-now { visibility: visible; }
    .walk-place, .walk-file { color: var(--at-muted); font-size: 13px; }
    .walk-title { font-size: 1.1rem; font-weight: 700; margin-top: 0.35rem; }
    .walk-formula { align-items: center; display: flex; font-size: 1.15rem; justify-content: safe center; min-height: 3.6rem; overflow-x: auto; }
    .walk-code { background: var(--at-surface); border: 0; border-radius: 4px; color: inherit; font: 13px/1.5 var(--at-mono); margin: 0; overflow-wrap: anywhere; padding: 0.4rem 0.6rem; white-space: pre-wrap; }
    .walk-code b { background: color-mix(in srgb, var(--accent) 18%, transparent); border-radius: 3px; font-weight: 600; }
    .walk-shape { font-variant-numeric: tabular-nums; margin: 0.4rem 0; }
    .walk-picture svg { display: block; }
    .annotated-explorer .walk-picture text.small { font-size: 12px; }` });
  box.replaceChildren(style, map, cards, picture);
  return { set, jumps, map, cards, picture, buttons };
});
for (const [place, button] of frame.jumps) {
  if (place !== step.place) button.removeAttribute("aria-current");
  else {
    button.setAttribute("aria-current", "step");
    const { map } = frame, [here, end] = [button.offsetLeft - map.offsetLeft, button.offsetWidth];
    map.scrollLeft = here + end / 2 - map.clientWidth / 2; // on a phone the map is one line
  }
}
[...frame.cards.children].forEach((card, i) => card.classList.toggle("walk-now", i === now));
view.input("head").disabled = step.kind !== "map" || step.value.shape[0] === 1;
frame.buttons.forEach((button, i) => button.setAttribute("aria-disabled", now === [0, steps.length - 1][i]));

// ---- the picture

const room = Math.max(270, Math.min(view.width() - 2, 680)), longest = Math.max(...data.tokens.map((one) => one.length));
const named = [...data.tokens.flat(), ...steps.flatMap((one) => (one.best || []).flat().map(([token]) => token))];
const most = Math.max(...named.map((token) => [...shown(token)].length));
const left = Math.min(90, 8.4 * most + 14), bar = 22;
const letters = Math.floor((left - 8) / 7.6);
const clip = (token) => ([...shown(token)].length > letters ? `${[...shown(token)].slice(0, letters - 1).join("")}…` : shown(token));
const cell = Math.max(14, Math.min(40, Math.floor((room - left) / longest)));
// columns' names stand level where the longest fits above its cell
const widest = Math.max(...data.tokens.flat().map((token) => [...clip(token)].length));
const level = 8.4 * widest <= cell, names = level ? 22 : left;
// all heads, small: beside the chosen one, or below it on a phone
const heads = Math.max(1, ...steps.map((one) => (one.kind === "map" ? one.value.shape[0] : 1)));
const beside = room - left - cell * longest - 26, phone = beside < 170, free = phone ? room : beside;
const across = Math.min(heads, 4), small = Math.floor(Math.min(12, (free / across - 10) / longest));
const lines = heads > 1 && small > 1 ? Math.ceil(heads / across) : 0, deep = small * longest + 24;
const best = Math.max(0, ...steps.map((one) => (one.best ? one.best[0].length : 0)));
const grid = names + longest * cell + 14;
const height = 26 + Math.max(longest * 24 + 24, phone ? grid + lines * deep : Math.max(grid, names + lines * deep), best * bar) + 4;
const svg = view.add(frame.picture, "svg", {
  width: room, height, viewBox: `0 0 ${room} ${height}`, role: "img", "aria-label": `${step.place}: a picture of ${about.title}`,
});
frame.picture.replaceChildren(svg);
const add = (tag, attributes) => view.add(svg, tag, attributes);
const text = (x, y, words, more = {}) => add("text", { x, y, text: words, ...more });
const hatch = view.hatch(svg);
const sign = (x) => `var(--at-${x < 0 ? "minus" : "this"})`;
const pick = (i, x, y, width, high) => {
  const target = add("rect", { x, y, width, height: high, fill: "transparent", style: "cursor: pointer" });
  target.addEventListener("click", () => frame.set("position", i + 1));
};
const percent = (share) => `${share >= 0.1 || share < 0.0005 ? Math.round(100 * share) : fixed(100 * share, 1)} %`;
const plain = (x) => fixed(x, Math.abs(x) >= 100 ? 0 : Math.abs(x) >= 10 ? 1 : 2);
let found, says;
if (step.kind === "logits") {
  const list = step.best[row];
  text(0, 15, `what comes after ${quoted(tokens[row])}`, { class: "strong" });
  list.forEach(([token, share], i) => {
    const y = 26 + bar * i, wide = (room - left - 66) * (share / Math.max(0.5, list[0][1]));
    text(left - 8, y + 15, clip(token), { "text-anchor": "end" });
    add("rect", { x: left, y: y + 2, width: Math.max(1, wide), height: bar - 5, fill: "var(--at-this)" });
    text(left + Math.max(1, wide) + 6, y + 15, percent(share));
  });
  found = list.map(([, share]) => share);
  says = `After ${quoted(tokens[row])} the model expects ${quoted(list[0][0])} most, with ${percent(list[0][1])}; then ${quoted(list[1][0])}, with ${percent(list[1][1])}.`;
} else if (step.kind === "map") {
  const value = view.once(`value ${now}`, () => numbers.unpack(step.value));
  const count = value.length, head = clamp(state.head, count), one = value[head];
  const shares = about.title === "Weights", top = shares ? 1 : Math.max(...value.flat(2).map(Math.abs), 1e-9);
  const down = 26 + names;
  const fill = (x) => ({ fill: shares ? "var(--at-weight)" : sign(x), "fill-opacity": Math.min(1, Math.abs(x) / top).toFixed(3) });
  const square = (x, y, size, gap, i, j, number) => {
    const place = { x: x + size * j, y: y + size * i, width: size - gap, height: size - gap };
    if (step.hidden[i][j] === "1") add("rect", { ...place, fill: hatch });
    else add("rect", { ...place, ...fill(number) });
  };
  text(0, 15, `${count > 1 ? `head ${head + 1} of ${count}: ` : ""}rows look at columns`, { class: "strong" });
  others.forEach((token, j) => {
    const x = left + cell * (j + 0.5), y = down - 7;
    if (level) text(x - 1, y, clip(token), { "text-anchor": "middle" });
    else text(x + 4, y, clip(token), { transform: `rotate(-90 ${x + 4} ${y})` });
  });
  tokens.forEach((token, i) => {
    const y = down + cell * i;
    text(left - 8, y + cell / 2 + 4, clip(token), { "text-anchor": "end", class: i === row ? "strong" : "" });
    one[i].forEach((number, j) => {
      add("rect", { x: left + cell * j, y, width: cell - 2, height: cell - 2, fill: "none", stroke: "currentColor", "stroke-opacity": 0.15 });
      square(left, down, cell, 2, i, j, number);
    });
    pick(i, 0, y, left + cell * others.length, cell);
  });
  add("rect", { x: left - 2, y: down + cell * row - 2, width: cell * others.length + 2, height: cell + 2, fill: "none", stroke: "currentColor", "stroke-width": 2 });
  if (lines && count > 1) value.forEach((each, h) => {
    const begin = phone ? 4 : left + cell * longest + 26, first = phone ? down + cell * longest + 24 : down;
    const x = begin + (h % across) * (small * longest + 10), y = first + Math.floor(h / across) * deep;
    text(x, y - 5, `head ${h + 1}`, { class: h === head ? "strong small" : "small" });
    each.forEach((line, i) => line.forEach((number, j) => square(x, y, small, 1, i, j, number)));
    const target = add("rect", {
      x: x - 2, y: y - 2, width: small * others.length + 3, height: small * tokens.length + 3, fill: "transparent", stroke: "currentColor",
      "stroke-width": h === head ? 2 : 1, "stroke-opacity": h === head ? 1 : 0.25, style: "cursor: pointer",
    });
    target.addEventListener("click", () => frame.set("head", h + 1));
  });
  found = one[row];
  const visible = range(others.length).filter((j) => step.hidden[row][j] !== "1");
  const largest = visible.reduce((m, j) => (found[j] > found[m] ? j : m), visible[0] ?? 0);
  const which = count > 1 ? `Head ${head + 1}: ` : "";
  says = shares
    ? `${which}${quoted(tokens[row])} puts ${percent(found[largest])} of its weight on ${quoted(others[largest])} (position ${largest + 1}).`
    : `${which}of all that ${quoted(tokens[row])} may see, ${quoted(others[largest])} (position ${largest + 1}) has the highest score, ${plain(found[largest])}.`;
} else {
  const value = view.once(`value ${now}`, () => numbers.unpack(step.value));
  const columns = value[0].length, gaps = 6 * (step.groups - 1), size = (room - left - gaps - 2) / columns;
  const per = columns / step.groups;
  text(0, 15, step.groups > 1 ? `${step.groups} heads × ${step.width / step.groups} numbers` : `${step.width} numbers${step.every > 1 ? `, every ${step.every === 2 ? "second" : step.every === 3 ? "third" : `${step.every}th`} shown` : ""}`, { class: "strong" });
  const high = 24;
  tokens.forEach((token, i) => {
    const y = 26 + high * i;
    text(left - 8, y + 16, clip(token), { "text-anchor": "end", class: i === row ? "strong" : "" });
    value[i].forEach((number, j) => add("rect", {
      x: (left + size * j + 6 * Math.floor(j / per)).toFixed(2), y: y + 1, width: (size + 0.15).toFixed(2), height: high - 3,
      fill: sign(number), "fill-opacity": Math.min(1, Math.abs(number) / step.top).toFixed(2),
    }));
    pick(i, 0, y, room, high);
  });
  add("rect", { x: left - 2, y: 26 + high * row, width: room - left + 1, height: high - 1, fill: "none", stroke: "currentColor", "stroke-width": 2 });
  // the key of colours
  const y = 26 + high * tokens.length + 8;
  range(9).forEach((k) => add("rect", {
    x: left + 40 + 16 * k, y, width: 16, height: 10, fill: sign(k - 4), "fill-opacity": Math.abs(k - 4) / 4,
  }));
  const limit = Number(step.top.toPrecision(2));
  text(left + 34, y + 10, `−${limit}`, { "text-anchor": "end", class: "small" });
  text(left + 40 + 16 * 9 + 6, y + 10, limit, { class: "small" });
  found = value[row].slice(0, data.shown);
  says = `${quoted(tokens[row])} (position ${row + 1}): ${found.map(plain).join(", ")}${step.width > found.length ? ", …" : ""}`;
}
return { values: { numbers: found }, says, room: 110 };
