"""Faults of annotated/decoding.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "greedy_decode": [
        ("[:, -1:]", "[:, :1]", "first position asked"),
        ("[:, :1], start)", "[:, :1], config.pad)", "start ignored"),
        (".masked_fill(ended, config.pad)", "", "writes on after the end"),
        (".masked_fill(ended, config.pad)", ".masked_fill(ended, 0)", "pad ignored"),
        ("ended | (symbol == end)", "symbol == end", "the ended forgotten"),
        ("ended.all()", "ended.any()", "stops with the first"),
        ("ended.all()", "False", "never stops early"),
        ("if end is not None:", "if end:", "end zero"),
        ("return written[:, 1:]", "return written", "start returned"),
        (", memory, memory_mask)", ", memory)", "padding of the source seen"),
        (".to(source)", "", "dtype of what is written"),
        ("with evaluating(model):", "if True:", "with dropout and gradients"),
        ("most=config.max_len,", "most=config.max_len - 1,", "last position refused"),
    ],
}
