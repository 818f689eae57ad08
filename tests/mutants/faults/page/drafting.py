"""Faults of annotated/page/drafting.py: (text, replacement, what is wrong then)."""

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
}
