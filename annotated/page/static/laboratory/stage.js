// The stage: the model drawn, with parts that a click takes away, and the looks of its
// heads, alive while it trains; and a slider back through the training.
//
// Needs elements.js, settings.js, attention.js and writing.js. Reads `lab.current`,
// whose `looks` are what the engine found, by step, and `lab.lit`.

const PARTS = { // of each box, from its entrance on
  encoder: ["positions", "residual", "norm", "feed_forward"],
  decoder: ["positions", "causal", "scaled", "residual", "norm", "feed_forward"],
};
const SHORT = { positions: "positions", causal: "causal mask", scaled: "÷ √k", residual: "residuals", norm: "norms", feed_forward: "feed-forward" };
const isOn = (value) => value !== false && value !== "none";

function makeStage(lab) {
  const chips = [];
  const chip = (name) => {
    const button = make("button", { type: "button", className: "lab-chip", disabled: !lab.switches.includes(name), title: SWITCHES[name][1] }, SHORT[name]);
    button.addEventListener("click", () => flip(lab, name));
    chips.push([name, button]);
    return button;
  };
  const boxes = Object.entries(PARTS).map(([part, names]) => make("div", { className: `lab-box lab-${part}` }, make("b", {}, part), ...names.map(chip)));
  const stage = make("div", { className: "lab-stage" });
  const field = draw(stage, "svg", { class: "lab-field", role: "img", "aria-label": "the model, of which nothing is drawn yet" });
  stage.append(...boxes);
  const back = make("input", { id: idOf(lab, "back"), type: "range", min: 0, max: 0, value: 0, disabled: true, "aria-label": "Back through the training" });
  const when = make("output", { className: "lab-when" });
  const scrub = make("p", { className: "lab-scrub" }, "before", back, "now", when);
  return { stage, field, boxes, chips, back, when, scrub };
}

// A part is taken out, or put back.
function flip(lab, name) {
  const input = lab.dom.inputs[name];
  if (input.type === "checkbox") input.checked = !input.checked;
  else input.value = input.value === "none" ? lab.base[name] : "none";
  input.dispatchEvent(new Event("change", { bubbles: true }));
}

// The parts as the settings have them.
function showParts(lab) {
  const { chips, boxes } = lab.dom;
  for (const [name, button] of chips) {
    const on = isOn(lab.own[name]);
    button.setAttribute("aria-pressed", on);
    const usual = !on || lab.own[name] === true || name !== "positions" || lab.own[name] === lab.base[name];
    button.textContent = usual ? SHORT[name] : lab.own[name];
  }
  boxes[0].hidden = lab.own.model === "decoder";
}

// Where the letters stand, and from where to where the looks go.
function places({ field, boxes }) {
  const at = field.getBoundingClientRect();
  const beside = boxes.map((box) => box.getBoundingClientRect()).map((box) => box.width && box.top < at.bottom && box.bottom > at.top && box);
  return {
    width: at.width, height: at.height,
    left: beside[0] ? beside[0].right - at.left : 34,
    right: beside[1] ? beside[1].left - at.left : at.width - 34,
  };
}

