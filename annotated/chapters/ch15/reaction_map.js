// Page 15b: which atom was which; body of function (state, data, view, numbers). Python has
// found, for each layer, head and atom of the product, the three reactants' atoms with the
// largest weights; whether a link is right is looked up here.

const { range } = numbers;
const item = data.items[state.reaction], atoms = item.may.length;
const bytes = view.once(state.reaction, () => Uint8Array.from(atob(item.bytes), (c) => c.charCodeAt(0)));
const first = ((Number(state.layer) - 1) * data.heads + Number(state.head) - 1) * atoms;
const looks = range(atoms).map((i) => range(data.top).map((k) => {
  const at = 2 * (data.top * (first + i) + k);
  return { atom: bytes[at], weight: bytes[at + 1] / 100 };
}));
const right = looks.map(([most], i) => item.may[i].includes(most.atom));
const count = right.filter(Boolean).length;

// ---- molecules in rows, as wide as there is room; all reactions take the same height

const room = Math.max(270, view.width() - 4), broad = room >= 560;
const edge = 12, gap = 24, between = broad ? 90 : 80;
function lay(molecules, top, scale) {
  const size = (molecule) => [1, 2].map((axis) => Math.max(...molecule.atoms.map((atom) => atom[axis])) * scale);
  const rows = [[]];
  let used = 0;
  for (const molecule of molecules) {
    const wide = size(molecule)[0] + 2 * edge, row = rows[rows.length - 1];
    if (row.length && used + gap + wide > room - 32) { // a plus may follow
      rows.push([molecule]);
      used = wide;
    } else {
      used += wide + (row.length ? gap : 0);
      row.push(molecule);
    }
  }
  const places = [], signs = [];
  let y = top;
  rows.forEach((row, n) => {
    const wide = row.map((molecule) => size(molecule)[0] + 2 * edge);
    const high = Math.max(...row.map((molecule) => size(molecule)[1]));
    let x = (room - numbers.sum(wide) - gap * (row.length - 1)) / 2;
    row.forEach((molecule, k) => {
      const down = y + (high - size(molecule)[1]) / 2;
      for (const [i, u, v] of molecule.atoms) places[i] = [x + edge + u * scale, down + v * scale];
      x += wide[k] + gap;
      const last = k === row.length - 1;
      if (!last || n < rows.length - 1) signs.push([last ? x - gap + 6 : x - gap / 2, y + high / 2 + 5]);
    });
    y += high + 34;
  });
  return { places, signs, end: y - 34 };
}
function plan(one, top, apart) {
  const many = one.letters[0].length > 40, scale = broad ? (many ? 25 : 31) : many ? 20 : 22;
  const above = lay(one.before, top, scale);
  return { above, below: lay(one.behind, above.end + apart, scale) };
}
const highest = Math.max(...Object.values(data.items).map((one) => plan(one, 40, between).below.end));
const spare = highest - plan(item, 40, between).below.end, wider = Math.min(spare, broad ? 60 : 90);
const { above, below } = plan(item, 40 + (spare - wider) / 2, between + wider);
view.svg(room, highest + 34,
  `${state.reaction}: links of layer ${state.layer}, head ${state.head}, ${count} of ${atoms} right`);
const { text } = view;
const line = (from, to, more) => view.line(...from, ...to, { "stroke-linecap": "round", ...more });
const disc = (middle, r, more) => view.circle(...middle, r, more);
text(2, 16, "before", { class: "strong" });
text(2, highest + 28, "after", { class: "strong" });
[...above.signs, ...below.signs].forEach(([x, y]) => text(x, y, "+", { "text-anchor": "middle", style: "font-size: 17px" }));

// ---- what the head looks at

const slider = view.input("atom");
slider.max = atoms; // a smaller product has fewer atoms
const chosen = state.atom === "all" ? -1 : Math.min(Number(state.atom), atoms) - 1;
if (chosen >= 0) slider.parentElement.querySelector("output").textContent = chosen + 1;
range(atoms).filter((i) => chosen < 0 || i === chosen).forEach((i) => {
  const from = below.places[i], to = above.places[looks[i][0].atom], alone = i === chosen;
  if (alone) looks[i].forEach(({ atom, weight }) => disc(above.places[atom], 13, {
    fill: "var(--at-weight)", "fill-opacity": (0.85 * weight).toFixed(2), stroke: "var(--at-weight)", "stroke-width": 1,
  }));
  if (alone && !right[i]) item.may[i].forEach((atom) => disc(above.places[atom], 16, {
    fill: "none", stroke: "var(--at-right)", "stroke-width": 2.5, "stroke-dasharray": "4 3",
  }));
  const length = Math.hypot(to[0] - from[0], to[1] - from[1]);
  const [u, v] = [(to[0] - from[0]) / length, (to[1] - from[1]) / length];
  const [near, far] = alone ? [13, 14] : [9, 9];
  line([from[0] + near * u, from[1] + near * v], [to[0] - far * u, to[1] - far * v], {
    stroke: `var(--at-${right[i] ? "right" : "wrong"})`, "stroke-width": alone ? 3 : 1.6,
    "stroke-opacity": alone ? 1 : 0.75, "stroke-dasharray": right[i] ? "none" : "6 5",
  });
});
if (chosen >= 0) disc(below.places[chosen], 13, { fill: "none", stroke: "currentColor", "stroke-width": 2 });

// ---- bonds and letters

[[item.before, above, item.letters[0]], [item.behind, below, item.letters[1]]].forEach(([molecules, { places }, letters]) => {
  molecules.flatMap((molecule) => molecule.bonds).forEach(([i, j, order]) => {
    const [[x1, y1], [x2, y2]] = [places[i], places[j]], length = Math.hypot(x2 - x1, y2 - y1);
    const [u, v] = [(x2 - x1) / length, (y2 - y1) / length];
    const [near, far] = [i, j].map((k) => (letters[k] ? 9 : 0));
    for (const aside of [[0], [-2, 2], [-3.5, 0, 3.5]][order - 1]) {
      line([x1 + near * u - aside * v, y1 + near * v + aside * u], [x2 - far * u - aside * v, y2 - far * v + aside * u],
        { stroke: "currentColor", "stroke-width": 1.4 });
    }
  });
  letters.forEach((letter, i) => {
    if (letter) text(places[i][0], places[i][1] + 4.6, letter, { "text-anchor": "middle" });
  });
});
below.places.forEach((place, i) => { // a finger finds what is near
  const target = disc(place, 12, { fill: "transparent", style: "cursor: pointer" });
  target.addEventListener("click", () => view.move("atom", i + 1));
});

// ---- what is said

const element = (side, i) => {
  const letter = item.letters[side][i].replace(/[⁺⁻]/, "");
  return data.elements[letter || "C"];
};
const percent = (weight) => `${Math.round(100 * weight)} %`;
const [most] = chosen < 0 ? [] : looks[chosen];
const one = chosen < 0 ? "" : ` The chosen ${element(1, chosen)} puts ${percent(most.weight)} of its weight on one `
  + `${element(0, most.atom)}: ${right[chosen] ? "right." : `wrong. It was the ringed ${element(0, item.may[chosen][0])}.`}`;
return {
  values: { count, linked: chosen < 0 ? -1 : most.atom, right: chosen < 0 ? false : right[chosen] },
  says: `Layer ${state.layer}, head ${state.head}: ${count} of ${atoms} links are right.${one}`,
  room: 150,
};
