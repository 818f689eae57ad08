// Choosing an experiment, with its question and answer, or switches of one's own, and the
// address that shares it.
//
// Needs elements.js, settings.js, curves.js, form.js, stage.js, tables.js and run.js.

// Shows the model that is chosen: the last one that was trained with these settings, with
// all that was said of it, or else one that knows nothing yet. `why` a run was stopped
// comes before.
function present(lab, why = "") {
  const { dom } = lab, it = chosen(lab), asked = it && same(lab.own, usually(lab)) ? it : null;
  const done = lab.past.filter((run) => over(run) && same(run.settings, lab.own) && run.settings.seed === lab.own.seed && (!asked || run.asked === asked));
  lab.lit = null;
  dom.output.textContent = "";
  if (done.length) lab.current = last(done);
  else lab.current = { ...empty(lab.own, asked), id: (lab.fresh -= 1), step: 0, kept: [0], failed: [] };
  showParts(lab);
  showChanges(lab);
  showWords(lab);
  toTheEnd(lab);
  conclude(lab);
  if (done.length) {
    const { guess } = lab.current;
    for (const input of dom.guesses.querySelectorAll("input")) input.checked = input.value === guess;
    paint(lab);
    write(lab);
    if (lab.worker && lab.dom.word.value !== lab.current.look.text && wordNow(lab) !== null) goBack(lab);
    return;
  }
  const grey = curves(lab, lab.current), words = [why];
  words.push(lab.past.length ? `${it ? "Make your guess, then press" : "A new model, which knows nothing yet: make your guess, and press"} Train.` : "Nothing is trained yet.");
  if (asked && !grey && !same(lab.own, control(lab.base, it))) words.push("It trains two models: first the grey curve, to compare with, then this one.");
  dom.status.textContent = words.filter(Boolean).join(" ");
  greet(lab);
}

function chooseExperiment(lab, settings = null) {
  const { dom } = lab, why = leave(lab, "you chose another experiment"), it = chosen(lab);
  const done = lab.past.filter((run) => it && over(run) && run.asked === it);
  show(lab, settings || (done.length ? last(done).settings : usually(lab)));
  lab.from = null;
  ask(lab);
  if (!it) dom.panel.open = true;
  present(lab, why);
  if (!settings) fitWord(lab, why);
}

// A word that suits another model gives way.
function fitWord(lab, why) {
  if (wordNow(lab) !== null) return;
  lab.dom.word.value = lab.first;
  present(lab, why);
  wordNow(lab);
}

// The question of what is chosen, and the guesses that go with it.
function ask(lab) {
  const { dom, from, own, base, file, names } = lab, { experiment } = dom, it = chosen(lab);
  const kept = from ? changes({ ...base, ...file.experiments[from].changes }, base).filter((one) => changes(own, base).includes(one)) : [];
  const text = it ? it.question : kept.length ? `Your own switches, and what experiment ${names.indexOf(from) + 1} has changed (${kept.join(", ")}). What do you expect?`
    : "Switch what you like, in the drawing or below. (How small can the model get, and still write most words right?) What do you expect?";
  dom.title.textContent = it ? `${names.indexOf(experiment.value) + 1}. ${it.title}` : "Your own switches";
  dom.question.replaceChildren(...linked(lab, text));
  const texts = it ? it.guesses : Object.keys(OWN);
  if (String(texts) !== String([...dom.guesses.querySelectorAll("input")].map(({ value }) => value))) offer(lab, texts);
  if (it) explain(lab, it, true);
}

// The answer of an experiment. What stands in {} is about the grey curve.
function explain(lab, it, grey) {
  const parts = (text) => linked(lab, text.replace(/\{(.*?)\}/g, grey ? "$1" : ""));
  lab.dom.answer.replaceChildren(
    make("p", {}, ...parts(it.answer)),
    make("details", {}, make("summary", {}, "Why, and was that luck?"), make("p", {}, ...parts(it.why)), ...recorded(lab, it)),
  );
}