// Draws what the heads of the last layer look at, for the first `upTo` letters.
function drawStage(lab, view, upTo, row) {
  const { dom, current: { look, settings } } = lab, { field } = dom;
  dom.boxes[0].hidden = view.itself; // both sides are the answer's
  dom.boxes[1].hidden = view.encoder;
  const { width, height, left, right } = places(dom);
  if (!width) return;
  const { across, down, layers, weight } = view, map = last(layers);
  const shape = `${across.length} ${down.length} ${map.heads}`;
  if (field.dataset.shape !== shape) {
    field.dataset.shape = shape;
    field.replaceChildren();
    for (let i = 0; i < map.heads * down.length * across.length; i += 1) draw(field, "path", {});
    [...across, ...down].forEach(() => {
      draw(field, "line", {});
      draw(field, "text", {});
    });
  }
  field.setAttribute("viewBox", `0 0 ${width} ${height}`);
  field.setAttribute("aria-label", `${layers.length > 1 ? `Layer ${layers.length}: ` : ""}lines from each letter on the right to where it looks; the weights are below, in words`);
  // the same height for the same place, where both sides have about as many
  const most = across.length - down.length < 3 ? Math.max(across.length, down.length) : 0;
  const y = (i, n) => (height * (i + 0.5)) / (most || n);
  const [paths, lines, letters] = ["path", "line", "text"].map((tag) => field.getElementsByTagName(tag));
  let at = 0;
  for (let h = 0; h < map.heads; h += 1) {
    const bend = (h - (map.heads - 1) / 2) * 7, middle = (left + right) / 2;
    down.forEach((_, i) => across.forEach((__, j) => {
      const hidden = i >= upTo || (view.itself && settings.causal && j > i + view.before);
      const share = hidden ? 0 : weight(map, h, i, j) * (row === null || row === i ? 1 : 0.1);
      const from = y(i, down.length), to = y(j, across.length), path = paths[at];
      path.setAttribute("d", `M${right} ${from}C${middle} ${from + bend} ${middle} ${to + bend} ${left} ${to}`);
      path.style.strokeOpacity = share < 0.03 ? 0 : (0.15 + 0.85 * share).toFixed(2);
      path.style.strokeWidth = (0.4 + 4.2 * share).toFixed(1);
      at += 1;
    }));
  }
  const put = (k, text, x, end, height, style) => {
    const line = lines[k], letter = letters[k];
    for (const [name, value] of Object.entries({ x1: x < width / 2 ? x + 10 : x - 10, x2: end, y1: height, y2: height })) line.setAttribute(name, value);
    letter.setAttribute("x", x);
    letter.setAttribute("y", height + 5);
    letter.setAttribute("class", style);
    letter.textContent = text;
  };
  across.forEach((text, j) => put(j, text, 12, left, y(j, across.length), ""));
  const judge = (i) => (view.encoder || !settings.causal || i >= look.written.length ? "" : look.written[i] === look.wanted[i] ? "lab-right" : "lab-wrong");
  down.forEach((text, i) => put(across.length + i, i < upTo ? text : "·", width - 12, right, y(i, down.length), `${judge(i)}${row === i ? " lab-strong" : ""}`));
}

// What was kept of the training: the slider goes back to it.
function keep(lab) {
  const { current, dom: { back } } = lab;
  current.looks.push([current.step, current.look]);
  current.typed = null;
  back.max = current.looks.length - 1;
  back.disabled = current.looks.length < 2;
  toTheEnd(lab);
}

function toTheEnd(lab) {
  const { current: { looks }, dom: { back, when } } = lab;
  back.value = back.max;
  if (looks.length) when.textContent = `step ${last(looks)[0]}`;
}

function listenToStage(lab) {
  const { field, back, when } = lab.dom;
  back.addEventListener("input", () => {
    const { looks, typed } = lab.current, [step, kept] = looks[back.value];
    const look = (back.value === back.max && typed) || kept;
    clearInterval(lab.timer);
    lab.current.look = look;
    when.textContent = `step ${step}${typed && look.text !== typed.text ? `, with ${look.text}` : ""}`;
    showWritten(lab, Infinity);
  });
  field.addEventListener("mousemove", (event) => {
    if (!ready(lab)) return;
    const box = field.getBoundingClientRect(), { look } = lab.current, count = lab.current.settings.model === "decoder" ? look.written.length + 1 : look.text.length + 1;
    light(lab, Math.floor(((event.clientY - box.top) / box.height) * count));
  });
  field.addEventListener("mouseleave", () => { if (ready(lab)) light(lab, null); });
  // canvases have the colours of the theme that they were painted in
  new MutationObserver(() => { if (ready(lab)) showMaps(lab, Infinity); })
    .observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme", "theme"] });
}

// The stage moves as soon as it is seen: an untrained model writes.
function greet(lab) {
  const seen = new IntersectionObserver(([entry]) => {
    if (!entry.isIntersecting || lab.current) return;
    seen.disconnect();
    if (!start(lab)) return;
    lab.current = { ...empty(lab.own), id: 0, looks: [], step: 0 };
    lab.worker.postMessage({ greet: lab.own, text: lab.first });
  });
  seen.observe(lab.dom.stage);
}
