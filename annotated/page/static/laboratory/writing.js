// The word that the model reads, and what it writes for it.
//
// Needs elements.js and attention.js. Writes `lab.timer` and `lab.spelled`, by which
// letters appear one by one, and `lab.lit`, the letter that is pointed at.

function makeWriting(lab) {
  const word = make("input", {
    id: idOf(lab, "word"), type: "text", value: lab.first,
    autocomplete: "off", spellcheck: false, autocapitalize: "off", size: 9,
    "aria-describedby": idOf(lab, "word-trouble"),
  });
  const wordTrouble = make("p", { id: idOf(lab, "word-trouble"), className: "lab-trouble", "aria-live": "polite" });
  const random = make("button", { type: "button", disabled: true }, "Random word");
  const failing = make("button", { type: "button", hidden: true }, "One it got wrong");
  const replay = make("button", { type: "button", disabled: true }, "Write it again");
  const output = make("p", { className: "lab-written", "aria-live": "off", tabIndex: 0, role: "group", "aria-label": "What it writes" });
  const writing = make("div");
  return { word, wordTrouble, random, failing, replay, output, writing };
}

// The word that is typed; null, and a message, if the model can't read it.
function wordNow(lab) {
  const { current, dom: { word, wordTrouble } } = lab;
  const text = word.value.trim().toLowerCase(), { longest, letters } = lab.base;
  const end = String.fromCharCode(96 + letters);
  const strange = [...text].find((letter) => !(letter >= "a" && letter <= end));
  const length = text.length !== longest;
  wordTrouble.textContent = strange ? `The model knows only a to ${end}, so ${strange === " " ? "a space" : `“${strange}”`} won’t do.`
    : length ? `${text ? `Your word has ${text.length} letter${text.length > 1 ? "s" : ""}. ` : ""}Type a word of exactly ${longest} letters.` : "";
  if (wordTrouble.textContent && current && current.look) wordTrouble.textContent += ` Still showing ${current.look.text}.`;
  word.setAttribute("aria-invalid", Boolean(strange || length));
  return strange || length ? null : text;
}

// Shows what the model wrote, letter by letter.
function write(lab) {
  const { current, dom } = lab;
  clearInterval(lab.timer);
  lab.spelled = 0;
  dom.replay.disabled = dom.random.disabled = !current || lab.training;
  if (!current || !current.look) return;
  const finish = current.look.written.length + 1;
  if (lab.calm || lab.training) return showWritten(lab, Infinity);
  lab.timer = setInterval(() => {
    lab.spelled += 1;
    showWritten(lab, lab.spelled);
    if (lab.spelled >= finish) clearInterval(lab.timer);
  }, 220);
  showWritten(lab, 0);
}

const spoken = ({ text, written }) => `For ${text} it wrote ${written || "nothing"}.`;

// Shows the first `upTo` letters, and after the last one whether they are right.
function showWritten(lab, upTo) {
  const { current: { id, look }, dom } = lab;
  if (!look) return;
  const { text, written, wanted } = look;
  dom.output.replaceChildren(`${text} → `, ...[...written].slice(0, upTo).map((letter, i) => make(
    "span", { className: `${letter === wanted[i] ? "lab-right" : "lab-wrong"}${i === lab.lit ? " lab-lit" : ""}` }, letter)));
  if (upTo > written.length) {
    dom.output.append(make("span", { className: "lab-verdict" }, written === wanted ? " ✓ right"
      : `${written ? "" : "(nothing)"} ✗ it should be ${wanted}`));
    const said = spoken(look);
    // not what the run's end has said, nor what is written when the page opens
    const known = dom.live.textContent.endsWith(said) || (!id && text === lab.first);
    if (!lab.training && !known) dom.live.textContent = said;
  }
  showMaps(lab, upTo);
}

// A letter that is pointed at, or reached with the arrow keys, lights its row.
function light(lab, i) {
  const to = i === null || i < 0 || i >= lab.current.look.written.length ? null : i;
  if (to === lab.lit) return;
  lab.lit = to;
  clearInterval(lab.timer);
  showWritten(lab, Infinity);
}

function listenToWord(lab) {
  const { word, wordTrouble, random, failing, replay } = lab.dom;
  word.addEventListener("input", () => {
    const text = wordNow(lab);
    if (text === null) return;
    if (lab.worker) lab.worker.postMessage({ look: text });
    else wordTrouble.textContent = "That model is gone. Train again.";
  });
  random.addEventListener("click", () => {
    const { longest, letters } = lab.base;
    word.value = Array.from({ length: longest }, () => String.fromCharCode(97 + Math.floor(letters * Math.random()))).join("");
    word.dispatchEvent(new Event("input"));
  });
  failing.addEventListener("click", () => {
    word.value = lab.current.failed;
    word.dispatchEvent(new Event("input"));
  });
  replay.addEventListener("click", () => write(lab));
}

function listenToLetters(lab) {
  const { output } = lab.dom;
  output.addEventListener("mouseover", ({ target }) => { if (ready(lab)) light(lab, [...output.children].indexOf(target)); });
  output.addEventListener("mouseleave", () => { if (ready(lab)) light(lab, null); });
  output.addEventListener("blur", () => { if (ready(lab)) light(lab, null); });
  output.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || !ready(lab)) return;
    event.preventDefault();
    light(lab, Math.max(0, Math.min(lab.current.look.written.length - 1, (lab.lit ?? -1) + by)));
  });
}
