// The stage: the model drawn, with parts that a click takes away, and the looks of its
// heads, alive while it trains; and a slider back through the training.
//
// Needs elements.js, settings.js, attention.js and writing.js. Reads `lab.current`, whose
// `kept` are the steps that the engine can go back to, and `lab.lit`.

const PARTS = { // of each box, from its entrance on
  encoder: ["positions", "scaled", "residual", "norm", "feed_forward"],
  decoder: ["positions", "causal", "scaled", "residual", "norm", "feed_forward"],
};
const SHORT = { positions: "positions", causal: "causal mask", scaled: "÷ √k", residual: "residuals", norm: "norms", feed_forward: "feed-forward" };
const isOn = (value) => value !== false && value !== "none";

function makeStage(lab) {
  const chips = [];
  const twins = (name, together) => chips.forEach(([other, button]) => button.classList.toggle("lab-twin", together && other === name));
  const chip = (name) => {
    const button = make("button", { type: "button", className: "lab-chip", disabled: !lab.switches.includes(name) });
    button.addEventListener("click", () => flip(lab, name));
    for (const [type, together] of [["mouseenter", true], ["focus", true], ["mouseleave", false], ["blur", false]]) {
      button.addEventListener(type, () => {
        twins(name, together);
        lab.part = together ? name : null;
        point(lab);
      });
    }
    chips.push([name, button]);
    return button;
  };
  const boxes = Object.entries(PARTS).map(([part, names]) => make("div", { className: `lab-box lab-${part}`, "data-part": part }, make("b"), ...names.map(chip)));
  const stage = make("div", { className: "lab-stage" });
  const field = draw(stage, "svg", { class: "lab-field", role: "img", "aria-label": "the model, of which nothing is drawn yet" });
  const note = make("p", { className: "lab-stage-note" });
  stage.append(note, ...boxes);
  const back = make("input", { id: idOf(lab, "back"), type: "range", min: 0, max: 0, value: 0, disabled: true, "aria-label": "Back through the training" });
  const film = make("button", { type: "button", className: "lab-film", disabled: true, title: "Play the training again", "aria-label": "Play the training again" }, "▶");
  const when = make("output", { className: "lab-when" });
  const scrub = make("p", { className: "lab-scrub" }, film, back, when);
  return { stage, field, note, boxes, chips, back, film, when, scrub };
}

// A part is taken out, or put back.
function flip(lab, name) {
  const input = lab.dom.inputs[name];
  if (input.type === "checkbox") input.checked = !input.checked;
  else input.value = input.value === "none" ? lab.base[name] : "none";
  input.dispatchEvent(new Event("change", { bubbles: true }));
}

// The parts of the model that is drawn, and above it what else is different; of the model
// that it is compared with, while that trains.
function showParts(lab) {
  const { chips, boxes, note } = lab.dom, { training, current, own, base } = lab, settings = training ? current.settings : own;
  for (const [name, button] of chips) {
    const on = isOn(settings[name]), moved = on && settings[name] !== base[name];
    button.setAttribute("aria-pressed", on);
    button.classList.toggle("lab-moved", moved);
    button.textContent = !on ? `no ${SHORT[name]}` : !moved ? SHORT[name] : name === "norm" ? `${settings.norm}-norm` : `${settings[name]} ${SHORT[name]}`;
  }
  boxes[0].hidden = settings.model === "decoder";
  for (const box of boxes) {
    box.dataset.layers = settings.layers;
    box.firstChild.textContent = settings.layers > 1 ? `${box.dataset.part} × ${settings.layers}` : box.dataset.part;
  }
  const others = apart(settings, base).filter((name) => name !== "seed" && !PARTS.decoder.includes(name));
  const first = training && current.next;
  note.textContent = first ? `first the grey curve: ${current.title}` : others.map((name) => called(name, settings[name])).join(", ");
  note.classList.toggle("lab-moved", !first && others.length > 0);
}

// Where both boxes end, if they stand beside the drawing.
function places({ field, boxes }) {
  const at = field.getBoundingClientRect();
  const beside = boxes.map((box) => box.getBoundingClientRect()).map((box) => (box.width && box.top < at.bottom && box.bottom > at.top ? box : null));
  return {
    width: at.width, height: at.height,
    left: beside[0] && beside[0].right - at.left, right: beside[1] && beside[1].left - at.left,
  };
}

// The letter of the answer for which some head looks most at letter j of the word.
function looksMost(lab, j) {
  const { across, down, layers, weight } = viewOf(chooseKind(lab), lab.current), map = last(layers);
  if (j < 0 || j >= across.length) return null;
  const most = down.map((_, i) => Math.max(...Array.from({ length: map.heads }, (__, h) => weight(map, h, i, j))));
  return most.indexOf(Math.max(...most));
}

