// Chapter 05: a position as the hands of several clocks; body of function
// (state, data, view, numbers).

const p = Number(state.position), pairs = data.width / 2;
const speeds = numbers.range(pairs).map((i) => Math.pow(data.base, (-2 * i) / data.width));
const vector = speeds.flatMap((speed) => [Math.sin(p * speed), Math.cos(p * speed)]);

// on a phone the four clocks still stand in one row
const narrow = view.width() < 560, wide = narrow ? 82 : 138, ring = narrow ? 33 : 52;
const middle = ring + 14, below = 2 * ring + 44;
const svg = view.svg(wide * pairs, below + 44,
  `${pairs} clocks at position ${p}, each hand slower than the one before`);
speeds.forEach((speed, i) => {
  const x = wide * (i + 0.5), angle = p * speed;
  view.circle(x, middle, ring, { fill: "none", stroke: "currentColor", "stroke-opacity": 0.5 });
  for (let hour = 0; hour < 12; hour += 1) {
    const turn = (hour * Math.PI) / 6, inner = ring - (hour % 3 ? 4 : 8);
    view.add(svg, "line", {
      x1: x + inner * Math.sin(turn), y1: middle - inner * Math.cos(turn),
      x2: x + ring * Math.sin(turn), y2: middle - ring * Math.cos(turn),
      stroke: "currentColor", "stroke-opacity": 0.5,
    });
  }
  // where it stood one position earlier, and the way from there
  const before = angle - speed, reach = ring - 4, arc = [];
  view.line(x, middle, x + reach * Math.sin(before), middle - reach * Math.cos(before), {
    stroke: "currentColor", "stroke-width": 1.5, "stroke-dasharray": "4 3",
  });
  for (let j = 0; j <= 20; j += 1) {
    const way = before + (speed * j) / 20;
    arc.push([x + 0.6 * ring * Math.sin(way), middle - 0.6 * ring * Math.cos(way)]);
  }
  view.curve(arc, { stroke: "var(--second)", "stroke-width": 3 });
  const tip = [x + (ring - 4) * Math.sin(angle), middle - (ring - 4) * Math.cos(angle)];
  view.line(x, middle, tip[0], tip[1], {
    stroke: "var(--accent)", "stroke-width": 4, "stroke-linecap": "round",
  });
  view.circle(x, middle, 4, { fill: "var(--accent)" });
  const round = Math.round((2 * Math.PI) / speed * (i ? 1 : 10)) / (i ? 1 : 10);
  view.text(x, 2 * ring + 36, narrow ? `1 in ${round}` : `one turn in ${round}`, {
    "text-anchor": "middle",
  });
  vector.slice(2 * i, 2 * i + 2).forEach((value, j) => {
    const cell = (wide - 6) / 2, left = x - cell + cell * j;
    view.rect(left, below, cell, 28, {
      stroke: "currentColor", "stroke-opacity": 0.4,
      fill: value < 0 ? "var(--second)" : "var(--accent)",
      "fill-opacity": (0.45 * Math.abs(value)).toFixed(3),
    });
    view.text(left + cell / 2, below + 19, numbers.fixed(value, narrow ? 1 : 2), {
      "text-anchor": "middle",
    });
  });
});
return {
  values: { vector },
  room: 160,
  says: `From position ${p - 1} to ${p} the hands turn by `
    + `${speeds.map((speed) => Number(speed.toPrecision(3))).join(", ")} radians. Position ${p} is the vector `
    + `${vector.map((value) => numbers.fixed(value, 2)).join(", ")}.`,
};
