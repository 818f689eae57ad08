// Chapter 13: buckets on a circle; body of function (state, data, view, numbers).
// Points lie on one circle. A round turns them, and the nearest of the directions that
// stand still, east first and then against the clock, is the bucket.

const { range } = numbers;
const names = data.names, buckets = Number(state.buckets), width = 360 / buckets;
const rounds = range(Number(state.rounds)), follow = names.indexOf(state.follow);
const degrees = (angle) => ((angle % 360) + 360) % 360;
const angles = data.points.map(([x, y]) => degrees(Math.atan2(y, x) * 180 / Math.PI));
const turns = rounds.map((r) => (Number(state.turn) + data.turns[r]) % 360);
const turned = turns.map((turn) => angles.map((angle) => degrees(angle - turn)));
const bucket = turned.map((list) => list.map((angle) =>
  Math.floor(degrees(angle + width / 2) / width)));
const apart = angles.map((angle) => {
  const gap = Math.abs(angle - angles[follow]);
  return Math.min(gap, 360 - gap);
});
const shared = names.map((_, i) => rounds.filter((r) => bucket[r][i] === bucket[r][follow]));

// circles beside each other, and below them who was found
const across = rounds.length === 1 ? 1 : view.width() < 560 ? 2 : Math.min(rounds.length, 4);
const cell = Math.min(rounds.length === 1 ? 300 : 260, Math.floor((view.width() - 4) / across));
const down = Math.ceil(rounds.length / across);
const ring = cell / 2 - 42, wide = Math.max(across * cell, 330), line = 20;
const svg = view.svg(wide, down * (cell + 18) + line * 4 + 6,
  `${rounds.length} circle(s) with eight points each, cut into ${buckets} buckets`);
rounds.forEach((r) => {
  const cx = (r % across) * cell + cell / 2 + (wide - across * cell) / 2;
  const cy = Math.floor(r / across) * (cell + 18) + cell / 2 + 18;
  const at = (angle, radius) => [cx + radius * Math.cos(angle * Math.PI / 180),
    cy - radius * Math.sin(angle * Math.PI / 180)];
  view.add(svg, "text", {
    x: cx, y: cy - cell / 2 - 4, "text-anchor": "middle", class: "strong",
    text: `round ${r + 1}: turned by ${turns[r]}°`,
  });
  const own = bucket[r][follow], large = buckets === 2 ? 0 : 0;
  const [ax, ay] = at((own - 0.5) * width, ring), [bx, by] = at((own + 0.5) * width, ring);
  view.add(svg, "path", {
    d: `M${cx} ${cy}L${ax.toFixed(1)} ${ay.toFixed(1)}A${ring} ${ring} 0 ${large} 0 ${bx.toFixed(1)} ${by.toFixed(1)}Z`,
    fill: "var(--accent)", "fill-opacity": 0.16,
  });
  view.add(svg, "circle", {
    cx, cy, r: ring, fill: "none", stroke: "currentColor", "stroke-opacity": 0.4,
  });
  range(buckets).forEach((n) => {
    const [x, y] = at((n + 0.5) * width, ring + 14), [tx, ty] = at(n * width, ring * 0.45);
    view.add(svg, "line", {
      x1: cx, y1: cy, x2: x, y2: y, stroke: "currentColor", "stroke-opacity": 0.6,
      "stroke-dasharray": "5 3",
    });
    view.add(svg, "text", {
      x: tx, y: ty + 5, "text-anchor": "middle", opacity: 0.8, text: String(n),
    });
  });
  turned[r].forEach((angle, i) => {
    const [x, y] = at(angle, ring), [lx, ly] = at(angle, ring + 21);
    const here = bucket[r][i] === own;
    view.add(svg, "circle", {
      cx: x, cy: y, r: 8, fill: `hsl(${angles[i].toFixed(0)}, 80%, 50%)`, stroke: "currentColor",
      "stroke-width": i === follow ? 3.5 : 1,
    });
    view.add(svg, "text", {
      x: lx, y: ly + 5, "text-anchor": "middle", class: here ? "code strong" : "code",
      text: names[i],
    });
  });
});
const others = range(names.length).filter((i) => i !== follow)
  .sort((i, j) => apart[i] - apart[j]);
const top = down * (cell + 18) + line, step = (wide - 96) / others.length;
const write = (row, title, text, strong) => {
  view.add(svg, "text", { x: 2, y: top + line * row, text: title });
  others.forEach((i, n) => view.add(svg, "text", {
    x: 96 + step * (n + 0.5), y: top + line * row, "text-anchor": "middle",
    class: `${row ? "" : "code "}${shared[i].length || strong ? "strong" : ""}`, text: text(i),
  }));
};
write(0, `from ${state.follow} to`, (i) => names[i]);
write(1, "apart", (i) => `${Math.round(apart[i])}°`);
write(2, "shared", (i) => (shared[i].length ? shared[i].map((r) => r + 1).join(" ") : "–"));
view.add(svg, "text", { x: 2, y: top + line * 2 + 14, opacity: 0.8, text: "in round" });
const listed = (list) => list.map((i) => names[i]).join(", ") || "nobody";
const met = others.filter((i) => shared[i].length), near = others[0];
const heaps = range(buckets).map((n) =>
  `${n}: ${names.filter((_, i) => bucket[0][i] === n).join(" ") || "–"}`);
return {
  values: { buckets: bucket, met: met.map((i) => names[i]).sort() },
  says: (rounds.length === 1 ? `Buckets: ${heaps.join("; ")}. ` : "")
    + `${state.follow} shares a bucket with ${listed(met)}. Its nearest, ${names[near]}, is `
    + `${Math.round(apart[near])}° away and ${shared[near].length ? "found" : "missed"}.`,
};
