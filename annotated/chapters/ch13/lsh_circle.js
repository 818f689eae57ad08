// Chapter 13: buckets on a circle; body of function (state, data, view, numbers).
// Points lie on one circle. A round turns them, and the nearest of the directions that
// stand still, east first and then against the clock, is the bucket. The reader drags
// points, and draws turns at random: how often each one meets the followed one, beside
// what is to be expected.

const { range } = numbers;
const names = data.names, buckets = Number(state.buckets), width = 360 / buckets;
const rounds = range(Number(state.rounds)), follow = names.indexOf(state.follow);
const degrees = (angle) => ((angle % 360) + 360) % 360;
const start = data.points.map(([x, y]) => degrees(Math.atan2(y, x) * 180 / Math.PI));
const held = view.once("held", () => ({ angles: start.slice(), tries: 0 }));
const forget = () => { held.tries = 0; held.hits = names.map(() => names.map(() => 0)); };
const setting = `${buckets} ${rounds.length}`;
if (held.setting !== setting) forget();
if (held.turn !== state.turn) held.random = null; // the slider was moved
Object.assign(held, { setting, turn: state.turn });

const angles = held.angles;
const turns = rounds.map((r) =>
  (held.random ? held.random[r] : (Number(state.turn) + data.turns[r]) % 360));
const hash = (turn) => angles.map((angle) =>
  Math.floor(degrees(angle - turn + width / 2) / width));
const bucket = turns.map(hash);
const apart = angles.map((angle) => {
  const gap = degrees(angle - angles[follow]);
  return Math.min(gap, 360 - gap);
});
const shared = names.map((_, i) => rounds.filter((r) => bucket[r][i] === bucket[r][follow]));

// ---- what the reader does

// one wheel, or up to four that are half as large: in the same square, so that nothing
// moves. The chart stands beside it, on a phone below.
const phone = view.width() < 560, side = rounds.length > 1 ? 2 : 1;
const square = phone ? Math.min(300, view.width() - 4) : 320;
const wheels = square + 40, cell = square / side, tall = wheels / side;
const wide = phone ? Math.max(square, 290) : view.width() - 4;
const plot = phone ? { left: 46, top: wheels + 50, wide: wide - 66, high: 110 }
  : { left: square + 62, top: 56, wide: wide - square - 84, high: 240 };
const svg = view.svg(wide, phone ? plot.top + plot.high + 44 : wheels + 4,
  `${rounds.length} circle(s) with eight points each, cut into ${buckets} buckets, `
  + "and a chart of how often points share one");
svg.setAttribute("role", "group"); // it holds sliders: the points
const box = svg.parentNode, root = box.closest(".annotated-explorer");
const draw = () => root.explorer.set({});

held.turnAtRandom = (times) => {
  for (let n = 0; n < times; n += 1) {
    held.random = data.turns.map(() => Math.floor(360 * Math.random()));
    const found = rounds.map((r) => hash(held.random[r]));
    held.tries += 1;
    range(names.length).forEach((i) => range(names.length).forEach((j) => {
      if (found.some((row) => row[i] === row[j])) held.hits[i][j] += 1;
    }));
  }
};
// a random turn isn't the slider's: that waits, pale, until it is moved
const slider = root.querySelector("input[type=range]");
slider.style.opacity = held.random ? 0.4 : 1;
slider.parentElement.querySelector("output").textContent = held.random ? "random" : state.turn;
view.buttons({
  "turn at random": () => { held.turnAtRandom(1); draw(); },
  "100 times": () => { held.turnAtRandom(100); draw(); },
  reset() {
    held.angles = start.slice();
    held.random = null;
    forget();
    draw();
  },
});
function move(i, angle) {
  held.angles[i] = degrees(Math.round(angle));
  forget();
  draw();
}
box.onpointermove = (event) => {
  if (!held.drag) return;
  const { r, i } = held.drag, area = svg.getBoundingClientRect(), scale = wide / area.width;
  const [cx, cy] = centre(r);
  const x = (event.clientX - area.left) * scale - cx, y = (event.clientY - area.top) * scale - cy;
  move(i, Math.atan2(-y, x) * 180 / Math.PI + turns[r]);
};
box.onpointerup = () => { held.drag = null; };
box.onpointercancel = box.onpointerup;

// ---- the wheels

