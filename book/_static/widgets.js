// Loaded before the widget manager, on pages that hold widgets.
(function () {
  "use strict";

  // The theme's Font Awesome swaps every <i class="fa-..."> for an <svg>, also those
  // that ipywidgets still holds on to: the buttons of Play then throw, and with them
  // every link of their slider.
  window.FontAwesomeConfig = { observeMutations: false };

  // Names for what ipywidgets leaves unnamed.
  const PLAY = ["Play or pause", "Stop", "Repeat"];
  function name(area) {
    area.querySelectorAll(".noUi-handle:not([aria-label])").forEach((handle) => {
      const label = handle.closest(".jupyter-widgets")?.querySelector(".widget-label");
      handle.setAttribute("aria-label", label?.textContent.trim() || "slider");
    });
    area.querySelectorAll(".widget-play").forEach((play) => {
      play.querySelectorAll("button:not([aria-label])").forEach((button, i) => {
        button.setAttribute("aria-label", PLAY[i] || "button");
      });
    });
  }

  // Before the manager's own handler of the same event, which draws the widgets.
  window.addEventListener("load", () => {
    // The manager speaks to MathJax 2, the pages load MathJax 3: one after the other.
    const math = window.MathJax;
    if (math?.startup) {
      math.Hub = {
        Queue: ([, , element]) => {
          const typeset = () => math.typesetPromise([element]);
          math.startup.promise = math.startup.promise.then(typeset);
        },
      };
    }
    document.querySelectorAll(".cell_output").forEach((area) => {
      new MutationObserver(() => name(area)).observe(area, {
        childList: true,
        subtree: true,
      });
    });
  });
})();
