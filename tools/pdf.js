// A page as paper shows it, `page` pixels high; returns what paper would cut.
([base, page]) => {
    const article = document.querySelector("article");
    const make = (tag, text, name) =>
        Object.assign(document.createElement(tag), { textContent: text, className: name });

    // Answers come at the end; what else is folded is read where it stands.
    const answers = [];
    for (const fold of article.querySelectorAll("details")) {
        if (fold.closest(".annotated-evidence, .annotated-laboratory, .annotated-explorer"))
            continue;
        const question = fold.querySelector("summary");
        const words = question.textContent.trim();
        const quick = fold.closest("section")?.textContent.includes("Quick questions");
        const solution = fold.closest(".cell"); // the code of an exercise's solution
        const piece = make("div", "", "paper-fold");
        const head = make("p", "", "paper-question");
        head.append(...question.childNodes);
        question.remove();
        if (/answer|solution/i.test(words) || quick || solution) {
            const number = answers.push(piece);
            fold.before(head);
            head.append(make("span", ` → answer ${number}`, "paper-number"));
            piece.append(make("p", `${number}. ${words}`, "paper-question"));
        } else {
            fold.before(piece);
            piece.append(head);
        }
        piece.append(...fold.childNodes);
        fold.remove();
    }
    if (answers.length)
        article.append(make("h2", "Answers", "paper-end"), ...answers);

    // What moves has an address where it does.
    const moving = ".annotated-explorer, .annotated-frames, .annotated-laboratory";
    for (const one of article.querySelectorAll(moving)) {
        const place = one.closest("section")?.id ?? "";
        one.after(make("p", `Live: ${base}#${place}`, "paper-live"));
    }

    // Links inside the page stay; others go to the site, or are numbered and listed.
    const addresses = [];
    for (const link of article.querySelectorAll("a[href]")) {
        if (link.getAttribute("href").startsWith("#")) continue;
        if (link.protocol === "file:") {
            link.href = new URL(link.getAttribute("href"), base).href;
            continue;
        }
        let number = addresses.indexOf(link.href) + 1;
        if (!number) number = addresses.push(link.href);
        link.append(make("sup", number, "paper-number"));
    }
    if (addresses.length) {
        const list = make("ol", "", "paper-links");
        list.append(...addresses.map((one) => make("li", one, "")));
        article.append(make("h2", "Addresses", "paper-end"), list);
    }

    // Wider than the column, or higher than a page?
    const column = article.getBoundingClientRect().right;
    const cut = [];
    const named = (one) => `${one.tagName} ${one.textContent.trim().slice(0, 60)}`;
    for (const one of article.querySelectorAll("pre, table, figure, img, svg, div.math")) {
        const box = one.getBoundingClientRect();
        if (box.width && (box.right > column + 2 || one.scrollWidth > one.clientWidth + 2))
            cut.push(`too wide: ${named(one)}`);
        if (box.height > page && one.matches("figure, img, svg"))
            cut.push(`higher than a page: ${named(one)}`);
    }
    return cut;
}
