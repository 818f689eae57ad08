"""Faults of recipes/distance.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "BiasedAttention.score_bias": [
        ("position - queries[:, None]", "queries[:, None] - position", "turned"),
        ("position[k.shape[2] - q.shape[2] :]", "position[: q.shape[2]]",
         "as if the first queries"),
    ],
    "ALiBiAttention.bias": [
        ("-8 * head", "-8 / head", "slopes of another law"),
        ("-slopes[:, None, None]", "slopes[:, None, None]", "distance is a gain"),
    ],
    "t5_bucket": [
        ("offset > 0", "offset < 0", "left is right"),
        ("(side - exact)", "side", "too few buckets near by"),
        ("+ 1e-4", "- 1e-4", "rounding decides on a border"),
    ],
    "T5Attention.bias": [
        (", furthest=self.furthest", "", "furthest ignored"),
        ("permute(2, 0, 1)", "permute(2, 1, 0)", "left is right"),
    ],
    "distance_reader": [
        ("in model.layers:", "in model.layers[:1]:", "the first layer only"),
    ],
    "train_distance": [
        ("manual_seed(seed)", "manual_seed(0)", "seed ignored"),
    ],
    "neighbours_named": [
        ("== tokens[:, :-1]", "== tokens[:, 1:]", "the symbol itself"),
        ("== tokens[:, 2:]", "== tokens[:, :-2]", "the symbol before, twice"),
    ],
}
