// The word that the model reads, and what it writes for it.
//
// Needs elements.js, attention.js, stage.js and run.js. Writes `lab.timer` and `lab.spelled`, by which
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
  const output = make("p", { className: "lab-written", "aria-live": "off", tabIndex: 0, role: "group", "aria-label": "What it writes" });
  const writing = make("div");
  const any = make("button", { type: "button", hidden: true }, "Train one for any word");
  const wordTitle = make("span");
  return { word, wordTitle, wordTrouble, any, random, failing, output };
}

// The word that is typed; null, and a message, if the model can't read it.
function wordNow(lab) {
  const { current, dom: { word, wordTrouble } } = lab;
  const settings = current ? current.settings : lab.own, end = ending(settings);
  const text = word.value.trim().toLowerCase(), { shortest, longest } = settings;
  const strange = [...text].find((letter) => !(letter >= "a" && letter <= end));
  const length = text.length < shortest || text.length > longest;
  wordTrouble.textContent = strange ? `The model knows only a to ${end}, so ${strange === " " ? "a space" : `“${strange}”`} won’t do.`
    : length ? `${text ? `Your word has ${text.length} letter${text.length > 1 ? "s" : ""}. ` : ""}Type a word of ${shortest < longest ? "" : "exactly "}${sizes(settings)} letters.` : "";
  if (wordTrouble.textContent && current && current.look) wordTrouble.textContent += ` Still showing ${current.look.text}.`;
  word.setAttribute("aria-invalid", Boolean(strange || length));
  const { any } = lab.file, fits = text.length >= any.shortest && text.length <= any.longest && /^[a-z]*$/.test(text);
  lab.dom.any.hidden = !(strange || length) || !fits || settings.letters >= any.letters || !lab.dom.inputs.words;
  return strange || length ? null : text;
}

// What the model may be asked.
function showWords({ current: { settings }, dom: { wordTitle } }) {
  wordTitle.textContent = `A word of ${sizes(settings)} letters${settings.letters < 26 ? `, a to ${ending(settings)}` : ""}`;
}

// Shows what the model wrote, letter by letter.
function write(lab) {
  const { current, dom } = lab;
  clearInterval(lab.timer);
  lab.spelled = 0;
  dom.random.disabled = !current || lab.training;
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
    const known = dom.live.textContent.endsWith(said) || (id < 0 && text === lab.first);
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
  const { word, random, failing, any, inputs } = lab.dom;
  any.addEventListener("click", () => {
    inputs.words.value = "any";
    inputs.words.dispatchEvent(new Event("change", { bubbles: true }));
    begin(lab);
    lab.dom.train.focus({ preventScroll: true });
  });
  word.addEventListener("input", () => {
    clearInterval(lab.film);
    if (wordNow(lab) === null) return;
    share(lab);
    if (lab.worker || lab.current.gone) goBack(lab);
  });
  random.addEventListener("click", () => {
    const { shortest, longest, letters } = lab.current.settings;
    const length = shortest + Math.floor((longest - shortest + 1) * Math.random());
    word.value = Array.from({ length }, () => String.fromCharCode(97 + Math.floor(letters * Math.random()))).join("");
    word.dispatchEvent(new Event("input"));
  });
  failing.addEventListener("click", () => {
    const { current } = lab; // one after the other
    word.value = current.failed[current.told % current.failed.length];
    current.told += 1;
    toTheEnd(lab); // where it goes wrong: on the way it did so with more
    word.dispatchEvent(new Event("input"));
  });
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
