// Elements of the laboratory, and numbers as a reader sees them.
//
// Needs no other file. Reads `lab.root`, whose id all others begin with, so that two
// laboratories may share a page, `lab.terms` and `lab.dom.help`.

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

// A [word] in brackets leads to its meaning.
const linked = (lab, text) => text.split(/\[(.*?)\]/).map((part, i) => (i % 2 ? make("a", {
  href: `#${idOf(lab, `word ${part}`)}`, title: lab.terms[part[0].toUpperCase() + part.slice(1)], onclick() { lab.dom.help.open = true; },
}, part) : part));

const select = (lab, name, options) => make("select", { id: idOf(lab, name) },
  ...Object.entries(options).map(([value, text]) => make("option", { value }, text)));