const TOP = 22; // of the drawing; above stands what its two sides are

// Draws what the heads of the last layer look at, for the first `upTo` letters. Where it
// peeks, `peeks` has the head that looks most at the next letter, and all else is faded.
function drawStage(lab, view, upTo, row, peeks) {
  const { dom, current: { look, settings } } = lab, { field } = dom;
  // A box that has no part in this lets the letters stand inside of it.
  dom.boxes[0].classList.toggle("lab-idle", view.itself && !view.alone);
  dom.boxes[1].classList.toggle("lab-idle", view.encoder);
  const { width, height, ...edges } = places(dom);
  if (!width) return;
  const { across, down, layers, weight } = view, map = last(layers);
  const shape = `${across.length} ${down.length} ${map.heads}`;
  if (field.dataset.shape !== shape) {
    field.dataset.shape = shape;
    field.replaceChildren();
    for (let i = 0; i < map.heads * down.length * across.length; i += 1) draw(field, "path", {});
    [...across, ...down].forEach(() => {
      draw(field, "line", {});
      draw(field, "rect", { class: "lab-tile", rx: 4 });
      draw(field, "rect", { width: 16, height: 3 }); // below a wrong letter
      draw(field, "text", {});
    });
    for (const side of ["start", "end"]) draw(field, "text", { class: "lab-side", "text-anchor": side, y: 13 });
  }
  field.setAttribute("viewBox", `0 0 ${width} ${height}`);
  field.setAttribute("aria-label", `${layers.length > 1 ? `Layer ${layers.length}: ` : ""}lines from each letter on the right to where it looks; the weights are below, in words`);
  // The same height for the same place; where both sides are the answer, for the same letter.
  const shift = view.itself && !view.alone ? 1 : 0, longest = Math.max(across.length, down.length + shift);
  const close = Math.abs(across.length - down.length) < 3 || shift;
  lab.slots = { count: close ? longest : down.length, shift, read: view.itself || view.encoder ? 0 : close ? longest : across.length };
  const y = (i, n) => TOP + ((height - TOP) * (i + 0.5)) / (close ? longest : n);
  const gap = (height - TOP) / longest; // one letter from the next
  field.classList.toggle("lab-small", gap < 17);
  const tile = Math.min(22, gap - 2);
  const x = [12, width - 12], end = [edges.left || 30, edges.right || width - 30];
  if (edges.left && dom.boxes[0].matches(".lab-idle")) [x[0], end[0]] = [edges.left + 14, edges.left + 28];
  if (edges.right && dom.boxes[1].matches(".lab-idle")) [x[1], end[1]] = [edges.right - 14, edges.right - 28];
  const [paths, lines, rects, letters] = ["path", "line", "rect", "text"].map((tag) => field.getElementsByTagName(tag));
  // Looks that are hardly more than an even spread would make a cobweb: of a letter without
  // a stronger one, only its strongest is drawn.
  const even = 1 / across.length, strongest = down.map((_, i) => Math.max(...Array.from({ length: map.heads }, (__, h) => Math.max(...across.map((___, j) => weight(map, h, i, j))))));
  const full = (h, i, j) => weight(map, h, i, j) === strongest[i] || (peeks && peeks[i] === h && j === i + 1 + view.before);
  let at = 0;
  for (let h = 0; h < map.heads; h += 1) {
    const bend = (h - (map.heads - 1) / 2) * 7, middle = (end[0] + end[1]) / 2;
    down.forEach((_, i) => across.forEach((__, j) => {
      const ahead = view.itself && j > i + view.before, hidden = i >= upTo || (ahead && !view.peeks);
      const share = hidden ? 0 : weight(map, h, i, j) * (row === null || row === i ? 1 : 0.1) * (!peeks || (peeks[i] === h && j === i + 1 + view.before) ? 1 : 0.15);
      const from = y(i + shift, down.length), to = y(j, across.length), path = paths[at];
      path.setAttribute("d", `M${end[1]} ${from}C${middle} ${from + bend} ${middle} ${to + bend} ${end[0]} ${to}`);
      path.setAttribute("class", ahead ? "lab-ahead" : "");
      const plain = weight(map, h, i, j) < 2 * even;
      const strong = full(h, i, j); // the others are faint, or four heads would make mud
      path.style.strokeOpacity = share < 0.03 || (plain && weight(map, h, i, j) < strongest[i]) ? 0 : ((0.15 + 0.85 * share) * (strong || row === i ? 1 : 0.3)).toFixed(2);
      path.style.strokeWidth = ((0.6 + 2.8 * share) * (strong || row === i ? 1 : 0.6)).toFixed(1);
      at += 1;
    }));
  }
  const put = (k, text, side, height, style) => {
    const line = lines[k], letter = letters[k], [box, mark] = [rects[2 * k], rects[2 * k + 1]], inwards = side ? -12 : 12;
    for (const [name, value] of Object.entries({ x: x[side] - 11, y: height - tile / 2, width: 22, height: tile, class: `lab-tile ${text ? style : "lab-none"}` })) box.setAttribute(name, value);
    for (const [name, value] of Object.entries({ x1: x[side] + inwards, x2: end[side], y1: height, y2: height })) line.setAttribute(name, value);
    mark.setAttribute("x", x[side] - 8);
    mark.setAttribute("y", height + tile / 2 - 2.5);
    mark.setAttribute("class", style);
    letter.setAttribute("x", x[side]);
    letter.setAttribute("y", height + 4);
    letter.setAttribute("class", style);
    letter.textContent = text;
  };
  across.forEach((text, j) => put(j, text, 0, y(j, across.length), ""));
  // On the right stands what it writes by itself, and nothing else.
  const written = view.encoder ? down : [...look.written, ...(view.ended ? ["■"] : [])].slice(0, upTo);
  const wanted = [...look.wanted, "■"];
  const judge = (i) => (view.encoder || i >= written.length ? "" : written[i] === wanted[i] ? "lab-right" : "lab-wrong");
  down.forEach((_, i) => put(across.length + i, written[i] || "", 1, y(i + shift, down.length), `${judge(i)}${row === i ? " lab-strong" : ""}`));
  const sides = view.encoder ? ["the word", "the word"] : [!view.itself ? "reads" : view.alone ? "word, answer so far" : view.peeks ? "the answer, in training" : "written so far", view.peeks ? "it writes by itself" : "writes"];
  sides.forEach((text, side) => {
    const label = letters[across.length + down.length + side];
    label.textContent = text;
    label.setAttribute("x", side ? width : 0);
  });
}

