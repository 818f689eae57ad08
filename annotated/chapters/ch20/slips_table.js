// Filters and sorts a table whose rows open. Without it, all rows are there and can be opened.
const table = root.querySelector("table");
const bodies = [...table.tBodies]; // one for each row of the table
const words = new Map(bodies.map((body) => [body, body.textContent.toLowerCase()]));

const label = document.createElement("label");
const field = document.createElement("input");
const count = document.createElement("output");
field.type = "search";
field.autocomplete = "off";
label.append("Find ", field);
root.prepend(label, count);

function filter() {
  const wanted = field.value.toLowerCase().split(/\s+/);
  for (const body of bodies) {
    body.hidden = !wanted.every((word) => words.get(body).includes(word));
  }
  const shown = bodies.filter((body) => !body.hidden).length;
  count.textContent = ` ${shown} of ${bodies.length} ${root.dataset.noun}`;
}
field.addEventListener("input", filter);
filter();

const headers = [...table.tHead.rows[0].cells];
headers.forEach((header, column) => {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...header.childNodes);
  header.append(button);
  const cell = (body) => body.rows[0].cells[column].textContent;
  button.addEventListener("click", () => {
    const sign = header.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const other of headers) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
    const compare = new Intl.Collator("en", { numeric: true }).compare;
    bodies.sort((one, other) => sign * compare(cell(one), cell(other)));
    table.append(...bodies);
  });
});