// A switch that is changed leads to "your own switches", where those are offered, and back
// to the experiment (`lab.from`) once all is as that had it.
function switched(lab) {
  const { dom, names } = lab, settings = settingsNow(lab, false);
  if (!settings) return;
  const moved = apart(settings, lab.own);
  if (!moved.length) return;
  const why = leave(lab, "you changed a switch");
  lab.own = settings;
  if (moved.includes("words")) show(lab, withWords(lab, settings));
  if (names.length > 1 && String(moved) !== "seed") {
    if (chosen(lab)) lab.from = dom.experiment.value;
    const back = lab.from && same(settings, { ...lab.base, ...lab.file.experiments[lab.from].changes });
    dom.experiment.value = back ? lab.from : "own";
    ask(lab);
  }
  present(lab, why);
  fitWord(lab, why);
}

// The address says which experiment it is, and what is switched, so that a link shares it.
function share(lab) {
  if (lab.names.length === 1) return;
  const changed = apart(lab.own, usually(lab)).map((name) => [name, lab.own[name]]);
  const word = wordNow(lab), its = word && word !== lab.first ? [["word", word]] : [];
  history.replaceState(null, "", `#${new URLSearchParams([["experiment", lab.dom.experiment.value], ...changed, ...its])}`);
}

// What a text of the address sets a switch to; undefined if there is no such choice.
function understood({ base }, name, text) {
  const [, , options] = SWITCHES[name];
  if (options) return Object.hasOwn(options, text) ? (typeof base[name] === "number" ? Number(text) : text) : undefined;
  if (name in TYPED) return text.trim() && TYPED[name][0](Number(text)) ? Number(text) : undefined;
  return { true: true, false: false }[text];
}

function openShared(lab) {
  const { names, dom: { experiment, notice } } = lab, parts = new URLSearchParams(location.hash.slice(1)), wrong = [];
  if (!parts.has("experiment")) return;
  const name = parts.get("experiment"), known = name === "own" || names.includes(name);
  if (!known) wrong.push(`There is no experiment “${name}”.`);
  parts.delete("experiment");
  if (parts.has("word")) lab.dom.word.value = parts.get("word").slice(0, 20);
  parts.delete("word");
  experiment.value = known ? name : names[0];
  let settings = usually(lab);
  if (parts.get("words") === "any") settings = withWords(lab, { ...settings, words: "any" });
  for (const [key, text] of parts) {
    const label = Object.hasOwn(SWITCHES, key) && SWITCHES[key][0], value = label && understood(lab, key, text);
    if (!label) wrong.push(`There is no switch “${key}”.`);
    else if (value === undefined) wrong.push(`${label} can’t be “${text}”: it stays as usual.`);
    else settings[key] = value;
  }
  if (chosen(lab) && !same(settings, usually(lab))) experiment.value = "own";
  chooseExperiment(lab, settings);
  notice.textContent = wrong.length ? `In the address: ${wrong.join(" ")}` : "";
  share(lab);
}

// An experiment that is finished has a tick on its step.
function markDone({ current: { asked }, dom: { experiment }, file, names }) {
  const name = names.find((one) => file.experiments[one] === asked);
  if (name) experiment.done(name);
}

function listenToExperiments(lab) {
  const { experiment, grid, next, reset, copy, notice } = lab.dom;
  const changed = () => {
    notice.textContent = "";
    share(lab);
  };
  next.addEventListener("click", () => {
    experiment.value = lab.names[lab.names.indexOf(experiment.value) + 1] || "own";
    chooseExperiment(lab);
    changed();
    experiment.focus();
    if (lab.small) lab.dom.title.scrollIntoView({ behavior: lab.calm ? "auto" : "smooth" });
  });
  if (lab.names.length > 1) addEventListener("hashchange", () => openShared(lab));
  experiment.steps.addEventListener("change", () => {
    chooseExperiment(lab);
    changed();
  });
  grid.addEventListener("change", () => {
    switched(lab);
    changed();
  });
  reset.addEventListener("click", () => {
    const why = leave(lab, "you put everything back");
    const { file, from } = lab, began = from && { ...lab.base, ...file.experiments[from].changes };
    if (began && same(began, usually(lab))) experiment.value = from; // it is that again
    show(lab, usually(lab));
    lab.from = null;
    ask(lab);
    present(lab, why);
    fitWord(lab, why);
    changed();
    experiment.focus();
  });
  copy.addEventListener("click", () => {
    share(lab);
    const told = (text) => {
      copy.textContent = text;
      setTimeout(() => { copy.textContent = "Copy link"; }, 3000);
    };
    if (!navigator.clipboard) return told("Copy it from the address bar");
    navigator.clipboard.writeText(location.href).then(() => told("Copied"), () => told("Copy it from the address bar"));
  });
}
