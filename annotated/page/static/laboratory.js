// The laboratory on a page: an experiment with its question, the model as a stage with
// switches on it, curves, what it writes, and the runs so far. The engine trains in a
// Worker; no training starts by itself, and none goes on in a tab that nobody sees.
//
// Each file of the folder laboratory/ does one part of it. What they share is the `lab`:
// what the page passed on, the elements that the parts made (`lab.dom`), and the state that
// `laboratory` begins with. annotated/page/laboratory.py puts them all into one function,
// so that their names are their own.

function layOut({ root, file, names, small, base, dom }) {
  const head = ["run", names.length > 1 ? "experiment" : "what is different", "your guess", "seed", "steps", "seconds", "words right", "loss"];
  const said = make("div", { className: "lab-said" }, dom.verdict, dom.status);
  const title = `A word of ${base.longest} letters, a to ${String.fromCharCode(96 + base.letters)}`;
  dom.heads.append(dom.maps, dom.caption);
  dom.writing.append(
    dom.output, make("p", { className: "lab-word" }, labelled(title, dom.word), dom.random, dom.failing, dom.replay), dom.wordTrouble,
    labelled("Looks", dom.which), dom.pointed, dom.words, dom.heads,
  );
  root.append(
    names.length > 1 ? labelled("Experiment", dom.experiment) : "", dom.question, dom.stage, dom.scrub,
    make("div", { className: "lab-desk" }, make("div", {}, dom.guesses, dom.buttons, said, dom.trouble), dom.charts),
    dom.live, dom.answer, dom.writing, dom.panel,
    small ? make("p", { className: "lab-note" }, `On a small screen words have ${base.longest} letters instead of ${file.settings.longest}, so that a phone keeps up.`) : "",
    dom.help, dom.runs,
  );
  dom.runs.append(table(small ? "Your runs (scroll sideways →)" : "Your runs", head, dom.rows));
}

// root is the element to fill; file is laboratory.json, with PyTorch's recorded runs;
// names are the experiments that are offered, switches the settings that are shown.
function laboratory(root, { file, engine, names, switches }) {
  const small = matchMedia("(max-width: 540px)").matches;
  const base = { ...file.settings, ...(small ? file.phone : {}) };
  const lab = {
    root, file, engine, names, switches, small, base,
    calm: matchMedia("(prefers-reduced-motion: reduce)").matches,
    first: small ? "chafed" : "bigfaced", // no letter twice
    terms: termsFor(base),
    own: { ...base }, // what isn't among the inputs keeps its value from here
    fresh: true, // the attention that tells most is to be chosen
    worker: null, current: null, training: false, past: [],
    painted: 0, waiting: false, spoken: 0, timer: null, spelled: 0, lit: null,
  };
  lab.dom = { ...makeForm(lab), ...makeRun(), ...makeCharts(lab), ...makeWriting(lab), ...makeAttention(lab), ...makeStage(lab) };
  listenToExperiments(lab);
  listenToRun(lab);
  listenToWord(lab);
  listenToLetters(lab);
  listenToAttention(lab);
  listenToStage(lab);
  layOut(lab);
  chooseExperiment(lab);
  if (names.length > 1) openShared(lab);
  greet(lab);
  root.dataset.ready = "true";
}
