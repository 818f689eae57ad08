"""Faults of annotated/page/ch16b.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "_boxes": [
        ("if lit:", "if not lit:", "what stayed is lit"),
        ("LINE * len(lines) + 9", "LINE * len(lines)", "the shade is too low"),
    ],
    "hero": [
        ("plus = bottom + GAP", "plus = bottom", "added inside the box"),
    ],
    "models_table": [
        ('more = ["✓", "✓"', 'more = ["–", "✓"', "DeepSeek has LayerNorm"),
        ('"Llama 3", "Qwen3", "Gemma 3")', '"Qwen3", "Llama 3", "Gemma 3")',
         "models are swapped"),
    ],
    "check_parts": [
        ("x, n.gate.weight, n.inner.weight", "x, n.inner.weight, n.gate.weight",
         "the other map is the gate"),
        ("halves = [*range(0, 8, 2), *range(1, 8, 2)]", "halves = [*range(8)]",
         "pairs are taken for halves"),
    ],
    "largest_scores": [
        ("one.weight *= 10", "one.weight *= 1", "maps stay as they were"),
        ("/ 16**0.5", "", "not scaled"),
    ],
    "check_scores": [
        ("f\"maps ten times as large: {before:.1f} and {after:.0f}",
         "f\"maps ten times as large: {after:.1f} and {before:.0f}", "swapped"),
    ],
    "reach": [
        ("states[-1][0, -1]", "states[-1][0, 0]", "of the first output"),
        ("states[-1][0, -1]", "states[-1][0]", "of all outputs"),
    ],
    "window_picture": [
        ("reached.flip(0)", "reached", "upside down"),
        ("int(mask[-1].sum())", "int(mask[0].sum())", "of the first query"),
        ("int(reached[0].sum())", "int(reached[1].sum())", "a layer too high"),
    ],
    "gains": [
        ("mean - one for", "one - mean for", "more bits are better"),
        ('statistics.mean(bits["GPT-2"])', 'max(bits["GPT-2"])',
         "from GPT-2's worst"),
    ],
    "told": [
        ("one[name], one[other]", 'one[name], one["GPT-2"]', "always with GPT-2"),
        ("min(ours) > max(theirs)", "max(ours) > max(theirs)", "one seed is enough"),
        ("min(ours) > max(theirs)", "min(ours) >= max(theirs)", "a draw is better"),
        ('found.pop() if len(found) == 1 else ""', "max(found)", "one rate is enough"),
    ],
    "step_ratio": [
        ("statistics.median", "statistics.mean", "one slow step counts"),
        ("return ours / theirs", "return theirs / ours", "upside down"),
        ("for one in records for t", "for one in records[:1] for t", "one record"),
    ],
    "cache_kilobytes": [
        ("return 2 * ", "return ", "a byte per number"),
        (", length, window)", ", length)", "the window is forgotten"),
        (", length, window)", ", 1000, window)", "any length is a thousand"),
    ],
    "_signed": [
        ('"0.00" if text[1:] == "0.00" else text', "text", "a signed zero"),
        ('.replace("-", "−")', "", "a short minus"),
    ],
    "planks_table": [
        ("sizes[name]:,", "sizes[name]", "no commas"),
        ('told(records, name) or "–"', "told(records, name)",
         "what can't be told is left empty"),
        ("statistics.mean(one[name])", "min(one[name])", "the worst seed"),
    ],
    "_means": [
        ('if row["plank"] == name', "", "of all models"),
    ],
    "beside_rotary": [
        ("max(some)", "min(some)", "the worst"),
        ("one / rotary", "one", "no share"),
    ],
    "mean_gains": [
        ("gains(record)[name]", 'gains(record)["GPT-2"]', "always GPT-2"),
    ],
    "check_runs": [
        ('if name not in CONTROLS]', "if name in CONTROLS]", "controls alone"),
        ('assert max(row["bits"] for row in rows) < 3', "assert True",
         "what diverged isn't noticed"),
        ('assert stands_out == ["rotary"]', 'assert "rotary" in stands_out',
         "others may stand out, too"),
        ('{record["recipe"]["rate"] for record in records}) == 2',
         '{record["recipe"]["rate"] for record in records}) > 0', "one rate is enough"),
    ],
    "planks_picture": [
        ("max(own)", "0", "the band ends at the mean"),
        ('if told(records, n) == which', "if told(records, n)",
         "better and worse are mixed"),
        ("strict=True):\n        each", "strict=True):\n        record = records[0]\n"
         "        each", "the same rate twice"),
    ],
    "_listed": [
        ("} and {last}", "}, {last}", "no and"),
    ],
    "planks_said": [
        ('("GPT-2", *CONTROLS, *BOTH)', '("GPT-2",)', "controls are planks"),
        ("if told(records, name) == which", "if told(records, name)", "all alike"),
        ("f' is {larger}' if larger else", "f' is {larger}' if not larger else",
         "the ruler is told wrongly"),
        ("max(one) - min(one)", "max(one)", "half of the spread"),
        ("> 0:", "> -9:", "the least bad comes closest"),
        ('if by[""]:', "if not by['']:", "what can't be told isn't said"),
    ],
    "_worth": [
        ("_signed(x)", "_signed(abs(x))", "no sign"),
    ],
    "weights": [
        ('if "FileNotFoundError" not in str(error):', "if False:",
         "a damaged file is taken for a missing one"),
        ("print(MISSING)", "pass", "a missing file isn't told"),
        ("to_llama(read_safetensors(file), CONFIG)", "read_safetensors(file)",
         "glassllm's own names"),
    ],
    "check_today": [
        ("x = block(exact, i, x)", "x = model.blocks.layers[i](x)",
         "compares our blocks with themselves"),
        ("if w is None:", "if False:", "a missing file isn't told"),
    ],
    "story": [
        ("manual_seed(seed)", "manual_seed(0)", "the seed is ignored"),
        ("PROMPT + decode", "decode", "without its beginning"),
    ],
    "careless_losses": [
        ("ids[0, 1:]", "ids[0, :-1]", "each token is to be itself"),
        ('"norm_epsilon": 1e-5', '"norm_epsilon": 1e-6', "the right one"),
        (".weight.copy_(halves)", ".weight.add_(0)", "the right order"),
    ],
    "cache_bytes": [
        ("(state[\"latent\"], TURNED)", "(state[\"latent\"], 1)", "no turned key"),
        ('state["length"], window, latent', 'state["length"], None, latent',
         "the window is forgotten"),
        ('state["texts"] * text', "text", "one text"),
    ],
    "cache_explorer": [
        ("begin = MODELS[START[\"model\"]] | START", "begin = START | "
         "{n: v[0] for n, v in CHOICES.items()}", "sliders begin elsewhere"),
        ("mine | unseen]", "mine]", "no latent is checked"),
    ],
    "swiglu_surplus": [
        ("gated / plain - 1", "gated / plain", "of the whole"),
    ],
    "pitfalls_said": [
        ("careless_losses(w)", 'carroll["losses"]', "what was recorded"),
        ("{loss['right']:.2f} to {loss['pairs']:.2f}",
         "{loss['pairs']:.2f} to {loss['right']:.2f}", "swapped"),
    ],
}
