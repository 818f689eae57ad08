"""Faults of annotated/page/ch01.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "check_days": [
        ("assert not train_days & test_days,", "assert train_days,",
         "days of the test may be trained on"),
        ("date_split(day) == \"test\",", "day,", "any day may be in the test"),
    ],
    "check_lines": [
        ("kept < 0.5", "kept < 2", "one vector may keep its lines"),
        ("rows.min() >= 99.8", "rows.max() >= 99.8", "one good seed is enough"),
        ("single[\"none\"].max() < 94", "single[\"none\"].min() < 94",
         "one bad seed is enough"),
    ],
    "check_attend": [
        ("keys[n, :size]", "keys[n]", "padding is attended to by hand"),
    ],
    "check_decoder": [
        ("source[None, :size]", "source[None]", "padding is read by hand"),
        ("logits, state, _ =", "logits, _, _ =", "the state doesn't go on"),
    ],
    "check_located": [
        ("torch.random.fork_rng()", "torch.enable_grad()",
         "the check draws numbers that the page draws next"),
    ],
    "_located": [
        ("F.pad(alpha, (1, 1))", "F.pad(alpha, (2, 0))",
         "the filter looks one position too far"),
    ],
    "check_rows": [
        ("rows[:, :1].expand_as(rows)", "rows", "rows are compared with themselves"),
    ],
    "check_loss": [
        ("nats[real].mean())", "(nats * real).mean())", "padding counts"),
    ],
    "alignment": [
        ("for i, j in (shades", "for j, i in (shades", "rows are columns"),
        ("shades[shades > 0]", "shades", "there is a cell for nothing"),
    ],
    "losses": [
        ("loss[-50:]", "loss[:50]", "the caption gives the first steps"),
    ],
}
