// Choosing an experiment, with its question and answer, or switches of one's own.
//
// Needs elements.js, settings.js, curves.js, form.js, stage.js, tables.js and run.js.

function chooseExperiment(lab) {
  const { dom } = lab;
  const it = chosen(lab);
  dom.status.textContent = "";
  leave(lab, "you chose another experiment");
  dom.status.textContent += lab.past.length ? ` ${it ? "Make your guess, then press" : "Press"} Train.` : "Nothing is trained yet.";
  lab.fresh = dom.again.disabled = true;
  dom.question.replaceChildren(...linked(lab, it ? it.question : "Set the switches as you like. What do you expect?"));
  offer(lab, it ? it.guesses : Object.keys(OWN));
  dom.answer.open = true;
  dom.answer.replaceChildren(make("summary", {}, it ? `${it.title}: what happens, and why` : ""),
    ...(it ? [make("p", {}, ...linked(lab, it.answer)), ...recorded(lab, it)] : []));
  if (it) show(lab, { ...lab.base, ...it.changes });
  else dom.panel.open = true;
  const grey = curves(lab, empty(lab.own, it));
  if (it && !grey && !same(lab.own, control(lab.base, it))) dom.status.textContent += " It trains twice: first the grey curve, to compare with, then this.";
}

// A switch that is changed leads to "your own switches", where those are offered.
function switched(lab, target) {
  const { dom, names } = lab;
  lab.own = { ...lab.own, ...(settingsNow(lab, false) || {}) };
  showParts(lab);
  if (target === dom.inputs.seed) return;
  dom.verdict.textContent = "";
  dom.answer.hidden = true; // it is about other switches
  const stopped = lab.training;
  if (stopped) leave(lab, "you changed a switch");
  if (names.length === 1 || dom.experiment.value === "own") {
    if (stopped) curves(lab, empty(lab.own)); // its question stays
    return;
  }
  dom.experiment.value = "own";
  dom.question.textContent = "Your own switches. What do you expect?";
  offer(lab, Object.keys(OWN));
  if (stopped) curves(lab, empty(lab.own));
}

// The address says which experiment it is, or what is switched, so that a link shares it.
function share(lab) {
  if (lab.names.length === 1) return;
  const changed = chosen(lab) ? [] : Object.keys(SWITCHES).filter((name) => lab.own[name] !== lab.base[name]);
  const parts = [["experiment", lab.dom.experiment.value], ...changed.map((name) => [name, lab.own[name]])];
  history.replaceState(null, "", `#${new URLSearchParams(parts)}`);
}

function openShared(lab) {
  const { experiment, inputs } = lab.dom, parts = new URLSearchParams(location.hash.slice(1));
  if (![...experiment.options].some(({ value }) => value === parts.get("experiment"))) return;
  experiment.value = parts.get("experiment");
  chooseExperiment(lab);
  if (chosen(lab)) return;
  show(lab, { ...lab.base }); // what the address doesn't name is as usual
  for (const [name, input] of Object.entries(inputs)) {
    if (!parts.has(name)) continue;
    if (input.type === "checkbox") input.checked = parts.get(name) === "true";
    else input.value = parts.get(name);
    if (input.value === "") input.value = lab.base[name]; // no such choice
  }
  switched(lab, null);
}

function listenToExperiments(lab) {
  lab.dom.next.addEventListener("click", () => {
    const { experiment } = lab.dom;
    experiment.selectedIndex += 1; // after the last come the reader's own switches
    chooseExperiment(lab);
    share(lab);
    experiment.focus();
  });
  if (lab.names.length > 1) addEventListener("hashchange", () => openShared(lab));
  lab.dom.experiment.addEventListener("change", () => {
    chooseExperiment(lab);
    share(lab);
  });
  lab.dom.grid.addEventListener("change", ({ target }) => {
    switched(lab, target);
    share(lab);
  });
}
