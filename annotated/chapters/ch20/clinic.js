// Chapter 20: the clinic; body of function (state, data, view, numbers). The reader orders
// examinations of a recorded patient, which cost minutes, as wrong diagnoses do.

const { range } = numbers;
const names = Object.keys(data.minutes);
const patient = data.patients.find((one) => one.name === state.patient);
const seen = view.once("seen", () => new Map());
if (!seen.has(patient.name)) seen.set(patient.name, { ordered: [], shown: null, verdict: "", wrong: 0 });
const file = seen.get(patient.name);
const minutes = (list) => list.reduce((sum, name) => sum + data.minutes[name], 0);
const spent = () => minutes(file.ordered) + data.wrong * file.wrong;
const clock = (n) => `${n} minute${n === 1 ? "" : "s"}`;
const quoted = (list) => list.map((name) => `“${name}”`).join(" and ");

const best = patient.way; // the cheapest examinations that nobody else answers alike
const alike = (way) => data.patients.filter((one) =>
  way.every((name) => one.findings[name] === patient.findings[name]));

// ---- what the reader does

function decided() {
  const truth = patient.diagnosis, others = alike(file.ordered).length - 1;
  if (state.diagnosis === data.undecided) return "Choose a diagnosis first.";
  if (!file.ordered.length) return "Order something first: a complaint alone is no evidence.";
  if (state.diagnosis === truth) {
    const guessed = others ? `A guess: so far ${others} of the other patients answer alike. ` : "";
    const short = spent() <= minutes(best) && !others ? "No way is shorter."
      : `${quoted(best)} would have told it from all others: ${clock(minutes(best))}.`;
    return `Right, after ${clock(spent())}: ${truth}. ${guessed}${short}`;
  }
  file.wrong += 1;
  const no = `No, and ${data.wrong} minutes are lost.`;
  const other = data.patients.find((one) => one.diagnosis === state.diagnosis);
  if (!other) return `${no} Nobody here has that. What would show it?`;
  const apart = names.filter((name) => other.findings[name] !== patient.findings[name]);
  const asked = apart.find((name) => file.ordered.includes(name));
  return asked ? `${no} Look again at “${asked}”.`
    : `${no} Nothing that you've asked tells the two apart. “${apart[0]}” does.`;
}
view.once("buttons", () => {
  const button = (input, words, press) => {
    const made = document.createElement("button");
    Object.assign(made, { type: "button", className: "annotated-suggestion", textContent: words });
    made.addEventListener("click", press);
    view.input(input).parentElement.append(made);
  };
  for (const option of view.input("examination").options) {
    option.value = option.text; // prices are read before anything is ordered
    option.text += ` (${data.minutes[option.value]} min)`;
  }
  const again = () => view.input("patient").dispatchEvent(new Event("input"));
  const now = () => seen.get(view.input("patient").value);
  button("patient", "begin anew", () => {
    seen.delete(view.input("patient").value);
    again();
  });
  button("examination", "order it", () => {
    const open = now(), name = view.input("examination").value;
    if (!open.ordered.includes(name)) open.ordered.push(name);
    Object.assign(open, { shown: name, verdict: "" });
    again();
  });
  button("diagnosis", "decide", () => {
    now().decide = true;
    again();
  });
});
if (file.decide) Object.assign(file, { decide: false, verdict: decided() });

// ---- the drawing: a clock and a list, and beside it (on a phone below) the last answer

const wide = view.width(), phone = wide < 560;
const column = phone ? wide : 268, listed = phone ? 4 : names.length;
const line = 19, high = 46 + line * listed + 4, left = phone ? 0 : column + 20;
const top = phone ? high + 8 : 0, room = phone ? wide : wide - left;
const svg = view.svg(wide, phone ? high + 290 : 298,
  `${patient.name}'s model, and what was ordered`);
const text = (x, y, words, style = {}) => view.add(svg, "text", { x, y, text: words, ...style });
const box = (x, y, width, height, style) => view.add(svg, "rect", { x, y, width, height, ...style });

text(0, 16, `${patient.name}: ${clock(spent())}`, { class: "strong" });
if (phone && !file.ordered.length) text(0, 42, "Nothing is ordered yet.");
(phone ? file.ordered.slice(-listed) : names).forEach((name, i) => {
  const ordered = file.ordered.includes(name);
  text(0, 42 + line * i, `${ordered ? "✓ " : ""}${name} (${data.minutes[name]})`, {
    class: name === file.shown ? "strong" : "", style: ordered ? "" : "fill: var(--at-muted)",
  });
});

