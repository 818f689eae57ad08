// Loaded on every page, before its body.
(function () {
  "use strict";

  // On file:// a script may not read other pages: results come without excerpts.
  if (window.location.protocol === "file:") {
    DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
  }

  // The theme hangs the tooltips of its buttons behind everything else in the body,
  // outside every landmark. This runs before the theme makes them.
  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll('[data-bs-toggle="tooltip"]').forEach((button) => {
      button.dataset.bsContainer = "#main-content";
    });
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
