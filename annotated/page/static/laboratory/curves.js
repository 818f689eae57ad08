// The curves of a run, and the grey ones of the run that it is compared with.
//
// Needs elements.js and settings.js. Reads `lab.past` and `lab.base`. A run has
// `settings`, `points` [step, loss, share of next letters right] and `tests` [step, share
// of words right]; one that can answer an experiment's question has that as `asked`.

// Axes stay where they are while it trains: 0 to `top` upwards, all steps of the experiment
// across. They are drawn in the page's own pixels, so that letters keep their size.
function chart(name, format, lines) {
  const LEFT = 40, TOP = 8;
  const svg = draw(document.createElement("div"), "svg", { role: "img", "aria-label": `${name}; the status says the numbers` });
  return {
    svg,
    paint(run, grey, top, at = null, floor = null, blind = null) {
      const width = svg.clientWidth || 300, height = svg.clientHeight || 93, RIGHT = width - 6, BOTTOM = height - 19;
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      const x = (step) => LEFT + ((RIGHT - LEFT) * step) / run.settings.steps;
      const y = (value) => BOTTOM - ((BOTTOM - TOP) * value) / top;
      svg.replaceChildren();
      for (const tick of blind ? [0, blind, top] : [0, top / 2, top]) {
        draw(svg, "line", { class: tick === blind ? "lab-blind" : "lab-grid", x1: LEFT, x2: RIGHT, y1: y(tick), y2: y(tick) });
        draw(svg, "text", { x: LEFT - 5, y: y(tick) + 4, "text-anchor": "end" }, format(tick));
      }
      for (const part of [0, 0.5, 1]) {
        const step = Math.round(part * run.settings.steps);
        draw(svg, "text", { x: x(step), y: BOTTOM + 15, "text-anchor": ["start", "middle", "end"][2 * part] }, part === 1 ? `step ${step}` : step);
      }
      if (!run.points.length && !grey) draw(svg, "text", { class: "lab-said", x: (LEFT + RIGHT) / 2, y: y(top / 4) + 4, "text-anchor": "middle" }, "drawn as it trains");
      if (at !== null) draw(svg, "line", { class: "lab-at", x1: x(at), x2: x(at), y1: TOP, y2: BOTTOM });
      if (floor) {
        draw(svg, "line", { class: "lab-floor", x1: LEFT, x2: RIGHT, y1: y(floor), y2: y(floor) });
        draw(svg, "text", { x: RIGHT, y: y(floor) + 15, "text-anchor": "end" }, "the best without any order");
      }
      // What lies outside of the axes isn't drawn.
      const frame = [LEFT - 2, TOP - 2, RIGHT - LEFT + 4, BOTTOM - TOP + 4];
      const inside = draw(svg, "svg", { x: frame[0], y: frame[1], width: frame[2], height: frame[3], viewBox: frame.join(" ") });
      for (const [shown, kind] of [[grey, "old"], [run, "new"]]) {
        for (const [style, points] of shown ? lines(shown, kind === "old") : []) {
          const every = Math.ceil(points.length / 150);
          const kept = points.filter(([step, value], i) => step <= run.settings.steps && Number.isFinite(value)
            && (i % every === 0 || i === points.length - 1));
          const out = kept.find(([, value]) => value > top);
          if (kind === "new" && out) {
            const right = x(out[0]) > 0.7 * width;
            draw(svg, "text", { class: "lab-out", x: x(out[0]) + (right ? -4 : 4), y: TOP + 10, "text-anchor": right ? "end" : "start" }, `↑ above ${top}`);
          }
          draw(inside, "polyline", {
            class: `lab-${kind} lab-${style}`,
            points: kept.map(([step, value]) => `${x(step).toFixed(1)},${y(Math.min(value, 2 * top)).toFixed(1)}`).join(" "),
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

const key = (style, text) => make("span", { className: `lab-key lab-key-${style}` }, text);

// Makes both charts, and one legend for them; `grey` is what it says of the grey curves.
function makeCharts() {
  const loss = chart("Loss by step", (value) => String(Number(value.toFixed(2))), (run) => [["solid", smooth(run.points, 1)]]);
  const accuracy = chart("Right answers by step", percent, (run, old) => [
    ...(old ? [] : [["dashed", smooth(run.points, 2)]]), ["solid", [[0, 0], ...run.tests]],
  ]);
  const figure = ({ svg }, ...title) => make("figure", {}, make("figcaption", {}, ...title), svg);
  const grey = key("old", ""), lossTitle = make("span");
  const charts = make("div", { className: "lab-charts" },
    figure(loss, make("b", {}, "Loss"), lossTitle),
    figure(accuracy, make("b", {}, "Right"), key("solid", "words"), key("dashed", "next letters, in training")),
    make("p", { className: "lab-keys" }, grey));
  return { loss, lossTitle, accuracy, grey, charts };
}

// A run of which nothing is there yet, and whether one went to its end.
const empty = (settings, asked) => ({ settings, asked, points: [], tests: [] });
const over = ({ end }) => end === "learned" || end === "steps";

// The run to compare with: an experiment's control, with the same seed if there is one.
// With other switches, the last run on such words that differs in one thing, or else the
// whole model.
function reference(lab, run) {
  const done = lab.past.filter((old) => old !== run && over(old) && old.settings.words === run.settings.words).reverse();
  const like = (wanted) => {
    const fit = done.filter((old) => same(old.settings, wanted));
    return fit.find((old) => old.settings.seed === run.settings.seed) || fit[0];
  };
  if (run.asked) return like(control(lab.base, run.asked));
  return done.find((old) => apart(old.settings, run.settings).length === 1) || like(withWords(lab, { ...lab.base, words: run.settings.words }));
}

// What the grey curve is called.
function legend({ asked, settings }, grey) {
  const [name, more] = apart(grey.settings, settings);
  const what = asked ? asked.against : name && !more ? `the same, but ${called(name, grey.settings[name])}` : "the whole model";
  const seed = grey.settings.seed === settings.seed || what.endsWith(`seed: ${grey.settings.seed}`) ? "" : `, seed ${grey.settings.seed}`;
  return `${what} (run ${grey.id}${seed})`;
}

// How high the axis of the loss has to be: both curves begin on it.
const highest = (...runs) => {
  const first = Math.max(0, ...runs.map((run) => (run && run.points.length ? run.points[0][1] : 0)));
  return first > 6 ? 8 : first > 4 ? 6 : 4;
};

// Draws a run before the one that it is compared with, and returns that.
function curves(lab, run, grey = reference(lab, run)) {
  const { loss, accuracy, back } = lab.dom;
  // Where the slider has gone back to; at the end of the curves it is said anyway.
  const at = run.kept && back.value !== back.max ? run.kept[back.value] : null;
  // The floor would tell too much before a guess.
  loss.paint(run, grey, highest(run, grey), at, run.end || (run.guess && run.step) ? floor(run.settings) : null, guessing(run.settings));
  accuracy.paint(run, grey, 1, at);
  lab.dom.lossTitle.textContent = `0 is perfect, ${guessing(run.settings).toFixed(2)} blind guessing`;
  lab.dom.grey.textContent = grey ? legend(run, grey) : "";
  return grey;
}