text(left, top + 16, file.shown || "What they say", { class: "strong" });
const y0 = top + 34;
function lines(words, x, y, most, style) { // as many letters to a line as fit
  const parts = words.split(" "), rows = [""];
  parts.forEach((part) => {
    if (rows[rows.length - 1].length + part.length >= most) rows.push("");
    rows[rows.length - 1] += `${part} `;
  });
  rows.forEach((row, i) => text(x, y + 20 * i, row.trim(), style));
}
function bars(entries) {
  const most = Math.max(...entries.map(([, value]) => value)), label = 128;
  entries.forEach(([name, value], i) => {
    const y = y0 + 4 + 28 * i, long = (room - label - 62) * value / most;
    text(left + label - 8, y + 15, name, { "text-anchor": "end" });
    box(left + label, y, Math.max(long, 1), 20, { fill: "var(--accent)" });
    text(left + label + long + 7, y + 15, value === 0 ? "none" : value.toFixed(2));
  });
}
function matrix(rows, fill, labels) {
  const edge = labels ? 18 : 2, size = Math.min(14, (room - edge - 4) / rows[0].length);
  rows.forEach((row, i) => row.forEach((value, j) => {
    const look = fill(value, i, j);
    box(left + edge + size * j, y0 + edge + size * i, size - 1, size - 1,
      { stroke: "var(--at-rule)", "stroke-width": 0.5, ...look });
  }));
  const label = (x, y, symbol) => text(x, y, symbol, { "text-anchor": "middle", class: "code" });
  if (!labels) return;
  rows[0].forEach((_, j) => label(left + edge + size * (j + 0.5), y0 + 12, labels[j] || "Σ"));
  labels.forEach((symbol, i) => label(left + 6, y0 + edge + size * (i + 0.5) + 5, symbol));
}
function amount(value) {
  text(left, y0 + 30, value === 0 ? "0.0" : value < 0.001 ? value.toExponential(0) : value.toFixed(2),
    { style: "font-size: 30px" });
  text(left, y0 + 58, "the largest difference of any logit");
}
const DRAW = {
  "the best possible loss": () => bars([["its loss", patient.loss], ["the best possible", patient.floor]]),
  "the loss curve": () => {
    const { curve, loss } = patient, most = Math.max(...curve, loss), tall = 190;
    const x = (i) => left + 34 + (room - 120) * i / (curve.length - 1), y = (v) => y0 + 10 + tall * (1 - v / most);
    [0, 1, 2].filter((v) => v <= most).forEach((v) => {
      view.add(svg, "line", { x1: x(0), x2: x(curve.length - 1), y1: y(v), y2: y(v), stroke: "var(--at-rule)" });
      text(left + 26, y(v) + 4, String(v), { "text-anchor": "end" });
    });
    view.add(svg, "polyline", {
      points: curve.map((v, i) => `${x(i).toFixed(1)},${y(v).toFixed(1)}`).join(" "),
      fill: "none", stroke: "var(--accent)", "stroke-width": 2,
    });
    view.add(svg, "circle", { cx: x(curve.length - 1) + 8, cy: y(loss), r: 5, fill: "var(--second)" });
    text(x(curve.length - 1) + 17, y(loss) + 4, "held-out");
    text(x(curve.length - 1), y0 + tall + 30, `${data.steps} steps`, { "text-anchor": "end" });
  },
  "the same text twice": () => amount(patient.twice),
  "who sees whom": () => {
    matrix(patient.reach, (value, i, j) => ({
      fill: value ? (j > i ? "var(--at-wrong)" : "var(--at-other)") : "none",
    }));
    text(left, y0 + 232, "down: a logit; across: a changed symbol");
  },
  "what the loss asks for": () => {
    const size = Math.min(22, (room - 56) / patient.read.length);
    [["reads", patient.read], ["asked", patient.asked]].forEach(([name, row], i) => {
      text(left, y0 + 24 + 30 * i, name);
      row.forEach((symbol, j) => text(left + 56 + size * (j + 0.4), y0 + 24 + 30 * i, symbol || "–",
        { "text-anchor": "middle", class: symbol ? "code" : "" }));
    });
    text(left, y0 + 96, "– nothing is asked");
  },
  "a row alone, and in a batch": () => amount(patient.company),
  "gradients, part by part": () => bars(Object.entries(patient.gradients)),
  "an attention map": () => {
    matrix(patient.map, (weight) => ({ fill: "var(--at-weight)", "fill-opacity": weight }), patient.symbols);
  },
  "what it writes": () => patient.writes.forEach((line, i) =>
    text(left, y0 + 24 + 28 * i, line, { class: "code" })),
  "step by step, with a cache": () => amount(patient.cache),
  "one batch by heart": () => bars([["8 texts", patient.heart], ["new texts", patient.loss]]),
  "another seed": () => bars([["this seed", patient.loss], ["another", patient.another]]),
  "twice as many steps": () => bars([["as trained", patient.loss], ["twice as long", patient.longer]]),
};
if (file.shown) DRAW[file.shown]();
else {
  lines(`“${patient.complaint}”`, left, y0 + 16, Math.floor(room / 7.6), {});
  text(left, y0 + 76, `Its loss: ${patient.loss.toFixed(2)} nats per symbol`);
}

return {
  values: {
    finding: patient.findings[state.examination], cost: data.minutes[state.examination],
    minutes: minutes(best),
  },
  room: data.room,
  says: file.verdict || (file.shown ? patient.says[file.shown]
    : `${patient.name} waits. Order an examination, or decide.`),
};
