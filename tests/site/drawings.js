// What is wrong with the drawings of a page, in each state that their controls have.
// For page.evaluate; returns { wrong, alts, states }: what is wrong, the alternative
// texts, and how many states were looked at.
() => {
  const SMALLEST = 11.8; // pixels of a letter: 12, but for rounding
  const MARKS = "path, line, rect, circle, ellipse, polygon, polyline, use, image";
  const HELPERS = "defs, clipPath, pattern, marker, symbol, mask";
  const NAMED = /(?:url\((?:&quot;)?#|href="#)([^)"&]+)/g;
  const NO_NUMBER = /\b(NaN|nan|undefined|Infinity)\b/;
  const ON_PURPOSE = ["Mask builder", "Which slip is it?"]; // what a wrong mask gives
  const SMALLER = "sub, sup, msub, msup, mjx-container, .baseline, [baseline-shift]";
  const wrong = new Set(), alts = new Set();
  let states = 0;

  const style = document.head.appendChild(document.createElement("style"));
  style.textContent = "svg, svg * { pointer-events: visiblePainted !important }";

  const every = (node, selector) => [...node.querySelectorAll(selector)];
  const seen = (node) => node.checkVisibility({
    visibilityProperty: true, opacityProperty: true,
  });
  const nameOf = (node) => (node.closest("[aria-label]")?.ariaLabel || node.textContent)
    .trim().replace(/\s+/g, " ").slice(0, 60);

  // Whether the browser paints a mark: it is found at one of its points, or right beside
  // one, which it isn't where a clip path, the drawing's edge or no paint hides it.
  function painted(mark) {
    const box = mark.getBoundingClientRect(), length = mark.getTotalLength?.();
    const points = [new DOMPoint(box.x + box.width / 2, box.y + box.height / 2)];
    for (const share of length ? [0.5, 0.02, 0.25, 0.75, 0.98, 0.1, 0.9] : []) {
      const point = mark.getPointAtLength(share * length);
      points.push(point.matrixTransform(mark.getScreenCTM()));
    }
    const beside = [[0, 0], [1, 1], [-1, -1], [1, -1], [-1, 1]];
    return points.some(({ x, y }) => beside.some(([right, down]) =>
      document.elementsFromPoint(x + right, y + down).includes(mark)));
  }

  function svg(drawing, tell) {
    const named = drawing.closest("[aria-label]");
    if (named || !drawing.closest("[aria-hidden]")) alts.add(named?.ariaLabel ?? "");
    for (const [, id] of drawing.innerHTML.matchAll(NAMED)) {
      if (!drawing.querySelector(`[id="${id}"]`)) tell(`what it names, #${id}, is elsewhere`);
    }
    const marks = every(drawing, MARKS).filter((one) => !one.closest(HELPERS) && seen(one));
    const texts = every(drawing, "text").filter((one) => one.textContent.trim() && seen(one));
    if (!marks.length && !texts.length) tell("nothing is drawn");
    // what one pair of axes clips is a group; frames and ticks stand outside of them
    const ink = marks.filter(({ style }) => // no line of a grid
      style.fill !== "none" || !style.stroke.includes("--at-rule"));
    const clips = Map.groupBy(ink, (mark) =>
      mark.closest("[clip-path]")?.getAttribute("clip-path"));
    if (clips.size > 1) clips.delete(undefined);
    for (const [clip, group] of clips) {
      if (group.some(painted)) continue;
      tell(`none of ${group.length} marks is to be seen (${clip ?? "no clip"})`);
    }
    const edge = drawing.getBoundingClientRect();
    const cuts = getComputedStyle(drawing).overflow !== "visible";
    for (const text of cuts ? texts : []) {
      const { left, right, top, bottom } = text.getBoundingClientRect();
      const over = Math.max(
        edge.left - left, right - edge.right, edge.top - top, bottom - edge.bottom);
      if (over > 3) tell(`“${text.textContent}” is ${over.toFixed(0)} px outside`);
    }
    const words = texts.filter((text) => /[\p{L}\p{N}]/u.test(text.textContent)
      && !text.getScreenCTM().b); // upright ones
    const boxes = words.map((text) => text.getBoundingClientRect());
    boxes.forEach((one, i) => boxes.slice(i + 1).forEach((other, j) => {
      const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
      if (wide > 3 && high > Math.min(one.height, other.height) / 2) {
        tell(`“${words[i].textContent}” lies on “${words[i + 1 + j].textContent}”`);
      }
    }));
  }

  const size = (node) => parseFloat(getComputedStyle(node).fontSize);
  // an exponent, as matplotlib writes it
  const raised = (node) => node.tagName === "tspan"
    && size(node) < size(node.parentElement.firstElementChild);

  function letters(stage, tell, without = "none") {
    const walker = document.createTreeWalker(stage, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode.parentElement, text = walker.currentNode.data.trim();
      if (!text || !seen(node) || node.closest(`${SMALLER}, ${without}`)) continue;
      if (raised(node)) continue;
      const matrix = node.getScreenCTM?.();
      const high = size(node) * (matrix ? Math.hypot(matrix.a, matrix.b) : 1);
      if (high < SMALLEST) tell(`“${text}” in letters of ${high.toFixed(1)} px`);
    }
  }

  // A stage as it stands: the element that holds a figure's drawing.
  function look(stage, where) {
    states += 1;
    const tell = (what) => wrong.add(`${nameOf(stage)}, ${where}: ${what}`);
    const drawings = every(stage, "svg").filter(seen);
    for (const drawing of drawings) svg(drawing, tell);
    if (!drawings.length && !stage.innerText.trim()) tell("nothing is drawn");
    const html = stage.innerHTML.replace(/<(script|style)[^]*?<\/\1>/g, "");
    const meant = ON_PURPOSE.some((name) => nameOf(stage).startsWith(name));
    if (!meant && NO_NUMBER.test(html)) tell(`it holds ${html.match(NO_NUMBER)[0]}`);
    letters(stage, tell);
  }

  // What a control offers: a name and a function that chooses it, for each.
  function offer(input) {
    const each = (count, choose) => Array.from({ length: count }, (_, i) =>
      [`${input.dataset.name} ${i}`, () => choose(i)]);
    if (input.type === "range") {
      return each(Number(input.max) + 1, (i) => { input.value = i; });
    }
    if (input.type === "checkbox") return each(2, (i) => { input.checked = Boolean(i); });
    if (input.options) {
      return each(input.options.length, (i) => { input.selectedIndex = i; });
    }
    const texts = input.list ? Array.from(input.list.options, (one) => one.value)
      : every(input.parentElement, ".annotated-suggestion").map((one) => one.textContent);
    return each(texts.length, (i) => { input.value = texts[i]; });
  }

  // Every combination of what the controls offer.
  const combined = (offers) => offers.reduce(
    (all, several) => all.flatMap((some) => several.map((one) => [...some, one])), [[]]);

  // The ends and the middle of each control alone, and all of them at their ends.
  function probed(offers) {
    const three = (all) => [...new Set([0, all.length >> 1, all.length - 1])]
      .map((i) => [all[i]]);
    const ends = [[0, 0], [-1, -1], [0, -1], [-1, 0]].map((end) =>
      offers.map((all, i) => all.at(end[i % 2])));
    return [[], ...offers.flatMap(three), ...ends];
  }

  function moved(figure, stages, settings) {
    const controls = every(figure, "[data-name]:not(.annotated-grid)");
    const kept = controls.map(({ value, checked }) => ({ value, checked }));
    const restore = () => controls.forEach((one, i) => Object.assign(one, kept[i]));
    const update = () =>
      controls[0]?.dispatchEvent(new Event("input", { bubbles: true }));
    const typed = () => every(figure, "[type=text], textarea").map((one) => one.value).join();
    const text = typed(), heights = new Map([[figure.offsetHeight, "at first"]]);
    for (const setting of settings(controls.map(offer).filter((all) => all.length))) {
      restore();
      setting.forEach(([, choose]) => choose());
      update();
      const where = setting.map(([name]) => name).join(", ") || "at first";
      const shown = every(figure, stages).filter(seen);
      if (shown.length !== 1) {
        wrong.add(`${nameOf(figure)}, ${where}: ${shown.length} drawings are shown`);
      }
      shown.forEach((stage) => look(stage, where));
      if (typed() === text) heights.set(figure.offsetHeight, where);
    }
    const low = Math.min(...heights.keys()), high = Math.max(...heights.keys());
    if (high - low > 1) { // what stands below would move under the reader's finger
      wrong.add(`${nameOf(figure)}: its height goes from ${low} (${heights.get(low)}) `
        + `to ${high} px (${heights.get(high)})`);
    }
    restore();
    update();
  }

  const STILL = "article :is(.annotated-plot, .annotated-figure)";
  const FRAMES = "article .annotated-frames", EXPLORER = "article .annotated-explorer";
  for (const figure of every(document, `${STILL}, ${FRAMES}, ${EXPLORER}`).filter(seen)) {
    figure.scrollIntoView({ block: "center", behavior: "instant" });
    if (figure.matches(FRAMES)) moved(figure, ".annotated-frame", combined);
    else if (figure.matches(EXPLORER)) moved(figure, ".annotated-view", probed);
    else if (!figure.parentElement.closest(`${STILL}, ${FRAMES}, ${EXPLORER}`)) {
      look(figure, "as it is");
    }
  }
  // the rest of the page, but for the small pictures on cards
  for (const article of every(document, "article")) {
    letters(article, (what) => wrong.add(what), "svg");
  }
  const ids = Map.groupBy(every(document, "[id]"), (node) => node.id);
  for (const [id, nodes] of ids) {
    if (nodes.length > 1) wrong.add(`the id ${id} stands on the page more than once`);
  }
  style.remove();
  return { wrong: [...wrong], alts: [...alts], states };
}
