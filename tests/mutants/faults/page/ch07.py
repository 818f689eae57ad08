"""Faults of annotated/page/ch07.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "by_tokens": [
        ("> most", ">= most", "a full rectangle is refused"),
        ("sorted(lengths)", "lengths", "they aren't sorted"),
    ],
    "target_by_loops": [
        ("row[1:] =", "row[:] =", "padding gets a share"),
        ("(size - 2)", "(size - 1)", "another share"),
    ],
    "weights_of": [
        ("real / counts.sum()", "real / counts", "not a mean over tokens"),
    ],
    "alike": [
        ('["differ"][step]', '["differ"][-1]', "always the last step"),
    ],
    "check_smoothing": [
        ("for epsilon in (0.0, 0.1, 0.4)", "for epsilon in ()", "nothing is compared"),
    ],
    "ends": [
        ('.get("norm", norm) == norm', '.get("norm")', "both norms together"),
    ],
    "ending": [
        ('(r["dropout"], r["smoothing"])', '(r["smoothing"], r["dropout"])',
         "one taken for the other"),
    ],
    "seen_and_new": [
        ("{losses[1][-1]:.2f} on new", "{losses[0][-1]:.2f} on new",
         "seen dates twice"),
    ],
    "floors": [
        ("sum(columns) / len(columns)", "sum(columns)", "a sum and no mean"),
    ],
    "loss_at": [
        ("(size - 2 + everyone)", "(size - 2)", "the padding's share is lost"),
    ],
}
