// Where the model looks: a map for each head, and the same in words.
//
// Needs elements.js and stage.js. Reads `lab.current`, whose `look` is what the engine found,
// and `lab.lit`, the letter that is pointed at. Writes `lab.said`, what the line below the
// drawing says when no part of the drawing is pointed at (`lab.part`).

function makeAttention(lab) {
  const which = make("select", { id: idOf(lab, "which"), disabled: true }, make("option", {}, "not trained yet"));
  const maps = make("div", { className: "lab-maps", tabIndex: 0, role: "region", "aria-label": "Attention of each head" });
  const words = make("details", {}, make("summary", {}, "The attention in words"), make("div"));
  const heads = make("details", {}, make("summary", {}, "Head by head"));
  const caption = make("p", { className: "lab-note lab-caption" });
  const pointed = make("p", { className: "lab-pointed", "aria-live": "polite" }, hint(lab));
  return { which, heads, maps, words, caption, pointed };
}

// What can be done with the drawing. (An answer takes its place.)
function hint({ switches, dom }) {
  if (dom && !dom.answer.hidden) return "";
  const parts = PARTS.decoder.some((name) => switches.includes(name));
  if (matchMedia("(hover: none)").matches) return `Tap a letter to see its looks${parts ? ", a part to switch it off" : ""}.`;
  return `Point at a letter to see where it looks.${parts ? " Click a part to switch it off; then train a new model." : ""}`;
}

// The line below the drawing: what a part is, while that is pointed at.
function point(lab) {
  const { part, dom: { pointed } } = lab;
  pointed.textContent = part ? `${SWITCHES[part][0]}: ${SWITCHES[part][1]}` : lab.said || hint(lab);
}

const KINDS = { "decoder.cross_attention": "from the answer to the word", training: "from the answer to itself, in training",
  "decoder.attention": "from the answer to itself", "encoder.attention": "within the word" };
const LINES = { copy: "from top left to bottom right", reverse: "from top right to bottom left" };

// What the picture tells, and what is hidden in it.
function explained(view, { task, positions }, text) {
  const { kind, alone, peeks } = view;
  const own = peeks ? " This is how it trains, with the right answer in sight. In each row the outlined square is the letter to be predicted: any colour there, or to the right of it, means the model is peeking. When it writes by itself, nothing is there yet."
    : " What isn’t written yet is left blank.";
  const line = positions !== "none" ? LINES[task] ? ` A diagonal ${LINES[task]} means the model is looking at the letter it needs.` : ""
    : new Set(text).size < text.length ? " Without positions, equal letters get equal weight, wherever they stand." : "";
  if (alone) return ` First come the letters of the word, then, after the bar, what is written so far.${own}`;
  return kind.startsWith("encoder") ? " This is where the encoder looks before anything is written."
    : kind.includes("cross") ? line : own;
}

const ready = ({ current }) => current && current.look;
const kindOf = ({ name }) => name.replace(/layers\.\d+\./, "");

// Offers the kinds of attention that the model has. In training without a mask it peeks:
// that tells most.
function chooseKind(lab) {
  const { which } = lab.dom, { look, settings } = lab.current, alone = settings.model === "decoder";
  const kinds = Object.keys(KINDS).filter((kind) => (kind === "training" ? look.training : look.maps.some((map) => kindOf(map) === kind)));
  if (which.dataset.kinds !== `${kinds} ${alone}`) {
    const before = which.value;
    which.dataset.kinds = `${kinds} ${alone}`;
    which.disabled = false;
    which.replaceChildren(...kinds.map((value) => make("option", { value }, alone ? KINDS[value].replace("itself", "everything") : KINDS[value])));
    which.value = kinds.includes("training") ? "training" : kinds.includes(before) ? before : kinds[0];
  }
  return which.value;
}

