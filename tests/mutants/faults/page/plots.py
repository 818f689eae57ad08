"""Faults of page/plots.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "use_style": [
        ("palette=PALETTE", 'palette="bright"', "colours"),
    ],
    "name_lines": [
        ("color=line.get_color()", 'color="black"', "names in another colour"),
        ("line.get_ydata()[-1]", "line.get_ydata()[0]", "names at the wrong end"),
        ("gid=LINE_END", 'gid="name"', "names on each other"),
    ],
    "visible": [
        ('"␣" if symbol == " " else symbol', "symbol", "spaces unseen"),
    ],
    "attention_heatmap": [
        ("vmax=1.0", "vmax=None", "panels with different scales"),
        ("vmin=0.0", "vmin=None", "white is not zero"),
        ("cmap=WEIGHTS", 'cmap="viridis"', "colour map"),
        ("[visible(k) for k in keys]", "list(keys)", "spaces unseen"),
        ("visible(q) for q in queries", "visible(q) for q in queries[::-1]",
         "queries upside down"),
        ("        ax=ax,\n", "", "drawn elsewhere"),
        (".float()", "", "half precision"),
    ],
    "learning_curve": [
        ("LINES[i % len(LINES)]", "LINES[0]", "lines alike"),
        ("record[quantity]", 'record["loss"]', "quantity ignored"),
        ("ax.set_ylabel(label)", 'ax.set_ylabel("loss")', "label ignored"),
        ("    ax.legend()\n", "", "no legend"),
    ],
}