const ring = cell / 2 - (side > 1 ? 27 : 44), size = side > 1 ? 7 : 9;
function centre(r) {
  const row = Math.floor(r / side) + (rounds.length === 2 ? 0.5 : 0);
  return [(r % side + 0.5) * cell, (row + 0.5) * tall + 10];
}
const moves = !held.drag && held.shown && !window.matchMedia("(prefers-reduced-motion: reduce)").matches;
rounds.forEach((r) => {
  const [cx, cy] = centre(r), own = bucket[r][follow];
  const at = (angle, radius) => [cx + radius * Math.cos(angle * Math.PI / 180),
    cy - radius * Math.sin(angle * Math.PI / 180)];
  view.add(svg, "text", {
    x: cx, y: cy - cell / 2 - (side > 1 ? 4 : 0), "text-anchor": "middle", class: "strong",
    text: side > 1 ? `${turns[r]}°` : `round ${r + 1}: turned by ${turns[r]}°`,
  });
  const [ax, ay] = at((own - 0.5) * width, ring), [bx, by] = at((own + 0.5) * width, ring);
  view.add(svg, "path", {
    d: `M${cx} ${cy}L${ax.toFixed(1)} ${ay.toFixed(1)}A${ring} ${ring} 0 0 0 ${bx.toFixed(1)} ${by.toFixed(1)}Z`,
    fill: "var(--accent)", "fill-opacity": 0.2,
  });
  view.circle(cx, cy, ring, { fill: "none", stroke: "currentColor", "stroke-opacity": 0.4 });
  range(buckets).forEach((n) => {
    const [x, y] = at((n + 0.5) * width, ring + 10), [tx, ty] = at(n * width, ring * 0.58);
    view.line(cx, cy, x, y, { stroke: "currentColor", "stroke-opacity": 0.5 });
    view.text(tx, ty + 5, String(n), { "text-anchor": "middle", class: n === own ? "strong" : "" });
  });
  const points = view.add(svg, "g", {});
  const turned = held.shown && held.shown[r] !== undefined
    ? degrees(turns[r] - held.shown[r] + 180) - 180 : 0;
  if (moves && turned) {
    points.style.transformOrigin = `${cx}px ${cy}px`;
    points.animate([{ transform: `rotate(${-turned}deg)` }, { transform: "none" }],
      { duration: 350, easing: "ease-out" });
  }
  angles.forEach((angle, i) => {
    const [x, y] = at(angle - turns[r], ring), [lx, ly] = at(angle - turns[r], ring + size + 11);
    const point = view.add(points, "g", { style: "cursor: grab" });
    view.add(point, "circle", { cx: x, cy: y, r: 17, fill: "transparent" }); // to be hit by a finger
    view.add(point, "circle", {
      cx: x, cy: y, r: size, fill: `hsl(${start[i].toFixed(0)}, 80%, 50%)`, stroke: "currentColor",
      "stroke-width": i === follow ? 3.5 : 1,
    });
    view.add(point, "text", {
      x: lx, y: ly + 5, "text-anchor": "middle", text: names[i],
      class: bucket[r][i] === own ? "code strong" : "code",
    });
    point.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      held.drag = { r, i };
      box.setPointerCapture(event.pointerId);
    });
    // a finger that drags a point doesn't scroll the page
    point.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
    if (r) return; // one stop of the Tab key for each point
    for (const [key, value] of Object.entries({
      tabindex: 0, role: "slider", "aria-label": `point ${names[i]}`, "aria-valuemin": 0,
      "aria-valuemax": 359, "aria-valuenow": Math.round(angle) % 360,
      "aria-valuetext": `${Math.round(angle)}°, bucket ${bucket[0][i]}`,
    })) point.setAttribute(key, value);
    point.addEventListener("keydown", (event) => {
      const step = { ArrowRight: -5, ArrowDown: -5, ArrowLeft: 5, ArrowUp: 5 }[event.key];
      if (!step) return;
      event.preventDefault();
      held.focus = i;
      move(i, angles[i] + step);
    });
    if (held.focus === i) point.focus();
  });
});
held.focus = null;
held.shown = turns;

// ---- the chart: how often each one has met the followed one

const others = range(names.length).filter((i) => i !== follow).sort((i, j) => apart[i] - apart[j]);
const near = others[0], law = (angle) => 1 - Math.min(1, angle / width) ** rounds.length;
const px = (angle) => plot.left + plot.wide * angle / 180, py = (share) => plot.top + plot.high * (1 - share);
const share = (i) => held.hits[follow][i] / held.tries;
const raised = ["", "", "²", "³", "⁴"][rounds.length];
const formula = raised ? `1 − (θ/${width}°)${raised}` : `1 − θ/${width}°`;
view.add(svg, "text", {
  x: plot.left - 42, y: plot.top - 30, class: "strong",
  text: held.tries === 0 ? `How often does each one meet ${names[follow]}?`
    : `${held.tries} random turn${held.tries > 1 ? "s" : ""}: how often each one met ${names[follow]}`,
});
[0, 0.5, 1].forEach((y) => {
  view.line(plot.left, py(y), plot.left + plot.wide, py(y), { stroke: "var(--at-rule)" });
  view.text(plot.left - 8, py(y) + 4, `${100 * y} %`, { "text-anchor": "end" });
});
[0, 45, 90, 135, 180].forEach((angle) => view.text(px(angle), py(0) + 36, `${angle}°`, {
  "text-anchor": "middle",
}));
view.curve(range(181).map((a) => [px(a), py(law(a))]), { stroke: "var(--at-other)", "stroke-width": 2 });
view.text(px(180), py(1) - 8, `expected: ${formula}`, { "text-anchor": "end" });
let beyond = 0; // no letter on another
others.forEach((i) => {
  beyond = Math.max(beyond + 12, px(apart[i]));
  view.text(beyond, py(0) + 18, names[i], {
    "text-anchor": "middle", class: shared[i].length ? "code strong" : "code",
  });
  if (held.tries) {
    view.circle(px(apart[i]), py(share(i)), 6, {
      stroke: "currentColor", fill: `hsl(${start[i].toFixed(0)}, 80%, 50%)`,
    });
  }
});

const counted = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
const percent = (x) => `${Math.round(100 * x)}\u00a0%`;
const met = others.filter((i) => shared[i].length);
const inRounds = (i) => (rounds.length > 1 ? ` (round ${shared[i].map((r) => r + 1).join(", ")})` : "");
const listed = met.map((i) => names[i] + inRounds(i)).join(", ") || "nobody";
const missed = shared[near].length ? "found" : "missed";
return {
  values: { buckets: bucket, met: met.map((i) => names[i]).sort() },
  room: 240,
  says: `${state.follow} shares a bucket with ${listed}. Its nearest, ${names[near]}, `
    + `${Math.round(10 * apart[near]) / 10}° away, is ${missed}.`
    + (held.tries ? ` In ${counted(held.tries, "random turn")} they met ${counted(held.hits[follow][near], "time")}, `
      + `${percent(share(near))}; expected, ${percent(law(apart[near]))}.` : ""),
};
