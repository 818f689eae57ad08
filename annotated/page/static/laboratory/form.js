// The form: experiments with their question, guesses and answer, the switches, and what
// the words mean.
//
// Needs elements.js and settings.js. Writes `lab.own`, the settings as they were last
// shown or read.

// The experiments as numbered steps, the last of which are switches of one's own.
function makeSteps(lab) {
  const { file, names } = lab;
  const step = (value, title, shown) => make("label", { className: "lab-step", title },
    make("input", { type: "radio", name: idOf(lab, "experiment"), value, "aria-label": title }), make("span", { "aria-hidden": "true" }, shown));
  const steps = make("div", { className: "lab-steps", role: "radiogroup", "aria-label": "Experiment" },
    ...names.map((name, i) => step(name, `${i + 1}. ${file.experiments[name].title}`, String(i + 1))), step("own", "Your own switches", "own"));
  const find = (which) => steps.querySelector(`input${which}`);
  find("").checked = true;
  return {
    steps,
    get value() { return find(":checked").value; },
    set value(value) { find(`[value="${value}"]`).checked = true; },
    focus: () => find(":checked").focus({ preventScroll: true }),
    done(name) {
      const input = find(`[value="${name}"]`);
      input.parentNode.classList.add("lab-done");
      input.ariaLabel = `${input.parentNode.title}, done`;
    },
  };
}

function makeForm(lab) {
  const { file, names, switches } = lab;
  const experiment = makeSteps(lab), title = make("p", { className: "lab-title" });
  const question = make("p", { className: "lab-question" });
  const guesses = make("fieldset", { className: "lab-guesses" });
  const answer = make("div", { className: "lab-answer", hidden: true });
  const trouble = make("p", { className: "lab-trouble", role: "alert" });
  const notice = make("p", { className: "lab-trouble", role: "alert" });
  const changed = make("span");
  const reset = make("button", { type: "button", hidden: true }, names.length > 1 ? "Everything back on" : "Back to the experiment");
  const copy = make("button", { type: "button", hidden: true }, "Copy link");
  const state = make("p", { className: "lab-changed" }, changed, reset, copy);
  const inputs = {};
  const grid = make("div", { className: "lab-switches" });
  for (const name of switches) {
    const [label, title, options] = SWITCHES[name];
    const kind = name in TYPED ? "text" : "checkbox";
    inputs[name] = options ? select(lab, name, options) : make("input", { id: idOf(lab, name), type: kind });
    if (kind === "text" && !options) Object.assign(inputs[name], { inputMode: "decimal", autocomplete: "off", size: 8 });
    const control = options || name in TYPED ? labelled(label, inputs[name])
      : make("label", { className: "lab-control" }, inputs[name], " ", label);
    control.title = title;
    grid.append(control);
  }
  const meanings = Object.entries({ ...lab.terms, ...Object.fromEntries(switches.map((name) => SWITCHES[name])) })
    .sort(([one], [other]) => one.localeCompare(other));
  const help = make("details", {}, make("summary", {}, "What the words mean"),
    make("dl", {}, ...meanings.flatMap(([term, text]) => [make("dt", { id: idOf(lab, `word ${term}`) }, term), make("dd", {}, text)])));
  const few = switches.length <= 6;
  const panel = make(few ? "div" : "details", { className: "lab-panel" });
  panel.append(...(few ? [] : [make("summary", {}, "All switches")]), grid, trouble);
  return { experiment, title, question, guesses, answer, trouble, notice, changed, reset, copy, state, inputs, grid, help, panel };
}

// The experiment that is chosen; none for switches of one's own.
const chosen = (lab) => lab.file.experiments[lab.dom.experiment.value];

// Sets the inputs. What isn't among them keeps its value in `lab.own`.
function show(lab, settings) {
  lab.own = { ...settings };
  for (const [name, input] of Object.entries(lab.dom.inputs)) {
    if (input.type === "checkbox") input.checked = settings[name];
    else input.value = String(settings[name]);
  }
  lab.dom.trouble.textContent = "";
}

// The settings that an experiment begins with; switches of one's own, with all parts on.
const usually = (lab) => ({ ...lab.base, ...(chosen(lab) && chosen(lab).changes) });

// Says what differs from the whole model, and lets it be put back.
function showChanges(lab) {
  const { changed, reset, copy } = lab.dom, its = chosen(lab) && !apart(lab.own, usually(lab)).length;
  const suits = lab.own.words === "any" && lab.own.rate === lab.file.any.rate ? " (which suits them)" : "";
  const found = apart(lab.own, lab.base).map((name) => called(name, lab.own[name]) + (name === "rate" ? suits : ""));
  const first = lab.training && lab.current.next;
  changed.textContent = first ? `First, for the grey curve: ${lab.current.title}.` : found.length ? `${its ? "In this experiment" : "Switched"}: ${found.join(", ")}.` : "";
  reset.hidden = !apart(lab.own, usually(lab)).length;
  copy.hidden = lab.names.length === 1 || !found.length;
  copy.textContent = "Copy link";
}

// All settings as they stand; null if one that was typed makes no sense. Then a message
// says so, and who wants to train is led to it.
function settingsNow(lab, lead = true) {
  const settings = { ...lab.own }, wrong = [];
  for (const [name, input] of Object.entries(lab.dom.inputs)) {
    if (input.type === "checkbox") settings[name] = input.checked;
    else settings[name] = typeof lab.base[name] === "number" ? Number(input.value.trim().replace(",", ".")) : input.value;
    if (!(name in TYPED)) continue;
    const [fits, wanted] = TYPED[name];
    const bad = !input.value.trim() || !fits(settings[name]);
    input.setAttribute("aria-invalid", bad);
    if (bad) wrong.push([input, `${SWITCHES[name][0]}: ${input.value.trim() ? `“${input.value}” won’t do` : "nothing is filled in"}. It must be ${wanted}.`]);
  }
  lab.dom.trouble.textContent = wrong.map(([, text]) => text).join(" ");
  if (wrong.length) {
    if (lead) {
      lab.dom.panel.open = true;
      wrong[0][0].focus();
    }
    return null;
  }
  settings.inner = 2 * settings.width;
  return settings;
}

// Marks the guess of a run that is over, and the one that is right.
function mark({ dom }, guess, right) {
  const missed = Boolean(right && guess && guess !== right);
  for (const label of dom.guesses.querySelectorAll("label")) {
    const { value } = label.firstChild;
    label.classList.toggle("lab-hit", value === right);
    label.classList.toggle("lab-miss", missed && value === guess);
  }
  dom.report.classList.toggle("lab-hit", Boolean(right) && guess === right);
  dom.report.classList.toggle("lab-miss", missed);
}

// Asks for a guess, which is one of the texts.
function offer(lab, texts) {
  lab.dom.guesses.replaceChildren(make("legend", {}, "Your guess"), ...texts.map((text) => make(
    "label", {}, make("input", { type: "radio", name: idOf(lab, "guess"), value: text }), text)));
}
