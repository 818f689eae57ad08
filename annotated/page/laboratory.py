"""The laboratory: a small Transformer that the reader trains on the page, and breaks.

``static/laboratory_engine.js`` trains it; ``static/laboratory.js``, with the parts in
``static/laboratory/``, shows it; and ``static/laboratory.json`` holds the settings and
the experiments.
"""

import json
import re
from collections.abc import Collection
from importlib import resources
from typing import Any

from markupsafe import escape

from annotated import require
from annotated.page.frames import Html, _json, name_of, static

SWITCHES = tuple(
    "task words model layers heads width positions norm smoothing rate seed causal "
    "scaled residual feed_forward warmup".split()
)

# The scripts that show it, in any order: nothing in them is called before the last.
SHOWN = (
    "laboratory/elements.js",
    "laboratory/form.js",
    "laboratory/curves.js",
    "laboratory/sentences.js",
    "laboratory/stage.js",
    "laboratory/tables.js",
    "laboratory/attention.js",
    "laboratory/writing.js",
    "laboratory/run.js",
    "laboratory/experiments.js",
    "laboratory/settings.js",
    "laboratory.js",
)


def laboratory(
    *experiments: str,
    switches: Collection[str] = SWITCHES,
    label: str = "The laboratory",
) -> Html:
    """Show the laboratory, or a part of it for one chapter.

    Args:
        experiments: names from ``static/laboratory.json``; all if none is given.
        switches: the settings that the reader sees.
        label: its name for screen readers, and what tells it from others on a page.

    Returns:
        The laboratory, for a cell to show.

    Raises:
        ValueError: if there is no such experiment or switch.
    """
    file = json.loads(static("laboratory.json")) | {"recorded": _recorded()}
    for experiment in experiments:
        require.choice(file["experiments"], experiment=experiment)
    for switch in switches:
        require.choice(SWITCHES, switch=switch)
    names = list(experiments or file["experiments"])
    root = name_of("laboratory", label, names, list(switches))
    options = _json({"names": names, "switches": list(switches)})
    return Html(
        f"""<style class="annotated-shared">{static("tokens.css")}</style>
<style class="annotated-shared">{static("laboratory.css")}</style>
<script class="annotated-shared">
{_code("laboratory_engine.js")}
var laboratory = (function () {{
{"".join(map(_code, SHOWN))}return laboratory;
}})();
var laboratoryFile = {_json(file)};
</script>
<section class="annotated-laboratory" id="{root}" aria-label="{escape(label)}">
<noscript>The laboratory computes in your browser, and needs JavaScript.</noscript>
<script>laboratory(document.getElementById("{root}"),
{{ file: laboratoryFile, engine: laboratoryEngine, ...{options} }});</script>
</section>"""
    )


def _code(name: str) -> str:
    """Return a script without comments, indents and empty lines: the file has them."""
    return re.sub(r"^\s*//.*\n|^\s+| +// .*$", "", static(name), flags=re.MULTILINE)


def _recorded() -> list[dict[str, Any]]:
    """Return what PyTorch made of the experiments: a row for each of three seeds."""
    file = resources.files("annotated.results").joinpath("laboratory.json")
    kept = ("seed", "steps", "loss", "exact")
    rows = json.loads(file.read_text("utf-8"))["rows"] if file.is_file() else []
    return [
        {"experiment": row["experiment"]}
        | {name: round(row[name], 3) for name in kept}  # as the page shows them
        for row in rows
    ]
