"""Faults of annotated/page/ch16c.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "hero": [
        ("kept = i > one[\"kept\"], i < one[\"kept\"]",
         "kept = i > one[\"kept\"], i <= one[\"kept\"]", "the refused one is kept"),
        ("dashed=void", "dashed=False", "what is dropped looks refused"),
        ("\"free\" if free else \"instead\"", "\"instead\"", "nothing is free"),
        ("[2:4]", "[0:2]", "other readings"),
    ],
    "rows_picture": [
        ("if last else names[i + 1]", "if last else names[i]",
         "each row checks what it read"),
        ("color = \"this\" if last", "color = \"right\" if last",
         "the free token is checked"),
    ],
    "spaced": [
        (".replace(\" \", \"␣\")", "", "spaces aren't seen"),
    ],
    "bars": [
        ("bottom=kept.tolist(), ", "", "bars hide each other"),
        ("torch.minimum(q, p)", "torch.maximum(q, p)", "more is kept than guessed"),
    ],
    "chi2": [
        ("/ wanted)", ")", "not divided by what is expected"),
        ("counts.sum() * p", "p", "counts against shares"),
    ],
    "shares_table": [
        ("{chi2(counts, p):,.1f}", "{chi2(p, p):,.1f}", "χ² of p itself"),
        ("counts / counts.sum()", "counts / counts.max()", "not shares"),
    ],
    "drafts_table": [
        ("{share:.1%}", "{one['acceptance']:.1%}", "recorded, not today's"),
        ("one['greedy']", "one['acceptance']", "acceptance twice"),
        ("\"\" if name == \"any token\" else ", "", "any token has a likeliest"),
    ],
    "tokens_figure": [
        ("expected_tokens(one[\"acceptance\"], n)", "expected_tokens(0.5, n)",
         "always one half"),
        ("[1.0, *(row[\"tokens\"]", "[0.0, *(row[\"tokens\"]",
         "nothing without guesses"),
    ],
    "best_theory": [
        ("return max(", "return min(", "the worst"),
        ('one["cost"]', "0.0", "guesses are free"),
    ],
    "measured": [
        ("return min(speeds), max(speeds)", "return max(speeds), min(speeds)",
         "from high to low"),
        ('alone / row["seconds"]', 'row["seconds"] / alone', "slower is faster"),
    ],
    "seconds_alone": [
        (".median()", ".max()", "the slowest"),
    ],
    "speed_table": [
        ("(*measured(one, alone))", "(*best_theory(one))", "never measured"),
    ],
    "runs": [
        ("guesses=t)", "guesses=1)", "one guess at a time"),
        ("drafts[name]", "model", "always the model itself"),
    ],
    "steps_explorer": [
        ("shares[name] for", "0.5 for", "always one half"),
        ("0 < one[\"kept\"] < len", "one[\"kept\"] == len", "no refusal"),
        ("shares[one], 4)", "shares[one], 1)", "the answer for one guess"),
        ("kept[label], t)", "0.5, t)", "checked with one half"),
    ],
    "values_of": [
        ("one[\"kept\"] + 1 for", "one[\"kept\"] for", "the model's own are missing"),
        ("tokens / number", "tokens", "not per reading"),
    ],
    "drafts_said": [
        ("{averaged[1]:.0%}", "{counted[1]:.0%}", "counted, not averaged"),
        ("v * v:,", "v:,", "one row alone"),
    ],
    "off": [
        ("key=abs", "key=lambda x: x", "too few isn't seen"),
    ],
    "tokens_said": [
        ("max(map(abs,", "min(map(abs,", "the best fit"),
        ("ceil(1000 * ", "int(1000 * ", "a bound that is exceeded"),
    ],
    "nats_table": [
        ("one['error']", "one['mean']", "the mean is its own error"),
    ],
    "speed_said": [
        ("times['9'] / times['1']", "times['1'] / times['9']", "upside down"),
        ("if s < alone[0]", "if s", "slower ones, too"),
        ("layers = min(", "layers = max(", "the slowest"),
    ],
}
