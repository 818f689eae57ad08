// Elements of the laboratory, and numbers as a reader sees them.
//
// Needs no other file. Reads `lab.root`, whose id all others begin with, so that two
// laboratories may share a page, and `lab.terms`.

function make(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in node) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

function draw(parent, tag, attributes, text = "") {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.textContent = text;
  return parent.appendChild(node);
}

const percent = (x) => `${(100 * x).toFixed(x > 0.99 && x < 1 ? 1 : 0)}\u00a0%`;
const last = (list) => list[list.length - 1];
const rounded = (x) => (x < 1000 ? x.toFixed(3) : x.toExponential(0));
const mean = (list) => list.reduce((total, x) => total + x, 0) / list.length;

const labelled = (text, control) => make("label", { className: "lab-control" }, text, " ", control);

const idOf = (lab, name) => `${lab.root.id}-${name.toLowerCase().replace(/\W+/g, "-")}`;

// A [word] in brackets shows its meaning, in a small box below it.
const linked = (lab, text) => text.split(/\[(.*?)\]/).map((part, i) => (i % 2 ? term(lab, part) : part));

function term(lab, word) {
  const box = make("span", { className: "lab-meaning", role: "note", hidden: true }, lab.terms[word[0].toUpperCase() + word.slice(1)]);
  const show = (shown) => {
    box.hidden = !shown;
    if (shown) { // right below the word, and no further out than its column
      const at = button.getBoundingClientRect(), frame = lab.root.getBoundingClientRect();
      const column = button.closest("p").getBoundingClientRect();
      box.style.maxWidth = `${Math.max(column.width, 230)}px`;
      box.style.top = `${at.bottom - frame.top + 3}px`;
      box.style.left = `${Math.max(8, Math.min(at.left, column.right - box.offsetWidth) - frame.left)}px`;
    }
    button.setAttribute("aria-expanded", shown);
  };
  const button = make("button", {
    type: "button", className: "lab-term", "aria-expanded": false,
    onclick() { show(box.hidden); },
    onblur() { show(false); },
    onkeydown({ key }) { if (key === "Escape") show(false); },
  }, word);
  return make("span", {}, button, box);
}

const select = (lab, name, options) => make("select", { id: idOf(lab, name) },
  ...Object.entries(options).map(([value, text]) => make("option", { value }, text)));