// The symbols of a kind's rows, `down`, and of its columns, `across`; the map of each
// layer, and the weight that head h of a map has in row i, column j.
function viewOf(kind, { look, settings }) {
  const alone = settings.model === "decoder", peeks = kind === "training";
  const { given, length, maps } = peeks ? { ...look, ...look.training } : look;
  const encoder = kind.startsWith("encoder"), itself = !encoder && !kind.includes("cross");
  const source = [...look.text, "■"], written = ["▶", ...given];
  const next = [...given, "■"]; // what each position of the decoder leads to
  const before = alone ? source.length : 0; // places of the word, in one row with the answer
  const across = !itself ? source : alone ? [...source, ...written] : written;
  const down = encoder ? source : next.slice(0, length - before);
  const layers = maps.filter((map) => kindOf(map) === (peeks ? "decoder.attention" : kind));
  const weight = (map, h, i, j) => map.weights[(h * map.rows + i + before) * map.columns + j];
  const ended = look.length - before > look.written.length; // it wrote the end, too
  return { kind, alone, encoder, itself, peeks, ended, before, across, down, layers, weight };
}

// A canvas for each head, unless they are there.
function layOutMaps({ maps }, kind, layers) {
  const shape = `${kind} ${layers.length} ${layers[0].heads}`;
  if (maps.dataset.shape === shape) return;
  maps.dataset.shape = shape;
  maps.replaceChildren(...layers.map((map, l) => make("div", { className: "lab-layer" },
    layers.length > 1 ? make("p", {}, `Layer ${l + 1}`) : "",
    ...Array.from({ length: map.heads }, (_, h) => make("div", {}, `head ${h + 1}`,
      make("canvas", { role: "img", "aria-label": `Layer ${l + 1}, head ${h + 1}: its weights are below, in words` }))))));
}

// Which head of the last layer looks most at the very letter that it is about to write,
// for each of them, and how much; and how much all heads look at what isn't written yet.
function peeking({ down, layers, before, weight }) {
  const map = last(layers), letters = down.slice(0, -1), heads = Array.from({ length: map.heads }, (_, h) => h);
  const next = letters.map((_, i) => heads.map((h) => weight(map, h, i, before + i + 1)));
  const all = heads.map((h) => letters.map((_, i) => letters.slice(i).reduce((sum, __, j) => sum + weight(map, h, i, before + i + 1 + j), 0)));
  return { heads: next.map((row) => row.indexOf(Math.max(...row))), most: mean(next.map((row) => Math.max(...row))), all: mean(all.flat()) };
}

// Shows the attention with which the first `upTo` letters were written.
function showMaps(lab, upTo) {
  const { lit, current: { look, settings }, dom: { heads, maps, words, caption } } = lab;
  const view = viewOf(chooseKind(lab), lab.current);
  const { encoder, itself, peeks, before, across, down, layers, weight } = view;
  const rowed = !encoder; // then its rows are the letters it wrote
  caption.textContent = `A row for each letter ${encoder ? "of the word" : "that it writes"}, a column for each that it looks at.${explained(view, settings, look.text)} The stronger the colour, the more weight. ▶ is the start, ■ the end.${rowed ? " Point at a written letter, or press ← and → on it, to see where it looked." : ""}`;
  const hidden = encoder || peeks ? Infinity : upTo;
  const row = rowed && lit !== null && lit < down.length ? lit : null;
  const peek = peeks ? peeking(view) : null, others = last(layers).heads > 1;
  drawStage(lab, view, hidden, row, peek && peek.heads);
  lab.said = row !== null ? `For ${down[row]}: ${layers.flatMap((map, l) => Array.from({ length: map.heads },
    (_, h) => `${layers.length > 1 ? `layer ${l + 1}, ` : ""}head ${h + 1} looks most at ${most(view, map, h, row)}`)).join("; ")}.`
    : peeks && lab.current.id > 0 ? `Red: it peeks. Straight across is the very letter to be written: ${others ? "the head that looks there most" : "its head"} gives it ${percent(peek.most)} of its weight${others ? `; all together give ${percent(peek.all)} to what isn’t written yet` : ""}.` : "";
  point(lab);
  if (words.open) words.lastChild.replaceChildren(...inWords(view));
  if (!heads.open) return;
  layOutMaps(lab.dom, view.kind, layers);
  const style = getComputedStyle(maps);
  const room = maps.clientWidth, place = across.length + 1;
  const fit = Math.min(layers[0].heads, Math.floor(room / (14 * place + 10))); // canvases side by side
  const cell = Math.max(13, Math.min(22, Math.floor((room / (fit > 3 ? 4 : fit > 1 ? 2 : 1) - 10) / place)));
  const colours = [style.color, style.getPropertyValue("--accent")];
  layers.forEach((map, l) => [...maps.children[l].querySelectorAll("canvas")].forEach((canvas, h) => {
    const seen = (i, j) => (itself && !peeks && j > i + before ? null : i < hidden ? weight(map, h, i, j) : 0);
    paintMap(canvas, colours, cell, peeks ? before : -1, before, down, across, hidden, seen, row);
  }));
}

