// A run: the Worker that trains it, and what that posts.
//
// Needs elements.js, settings.js, curves.js, form.js, sentences.js, stage.js, tables.js and
// writing.js. Writes `lab.worker`, `lab.current` and
// `lab.past` (the runs), `lab.training`, and when it painted and spoke last.

function makeRun() {
  const train = make("button", { type: "button", className: "lab-train lab-main" }, "Train");
  const again = make("button", { type: "button", disabled: true, title: "Train again, from other random numbers" }, "Another seed");
  const pause = make("button", { type: "button", hidden: true }, "Pause");
  const once = make("button", { type: "button", hidden: true }, "One step");
  const next = make("button", { type: "button", hidden: true, className: "lab-main", title: "The next experiment" }, "Next");
  const skip = make("button", { type: "button", hidden: true }, "Skip the comparison");
  const status = make("p", { className: "lab-status" }, "Nothing is trained yet.");
  const live = make("p", { className: "lab-unseen", role: "status" });
  const rows = make("tbody");
  const runs = make("div", { hidden: true, className: "lab-runs" });
  const verdict = make("p", { className: "lab-judged" }), compared = make("p", { className: "lab-compared" });
  const buttons = make("p", { className: "lab-buttons" }, train, pause, once, skip, next, again);
  const report = make("div", { className: "lab-report" });
  return { report, train, again, pause, once, skip, next, buttons, status, live, verdict, compared, rows, runs };
}

// Starts the Worker, unless it runs; false if the browser has none.
function start(lab) {
  const { dom } = lab;
  if (lab.worker) return true;
  try {
    const source = `(${lab.engine})().serve(self);`;
    lab.worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  } catch (error) {
    dom.status.textContent = `This browser doesn’t let the page compute in the background (${error.message}).`;
    return false;
  }
  lab.worker.onmessage = ({ data }) => receive(lab, data);
  lab.worker.onerror = (event) => {
    dom.status.textContent = `The engine stopped: ${event.message}. Reload the page to begin anew.`;
    ended(lab);
  };
  return true;
}

// Trains with the settings as they stand.
function begin(lab) {
  const { dom } = lab;
  const settings = settingsNow(lab);
  if (!settings || !start(lab)) return;
  const it = chosen(lab), guess = dom.guesses.querySelector("input:checked");
  // Only a run with the experiment's own switches can tell whether a guess was right.
  const asked = it && same(settings, { ...lab.base, ...it.changes }) ? it : null;
  const title = asked || (it && lab.names.length === 1) ? it.title : "own switches";
  const run = { settings, asked, title, guess: guess && (asked || dom.experiment.value === "own") ? guess.value : null };
  clearInterval(lab.film);
  dom.runs.hidden = false;
  lab.spoken = performance.now();
  dom.train.textContent = "Stop";
  lab.root.classList.add("lab-busy");
  dom.again.hidden = dom.guesses.disabled = lab.training = true;
  hold(lab, false);
  dom.live.textContent = "Training.";
  // An experiment is compared with its control, which may have to be trained first.
  if (asked && !same(settings, control(lab.base, it)) && !curves(lab, empty(settings, it))) {
    launch(lab, { settings: { ...control(lab.base, it), seed: settings.seed }, title: it.against, next: run });
  } else launch(lab, run);
  (lab.small ? dom.stage : innerHeight < 560 ? dom.stage.closest(".lab-bench") : lab.root).scrollIntoView({ behavior: lab.calm ? "auto" : "smooth" });
}

// Makes a run the current one, and has it trained.
function launch(lab, run) {
  const { dom } = lab;
  lab.current = { ...run, ...empty(run.settings, run.asked), id: lab.past.length + 1, step: 0, painted: 0, seconds: 0, kept: [0], failed: [], told: 0, row: dom.rows.insertRow(0) };
  lab.past.push(lab.current);
  lab.lit = null;
  dom.skip.hidden = !run.next;
  showChanges(lab);
  lab.worker.postMessage({ train: lab.current.id, settings: run.settings, text: wordNow(lab) ?? lab.first });
  conclude(lab);
  showParts(lab);
  toTheEnd(lab);
  paint(lab);
}

// What is said of the current run once it is over, and only then.
function conclude(lab) {
  const { dom, current } = lab, done = over(current) && !current.next;
  dom.verdict.textContent = done ? judged(lab, current) : "";
  dom.compared.textContent = done ? besides(lab, current) : "";
  if (done && current.asked) explain(lab, current.asked, Boolean(reference(lab, current)));
  dom.answer.hidden = !done || !current.asked;
  dom.report.classList.toggle("lab-told", Boolean(done));
  mark(lab, current.guess, done && (current.asked || current.guess) ? truth(current) : null);
  dom.next.hidden = dom.answer.hidden || lab.names.length === 1;
  dom.failing.hidden = !done || !current.failed.length;
  dom.again.disabled = current.id < 0;
  point(lab);
}

// While it is held, it trains a step at a time.
function hold(lab, held) {
  const { pause, once } = lab.dom;
  lab.held = held;
  pause.hidden = !lab.training;
  pause.textContent = held ? "Go on" : "Pause";
  once.hidden = !lab.training || !held;
}

