"""Faults of annotated/plots.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "use_style": [
        ('"axes.spines.top": False', '"axes.spines.top": True', "box"),
        ('palette="colorblind"', 'palette="bright"', "colours"),
    ],
    "visible": [
        ('"␣" if symbol == " "', '"␣" if symbol == "_"', "space"),
    ],
    "attention_heatmap": [
        ("vmax=1.0", "vmax=None", "upper limit"),
        ("vmin=0.0", "vmin=None", "lower limit"),
        ("cmap=WEIGHTS", 'cmap="viridis"', "colour map"),
        ("[visible(k) for k in keys]", "list(keys)", "spaces unseen"),
        ("[visible(q) for q in queries]",
         "[visible(q) for q in queries[::-1]]", "queries upside down"),
        ('cbar_kws={"label": "weight"}', "cbar_kws={}", "colour bar without a name"),
        ("cbar=bar", "cbar=True", "always a bar"),
        ("        ax=ax,\n", "", "elsewhere"),
        ("detach().float().cpu()", "detach().cpu()", "half precision"),
        ("    ax.set_title(title)\n", "", "title"),
    ],
    "learning_curve": [
        ("LINES[i % len(LINES)]", "LINES[0]", "lines alike"),
        ("LINES[i % len(LINES)]", "LINES[i]", "few lines"),
        ("PALETTE[i % len(PALETTE)]", "PALETTE[0]", "colours alike"),
        ("record[quantity]", 'record["loss"]', "quantity ignored"),
        ("ax.set_ylabel(label)", 'ax.set_ylabel("loss")', "label ignored"),
        ('ax.set_xlabel("training step")', "pass", "no label"),
        ("    if log:", "    if not log:", "scale"),
        ("    ax.legend()\n", "", "no legend"),
    ],
}
