"""Faults of recipes/dates.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "date_symbols": [
        ("text for text, _ in pairs", "iso for _, iso in pairs", "the other side's"),
    ],
    "date_reader": [
        ("torch.manual_seed(seed)", "torch.manual_seed(0)", "seed ignored"),
        ('else (way, "previous")', 'else (None, "previous")', "a class left out"),
    ],
    "train_date_reader": [
        ("seed=seed + epoch", "seed=epoch", "seed ignored"),
        ("on_step=on_step", "on_step=None", "nobody looks on"),
    ],
    "read_dates": [
        ("with evaluating(model):", "if model.eval():", "left in evaluation mode"),
    ],
}
