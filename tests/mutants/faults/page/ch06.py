"""Faults of annotated/page/ch06.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "check_train": [
        ("claim, ours,", "claim, torch.tensor([row[\"loss\"] for row in ladder]),",
         "any losses will do"),
    ],
    "check_encoder_layer": [
        ("encoder_layer, layer, x, mask)\n    y = encoder_layer(layer, x, mask)",
         "EncoderLayer.forward, layer, x, mask)\n    y = layer(x, mask)",
         "the module is compared with itself"),
    ],
    "difference": [
        ("dim=1", "dim=2", "the mean of numbers, not of words"),
    ],
    "through_layers": [
        ("layers=12", "layers=2", "too few layers"),
    ],
    "ladder_losses": [
        ("sorted(WITHOUT.items(), key=lambda named: sum(losses[named[1]]))",
         "WITHOUT.items()", "in no order"),
        ("/ 3:.2f", "/ 2:.2f", "no means"),
    ],
    "with_sizes": [
        ("count[64] - sum", "sum", "what is frozen is counted"),
    ],
    "mean_loss": [
        ("/ 3", "", "the sum"),
    ],
    "check_further": [
        ('row["written"] == right and ', "", "any date will do"),
    ],
    "edits": [
        ("above[j - 1] + (a != b)", "above[j - 1] + 1", "equal symbols cost"),
        ("row[-1] + 1)", "row[-1] + 2)", "a symbol too many costs two"),
    ],
}
