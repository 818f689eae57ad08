"""Faults of annotated/page/ch16c.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "model": [
        ("print(MISSING)", "pass", "a missing file isn't told"),
    ],
    "texts": [
        ("manual_seed(seed)", "manual_seed(0)", "always the same"),
        ("max_len - 1", "max_len - 2", "the context isn't filled"),
        ('encode("\\n")', 'encode("a")', "they begin elsewhere"),
    ],
    "count_pairs": [
        ("(before, after)", "(after, before)", "the wrong way round"),
        ("accumulate=True", "accumulate=False", "each pair once"),
        ("texts[:, :-1].flatten(), texts[:, 1:].flatten()",
         "texts.flatten()[:-1], texts.flatten()[1:]", "pairs across two texts"),
    ],
    "add_chances": [
        (".softmax(dim=-1)", "", "logits"),
        ("index_add_(0, texts[:, :-1]", "index_add_(0, texts[:, 1:]",
         "by the token after"),
    ],
    "first_layers": [
        ("layers=count", "layers=1", "always one"),
        ("draft.load_state_dict(model.state_dict(), strict=False)", "",
         "fresh weights"),
        ("return draft.eval()", "return draft.train()", "in training mode"),
    ],
    "as_draft": [
        ("+ 0.1", "", "some tokens are impossible"),
        ("counts + 5 * every / every.sum()", "counts + 5 / len(counts)",
         "shared out evenly"),
        ("more.log()", "more", "counts are logits"),
    ],
    "drafts": [
        ("counts.sum(dim=0).expand(v, v)", "counts", "pairs, not tokens"),
        ("first_layers(model, 2)", "first_layers(model, 3)", "a layer too many"),
        ("as_draft(add_chances(model, texts))", "as_draft(counts)", "counted twice"),
    ],
    "cost_of": [
        ("draft.embedding_dim / whole", "draft.weight.numel() / whole",
         "the whole table is read"),
        ("sum(p.numel() for p in draft.parameters()) / whole", "1.0",
         "all layers cost the same"),
    ],
    "kept_share": [
        ("if temperature == 0:", "if False:", "greedy isn't apart"),
        ("tempered(row, temperature)", "tempered(row, 1.0)", "temperature is ignored"),
        ("(guess == wanted)", "(guess != wanted)", "unequal is the same"),
    ],
    "readings": [
        ("end - length - 1", "end - length", "writes a token too many"),
        ("len(tokens) - 1, \"more\"", "len(tokens), \"more\"", "one kept too many"),
        ("for x in (q, p)", "for x in (p, q)", "q and p are swapped"),
        ("manual_seed(seed)", "manual_seed(0)", "always the same"),
    ],
    "hero": [
        ("kept = i > one[\"kept\"], i < one[\"kept\"]",
         "kept = i > one[\"kept\"], i <= one[\"kept\"]", "the refused one is kept"),
        ("dashed=void", "dashed=False", "what is dropped looks refused"),
        ("\"free\" if free else \"instead\"", "\"instead\"", "nothing is free"),
        ("[2:4]", "[0:2]", "other readings"),
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
    "best_measured": [
        ("return max(", "return min(", "the worst"),
        ('alone / row["seconds"]', 'row["seconds"] / alone', "slower is faster"),
    ],
    "seconds_alone": [
        (".median()", ".max()", "the slowest"),
    ],
    "speed_table": [
        ("(*best_measured(one, alone))", "(*best_theory(one))", "never measured"),
    ],
    "runs": [
        ("guesses=t)", "guesses=1)", "one guess at a time"),
        ("drafts[name]", "model", "always the model itself"),
    ],
    "steps_explorer": [
        ("shares[name] for", "0.5 for", "always one half"),
        ("kept[label], t)", "0.5, t)", "checked with one half"),
    ],
    "values_of": [
        ("one[\"kept\"] + 1 for", "one[\"kept\"] for", "the model's own are missing"),
        ("tokens / number", "tokens", "not per reading"),
    ],
    "drafts_said": [
        ("{averaged[1]:.0%}", "{counted[1]:.0%}", "counted, not averaged"),
    ],
    "off": [
        ("key=abs", "key=lambda x: x", "too few isn't seen"),
    ],
    "tokens_said": [
        ("max(map(abs,", "min(map(abs,", "the best fit"),
    ],
    "nats_table": [
        ("one['error']", "one['mean']", "the mean is its own error"),
    ],
    "speed_said": [
        ("times['9'] / times['1']", "times['1'] / times['9']", "upside down"),
        ("slow = max(", "slow = min(", "the slowest"),
    ],
}
