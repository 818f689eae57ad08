// Chapter 02: attention as a soft lookup; body of function (state, data, view,
// numbers). Keys are directions of stations, values what they measure.

const radians = (degrees) => (degrees * Math.PI) / 180;
const scores = data.stations.map((station) =>
  Math.cos(radians(station.direction - state.direction)) / state.temperature);
const weights = numbers.softmax(scores);
const answer = numbers.dot(weights, data.stations.map((station) => station.value));

// on a phone the stations' values stand below the compass
const narrow = view.width() < 540, middle = 155, ring = 105;
view.svg(narrow ? 310 : 560, narrow ? 520 : 310, "stations around a compass, their weights as discs");
const at = (degrees, r) => [
  middle + r * Math.sin(radians(degrees)), middle - r * Math.cos(radians(degrees))];
view.circle(middle, middle, ring, { fill: "none", stroke: "currentColor", "stroke-opacity": 0.3 });
const [x, y] = at(state.direction, ring - 14);
view.line(middle, middle, x, y, { stroke: "var(--at-query)", "stroke-width": 3 });
view.circle(x, y, 5, { fill: "var(--at-query)" });
data.stations.forEach((station, i) => {
  const [cx, cy] = at(station.direction, ring);
  view.circle(cx, cy, (3 + 20 * Math.sqrt(weights[i])).toFixed(2), {
    fill: "var(--at-weight)", "fill-opacity": 0.75,
  });
  const [tx, ty] = at(station.direction, ring + 32);
  view.text(tx, ty + 4, station.name, { "text-anchor": "middle" });
  const row = narrow ? 330 + 24 * i : 40 + 26 * i, left = narrow ? 20 : 330;
  view.text(left, row, `${station.name}: ${station.value} °C`);
  view.rect(left + 145, row - 11, Math.max(1, 70 * weights[i]), 13, { fill: "var(--at-weight)" });
});
const nearest = numbers.argmax(weights);
const equal = data.stations.filter((_, i) => weights[nearest] - weights[i] < 1e-6);
const most = equal.length > 1
  ? `The stations that count most are ${equal.map(({ name }) => name).join(" and ")}, each`
  : `The station that counts most is ${equal[0].name},`;
return {
  values: { weights, answer },
  room: 110,
  says: `The answer is ${answer.toFixed(2)} °C. ${most} `
    + `with a weight of ${weights[nearest].toFixed(2)}.`,
};
