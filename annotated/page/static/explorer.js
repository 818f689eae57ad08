// The helpers behind every slider and explorer of the book; html.jinja writes their
// controls as plain HTML and calls these.

// Frames made beforehand, one for each combination of the controls' values, in the
// order of Python's itertools.product.
function frames(root) {
  const inputs = [...root.querySelectorAll("[data-name]")];
  const all = root.querySelectorAll(".annotated-frame");
  function show() {
    let index = 0;
    for (const input of inputs) {
      if (input.tagName === "SELECT") {
        index = index * input.options.length + input.selectedIndex;
        continue;
      }
      if (input.type === "checkbox") {
        index = index * 2 + Number(input.checked);
        continue;
      }
      const values = JSON.parse(input.dataset.values);
      index = index * values.length + Number(input.value);
      root.querySelector(`output[for="${input.id}"]`).textContent = values[input.value];
      input.setAttribute("aria-valuetext", values[input.value]);
    }
    all.forEach((frame, i) => { frame.hidden = i !== index; });
  }
  inputs.forEach((input) => input.addEventListener("input", show));
}

// An explorer: a chapter supplies render(state, data, view, numbers), which draws and
// returns {values, says, room}: values are compared with Python's in the site's tests,
// says stands below the drawing and is read out by screen readers, and room is how many
// letters it may have, so that nothing moves.
function explorer(root, render) {
  const SVG = "http://www.w3.org/2000/svg";
  const find = (selector) => root.querySelector(selector);
  const json = (name) => JSON.parse(find("script.annotated-explorer-" + name).textContent);
  const data = json("data");
  const inputs = [...root.querySelectorAll("[data-name]")];
  const box = find(".annotated-view");
  const says = find(".annotated-says"), said = says.appendChild(document.createElement("span"));
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
  let drawn; // what `svg` began last: the next five add to it
  const view = {
    add,
    text: (x, y, text, more) => add(drawn, "text", { x, y, text, ...more }),
    rect: (x, y, width, height, more) => add(drawn, "rect", { x, y, width, height, ...more }),
    line: (x1, y1, x2, y2, more) => add(drawn, "line", { x1, y1, x2, y2, ...more }),
    circle: (cx, cy, r, more) => add(drawn, "circle", { cx, cy, r, ...more }),
    // A line through points, [x, y] each.
    curve(points, more) {
      const places = points.map((point) => point.map((z) => z.toFixed(1)).join(",")).join(" ");
      return add(drawn, "polyline", { points: places, fill: "none", ...more });
    },
    input: (name) => inputs.find((input) => input.dataset.name === name),
    // A model that is chosen sets the controls that `models` has values for; a control that
    // is moved away from them makes it the reader's `own`.
    preset(models, own) {
      const last = view.once("preset", () => ({}));
      const sizes = state.model === own ? [] : Object.entries(models[state.model]);
      if (state.model !== last.model) sizes.forEach(([name, value]) => {
        write(view.input(name), value);
        take(view.input(name));
      });
      else if (sizes.some(([name, value]) => state[name] !== value)) {
        write(view.input("model"), own);
        state.model = own;
      }
      last.model = state.model;
    },
    // What need not be computed at every move of a control: made once for a name.
    once(name, make) {
      if (!kept.has(name)) kept.set(name, make());
      return kept.get(name);
    },
    // The look of a cell of a grid: on or off, its short text, and its name in words.
    cell(name, i, j, { on, text, label }) {
      const grid = inputs.find((input) => input.dataset.name === name);
      const cell = cells(grid)[i * columns(grid) + j];
      cell.setAttribute("aria-pressed", Boolean(on));
      // the name holds what is to be seen
      cell.setAttribute("aria-label", label.includes(text) ? label : `${label}, ${text}`);
      cell.textContent = text;
    },
    // What stands beside the rows and above the columns of a grid.
    names(name, rows, above) {
      const grid = inputs.find((input) => input.dataset.name === name);
      const spans = [...grid.querySelectorAll("span")];
      above.forEach((text, j) => { spans[j + 1].textContent = text; });
      rows.forEach((text, i) => { spans[above.length + 1 + i].textContent = text; });
    },
    // A button that loads a model which is too heavy to come with the page. It is a script
    // of the site's `_static`, so that it can be loaded from a disk as well, and stays
    // under its name once it is there.
    loader({ file, button, missing }) {
      const press = document.createElement("button");
      Object.assign(press, { type: "button", className: "annotated-load", textContent: button });
      press.addEventListener("click", () => {
        const script = document.createElement("script");
        script.src = `${document.documentElement.dataset.content_root || ""}_static/${file}`;
        script.onload = update;
        script.onerror = () => { said.textContent = missing; };
        said.textContent = "Loading …";
        document.head.append(script);
      });
      return press;
    },
    // Something that a drawing adds to the controls.
    control: (node) => find(".annotated-controls").appendChild(node),
    // Buttons among the controls, by what stands on them: what each one does.
    buttons: (acts) => view.once("buttons", () => Object.entries(acts).forEach(([text, act]) => {
      const button = view.control(document.createElement("button"));
      Object.assign(button, { type: "button", className: "annotated-act", textContent: text });
      button.addEventListener("click", act);
    })),
    // A slider that ends earlier than its values do, and what it shows now.
    ends(name, most, shown) {
      const slider = view.input(name);
      slider.max = most;
      slider.setAttribute("aria-valuetext", shown);
      slider.parentElement.querySelector("output").textContent = shown;
    },
    // A control is set to a value, as if its reader had done it.
    move(name, value) {
      view.input(name).value = value;
      view.input(name).dispatchEvent(new Event("input"));
    },
    // A button, as wide as its longest text, that moves a slider to a place.
    step(name, place, text, width = "10.5rem") {
      const press = view.once("step", () => view.control(document.createElement("button")));
      Object.assign(press, { type: "button", className: "annotated-load", textContent: text });
      press.style.minWidth = width;
      press.onclick = () => view.move(name, place);
    },
    // A grid of one row as switches, with nothing above them.
    switches(name, style) {
      const grid = view.input(name);
      grid.style.display = "flex";
      grid.querySelectorAll("span").forEach((span) => { span.hidden = true; });
      grid.querySelectorAll("button").forEach((button) => Object.assign(button.style, style));
      grid.parentElement.querySelector(".annotated-reset").style.marginTop = "0";
      return grid;
    },
    // Width that a drawing may take, in pixels.
    width: () => box.clientWidth || 640,
    // A fresh drawing of the given size in pixels, described in one sentence.
    svg(width, height, label) {
      box.replaceChildren();
      drawn = add(box, "svg", {
        width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label,
      });
      return drawn;
    },
    // A fill for what a mask hides, of a pattern that belongs to this drawing.
    hatch(svg) {
      const id = `${root.id}-hatch`, turned = { patternTransform: "rotate(45)" };
      const pattern = add(svg, "pattern", {
        id, width: 5, height: 5, patternUnits: "userSpaceOnUse", ...turned,
      });
      add(pattern, "path", { d: "M0 0V5", stroke: "currentColor", "stroke-opacity": 0.4 });
      return `url(#${id})`;
    },
    // A copy being written, row by row: rows hold the symbol and its weights over the
    // source. Framed is the place of the symbol to be written, the next of the source.
    copy(source, rows) {
      const left = 62, top = 46, n = source.length;
      const size = Math.max(14, Math.min(27, Math.floor((view.width() - left - 4) / n)));
      const svg = view.svg(Math.max(left + size * n + 4, 290), top + size * rows.length + 10,
        `attention of ${rows.length} steps to ${n} places of the source`);
      add(svg, "text", { x: 0, y: 14, text: "source read →" });
      add(svg, "text", { x: 0, y: 36, text: "written" });
      source.forEach((symbol, j) => add(svg, "text", {
        x: left + size * (j + 0.5), y: top - 8, "text-anchor": "middle", class: "code",
        text: symbol,
      }));
      rows.forEach(({ symbol, weights }, i) => {
        const y = top + size * i, right = symbol === source[i + 1];
        add(svg, "text", {
          x: left - 10, y: y + size / 2 + 5, "text-anchor": "end",
          class: right ? "code" : "code strong", text: right ? symbol : `✗ ${symbol}`,
        });
        weights.forEach((weight, j) => {
          const here = j === i + 1;
          add(svg, "rect", {
            x: left + size * j + 2, y: y + 2, width: size - 4, height: size - 4,
            fill: "var(--accent)", "fill-opacity": weight.toFixed(3),
            stroke: here ? "var(--second)" : "currentColor",
            "stroke-width": here ? 2.5 : 1, "stroke-opacity": here ? 1 : 0.15,
          });
        });
      });
    },
  };

  const cells = (grid) => [...grid.querySelectorAll("button")];
  const columns = (grid) => cells(grid).filter((cell) => cell.dataset.row === "0").length;

  function read(input) {
    if (input.matches(".annotated-grid")) {
      return cells(input).filter((cell) => cell.dataset.switched)
        .map((cell) => [Number(cell.dataset.row), Number(cell.dataset.column)]);
    }
    if (input.type === "range") {
      const values = JSON.parse(input.dataset.values);
      return values[Number(input.value)];
    }
    return input.type === "checkbox" ? input.checked : input.value;
  }
  function write(input, value) {
    if (input.matches(".annotated-grid")) {
      for (const cell of cells(input)) delete cell.dataset.switched;
      for (const [i, j] of value) {
        const cell = cells(input)[i * columns(input) + j];
        if (!cell || j >= columns(input)) {
          throw new RangeError(`${input.dataset.name} has no cell ${i}, ${j}`);
        }
        cell.dataset.switched = "yes";
      }
    } else if (input.type === "range") {
      const index = JSON.parse(input.dataset.values).indexOf(value);
      if (index < 0) throw new RangeError(`${input.dataset.name} has no value ${value}`);
      input.max = Math.max(input.max, index); // a drawing may have shortened the slider
      input.value = index;
    } else if (input.type === "checkbox") input.checked = value;
    else input.value = value;
  }
  function take(input) {
    state[input.dataset.name] = read(input);
    const shown = input.parentElement.querySelector("output");
    if (shown) shown.textContent = state[input.dataset.name];
    if (input.type === "range") input.setAttribute("aria-valuetext", read(input));
  }
  function update() {
    inputs.forEach(take);
    result = render(state, data, view, numbers);
    said.textContent = result.says;
    says.dataset.room = "room for so many ".repeat(20).slice(0, result.room ?? 0);
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
  const MOVES = {
    ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0],
  };
  for (const grid of inputs.filter((input) => input.matches(".annotated-grid"))) {
    const changed = () => grid.dispatchEvent(new Event("input"));
    const choose = (cell) => {
      for (const other of cells(grid)) other.tabIndex = other === cell ? 0 : -1;
    };
    for (const cell of cells(grid)) {
      cell.addEventListener("click", () => {
        if (cell.dataset.switched) delete cell.dataset.switched;
        else cell.dataset.switched = "yes";
        choose(cell);
        changed();
      });
      cell.addEventListener("keydown", (event) => {
        const move = MOVES[event.key];
        const ends = { Home: 0, End: columns(grid) - 1 };
        if (!move && !(event.key in ends)) return;
        event.preventDefault();
        const i = Number(cell.dataset.row) + (move ? move[0] : 0);
        const j = move ? Number(cell.dataset.column) + move[1] : ends[event.key];
        const next = cells(grid).find((c) => Number(c.dataset.row) === i
          && Number(c.dataset.column) === j);
        if (!next) return;
        choose(next);
        next.focus();
      });
    }
    grid.parentElement.querySelector(".annotated-reset").addEventListener("click", () => {
      write(grid, []);
      changed();
    });
  }
  for (const input of inputs) input.addEventListener("input", update);
  for (const button of root.querySelectorAll(".annotated-suggestion")) {
    button.addEventListener("click", () => {
      const field = button.parentElement.parentElement.querySelector("textarea");
      field.value = button.textContent;
      field.dispatchEvent(new Event("input"));
    });
  }
  update();
  let width = box.clientWidth;
  new ResizeObserver(() => { // a phone that is turned gets a drawing of its width
    if (box.clientWidth === width) return;
    width = box.clientWidth;
    update();
  }).observe(box);
  root.dataset.ready = "true";
}
