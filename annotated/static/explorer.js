// The one helper behind every JS explorer of the book. Python (frames.py) writes the
// controls as plain HTML and calls annotatedExplorer(root, render); a chapter supplies
// render(state, data, view), which draws and returns {values, says}: values are
// compared with Python's in the site's tests, says is read out by screen readers.
function annotatedExplorer(root, render) {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";
  const find = (selector) => root.querySelector(selector);
  const json = (name) => JSON.parse(find("script.annotated-explorer-" + name).textContent);
  const data = json("data");
  const inputs = [...root.querySelectorAll("[data-name]")];
  const box = find(".annotated-view");
  const says = find(".annotated-says");
  const state = {};
  let result = { values: {}, says: "" };

  // An element of the drawing; the attribute `text` becomes its content.
  function add(parent, tag, attributes) {
    const node = document.createElementNS(SVG, tag);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key === "text") node.textContent = value;
      else node.setAttribute(key, value);
    }
    return parent.appendChild(node);
  }
  const kept = new Map();
  const view = {
    add,
    // What need not be computed at every move of a control: made once for a name.
    once(name, make) {
      if (!kept.has(name)) kept.set(name, make());
      return kept.get(name);
    },
    // Width that a drawing may take, in pixels.
    width: () => box.clientWidth || 640,
    // A fresh drawing of the given size in pixels, described in one sentence.
    svg(width, height, label) {
      box.replaceChildren();
      return add(box, "svg", {
        width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label,
      });
    },
  };

  function read(input) {
    if (input.type === "range") {
      const values = JSON.parse(input.dataset.values);
      return values[Number(input.value)];
    }
    return input.type === "checkbox" ? input.checked : input.value;
  }
  function write(input, value) {
    if (input.type === "range") {
      const index = JSON.parse(input.dataset.values).indexOf(value);
      if (index < 0) throw new RangeError(`${input.dataset.name} has no value ${value}`);
      input.value = index;
    } else if (input.type === "checkbox") input.checked = value;
    else input.value = value;
  }
  function update() {
    for (const input of inputs) {
      state[input.dataset.name] = read(input);
      const shown = input.parentElement.querySelector("output");
      if (shown) shown.textContent = state[input.dataset.name];
      if (input.type === "range") input.setAttribute("aria-valuetext", read(input));
    }
    result = render(state, data, view);
    says.textContent = result.says;
  }
  root.explorer = {
    state,
    values: () => result.values,
    set(changes) {
      for (const [name, value] of Object.entries(changes)) {
        const input = inputs.find((i) => i.dataset.name === name);
        if (!input) throw new RangeError(`no control is named ${name}`);
        write(input, value);
      }
      update();
    },
  };
  for (const input of inputs) input.addEventListener("input", update);
  update();
  root.dataset.ready = "true";
}
