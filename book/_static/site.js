// Loaded on every page, before its body.
(function () {
  "use strict";

  // On file:// a script may not read other pages: results come without excerpts.
  if (window.location.protocol === "file:") {
    DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
  }

  // The last release or main: which of a page's two addresses is open? On a disk, neither.
  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".annotated-versions a").forEach((link) => {
      if (link.pathname === location.pathname) link.setAttribute("aria-current", "page");
    });
  });

  // The theme hangs the tooltips of its buttons behind everything else in the body,
  // outside every landmark. They are moved before they're placed.
  document.addEventListener("inserted.bs.tooltip", () => {
    const main = document.getElementById("main-content");
    document.querySelectorAll("body > .tooltip").forEach((tip) => main.append(tip));
  });

  // The theme takes the focus from its buttons when they are used, so that their tooltips
  // go; who came by keyboard would lose the place. This runs before the theme's scripts.
  document.addEventListener("DOMContentLoaded", () => {
    const buttons = ".theme-switch-button, .search-button, .primary-toggle, .secondary-toggle";
    document.querySelectorAll(buttons).forEach((button) => {
      button.blur = () => {
        if (!button.matches(":focus-visible")) HTMLElement.prototype.blur.call(button);
      };
    });
  });

  // The front page opens with a network at work: its first steps go by, unless the reader
  // takes over, or wants nothing to move. It stops where the page puts the slider: what
  // comes after is the reader's to guess.
  window.addEventListener("load", () => {
    const step = document.querySelector(".annotated-plays ~ * input[type=range]");
    if (!step || window.matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const figure = step.closest("section");
    const show = () => step.dispatchEvent(new Event("input", { bubbles: true }));
    step.value = step.min;
    show();
    const timer = setInterval(() => {
      step.stepUp();
      show();
      if (step.value === step.defaultValue) clearInterval(timer);
    }, 700);
    for (const touched of ["pointerdown", "keydown", "focusin"]) {
      figure.addEventListener(touched, () => clearInterval(timer));
    }
  });

  // A figure that is taller than a laptop's screen puts its controls beside its drawing;
  // where there is room, the style sheet makes it wide, unless its drawing is small.
  // Its caption stands below the controls then, if that makes it less tall.
  const TALL = 540, SMALL = 380, wide = window.matchMedia("(min-width: 1280px)");
  function place(figure) {
    const drawing = figure.querySelector(".annotated-view > svg");
    figure.classList.add("annotated-beside");
    if (drawing?.getAttribute("width") < SMALL) figure.classList.add("annotated-small");
    const caption = figure.querySelector(":scope > .annotated-caption");
    const stage = figure.querySelector(":scope > :is(.annotated-view, .annotated-stack)");
    if (!caption || !stage) return;
    const before = caption.previousElementSibling;
    const put = () => {
      before.after(caption);
      const height = figure.offsetHeight;
      if (wide.matches) stage.before(caption);
      if (figure.offsetHeight >= height) before.after(caption);
    };
    wide.addEventListener("change", put);
    put();
  }

  // Room that a figure keeps, so that nothing moves when it changes, stands at its end.
  function close(figure) {
    const find = (selector) => figure.querySelector(`:scope > ${selector}`);
    const stage = find(":is(.annotated-view, .annotated-stack)");
    const says = find(".annotated-says"), end = find(".annotated-stack ~ .annotated-caption")
      || find(".annotated-view ~ .annotated-caption") || says;
    if (!stage || !end) return; // its parts stand in another frame
    const svg = stage.querySelector(":scope > svg"), box = svg?.getBBox();
    const shown = stage.querySelector(".annotated-frame:not([hidden])");
    const used = svg ? (box.y + box.height) * svg.getScreenCTM().d + 6
      : (shown || stage).offsetHeight;
    const free = [[stage, Math.max(0, stage.offsetHeight - used)]];
    if (says && says !== end) free.push([says, says.offsetHeight - says.firstChild.offsetHeight]);
    free.forEach(([part, room]) => { part.style.marginBottom = `${-room}px`; });
    end.style.marginBottom = `${free.reduce((sum, [, room]) => sum + room, 0)}px`;
  }

  document.addEventListener("DOMContentLoaded", () => {
    const figures = [...document.querySelectorAll(".annotated-explorer, .annotated-frames")];
    figures.filter((figure) => figure.offsetHeight > TALL).forEach(place);
    const changes = new MutationObserver((seen) => {
      const moved = new Set(seen.map(({ target }) => target.closest("[id^=explorer], [id^=play]")));
      moved.delete(null);
      moved.forEach(close);
    });
    const sizes = new ResizeObserver((seen) => {
      seen.forEach(({ target }) => close(target.parentElement));
    });
    for (const figure of figures) {
      const stage = figure.querySelector(".annotated-view, .annotated-stack");
      changes.observe(stage, { attributeFilter: ["hidden"], childList: true, subtree: true });
      sizes.observe(stage);
    }
    // A column of numbers stands at the right.
    const NUMBER = /^[−–+±≈<>]?\s?\d[\d\s,.±()×%−]*([A-Za-zµ]{1,3})?$/;
    for (const table of document.querySelectorAll("table.dataframe:not(:has([colspan], [rowspan]))")) {
      const [head, ...rows] = [...table.rows].map((row) => [...row.cells]);
      head.forEach((name, i) => {
        const column = rows.map((row) => row[i]), texts = column.map((cell) => cell?.textContent.trim());
        const found = texts.filter((text) => NUMBER.test(text)).length;
        if (!found || !texts.every((text) => NUMBER.test(text) || !/[^—–-]/.test(text))) return;
        [name, ...column].forEach((cell) => cell?.classList.add("annotated-number"));
      });
    }
  });

  // Texts to try, which the page offers beside a figure.
  document.addEventListener("click", ({ target }) => {
    if (!target.matches(".annotated-tries button")) return;
    const input = target.closest("section").querySelector("input[type=text]");
    input.value = target.dataset.text;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });

  // What scrolls in its own box must be reachable by keyboard. The theme sees to code
  // and outputs; formulas get their size only when MathJax has set them.
  function markScrollers() {
    document.querySelectorAll("mjx-container[display]").forEach((box) => {
      if (box.scrollWidth > box.clientWidth) box.setAttribute("tabindex", "0");
      else box.removeAttribute("tabindex");
    });
  }
  window.addEventListener("load", () => {
    Promise.resolve(window.MathJax?.startup?.promise).finally(markScrollers);
  });
  window.addEventListener("resize", markScrollers);
})();