const atStep = (step) => (step ? `step ${step}` : "untrained");

// Beside the slider stands its step, and while it trains the one that the status says.
function sayWhen(lab) {
  const { current: { kept, painted }, dom: { back, when } } = lab;
  when.textContent = atStep(lab.training && back.value === back.max ? painted : kept[back.value]);
  back.setAttribute("aria-valuetext", when.textContent);
}

// The slider's steps are those that were kept, and it stands at the last.
function toTheEnd(lab) {
  const { current: { kept }, dom: { back, film } } = lab;
  back.max = Math.max(0, kept.length - 1);
  back.value = back.max;
  back.disabled = film.disabled = kept.length < 2;
  sayWhen(lab);
}

// Shows the model as it was at the step that the slider stands at.
function goBack(lab) {
  const { current } = lab, step = current.kept[lab.dom.back.value];
  clearInterval(lab.timer);
  sayWhen(lab);
  paintCurves(lab);
  const text = wordNow(lab) ?? current.look.text;
  if (current.gone) lab.dom.wordTrouble.textContent = "That model is gone. Train again.";
  else lab.worker.postMessage({ look: text, id: current.id, at: step });
}

function listenToStage(lab) {
  const { field, back, film } = lab.dom;
  back.addEventListener("input", () => {
    clearInterval(lab.film);
    goBack(lab);
  });
  film.addEventListener("click", () => {
    clearInterval(lab.film);
    back.value = 0;
    lab.film = setInterval(() => {
      goBack(lab);
      if (back.value === back.max) clearInterval(lab.film);
      else back.stepUp();
    }, 160);
  });
  field.addEventListener("mousemove", (event) => {
    if (!ready(lab) || !lab.slots) return;
    const box = field.getBoundingClientRect(), { count, shift, read } = lab.slots;
    const at = (event.clientY - box.top - TOP) / (box.height - TOP);
    const left = read && event.clientX < box.left + 30; // a letter that is read: who looks at it?
    light(lab, left ? looksMost(lab, Math.floor(at * read)) : Math.floor(at * count) - shift);
  });
  field.addEventListener("mouseleave", () => { if (ready(lab)) light(lab, null); });
  new ResizeObserver(() => paintCurves(lab)).observe(lab.dom.charts);
  // canvases have the colours of the theme that they were painted in
  new MutationObserver(() => { if (ready(lab)) showMaps(lab, Infinity); })
    .observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme", "theme"] });
}

// The stage moves as soon as it is seen: an untrained model writes.
function greet(lab) {
  if (!lab.seen || !start(lab)) return;
  lab.worker.postMessage({ greet: lab.current.id, settings: lab.current.settings, text: wordNow(lab) ?? lab.first });
}

function greetWhenSeen(lab) {
  const seen = new IntersectionObserver(([entry]) => {
    if (!entry.isIntersecting) return;
    seen.disconnect();
    lab.seen = true;
    if (lab.current.id < 0) greet(lab);
  });
  seen.observe(lab.dom.stage);
}
