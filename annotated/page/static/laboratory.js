// The laboratory on a page: an experiment with its question, switches, curves, what the
// model writes and where it looks, and the runs so far. The engine trains in a Worker;
// nothing starts by itself, and nothing goes on in a tab that nobody sees.
//
// root is the element to fill; file is laboratory.json, with PyTorch's recorded runs;
// names are the experiments that are offered, switches the settings that are shown.
function laboratory(root, { file, engine, names, switches }) {
  const small = matchMedia("(max-width: 540px)").matches;
  const base = { ...file.settings, ...(small ? file.phone : {}) };
  // The loss of a model that ignores what it reads: every letter is as likely.
  const guessing = ({ longest, letters }) => (longest * Math.log(letters)) / (longest + 1);
  const SWITCHES = { // label, one line of help, choices, and what a switch that is off is called
    task: ["Task", "What it has to write for the word that it reads.", { copy: "copy", reverse: "write backwards", sort: "sort" }],
    model: ["Model", "An encoder reads the word, and a decoder writes the answer. A decoder alone does both, in one row of symbols.", { "encoder-decoder": "encoder and decoder", decoder: "decoder alone" }],
    layers: ["Layers", "How many times in a row each letter gathers from the others and is worked on. A layer has two or three blocks.", { 1: "1", 2: "2", 3: "3" }],
    heads: ["Heads", "How many places a layer can look at in different ways at once.", { 1: "1", 2: "2", 4: "4", 8: "8" }],
    width: ["Width", "How many numbers stand for each letter. The heads share them out: of 32, each of 4 heads gets 8.", { 16: "16", 32: "32", 64: "64" }],
    positions: ["Positions", "How a letter says which place it has in the word: with fixed waves (sinusoidal), with numbers that are learnt, or by turning what attention compares (rotary). Chapter 5.", { none: "none", sinusoidal: "sinusoidal", learned: "learned", rotary: "rotary" }],
    norm: ["Normalisation", "Keeps numbers at one size, before a block (pre-norm) or after it (post-norm): chapter 6.", { none: "none", pre: "pre-norm", post: "post-norm" }],
    smoothing: ["Label smoothing", "The model should be sure of the right letter, but not entirely: chapter 7.", { 0: "none", 0.1: "0.1" }],
    causal: ["Causal mask in training", "Hides the letters that come later in the answer: chapter 4.", null, "no causal mask"],
    scaled: ["Scores divided by √k", "k is how many numbers one head has: chapter 2.", null, "no 1/√k"],
    residual: ["Residuals", "Each block adds its result to what it read; without residuals, the result replaces it: chapter 6.", null, "no residuals"],
    feed_forward: ["Feed-forward networks", "A small network that works on each letter by itself: chapter 6.", null, "no feed-forward"],
    warmup: ["Warm-up", "The learning rate rises over the first 50 steps: chapter 7.", null, "no warm-up"],
    rate: ["Learning rate", "How far each step of training moves the model’s numbers: chapter 7."],
    seed: ["Seed", "Where the random numbers begin: the model’s first ones, and the words."],
  };
  const WORDS = {
    Attention: "For each letter that it writes, the model spreads a weight of 100 % over the letters it can see. A head is one such spread.",
    Encoder: "The part of the model that reads the word. The decoder is the part that writes the answer.",
    Block: "One stage of a layer: attention, which fetches from other letters, or a feed-forward network, which works on each letter by itself.",
    Score: "How well a letter fits what a head is looking for.",
    Softmax: "Turns scores into weights that add up to 100 %. The larger a score, the larger its share.",
    Loss: `How surprised the model is by each right letter: −ln p, if it gave that letter the probability p. (The unit is the nat; 1 nat is 1.44 bits.) Blind guessing costs ln ${base.letters} = ${Math.log(base.letters).toFixed(2)} for each letter and nothing for the end ■, on average ${base.longest} × ${Math.log(base.letters).toFixed(2)} / ${base.longest + 1} = ${guessing(base).toFixed(2)}. An untrained model starts above that: it is sure of the wrong letters.`,
    "By itself": "The model sees only what it has written so far. In training it always sees the right letters so far, and only its next letter is judged.",
    Gradient: "For every number in the model: how the loss would change if that number grew a little. Training moves each number in the direction that lowers the loss.",
    Step: "The model reads 32 words, and all its numbers move a little.",
    Adam: "The usual rule for such a step (an optimiser). It divides each gradient by its usual size.",
    PyTorch: "The software in which the chapters of this book build their models.",
  };
  // What one may expect of switches of one's own, and the least share of words for it.
  const OWN = { "most new words right": 0.9, "some of them": 0.1, "hardly a word": 0 };
  const TYPED = { // a number that is typed: what it may be
    rate: [(x) => x > 0 && x <= 10, "a number above 0 and up to 10, such as 0.005"],
    seed: [(x) => Number.isInteger(x) && x >= 0 && x < 1e6, "a whole number from 0 to 999999"],
  };
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const percent = (x) => `${(100 * x).toFixed(x > 0.99 && x < 1 ? 1 : 0)}\u00a0%`;
  const last = (list) => list[list.length - 1];
  const rounded = (x) => (x < 1000 ? x.toFixed(3) : x.toExponential(0));
  const mean = (list) => list.reduce((total, x) => total + x, 0) / list.length;

  // ---- Elements -------------------------------------------------------------------

  function make(tag, properties = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name in node) node[name] = value;
      else node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  }
  function draw(parent, tag, attributes, text = "") {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.textContent = text;
    return parent.appendChild(node);
  }
  const id = (name) => `${root.id}-${name.toLowerCase().replace(/\W+/g, "-")}`;
  // A [word] in brackets leads to its meaning.
  const linked = (text) => text.split(/\[(.*?)\]/).map((part, i) => (i % 2 ? make("a", {
    href: `#${id(`word ${part}`)}`, title: WORDS[part[0].toUpperCase() + part.slice(1)], onclick() { help.open = true; },
  }, part) : part));
  const labelled = (text, control) => make("label", { className: "lab-control" }, text, " ", control);
  const select = (name, options) => make("select", { id: id(name) },
    ...Object.entries(options).map(([value, text]) => make("option", { value }, text)));

  const experiment = select("experiment", {
    ...Object.fromEntries(names.map((name) => [name, file.experiments[name].title])),
    own: "Your own switches",
  });
  const question = make("p", { className: "lab-question" });
  const guesses = make("fieldset", { className: "lab-guesses" });
  const train = make("button", { type: "button", className: "lab-train" }, "Train");
  const again = make("button", { type: "button", disabled: true }, "Again with another seed");
  const status = make("p", { className: "lab-status" }, "Nothing is trained yet.");
  const live = make("p", { className: "lab-unseen", role: "status" });
  const trouble = make("p", { className: "lab-trouble", role: "alert" });
  const answer = make("details", { className: "lab-answer" });

  const inputs = {};
  const grid = make("div", { className: "lab-switches" });
  for (const name of switches) {
    const [label, title, options] = SWITCHES[name];
    const kind = name in TYPED ? "text" : "checkbox";
    inputs[name] = options ? select(name, options) : make("input", { id: id(name), type: kind });
    if (kind === "text" && !options) Object.assign(inputs[name], { inputMode: "decimal", autocomplete: "off", size: 8 });
    const control = options || name in TYPED ? labelled(label, inputs[name])
      : make("label", { className: "lab-control" }, inputs[name], " ", label);
    control.title = title;
    grid.append(control);
  }
  const meanings = Object.entries({ ...WORDS, ...Object.fromEntries(switches.map((name) => SWITCHES[name])) });
  const help = make("details", {}, make("summary", {}, "What the words mean"),
    make("dl", {}, ...meanings.flatMap(([term, text]) => [make("dt", { id: id(`word ${term}`) }, term), make("dd", {}, text)])));
  const few = switches.length <= 6;
  const panel = make(few ? "div" : "details", { className: "lab-panel" });
  panel.append(...(few ? [] : [make("summary", {}, "All switches")]), grid);

  const first = small ? "chafed" : "bigfaced"; // no letter twice
  const word = make("input", {
    id: id("word"), type: "text", value: first,
    autocomplete: "off", spellcheck: false, autocapitalize: "off", size: 9,
    "aria-describedby": id("word-trouble"),
  });
  const wordTrouble = make("p", { id: id("word-trouble"), className: "lab-trouble", "aria-live": "polite" });
  const random = make("button", { type: "button", disabled: true }, "Random word");
  const failing = make("button", { type: "button", hidden: true }, "One it got wrong");
  const replay = make("button", { type: "button", disabled: true }, "Write it again");
  const output = make("p", { className: "lab-written", "aria-live": "off", tabIndex: 0, role: "group", "aria-label": "What it writes" });
  const which = make("select", { id: id("which"), disabled: true }, make("option", {}, "not trained yet"));
  const maps = make("div", { className: "lab-maps", tabIndex: 0, role: "region", "aria-label": "Attention of each head" });
  const words = make("details", {}, make("summary", {}, "The attention in words"), make("div"));
  const caption = make("p", { className: "lab-note" });
  const pointed = make("p", { className: "lab-pointed", "aria-live": "polite" });
  const rows = make("tbody");
  const writing = make("div", { hidden: true }); // there is nothing to see before a run
  const runs = make("div", { hidden: true });
  const verdict = make("p", { className: "lab-judged" });
  const greys = []; // the legends of the grey curves

  // ---- Curves ---------------------------------------------------------------------

  // Axes stay where they are: 0 to `top` upwards, all steps of the experiment across.
  function chart(name, top, ticks, format, lines) {
    const LEFT = 44, RIGHT = 352, BOTTOM = 112, TOP = 8;
    const svg = draw(document.createElement("div"), "svg", {
      viewBox: "0 0 360 146", role: "img", "aria-label": `${name}; the line below says the numbers`,
    });
    return {
      svg,
      paint(run, grey, floor) {
        const x = (step) => LEFT + ((RIGHT - LEFT) * step) / run.settings.steps;
        const y = (value) => BOTTOM - ((BOTTOM - TOP) * value) / top;
        svg.replaceChildren();
        for (const tick of ticks) {
          draw(svg, "line", { class: "lab-grid", x1: LEFT, x2: RIGHT, y1: y(tick), y2: y(tick) });
          draw(svg, "text", { x: LEFT - 5, y: y(tick) + 4, "text-anchor": "end" }, format(tick));
        }
        for (const part of [0, 0.5, 1]) {
          const step = Math.round(part * run.settings.steps);
          draw(svg, "text", { x: x(step), y: BOTTOM + 16, "text-anchor": ["start", "middle", "end"][2 * part] }, step);
        }
        draw(svg, "text", { x: (LEFT + RIGHT) / 2, y: BOTTOM + 30, "text-anchor": "middle" }, "step");
        if (floor) {
          draw(svg, "line", { class: "lab-floor", x1: LEFT, x2: RIGHT, y1: y(floor), y2: y(floor) });
          draw(svg, "text", { x: RIGHT, y: y(floor) + 15, "text-anchor": "end" }, "the best without any order");
        }
        // What lies outside of the axes isn't drawn.
        const frame = [LEFT - 2, TOP - 2, RIGHT - LEFT + 4, BOTTOM - TOP + 4];
        const inside = draw(svg, "svg", { x: frame[0], y: frame[1], width: frame[2], height: frame[3], viewBox: frame.join(" ") });
        for (const [shown, kind] of [[grey, "old"], [run, "new"]]) {
          for (const [style, points] of shown ? lines(shown) : []) {
            const every = Math.ceil(points.length / 150);
            const kept = points.filter(([step, value], i) => step <= run.settings.steps && Number.isFinite(value)
              && (i % every === 0 || i === points.length - 1));
            if (kind === "new" && kept.length && last(kept)[1] > top) {
              draw(svg, "text", { x: x(last(kept)[0]) + 4, y: TOP + 10 }, `↑ above ${top}`);
            }
            draw(inside, "polyline", {
              class: `lab-${kind} lab-${style}`,
              points: kept.map(([step, value]) => `${x(step).toFixed(1)},${y(Math.min(value, 9)).toFixed(1)}`).join(" "),
            });
          }
        }
      },
    };
  }
  // Single batches jump about: their running average is easier to read.
  function smooth(points, column) {
    let value = null;
    return points.map((point) => {
      value = value === null ? point[column] : 0.85 * value + 0.15 * point[column];
      return [point[0], value];
    });
  }
  const loss = chart("Loss by step", 3, [0, 1, 2, 3], String, (run) => [["solid", smooth(run.points, 1)]]);
  const accuracy = chart("Right answers by step", 1, [0, 0.5, 1], percent, (run) => [
    ["dashed", smooth(run.points, 2)], ["solid", [[0, 0], ...run.tests]],
  ]);

  // The least loss of a model that knows the letters of a word, and not their order: of
  // n letters, n! / (m! m'! …) orders are equally likely, with m the number of each.
  function floor({ positions, model, task, shortest, longest: n, letters, smoothing }) {
    if (positions !== "none" || model === "decoder" || task === "sort" || shortest < n || smoothing) return null;
    let total = 0, ways = 1, logOfFactorial = 0;
    for (let m = 0; m <= n; m += 1) { // m of n letters are a given one, by chance
      if (m > 0) {
        logOfFactorial += Math.log(m);
        ways *= (n - m + 1) / m;
      }
      total -= letters * ways * (1 / letters) ** m * (1 - 1 / letters) ** (n - m) * logOfFactorial;
    }
    return (total + logOfFactorial) / (n + 1);
  }

  // ---- Settings -------------------------------------------------------------------

  const chosen = () => file.experiments[experiment.value];
  let own = { ...base }; // what isn't among the inputs keeps its value from here

  function show(settings) {
    own = { ...settings };
    for (const [name, input] of Object.entries(inputs)) {
      if (input.type === "checkbox") input.checked = settings[name];
      else input.value = String(settings[name]);
    }
    trouble.textContent = "";
  }
  // All settings as they stand; null if one that was typed makes no sense. Then a message
  // says so, and who wants to train is led to it.
  function settingsNow(lead = true) {
    const settings = { ...own }, wrong = [];
    for (const [name, input] of Object.entries(inputs)) {
      if (input.type === "checkbox") settings[name] = input.checked;
      else settings[name] = typeof base[name] === "number" ? Number(input.value.trim().replace(",", ".")) : input.value;
      if (!(name in TYPED)) continue;
      const [fits, wanted] = TYPED[name];
      const bad = !input.value.trim() || !fits(settings[name]);
      input.setAttribute("aria-invalid", bad);
      if (bad) wrong.push([input, `${SWITCHES[name][0]}: ${input.value.trim() ? `“${input.value}” won’t do` : "nothing is filled in"}. It must be ${wanted}.`]);
    }
    trouble.textContent = wrong.map(([, text]) => text).join(" ");
    if (wrong.length) {
      if (lead) {
        panel.open = true;
        wrong[0][0].focus();
      }
      return null;
    }
    settings.inner = 2 * settings.width;
    return settings;
  }
  function called(name, value) {
    const [label, , options, off] = SWITCHES[name];
    return value === false ? off : `${label.toLowerCase()}: ${value === true ? "on" : options ? options[value] : value}`;
  }
  function difference(settings) {
    const parts = Object.keys(SWITCHES).filter((name) => name !== "seed" && settings[name] !== base[name])
      .map((name) => called(name, settings[name]));
    return parts.join(", ") || "everything on";
  }

  let fresh = true; // the attention that tells most is to be chosen
  function chooseExperiment() {
    const it = chosen();
    status.textContent = "";
    leave("you chose another experiment");
    status.textContent += current ? ` ${it ? "Make your guess, then press" : "Press"} Train.` : "Nothing is trained yet.";
    fresh = again.disabled = true;
    question.replaceChildren(...linked(it ? it.question : "Set the switches as you like. What do you expect?"));
    offer(it ? it.guesses : Object.keys(OWN));
    answer.open = true;
    answer.replaceChildren(make("summary", {}, it ? `${it.title}: what happens, and why` : ""),
      ...(it ? [make("p", {}, ...linked(it.answer)), ...recorded(it)] : []));
    if (it) show({ ...base, ...it.changes });
    else panel.open = true;
    const grey = curves(empty(own, it));
    if (it && !grey && !same(own, control(it))) status.textContent += " It trains twice: first the grey curve, to compare with, then this.";
  }
  function offer(texts) {
    guesses.replaceChildren(make("legend", {}, "Your guess"), ...texts.map((text) => make(
      "label", {}, make("input", { type: "radio", name: id("guess"), value: text }), text)));
  }
  const empty = (settings, asked) => ({ settings, asked, points: [], tests: [] });
  const over = ({ end }) => end === "learnt" || end === "steps";
  const apart = (one, other) => Object.keys(SWITCHES).filter((name) => one[name] !== other[name]);
  const same = (one, other) => apart(one, other).every((name) => name === "seed");
  const control = (it) => ({ ...base, ...it.control });
  // The run to compare with: an experiment's control, with the same seed if there is one.
  // With other switches, the last run that differs in one thing, or else the whole model.
  function reference(run) {
    const done = past.filter((old) => old !== run && over(old)).reverse();
    const like = (wanted) => {
      const fit = done.filter((old) => same(old.settings, wanted));
      return fit.find((old) => old.settings.seed === run.settings.seed) || fit[0];
    };
    if (run.asked) return like(control(run.asked));
    return done.find((old) => apart(old.settings, run.settings).length === 1) || like(base);
  }
  function legend({ asked, settings }, grey) {
    const [name, more] = apart(grey.settings, settings);
    const what = asked ? asked.against : name && !more ? `the same, but ${called(name, grey.settings[name])}` : "the whole model";
    const seed = grey.settings.seed === settings.seed || what.endsWith(`seed: ${grey.settings.seed}`) ? "" : `, seed ${grey.settings.seed}`;
    return `${what} (run ${grey.id}${seed})`;
  }
  function curves(run, grey = reference(run)) {
    // The floor would tell too much before a guess.
    loss.paint(run, grey, run.end || (run.guess && run.step) ? floor(run.settings) : null);
    accuracy.paint(run, grey);
    for (const node of greys) node.textContent = grey ? legend(run, grey) : "";
    return grey;
  }
  // A run that goes on while the experiment changes would be taken for one of the new.
  function leave(why) {
    verdict.textContent = "";
    answer.hidden = writing.hidden = true;
    clearInterval(timer);
    if (!training) return;
    worker.postMessage({ stop: true });
    Object.assign(current, { end: "stopped", exam: null });
    ended();
    paint();
    live.textContent = status.textContent = `${nameOf(current)} was stopped after ${current.step} steps, because ${why}.`;
  }
  function table(caption, head, body) {
    return make("div", { className: "lab-scroll", tabIndex: 0, role: "region", "aria-label": caption },
      make("table", {}, make("caption", {}, caption),
        make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { scope: "col" }, text)))), body));
  }
  function recorded(it) {
    const found = file.recorded.filter((row) => file.experiments[row.experiment] === it);
    if (!found.length) return [];
    const body = make("tbody", {}, ...found.map((row) => make("tr", {},
      make("th", { scope: "row" }, `seed ${row.seed}`),
      ...[row.steps, row.loss.toFixed(3), Math.round(1000 * row.exact)].map((x) => make("td", {}, String(x))))));
    const [low, high] = it.exact.map(percent);
    return [make("details", {}, make("summary", {}, "Was that luck? Three more runs"),
      make("p", {}, ...linked(`The same model in [PyTorch], on words of ${file.settings.longest} letters. ${low} to ${high} of new words right is usual.`)),
      table("Three runs in PyTorch", ["run", "steps", "loss", "words right of 1000"], body))];
  }

  // ---- A run ----------------------------------------------------------------------

  let worker = null, current = null, training = false;
  const past = [];
  let painted = 0, waiting = false, spoken = 0, timer = null, spelled = 0, lit = null;
  const nameOf = ({ id: number, title }) => (names.length > 1 ? `Run ${number} (${title})` : `Run ${number}`);

  function start() {
    if (worker) return true;
    try {
      const source = `(${engine})().serve(self);`;
      worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
    } catch (error) {
      status.textContent = `This browser doesn’t let the page compute in the background (${error.message}).`;
      return false;
    }
    worker.onmessage = ({ data }) => receive(data);
    worker.onerror = (event) => {
      status.textContent = `The engine stopped: ${event.message}. Reload the page to begin anew.`;
      ended();
    };
    return true;
  }
  function begin() {
    const settings = settingsNow();
    if (!settings || !start()) return;
    const it = chosen(), guess = guesses.querySelector("input:checked");
    // Only a run with the experiment's own switches can tell whether a guess was right.
    const asked = it && same(settings, { ...base, ...it.changes }) ? it : null;
    const title = asked || (it && names.length === 1) ? it.title : "own switches";
    const run = { settings, asked, title, guess: guess && (asked || experiment.value === "own") ? guess.value : null };
    verdict.textContent = "";
    answer.hidden = true;
    runs.hidden = false;
    spoken = performance.now();
    train.textContent = "Stop";
    again.disabled = training = true;
    live.textContent = "Training.";
    // An experiment is compared with its control, which may have to be trained first.
    if (asked && !same(settings, control(it)) && !curves(empty(settings, it))) {
      launch({ settings: { ...control(it), seed: settings.seed }, title: it.against, next: run });
    } else launch(run);
    buttons.scrollIntoView({ behavior: calm ? "auto" : "smooth" });
  }
  function launch(run) {
    current = { ...run, ...empty(run.settings, run.asked), id: past.length + 1, step: 0, seconds: 0, row: rows.insertRow(0) };
    past.push(current);
    writing.hidden = Boolean(run.next);
    failing.hidden = true;
    lit = null;
    output.textContent = "";
    maps.replaceChildren();
    maps.dataset.shape = "";
    words.lastChild.replaceChildren();
    worker.postMessage({ train: current.id, settings: run.settings, text: wordNow() ?? first });
    paint();
  }
  const truth = ({ asked, exam }) => (asked ? asked.guesses[asked.right] : Object.keys(OWN).find((text) => exam >= OWN[text]));
  function judged(run) {
    const { asked: it, guess, exam } = run, right = truth(run);
    if (!over(run) || (!it && guess === null)) return "";
    const usual = !it || (it.exact[0] <= exam && exam <= it.exact[1]);
    const told = it && past.some((old) => old !== run && over(old) && old.asked === it && old.guess === guess);
    const words = told ? `Once more: ${right}.` : guess === null ? `The answer: ${right}.`
      : guess === right ? `You were right: ${right}.` : `Not quite: you guessed “${guess}”; the answer is “${right}”.`;
    return usual ? words : `${words} (This run came out unusually; try another seed.)`;
  }
  function ended() {
    training = false;
    train.textContent = "Train";
    again.disabled = false;
  }
  function receive(data) {
    if (!current || data.id !== current.id || (current.end && data.step !== undefined)) return;
    if (data.look && !current.next) {
      current.look = data.look;
      if (training && !data.end) setTimeout(showWritten, 0, Infinity); // a task of its own
    }
    if (data.step === undefined) return write(); // the answer to a word that was typed
    current.step = data.step;
    current.seconds = data.seconds;
    current.points.push(...data.points);
    current.tests.push(...data.tests);
    if (data.end) {
      Object.assign(current, { end: data.end, exam: data.exam, words: data.words });
      if (current.next && over(current)) {
        paint();
        return launch(current.next);
      }
      ended();
      paint();
      write();
      verdict.textContent = judged(current);
      answer.hidden = !current.asked || !verdict.textContent;
      current.failed = data.failed;
      failing.hidden = !data.failed;
      live.textContent = `${status.textContent} ${verdict.textContent}`.trim();
    } else if (!waiting) {
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        const now = performance.now();
        if (!training || now - painted < (calm ? 2000 : 120)) return;
        painted = now;
        paint();
        if (now - spoken < 8000) return;
        spoken = now;
        live.textContent = status.textContent;
      });
    }
  }

  const recent = (run) => mean(run.points.slice(-20).map(([, value]) => value));
  function told(run) {
    if (!run.points.length) return "Starting …";
    const value = recent(run), time = `${run.seconds.toFixed(1)} s`, blind = guessing(run.settings);
    if (!run.end) {
      const test = run.tests.length ? ` It writes ${percent(last(run.tests)[1])} of the new words right.` : "";
      return `${run.next ? "First the grey curve, to compare with. " : ""}${nameOf(run)}: step ${run.step} of at most ${run.settings.steps}, ${time}. Loss ${rounded(value)}.${test}`;
    }
    if (run.end === "diverged") {
      return `${nameOf(run)}: stopped at step ${run.step}, because the loss isn’t a number any more. Try a lower learning rate.`;
    }
    const ends = { learnt: "learnt the task in", steps: "finished after", stopped: "stopped after" };
    let text = `${nameOf(run)}: ${ends[run.end]} ${run.step} steps (${time}), loss ${rounded(value)}.`;
    if (run.words) text += ` It writes ${Math.round(run.words * run.exam)} of ${run.words} new words right.`;
    if (run.words && run.words < 1000) text += " (Not 1000, because without the mask the test takes longer.)";
    if (value > 3 * blind) text += " The loss has exploded.";
    else if (value > blind && run.step > 100 && !run.settings.smoothing) {
      text += ` That is worse than blind guessing (${blind.toFixed(2)}): with such large steps it never settles.`;
    }
    return text;
  }
  function paint() {
    status.textContent = told(current);
    const { id: number, next, settings, step, seconds, points, exam, tests, guess, end, title } = current;
    if (next && training) curves(empty(next.settings, next.asked), current);
    else curves(current);
    const share = exam ?? (tests.length ? last(tests)[1] : null);
    const mark = guess && over(current) ? `${guess === truth(current) ? "✓" : "✗"} ${guess}` : guess || "–";
    const changed = difference(settings), what = make("td", {}, names.length > 1 && title !== "own switches" ? title : changed);
    if (names.length > 1 && title !== "own switches") what.append(make("small", {}, changed));
    current.row.replaceChildren(make("th", { scope: "row" }, String(number)), what, ...[mark, settings.seed,
      end === "stopped" ? `${step}, stopped` : step, seconds.toFixed(1), share === null ? "–" : percent(share),
      points.length ? rounded(recent(current)) : "–"].map((text) => make("td", {}, String(text))));
  }

  // ---- What it writes, and where it looks -----------------------------------------

  // The word that is typed; null, and a message, if the model can't read it.
  function wordNow() {
    const text = word.value.trim().toLowerCase(), { longest, letters } = base;
    const end = String.fromCharCode(96 + letters);
    const strange = [...text].find((letter) => !(letter >= "a" && letter <= end));
    const length = text.length !== longest;
    wordTrouble.textContent = strange ? `The model knows only a to ${end}, so ${strange === " " ? "a space" : `“${strange}”`} won’t do.`
      : length ? `${text ? `Your word has ${text.length} letter${text.length > 1 ? "s" : ""}. ` : ""}Type a word of exactly ${longest} letters.` : "";
    if (wordTrouble.textContent && current && current.look) wordTrouble.textContent += ` Still showing ${current.look.text}.`;
    word.setAttribute("aria-invalid", Boolean(strange || length));
    return strange || length ? null : text;
  }
  function write() { // letter by letter
    clearInterval(timer);
    spelled = 0;
    replay.disabled = random.disabled = !current || training;
    if (!current || !current.look) return;
    const finish = current.look.written.length + 1;
    if (calm || training) return showWritten(Infinity);
    timer = setInterval(() => {
      spelled += 1;
      showWritten(spelled);
      if (spelled >= finish) clearInterval(timer);
    }, 220);
    showWritten(0);
  }
  function showWritten(upTo) {
    const { look } = current;
    if (!look) return;
    const { text, written, wanted } = look;
    output.replaceChildren(`${text} → `, ...[...written].slice(0, upTo).map((letter, i) => make(
      "span", { className: `${letter === wanted[i] ? "lab-right" : "lab-wrong"}${i === lit ? " lab-lit" : ""}` }, letter)));
    if (upTo > written.length) {
      output.append(make("span", { className: "lab-verdict" }, written === wanted ? " ✓ right"
        : `${written ? "" : "(nothing)"} ✗ it should be ${wanted}`));
      if (!training) live.textContent = `For ${text} it wrote ${written || "nothing"}.`;
    }
    showMaps(upTo);
  }
  const KINDS = { "decoder.cross_attention": "from the answer to the word",
    "decoder.attention": "from the answer to itself", "encoder.attention": "within the word" };
  const LINES = { copy: "from top left to bottom right", reverse: "from top right to bottom left" };
  function explained(kind, { task, causal, positions }, alone, text) {
    const own = causal ? " What isn’t written yet is hidden by the mask, and left blank."
      : " Drawn as in training, with the right answer in its place. In each row the outlined square is the letter to be predicted: any colour there means the model is peeking. While the model writes by itself, that square is still empty.";
    const line = positions !== "none" ? LINES[task] ? ` A diagonal ${LINES[task]} means the model is looking at the letter it needs.` : ""
      : new Set(text).size < text.length ? " Without positions, equal letters get equal weight, wherever they stand." : "";
    if (alone) return ` First come the letters of the word, then, after the bar, what is written so far.${own}`;
    return kind.startsWith("encoder") ? " This is where the encoder looks before anything is written."
      : kind.includes("cross") ? line : own;
  }
  const kindOf = ({ name }) => name.replace(/layers\.\d+\./, "");

  function showMaps(upTo) {
    const { look, settings } = current, alone = settings.model === "decoder";
    const kinds = Object.keys(KINDS).filter((kind) => look.maps.some((map) => kindOf(map) === kind));
    if (which.dataset.kinds !== String(kinds)) {
      which.dataset.kinds = kinds;
      which.disabled = false;
      which.replaceChildren(...kinds.map((value) => make("option", { value }, alone ? "from the answer to everything" : KINDS[value])));
    }
    if (fresh) which.value = settings.causal ? kinds[0] : "decoder.attention";
    fresh = false;
    const encoder = which.value.startsWith("encoder"), itself = !encoder && !which.value.includes("cross");
    const rowed = !encoder && settings.causal; // then its rows are the letters it wrote
    caption.textContent = `A row for each letter ${encoder ? "of the word" : "that it writes"}, a column for each that it looks at.${explained(which.value, settings, alone, look.text)} The stronger the colour, the more weight. ▶ is the start, ■ the end.${rowed ? " Point at a written letter, or press ← and → on it, to see where it looked." : ""}`;
    const source = [...look.text, "■"], written = ["▶", ...look.given];
    const next = [...look.given, "■"]; // what each position of the decoder leads to
    const before = alone ? source.length : 0; // places of the word, in one row with the answer
    const across = !itself ? source : alone ? [...source, ...written] : written;
    const down = encoder ? source : next.slice(0, look.length - before);
    const hidden = encoder || !settings.causal ? Infinity : upTo;
    const layers = look.maps.filter((map) => kindOf(map) === which.value);
    const shape = `${which.value} ${layers.length} ${layers[0].heads}`;
    if (maps.dataset.shape !== shape) {
      maps.dataset.shape = shape;
      maps.replaceChildren(...layers.map((map, l) => make("div", { className: "lab-layer" },
        layers.length > 1 ? make("p", {}, `Layer ${l + 1}`) : "",
        ...Array.from({ length: map.heads }, (_, h) => make("div", {}, `head ${h + 1}`,
          make("canvas", { role: "img", "aria-label": `Layer ${l + 1}, head ${h + 1}: its weights are below, in words` }))))));
    }
    const style = getComputedStyle(maps);
    const room = maps.clientWidth, place = across.length + 1;
    const fit = Math.min(layers[0].heads, Math.floor(room / (14 * place + 10))); // canvases side by side
    const cell = Math.max(13, Math.min(22, Math.floor((room / (fit > 3 ? 4 : fit > 1 ? 2 : 1) - 10) / place)));
    const weight = (map, h, i, j) => map.weights[(h * map.rows + i + before) * map.columns + j];
    const row = rowed && lit !== null && lit < down.length ? lit : null;
    pointed.textContent = row === null ? "" : `For ${down[row]}: ${layers.flatMap((map, l) => Array.from({ length: map.heads },
      (_, h) => `${layers.length > 1 ? `layer ${l + 1}, ` : ""}head ${h + 1} most at ${most(across, weight, map, h, row)}`)).join("; ")}.`;
    const colours = [style.color, style.getPropertyValue("--accent")];
    layers.forEach((map, l) => [...maps.children[l].querySelectorAll("canvas")].forEach((canvas, h) => {
      const seen = (i, j) => (itself && settings.causal && j > i + before ? null : i < hidden ? weight(map, h, i, j) : 0);
      paintMap(canvas, colours, cell, itself && !settings.causal ? before : -1, before, down, across, hidden, seen, row);
    }));
    if (words.open) words.lastChild.replaceChildren(...inWords(layers, down, across, weight));
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
  function most(across, weight, map, h, i) {
    const weights = across.map((_, j) => weight(map, h, i, j)), top = weights.indexOf(Math.max(...weights));
    return `place ${top + 1}, ${SPOKEN[across[top]] || across[top]} (${percent(weights[top])})`;
  }
  function inWords(layers, down, across, weight) {
    return layers.flatMap((map, l) => Array.from({ length: map.heads }, (_, h) => {
      const parts = down.map((text, i) => `${SPOKEN[text] || text}: ${most(across, weight, map, h, i)}`);
      return make("p", {}, `Layer ${l + 1}, head ${h + 1}. Largest weight for ${parts.join("; ")}.`);
    }));
  }

  // ---- Together -------------------------------------------------------------------

  experiment.addEventListener("change", chooseExperiment);
  grid.addEventListener("change", (event) => {
    own = { ...own, ...(settingsNow(false) || {}) };
    if (event.target === inputs.seed) return;
    verdict.textContent = "";
    answer.hidden = true; // it is about other switches
    const stopped = training;
    if (stopped) leave("you changed a switch");
    if (names.length === 1 || experiment.value === "own") {
      if (stopped) curves(empty(own)); // its question stays
      return;
    }
    experiment.value = "own";
    question.textContent = "Your own switches. What do you expect?";
    offer(Object.keys(OWN));
    if (stopped) curves(empty(own));
  });
  train.addEventListener("click", () => (training ? worker.postMessage({ stop: true }) : begin()));
  again.addEventListener("click", () => {
    const settings = settingsNow();
    if (!settings) return;
    own.seed = settings.seed + 1;
    if (inputs.seed) inputs.seed.value = own.seed;
    begin();
    train.focus();
  });
  word.addEventListener("input", () => {
    const text = wordNow();
    if (text === null) return;
    if (worker) worker.postMessage({ look: text });
    else wordTrouble.textContent = "That model is gone. Train again.";
  });
  random.addEventListener("click", () => {
    const { longest, letters } = base;
    word.value = Array.from({ length: longest }, () => String.fromCharCode(97 + Math.floor(letters * Math.random()))).join("");
    word.dispatchEvent(new Event("input"));
  });
  failing.addEventListener("click", () => {
    word.value = current.failed;
    word.dispatchEvent(new Event("input"));
  });
  replay.addEventListener("click", write);
  // A letter that is pointed at, or reached with the arrow keys, lights its row.
  function light(i) {
    const to = i === null || i < 0 || i >= current.look.written.length ? null : i;
    if (to === lit) return;
    lit = to;
    clearInterval(timer);
    showWritten(Infinity);
  }
  const ready = () => current && current.look;
  output.addEventListener("mouseover", ({ target }) => { if (ready()) light([...output.children].indexOf(target)); });
  output.addEventListener("mouseleave", () => { if (ready()) light(null); });
  output.addEventListener("blur", () => { if (ready()) light(null); });
  output.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || !ready()) return;
    event.preventDefault();
    light(Math.max(0, Math.min(current.look.written.length - 1, (lit ?? -1) + by)));
  });
  addEventListener("resize", () => { if (ready()) showMaps(Infinity); });
  for (const [node, event] of [[which, "change"], [words, "toggle"]]) {
    node.addEventListener(event, () => { if (current && current.look) showMaps(Infinity); });
  }
  document.addEventListener("visibilitychange", () => {
    if (!training) return;
    worker.postMessage(document.hidden ? { pause: true } : { resume: true });
  });
  addEventListener("pagehide", () => {
    if (!worker) return;
    worker.terminate();
    worker = null;
    if (training) {
      current.end = "stopped";
      status.textContent = "Stopped, because you left the page.";
      ended();
    }
  });

  const key = (style, text) => make("span", { className: `lab-key lab-key-${style}` }, text);
  const figure = (title, drawing, ...keys) => {
    const grey = key("old", "");
    greys.push(grey);
    return make("figure", {}, make("figcaption", {}, title), drawing, make("p", { className: "lab-keys" }, ...keys, grey));
  };
  const head = ["run", names.length > 1 ? "experiment" : "what is different", "your guess", "seed", "steps", "seconds", "words right", "loss"];
  const charts = make("div", { className: "lab-charts" },
    figure(`Loss: 0 is perfect, ${guessing(base).toFixed(2)} blind guessing`, loss.svg, key("solid", "this run")),
    figure("Right answers", accuracy.svg, key("solid", "whole words, by itself"), key("dashed", "next letter, as in training")));
  const buttons = make("p", { className: "lab-buttons" }, train, again);
  root.append(
    names.length > 1 ? labelled("Experiment", experiment) : "", question, guesses, panel, trouble,
    small ? make("p", { className: "lab-note" }, `On a small screen words have ${base.longest} letters instead of ${file.settings.longest}, so that a phone keeps up.`) : "",
    buttons, make("div", { className: "lab-said" }, verdict, status), live, charts, writing, answer, help, runs,
  );
  writing.append(
    output, make("p", { className: "lab-word" }, labelled(`A word of ${base.longest} letters, a to ${String.fromCharCode(96 + base.letters)}`, word), random, failing, replay), wordTrouble,
    labelled("Attention", which), maps, pointed, caption, words,
  );
  runs.append(table(small ? "Your runs (scroll sideways →)" : "Your runs", head, rows));
  chooseExperiment();
  root.dataset.ready = "true";
}
