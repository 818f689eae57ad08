// The tables of runs: the reader's own, and PyTorch's.
//
// Needs elements.js, settings.js, curves.js and sentences.js. Reads `lab.file`,
// `lab.names` and `lab.base`.

function table(caption, head, body) {
  return make("div", { className: "lab-scroll", tabIndex: 0, role: "region", "aria-label": caption },
    make("table", {}, make("caption", {}, caption),
      make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { scope: "col" }, text)))), body));
}

// PyTorch's runs of an experiment; nothing if there are none.
function recorded(lab, it) {
  const found = lab.file.recorded.filter((row) => lab.file.experiments[row.experiment] === it);
  if (!found.length) return [];
  const body = make("tbody", {}, ...found.map((row) => make("tr", {},
    make("th", { scope: "row" }, `seed ${row.seed}`),
    ...[row.steps, row.loss.toFixed(3), Math.round(1000 * row.exact)].map((x) => make("td", {}, String(x))))));
  const [low, high] = it.exact.map(percent);
  return [
    make("p", {}, ...linked(lab, `Three more runs, of the same model in [PyTorch], on words of ${sizes(lab.file.settings)} letters. Usually ${low} to ${high} of new words come out right.`)),
    table("Three runs in PyTorch", ["run", "steps", "loss", "words right of 1000"], body),
  ];
}

// Fills the row of a run in the table of the reader's own.
function fillRow({ names, base }, run) {
  const { id: number, settings, step, seconds, points, exam, tests, guess, end, title } = run;
  const share = exam ?? (tests.length ? last(tests)[1] : null);
  const mark = guess && over(run) ? `${guess === truth(run) ? "✓" : "✗"} ${guess}` : guess || "–";
  const changed = difference(settings, base), what = make("td", {}, names.length > 1 && title !== "own switches" ? title : changed);
  if (names.length > 1 && title !== "own switches") what.append(make("small", {}, changed));
  run.row.replaceChildren(make("th", { scope: "row" }, String(number)), what, ...[mark, settings.seed,
    end === "stopped" ? `${step}, stopped` : step, seconds.toFixed(1), share === null ? "–" : percent(share),
    points.length ? rounded(recent(run)) : "–"].map((text) => make("td", {}, String(text))));
}
