"""Faults of annotated/masks.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "length_mask": [
        ("positions < lengths", "positions <= lengths", "off by one"),
        ("positions < lengths", "positions >= lengths", "inverted"),
        ("lengths[:, None])[:, None, None, :]",
         "lengths[:, None])[None, None, :, :]", "axes"),
        ("(size, device=lengths.device)", "(size)", "device"),
        ("0 <= lengths.min()", "0 < lengths.min()", "zero refused"),
        ("lengths.max() <= size", "lengths.max() < size", "whole row refused"),
        ("lengths.numel() and", "", "no sequence refused"),
    ],
    "padding_mask": [
        ("(tokens != pad)", "(tokens == pad)", "inverted, padding"),
        ("(tokens != pad)", "(tokens != 0)", "pad ignored"),
        ("(tokens != pad)", "(tokens > pad)", "larger ids alone"),
        ("(tokens != pad)[:, None, None, :]",
         "(tokens != pad)[:, None, :, None]", "queries hidden, not keys"),
        ("(tokens != pad)[:, None, None, :]",
         "(tokens != pad)[None, None, :, :]", "axes, padding"),
        ("pad: int = 0)", "pad: int = 1)", "default pad"),
    ],
    "causal_mask": [
        ("square.tril(", "square.triu(", "the future alone"),
        ("square.tril(keys - queries)", "square.tril()", "as if from the first key"),
        ("square.tril(keys - queries)", "square.tril(queries - keys)", "sign"),
        ("square.tril(keys - queries)",
         "square.tril(keys - queries - 1)", "not its own position"),
        ("square.tril(keys - queries)",
         "square.tril(keys - queries + 1)", "one position ahead"),
        ("torch.ones(queries, keys, dtype",
         "torch.ones(keys, queries, dtype", "turned"),
        ("dtype=torch.bool, device=device)", "dtype=torch.bool)", "device ignored"),
        ("square.tril(keys - queries)[None, None]",
         "square.tril(keys - queries)", "no axes for batch and heads"),
        ("keys < queries:", "keys <= queries:", "as many keys refused"),
    ],
    "require_mask": [
        ("m in (1, n)", "m == n", "no broadcasting"),
        ("zip(reversed(mask.shape), reversed(shape)", "zip(mask.shape, shape", "left"),
        ("if not fits", "if fits", "not dropped"),
    ],
}
