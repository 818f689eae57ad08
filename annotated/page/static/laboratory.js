// The laboratory on a page: an experiment with its question, the model as a stage with
// switches on it, curves, what it writes, and the runs so far. The engine trains in a
// Worker; no training starts by itself, and none goes on in a tab that nobody sees.
//
// Each file of the folder laboratory/ does one part of it. What they share is the `lab`:
// what the page passed on, the elements that the parts made (`lab.dom`), and the state that
// `laboratory` begins with. annotated/page/laboratory.py puts them all into one function,
// so that their names are their own.

// How the drawing is read; in time an answer takes this place.
function reading() {
  const tile = (style, letter) => make("s", { className: style }, letter);
  return make("dl", { className: "lab-reading" }, ...[
    [[make("i")], "where it looks; the stronger, the more"],
    [[make("b")], "a part that can be switched off"],
    [[tile("lab-right", "a"), tile("lab-wrong", "b")], "a letter that is right, and a wrong one"],
    [["■"], "the end of a word"],
  ].flatMap(([sign, text]) => [make("dt", { "aria-hidden": "true" }, ...sign), make("dd", {}, text)]));
}

function layOut({ root, file, names, small, base, dom }) {
  const head = ["run", names.length > 1 ? "experiment" : "what is different", "your guess", "seed", "steps", "seconds", "words right", "loss"];
  dom.heads.append(dom.maps, dom.caption);
  dom.report.append(dom.verdict, dom.answer, dom.compared, dom.status, reading());
  root.append(
    make("div", { className: "lab-head" }, ...(names.length > 1 ? [make("span", { className: "lab-experiment", "aria-hidden": "true" }, "Experiment"), dom.experiment.steps] : []), dom.state),
    dom.notice,
    make("div", { className: "lab-bench" }, // the guess first, for those who come by Tab
      make("div", { className: "lab-ask" }, names.length > 1 ? dom.title : "", dom.question),
      make("div", { className: "lab-desk" }, dom.guesses, dom.buttons, dom.report),
      make("div", { className: "lab-drawing" },
        make("div", { className: "lab-card" }, dom.stage, dom.scrub, make("p", { className: "lab-word" }, labelled(dom.wordTitle, dom.word), dom.random, dom.failing, dom.any), dom.wordTrouble, dom.output),
        dom.pointed),
      dom.charts),
    dom.live,
    make("div", { className: "lab-more" }, labelled("Looks", dom.which), dom.heads, dom.words, dom.panel, dom.help),
    small && file.phone.longest < file.settings.longest ? make("p", { className: "lab-note" }, `On a small screen words have ${sizes(base)} letters instead of ${sizes(file.settings)}, so that a phone keeps up.`) : "",
    dom.runs,
  );
  dom.runs.append(table(small ? "Your runs (scroll sideways →)" : "Your runs", head, dom.rows));
}

// root is the element to fill; file is laboratory.json, with PyTorch's recorded runs;
// names are the experiments that are offered, switches the settings that are shown.
function laboratory(root, { file, engine, names, switches }) {
  const small = matchMedia("(max-width: 540px)").matches;
  const base = { ...file.settings, words: "few", ...(small ? file.phone : {}) };
  const lab = {
    root, file, engine, names, switches, small, base,
    calm: matchMedia("(prefers-reduced-motion: reduce)").matches,
    first: small ? "chafed" : "bigfaced", // no letter twice
    terms: termsFor(base),
    own: { ...base }, // what isn't among the inputs keeps its value from here
    fresh: 0, // models that know nothing have numbers below it
    worker: null, current: null, training: false, past: [], seen: false,
    painted: 0, waiting: false, spoken: 0, timer: null, film: null, spelled: 0, lit: null,
    part: null, said: "", from: null,
  };
  lab.dom = { ...makeForm(lab), ...makeRun(), ...makeCharts(lab), ...makeWriting(lab), ...makeAttention(lab), ...makeStage(lab) };
  root.classList.toggle("lab-whole", names.length === Object.keys(file.experiments).length);
  listenToExperiments(lab);
  listenToRun(lab);
  listenToWord(lab);
  listenToLetters(lab);
  listenToAttention(lab);
  listenToStage(lab);
  layOut(lab);
  chooseExperiment(lab);
  if (names.length > 1) openShared(lab);
  greetWhenSeen(lab);
  root.dataset.ready = "true";
}
