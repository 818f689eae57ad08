"""Faults of recipes/segments.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "shift_by_index": [
        ("(i + s - t) - j", "i - j", "as if the first queries"),
        ("s - distance", "distance", "distances from the other end"),
    ],
    "paper_shift": [
        ("1 : s + 1", ":s", "begins one distance too far"),
    ],
    "labml_shift": [
        ("(0, 1)", "(1, 0)", "padded before the rows"),
        ("[:, t:]", "[:, :-t]", "the first columns kept"),
    ],
    "labml_shift_changed": [
        ("line[t:]", "line[:-t]", "labml's own"),
    ],
    "four_terms": [
        ("position[s - t :, None]", "position[:t, None]", "as if the first queries"),
        ('"bthk,tshk->bhts", q, r', '"bthk,tshk->bhts", q, r.flip(0)',
         "queries upside down"),
        ("u, v = attention.content_bias[:, 0], attention.position_bias[:, 0]",
         "v, u = attention.content_bias[:, 0], attention.position_bias[:, 0]",
         "u and v swapped"),
    ],
    "slow_attention": [
        ("** 0.5", "** 1.0", "wrong scale"),
        ("masked_softmax(scores, mask)", "masked_softmax(scores)", "no mask"),
    ],
    "RememberingGPT.loss": [
        ("torch.cat([memory, x], dim=1)", "x", "no memory"),
        ("states.append(x)\n", "states.append(x.detach() * 0)\n", "empty states"),
        ("attend.norm(known)", "known", "memory and segment not normalised"),
        ("self.config.max_len)", "self.config.max_len + 1)", "one too many"),
    ],
    "library_ids": [
        ("standard_library(split)", 'standard_library("train")', "one text for all"),
    ],
    "train_on_segments": [
        ("manual_seed(seed)\n    model", "manual_seed(0)\n    model",
         "weights do not follow the seed"),
        ("text.roll(-begin)", "text.roll(-begin).flip(0)", "read backwards"),
        ("islice(whole, steps)", "islice(whole, 1)", "one step"),
    ],
    "token_bits": [
        ("losses, memories = model.loss(tokens, target, memories)",
         "losses, _ = model.loss(tokens, target, memories)", "no memory"),
        ("losses / log(2)", "losses", "nats"),
        ("logits.mT, target", "logits.mT, tokens", "the tokens themselves"),
    ],
    "bits_by_segment_position": [
        (".mean(dim=0)", ".mean(dim=1)", "mean over positions"),
    ],
}
