// Chapter 14: forward and backward through four blocks, and what is in memory; body of
// function (state, data, view, numbers). Everything is computed here.

const { range, sum, plus } = numbers;
const ones = [1, 1, 1, 1], blocks = data.weights.length;
const minus = (u, v) => u.map((x, i) => x - v[i]);
const back = (x) => [0, ...x.slice(0, -1)]; // what stands one position before
const ahead = (x) => [...x.slice(1), 0];
const relu = (x) => x.map((z) => Math.max(z, 0));
const drops = state.dropout === "none" ? null : data.masks;
const drawn = (k) => (drops ? drops.first[k] : ones);
const drawnLater = (k) => (state.dropout === "drawn again" && state.method !== "stored"
  ? drops.second[k] : drawn(k));
const addF = (k, x2) => back(x2).map((z) => data.weights[k][0] * z);
const addG = (k, y1, mask) => relu(y1).map((z, i) => data.weights[k][1] * mask[i] * z);

// forward: states[k] before block k (from 0), inside[k] what F and G add in it
const states = [data.start], inside = [];
range(blocks).forEach((k) => {
  const [x1, x2] = states[k], f = addF(k, x2), y1 = plus(x1, f), g = addG(k, y1, drawn(k));
  inside.push([f, g]);
  states.push([y1, plus(x2, g)]);
});

// backward from the sum of the outputs: what is rebuilt, and gradients of the weights
function backward(mask, rebuild) {
  const rows = [...states], parts = [...inside], slopes = [];
  let dy1 = ones, dy2 = ones;
  for (let k = blocks - 1; k >= 0; k--) {
    const [y1, y2] = rows[k + 1], m = mask(k), g = addG(k, y1, m);
    const x2 = rebuild ? minus(y2, g) : states[k][1];
    const f = addF(k, x2), at = data.weights[k];
    const dw = sum(relu(y1).map((z, i) => dy2[i] * m[i] * z));
    const dx1 = plus(dy1, y1.map((z, i) => (z > 0 ? at[1] * m[i] * dy2[i] : 0)));
    const da = sum(back(x2).map((z, i) => dx1[i] * z));
    dy2 = plus(dy2, ahead(dx1).map((z) => at[0] * z));
    dy1 = dx1;
    parts[k] = [f, g];
    slopes[k] = [da, dw];
    if (rebuild) rows[k] = [minus(y1, f), x2];
  }
  return { rows, parts, slopes };
}
const method = state.method, step = data.steps.indexOf(state.step);
const forward = step <= blocks, now = forward ? step - 1 : 2 * blocks - step; // block
const right = backward(drawn, false);
const made = method === "stored" ? right : backward(drawnLater, method === "reversible");

// how each state and each inside stands at a step: held, at work, rebuilt or gone
function standing(at) {
  const ahead = at <= blocks, block = ahead ? at - 1 : 2 * blocks - at;
  const stateLook = range(blocks + 1).map((k) => {
    if (at === 0) return k === 0 ? "held" : "gone";
    if (method !== "reversible") return k <= block + 1 ? "held" : "gone";
    if (ahead) return k === block + 1 ? "held" : k === block ? "at work" : "gone";
    if (k === block + 1) return k === blocks ? "held" : "rebuilt";
    return k === block ? "rebuilt" : "gone";
  });
  const insideLook = range(blocks).map((k) => {
    if (at === 0) return "gone";
    if (method === "stored") return k <= block ? "held" : "gone";
    return k === block ? (ahead ? "at work" : "rebuilt") : "gone";
  });
  const count = [...stateLook, ...insideLook].filter((look) => look !== "gone").length * 8;
  return { stateLook, insideLook, count };
}
const { stateLook, insideLook, count } = standing(step);
const per = { stored: 16 * blocks + 8, checkpointed: 8 * blocks + 16, reversible: 24 };

// drawing
const left = 62, gap = 10, right0 = 22;
const size = Math.max(24, Math.min(40, Math.floor((view.width() - left - gap - right0) / 8)));
const tall = 27, thin = 22, top = 42;
const drawn0 = top + tall * (blocks + 1) + thin * blocks + 6, chart = 78;
view.svg(left + 8 * size + gap + right0, drawn0 + chart + 24,
  `${blocks + 1} states and the insides of ${blocks} blocks, ${method}, step ${state.step}`);
