"""Faults of recipes/lsh.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "exact_attention": [
        ("scale * query", "query", "no scale"),
        ("F.normalize(query, dim=-1)", "query", "keys keep their lengths"),
        ("seen & ~oneself", "seen", "attends to itself"),
        ("others | (oneself & alone)", "others", "alone, nothing"),
        ("if met is None else met", "", "met ignored"),
        ("seen.tril() if causal else seen", "seen", "the future is seen"),
    ],
    "meetings": [
        (".clamp(min=0)", "", "the first chunk looks nowhere else"),
        ("(theirs == first) | ", "", "nobody looks back"),
        ("if within else met", "", "always within buckets"),
    ],
    "recall": [
        ("F.normalize(query, dim=-1)", "query", "keys keep their lengths"),
        ("found = found | of_round", "found = of_round", "earlier rounds forgotten"),
        ("hidden | ~torch.ones_like(hidden).tril()", "hidden", "later keys count"),
        ("top if causal else 0", "0", "queries without a choice count"),
    ],
    "lost_pairs": [
        ("met | met.mT", "met", "one direction alone"),
        ("1 - (pairs", "(pairs", "those that meet"),
    ],
    "prototypes": [
        ("kinds[which] + 0.1 * noise", "noise", "no prototypes"),
        (".manual_seed(seed)", ".manual_seed(0)", "seed ignored"),
    ],
    "gradient_error": [
        ("reformer.repeated if keep else (lambda buckets: buckets)",
         "reformer.repeated", "always kept"),
    ],
    "LSHText.__init__": [
        ("causal=True, ", "", "the future is seen"),
    ],
    "LSHText.attend": [
        ("block.attention.rounds = chunk, rounds", "block.attention.rounds = chunk, 1",
         "rounds ignored"),
    ],
    "duplicates": [
        ("torch.randint(1, ", "torch.randint(0, ", "zeros within a word"),
        ("both[:, 1:]", "both[:, :-1]", "targets are what is read"),
    ],
    "second_word": [
        ('DUPLICATE["word"] + 1', "0", "the first word counts too"),
    ],
    "duplicate_loss": [
        ("*second_word(model, batch)",
         "model(batch[0]).flatten(0, 1), batch[1].flatten()",
         "the first word counts too"),
    ],
    "train_duplicate": [
        ("torch.manual_seed(seed)", "pass", "each model begins elsewhere"),
        ("require.choice(TRAINED, kind=kind)", "pass", "any kind"),
    ],
    "duplicates_right": [
        ("model.attend(*before)", "pass", "left in another way"),
        ("model.attend(*ASKED[way])", "pass", "asked in one way alone"),
    ],
}
