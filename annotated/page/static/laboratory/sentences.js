// What is said about a run.
//
// Needs elements.js, settings.js and curves.js. Reads `lab.names` and `lab.past`.

const nameOf = ({ names }, { id: number, title }) => (names.length > 1 ? `Run ${number} (${title})` : `Run ${number}`);

// Its loss: the mean of the last 20 steps.
const recent = (run) => mean(run.points.slice(-20).map(([, value]) => value));

// How a run goes, or how it went.
function told(lab, run) {
  if (!run.points.length) return "Starting …";
  const value = recent(run), time = `${run.seconds.toFixed(1)} s`, blind = guessing(run.settings);
  if (!run.end) {
    const test = run.tests.length ? ` It writes ${percent(last(run.tests)[1])} of the new words right.` : "";
    const left = Math.ceil((run.seconds / run.step) * (run.settings.steps - run.step));
    return `${run.next ? "First the grey curve, to compare with. " : ""}${nameOf(lab, run)}: step ${run.step} of at most ${run.settings.steps}, ${time}, at most ${left} s to go. Loss ${rounded(value)}.${test}`;
  }
  if (run.end === "diverged") {
    return `${nameOf(lab, run)}: stopped at step ${run.step}, because the loss isn’t a number any more. Try a lower learning rate.`;
  }
  const ends = { learned: "learned the task in", steps: "finished after", stopped: "stopped after" };
  let text = `${nameOf(lab, run)}: ${ends[run.end]} ${run.step} steps (${time}), loss ${rounded(value)}.`;
  if (run.words) text += ` It writes ${Math.round(run.words * run.exam)} of ${run.words} new words right.`;
  if (run.words && run.words < 1000) text += " (Without a causal mask it is tested on 200 words only.)";
  if (value > 3 * blind) text += " The loss has exploded.";
  else if (value > blind && run.step > 100 && !run.settings.smoothing) {
    text += ` That is worse than blind guessing (${blind.toFixed(2)}): with such large steps it never settles.`;
  }
  return text;
}

// The guess that is right.
const truth = ({ asked, exam }) => (asked ? asked.guesses[asked.right] : Object.keys(OWN).find((text) => exam >= OWN[text]));

// Whether the guess was right; nothing of a run that can't tell.
function judged(lab, run) {
  const { asked: it, guess, exam, settings } = run, right = truth(run);
  if (!over(run) || (!it && guess === null)) return "";
  const usual = !it || (it.exact[0] <= exam && exam <= it.exact[1]);
  const before = it && lab.past.find((old) => old.id < run.id && over(old) && old.asked === it && old.guess === guess);
  const again = before && (before.settings.seed === settings.seed ? "Once more" : "The same with this seed");
  const words = again ? `${again}: ${right}.` : guess === null ? `The answer: ${right}.`
    : guess === right ? `You were right: ${right}.` : `Not quite. The answer: ${right}.`;
  return usual ? words : `${words} (This run came out unusually; try another seed.)`;
}

// Switches of one's own have no answer: how the run did beside the grey curve, or else
// beside PyTorch's runs of the whole model.
function besides(lab, run) {
  if (run.asked) return "";
  const right = ({ exam, exact }) => Math.round(1000 * (exam ?? exact)), grey = reference(lab, run);
  const whole = lab.file.recorded.filter(({ experiment }) => experiment === "whole" && run.settings.words === "few").map(right);
  const beside = grey ? `${right(grey)} for the grey curve, “${legend(run, grey)}”`
    : whole.length ? `${Math.min(...whole)} to ${Math.max(...whole)} for the whole model, in ${whole.length} runs with words of ${sizes(lab.file.settings)} letters` : "";
  return `Words right of 1000: ${right(run)} here${beside && `, ${beside}`}. One seed is one seed: try another before you believe a difference.`;
}
