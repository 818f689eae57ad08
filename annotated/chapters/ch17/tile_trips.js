// Page 17b: what travels between slow and fast memory, by the size of the tiles; body of
// function (state, data, view, numbers). All bytes and times come from Python.

const { fixed, range } = numbers;
const tile = data.tiles[state.size], [products, out, tiled] = tile.ms;

const wide = Math.min(view.width() - 1, 690), phone = wide < 620;
const across = Math.min(wide, 350), below = 386; // of the drawing; the bars stand beside it, or below
const svg = view.svg(wide, phone ? below + 170 : below, [["written out", data.out], [`in tiles of ${state.size}`, tile]]
  .map(([name, { MB, trips }]) => `${name}: ${trips.map(({ what, into }) => `${what} ${into ? "into fast memory" : "back"}`).join(", ")}, together ${MB} MB`)
  .join("; "));
const { text } = view;
const middle = { "text-anchor": "middle" }, strong = { class: "strong" }, note = { ...middle, style: "font-size: 12.2px" };
const rect = (x, y, width, height, color, shade, more = {}) => view.rect(x, y, width, height, {
  fill: `var(--at-${color})`, "fill-opacity": shade, ...more,
});

// ---- the two memories, and the trips between them

function memories(top, title, height, places, trips) {
  text(0, top + 14, title, strong);
  [[1, "slow", "other"], [across - 73, "fast", "this"]].forEach(([left, name, color]) => {
    rect(left, top + 24, 72, height, color, 0.15, { stroke: "currentColor", rx: 6 });
    text(left + 36, top + 42, name, { ...middle, ...strong });
    text(left + 36, top + 58, "memory", middle);
  });
  trips.forEach(({ what, bytes, into }, i) => {
    const y = top + places[i], thick = 1.2 + (3 * bytes) / data.matrix;
    const head = Math.max(4.5, Math.min(0.75 * thick, thick / 2 + 4.5));
    const [from, to, way] = into ? [76, across - 76, 1] : [across - 76, 76, -1], end = to - (way * head * 7) / 4.5;
    view.line(from, y, end, y, { stroke: "currentColor", "stroke-width": thick });
    view.add(svg, "polygon", { points: `${to},${y} ${end},${y - head} ${end},${y + head}`, fill: "currentColor" });
    text(across / 2, y - Math.max(6, head + 1), what, note);
  });
}
function square(x, y, side, name, under) {
  rect(x - side / 2, y, side, side, "weight", 0.5);
  text(x, y + under + 14, name, note);
}
memories(0, `Written out: ${data.out.MB} MB travel`, 201, range(7).map((i) => 50 + 27 * i), data.out.trips);
square(37, 70, 42, "scores", 46);
square(37, 140, 42, "weights", 46);
memories(247, `In tiles of ${state.size}: ${tile.MB} MB travel`, 112, [50, 88, 125], tile.trips);
square(across - 37, 322, 2 * Math.log2(state.size) - 3, "one tile", 13);

// ---- what a tile needs, and what takes how long

const start = phone ? 0 : across + 34, label = 116, most = wide - start - label - 68;
const largest = { KB: Math.max(...Object.values(data.tiles).map(({ KB }) => KB)),
  ms: Math.max(...Object.values(data.tiles).flatMap(({ ms }) => ms)) };
function bars(top, title, unit, digits, rows) {
  text(start, top + 14, title, strong);
  rows.forEach(([name, number, color], i) => {
    const y = top + 22 + 20 * i, long = (most * number) / largest[unit];
    text(start, y + 13, name);
    rect(start + label, y + 3, long, 13, color, 0.85, { class: "bar" });
    text(start + label + long + 6, y + 13, `${number.toFixed(digits)} ${unit}`);
  });
}
bars(phone ? below + 4 : 247, tile.fits ? "It fits into fast memory" : "It doesn't fit into fast memory", "KB", 0,
  [["a tile needs", tile.KB, tile.fits ? "this" : "wrong"], ["there is room for", data.room, "other"]]);
bars(phone ? below + 82 : 0, `Trips: ${fixed(tiled / products, 1)} times the products' time`, "ms", 3,
  [["products", products, "other"], ["trips, in tiles", tiled, "this"], ["trips, written out", out, "other"]]);

const times = `${fixed(tiled / products, 1)} times as long as the products`;
return {
  values: { KB: tile.KB, fits: tile.fits, ms: tile.ms },
  says: tile.fits
    ? `A tile of ${state.size} needs ${tile.KB} of ${data.room} KB, so it fits. The trips take ${fixed(tiled, 3)} ms, ${times}.`
    : `A tile of ${state.size} needs ${tile.KB} KB, but only ${data.room} KB are available, so it doesn't fit. If it did, the trips would take ${fixed(tiled, 3)} ms, ${times}.`,
  room: 155,
};
