// Chapter 19: two names, written in rounds by someone who guesses each symbol for itself;
// body of function (state, data, view, numbers).

const { range, fixed } = numbers;
const pair = data.names[state.names], words = pair[0].includes(" ");
const symbols = pair.map((name) => (words ? name.split(" ") : [...name]));
const n = symbols[0].length, p = state.share / 100;
const rounds = Math.min(state.rounds, n), m = Math.ceil(n / rounds);

// After the first round whoever agrees knows the rest; whoever doesn't has a name that
// nobody has, and goes on with either.
const right = p ** m + (1 - p) ** m;
const bits = -[p, 1 - p].reduce((total, x) => total + (x ? x * Math.log2(x) : 0), 0);
const lost = (m - 1) * bits;

// The same cards at every visit: a small generator of Park and Miller's.
let seed = 19;
const random = () => { seed = (seed * 48271) % 2147483647; return seed / 2147483647; };
const cards = range(24).map(() => {
  const draws = range(n).map(() => random());
  const first = draws.slice(0, m).map((x) => (x < p ? 0 : 1));
  const same = first.every((side) => side === first[0]);
  const sides = range(n).map((i) => (i < m ? first[i] : same ? first[0] : draws[i] < p ? 0 : 1));
  return { same, text: sides.map((side, i) => symbols[side][i]).join(words ? " " : "") };
});

const wide = view.width(), columns = wide >= 620 ? 4 : wide >= 460 ? 3 : 2;
const size = (wide - 4) / columns, rows = 24 / columns;
view.svg(wide, 30 * rows + 4, `24 cards, of which ${cards.filter(({ same }) => same).length} name a city`);
cards.forEach(({ same, text }, i) => {
  const x = 2 + size * (i % columns), y = 2 + 30 * Math.floor(i / columns);
  view.rect(x, y, size - 8, 25, {
    rx: 4, fill: `var(--at-${same ? "right" : "wrong"})`, "fill-opacity": 0.22,
  });
  view.text(x + 8, y + 17, `${same ? "✓" : "✗"} ${text}`, words ? {} : { class: "code" });
});
return {
  values: { right, lost },
  says: `${m === 1 ? "One symbol" : `${m} symbols`} at once: ${fixed(100 * right, 1)} % of the cards name a `
    + `city, and ${fixed(lost, 2)} bits per card are lost.`,
  room: 110,
};