// `peek` places are before the answer: then the square of the letter that is to be
// predicted gets an outline. If `row` isn’t null, the others are faded.
function paintMap(canvas, [ink, accent], CELL, peek, bar, down, across, hidden, seen, row) {
  const sharp = window.devicePixelRatio || 1, pen = canvas.getContext("2d");
  const width = CELL * (across.length + 1), height = CELL * (down.length + 1);
  if (canvas.style.width !== `${width}px` || canvas.style.height !== `${height}px`) {
    Object.assign(canvas, { width: width * sharp, height: height * sharp });
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  }
  pen.setTransform(sharp, 0, 0, sharp, 0, 0);
  pen.clearRect(0, 0, width, height);
  Object.assign(pen, { font: `${Math.min(14, CELL - 3)}px sans-serif`, textAlign: "center", textBaseline: "middle", fillStyle: ink, globalAlpha: 1 });
  across.forEach((text, j) => pen.fillText(text, CELL * (j + 1.5), CELL / 2));
  down.forEach((text, i) => { if (i < hidden) pen.fillText(text, CELL / 2, CELL * (i + 1.5)); });
  pen.fillStyle = accent;
  down.forEach((_, i) => across.forEach((__, j) => {
    pen.globalAlpha = (seen(i, j) === null ? 0 : 0.1 + 0.9 * seen(i, j)) * (row === null || row === i ? 1 : 0.2);
    pen.fillRect(CELL * (j + 1), CELL * (i + 1), CELL - 1, CELL - 1);
  }));
  Object.assign(pen, { globalAlpha: 1, strokeStyle: ink, lineWidth: 1.5 });
  if (bar) pen.strokeRect(CELL * (bar + 1) - 0.5, 0, 0, height);
  for (let i = 0; peek >= 0 && peek + i + 1 < across.length; i += 1) {
    pen.strokeRect(CELL * (peek + i + 2), CELL * (i + 1), CELL - 1, CELL - 1);
  }
}

const SPOKEN = { "■": "the end", "▶": "the start" };

// Where a row's largest weight is.
function most({ across, weight }, map, h, i) {
  const weights = across.map((_, j) => weight(map, h, i, j)), top = weights.indexOf(Math.max(...weights));
  return `${SPOKEN[across[top]] || across[top]} at place ${top + 1} (${percent(weights[top])})`;
}

function inWords(view) {
  return view.layers.flatMap((map, l) => Array.from({ length: map.heads }, (_, h) => {
    const parts = view.down.map((text, i) => `for ${SPOKEN[text] || text}, ${most(view, map, h, i)}`);
    return make("p", {}, `${view.layers.length > 1 ? `Layer ${l + 1}, head` : "Head"} ${h + 1} looks most at these: ${parts.join("; ")}.`);
  }));
}

function listenToAttention(lab) {
  const { which, words, heads } = lab.dom, redraw = () => { if (ready(lab)) showMaps(lab, Infinity); };
  addEventListener("resize", redraw);
  which.addEventListener("change", redraw);
  words.addEventListener("toggle", redraw);
  heads.addEventListener("toggle", redraw);
}