const where = (c) => left + size * c + (c > 3 ? gap : 0);
["x₁", "x₂"].forEach((name, half) => view.text(where(4 * half) + 2 * size, 14, name, {
  "text-anchor": "middle", class: "strong",
}));
range(8).forEach((c) => view.text(where(c) + size / 2, top - 8, data.letters[c % 4], {
  "text-anchor": "middle", class: "code",
}));
const wrongly = { style: "fill: var(--at-wrong)" };
let y = top, wrongStates = 0;
function row(name, halves, truth, look, high, sign) {
  const values = halves.flat(), wanted = truth.flat();
  view.text(left - 6, y + high / 2 + 5, name, {
    "text-anchor": "end", opacity: look === "gone" ? 0.6 : 1,
  });
  let wrong = 0;
  values.forEach((value, c) => {
    const off = look !== "gone" && value !== wanted[c];
    wrong += off;
    view.rect(where(c) + 1, y + 1, size - 2, high - 2, {
      fill: "var(--accent)", "fill-opacity": look === "held" ? 0.3 : look === "rebuilt" ? 0.1 : 0,
      stroke: look === "rebuilt" ? "var(--second)" : "currentColor",
      "stroke-width": look === "rebuilt" ? 2 : 1, "stroke-opacity": look === "gone" ? 0.2 : 0.8,
      "stroke-dasharray": look === "at work" ? "3 3" : "none",
    });
    if (look === "gone") return;
    const plain = String(Math.abs(value)), mark = value < 0 ? "−" : sign ? "+" : "";
    view.text(where(c) + size / 2, y + high / 2 + 5, mark + plain, {
      "text-anchor": "middle", class: off ? "strong" : "",
      "text-decoration": off ? "underline" : "none", ...(off ? wrongly : {}),
    });
  });
  if (look !== "gone" && wrong) {
    view.text(where(7) + size + 5, y + high / 2 + 5, "✗", { class: "strong", ...wrongly });
  }
  y += high;
  return wrong;
}
range(blocks + 1).forEach((k) => {
  wrongStates += row(k ? `after ${k}` : "input", (forward ? states : made.rows)[k], states[k],
    stateLook[k], tall, false);
  if (k < blocks) {
    row(`F, G of ${k + 1}`, (forward ? inside : made.parts)[k], inside[k], insideLook[k], thin, true);
  }
});

// numbers in memory at each step so far
const base = drawn0 + chart, wide = (8 * size + gap) / (2 * blocks + 1);
view.text(left - 6, base - 52, "in", { "text-anchor": "end" });
view.text(left - 6, base - 36, "memory", { "text-anchor": "end" });
range(2 * blocks + 1).forEach((at) => {
  const middle = left + wide * (at + 0.5), name = at === 0 ? "0"
    : at <= blocks ? `${at}→` : `←${2 * blocks + 1 - at}`;
  view.text(middle, base + 16, name, {
    "text-anchor": "middle", class: at === step ? "strong" : "", opacity: at <= step ? 1 : 0.6,
  });
  if (at > step) return;
  const number = standing(at).count, tallness = (48 * number) / per.stored;
  view.rect(middle - wide * 0.32, base - tallness, wide * 0.64, tallness, {
    fill: "var(--accent)", "fill-opacity": at === step ? 0.8 : 0.35,
  });
  view.text(middle, base - tallness - 4, String(number), { "text-anchor": "middle" });
});
view.line(left, base, left + 8 * size + gap, base, {
  stroke: "currentColor", "stroke-opacity": 0.5,
});

const minusSign = (x) => String(x).replace("-", "−");
const pair = (slope) => `${minusSign(slope[0])} for F's weight, ${minusSign(slope[1])} for G's`;
const told = step === 0 ? "The input is there; nothing has been computed."
  : forward ? `Forward through block ${now + 1}: F adds to x₁, then G adds to x₂.`
  : `Backward through block ${now + 1}. Gradient: ${pair(made.slopes[now])}`
    + (String(made.slopes[now]) === String(right.slopes[now]) ? "."
      : ` (wrong: it should be ${pair(right.slopes[now])}).`)
    + (wrongStates ? ` Of the 16 numbers of the two states shown, ${wrongStates} are wrong.` : "");
return {
  values: {
    count, rows: (forward ? states : made.rows).filter((_, k) => stateLook[k] !== "gone"),
    slopes: forward ? [] : made.slopes.slice(now), wrong: wrongStates, most: per[method],
  },
  room: 235,
  says: `${told} In memory: ${count} numbers`
    + (step === 2 * blocks ? `, and at most ${per[method]} on the whole way.` : "."),
};
