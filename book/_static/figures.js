// A figure that a narrow window shrinks can be opened at its own size.
(function () {
  "use strict";

  function opened(image) {
    const dialog = document.createElement("dialog");
    dialog.className = "annotated-large";
    dialog.setAttribute("aria-label", "Figure at its own size");
    const close = document.createElement("button");
    close.textContent = "Close";
    close.addEventListener("click", () => dialog.close());
    const box = document.createElement("div");
    box.tabIndex = 0; // scrolled by keyboard
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "The figure; scroll to see all of it");
    const copy = image.cloneNode();
    copy.style.width = `${image.getAttribute("width")}px`;
    box.append(copy);
    dialog.append(close, box);
    // the theme takes the Escape key for its search, and would keep it from us
    dialog.addEventListener("keydown", (event) => {
      if (event.key === "Escape") dialog.close();
    });
    // gone when closed, by whatever means; the focus returns to the button
    dialog.addEventListener("close", () => dialog.remove());
    (image.closest("article") ?? document.body).append(dialog);
    dialog.showModal();
    box.focus(); // arrow keys scroll at once
  }

  function buttonOf(image) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "annotated-enlarge";
    button.textContent = "Enlarge the figure";
    button.addEventListener("click", () => opened(image));
    image.after(button);
    return button;
  }

  window.addEventListener("DOMContentLoaded", () => {
    const figures = [...document.querySelectorAll(".annotated-figure > img[width]")]
      .map((image) => [image, buttonOf(image)]);
    function offer() {
      figures.forEach(([image, button]) => {
        button.hidden = image.clientWidth > 0.9 * Number(image.getAttribute("width"));
      });
    }
    window.addEventListener("load", offer);
    window.addEventListener("resize", offer);
    offer();
  });
})();