function ended(lab) {
  lab.training = false;
  lab.root.classList.remove("lab-busy");
  lab.dom.skip.hidden = true;
  hold(lab, false);
  lab.dom.train.textContent = "Train";
  lab.dom.again.hidden = lab.dom.guesses.disabled = false;
  showParts(lab);
  showChanges(lab);
}

// Takes what the engine's `serve` posts.
function receive(lab, data) {
  const { dom, current } = lab;
  if (!current || data.id !== current.id || (current.end && data.step !== undefined)) return;
  if (data.step === undefined) { // a word that was asked for, or a step
    current.look = data.look;
    if (data.at === undefined || data.at === last(current.kept)) return write(lab);
    return showWritten(lab, Infinity);
  }
  current.step = data.step;
  current.seconds = data.seconds;
  current.points.push(...data.points);
  current.tests.push(...data.tests);
  if (data.look) {
    const atEnd = dom.back.value === dom.back.max; // who went back, stays there
    current.kept = data.kept;
    if (atEnd || data.end) {
      current.look = data.look;
      toTheEnd(lab);
      if (!data.end) setTimeout(() => { if (lab.current === current) showWritten(lab, Infinity); }, 0); // a task of its own
    } else dom.back.max = data.kept.length - 1;
  }
  if (data.end) {
    Object.assign(current, { end: data.end, exam: data.exam, words: data.words, failed: data.failed || [] });
    if (current.next && (over(current) || current.skipped)) {
      paint(lab);
      return launch(lab, current.next);
    }
    ended(lab);
    paint(lab);
    write(lab);
    conclude(lab);
    if (over(current)) markDone(lab);
    if (document.activeElement === dom.train && !dom.next.hidden) dom.next.focus({ preventScroll: true });
    if (dom.verdict.textContent) dom.verdict.scrollIntoView({ block: "nearest", behavior: lab.calm ? "auto" : "smooth" });
    const said = [dom.status.textContent, dom.verdict.textContent, dom.compared.textContent, current.look ? spoken(current.look) : ""];
    dom.live.textContent = said.filter(Boolean).join(" ");
  } else if (!lab.waiting) {
    lab.waiting = true;
    requestAnimationFrame(() => {
      lab.waiting = false;
      const now = performance.now();
      const soon = current.painted && now - lab.painted < (lab.calm ? 2000 : 120); // the first step is said at once
      if (!lab.training || (!lab.held && soon)) return;
      lab.painted = now;
      paint(lab);
      if (now - lab.spoken < 8000) return;
      lab.spoken = now;
      dom.live.textContent = dom.status.textContent;
    });
  }
}

// Shows the current run as it stands.
function paint(lab) {
  const { current } = lab;
  lab.dom.status.textContent = told(lab, current);
  current.painted = current.step;
  sayWhen(lab);
  paintCurves(lab);
  fillRow(lab, current);
}

// What trains first, to be compared with, is grey already.
function paintCurves(lab) {
  const { current, current: { next }, training } = lab;
  if (next && training) curves(lab, empty(next.settings, next.asked), current);
  else curves(lab, current);
}

// Stops a run that would be taken for one of another model.
function leave(lab, why) {
  const { dom, current } = lab;
  clearInterval(lab.timer);
  clearInterval(lab.film);
  if (!lab.training) return "";
  lab.worker.postMessage({ stop: true });
  Object.assign(current, { end: "stopped", exam: null });
  ended(lab);
  paint(lab);
  const said = `${nameOf(lab, current)} was stopped after ${current.step} steps, because ${why}.`;
  dom.live.textContent = said;
  return said;
}

function listenToRun(lab) {
  const { train, again, pause, once, skip, inputs, status } = lab.dom;
  train.addEventListener("click", () => (lab.training ? lab.worker.postMessage({ stop: true }) : begin(lab)));
  again.addEventListener("click", () => {
    const settings = settingsNow(lab);
    if (!settings) return;
    lab.own.seed = settings.seed + 1;
    if (inputs.seed) inputs.seed.value = lab.own.seed;
    showChanges(lab);
    share(lab);
    begin(lab);
    train.focus();
  });
  pause.addEventListener("click", () => {
    lab.worker.postMessage(lab.held ? { resume: true } : { pause: true });
    hold(lab, !lab.held);
  });
  once.addEventListener("click", () => lab.worker.postMessage({ once: true }));
  skip.addEventListener("click", () => {
    lab.current.skipped = true;
    lab.worker.postMessage({ stop: true });
  });
  document.addEventListener("visibilitychange", () => {
    if (!lab.training || lab.held) return;
    lab.worker.postMessage(document.hidden ? { pause: true } : { resume: true });
  });
  addEventListener("pagehide", () => {
    if (!lab.worker) return;
    lab.worker.terminate();
    lab.worker = null;
    for (const run of [...lab.past, lab.current]) run.gone = true;
    if (lab.training) {
      lab.current.end = "stopped";
      status.textContent = "Stopped, because you left the page.";
      ended(lab);
    }
  });
}
