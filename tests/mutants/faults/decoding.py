"""Faults of annotated/decoding.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "greedy_decode": [
        ("[:, -1:]  # (b, 1, v)", "[:, :1]  # (b, 1, v)", "first place asked"),
        ("torch.full_like(source[:, :1], start)",
         "torch.full_like(source[:, :1], config.pad)", "start ignored"),
        (".masked_fill(ended, config.pad)", "", "goes on behind the end"),
        (".masked_fill(ended, config.pad)", ".masked_fill(ended, 0)", "pad ignored"),
        (".masked_fill(ended, config.pad)",
         ".masked_fill(ended, start)", "start behind the end"),
        ("ended = ended | (symbol == end)",
         "ended = symbol == end", "the ended forgotten"),
        ("if ended.all()", "if ended.any()", "stops with the first"),
        ("if ended.all()", "if False", "never stops early"),
        ("if end is not None:", "if end:", "end zero"),
        ("if end is not None:", "if True:", "no end"),
        ("range(max_length)", "range(max_length - 1)", "one symbol too few"),
        ("return written[:, 1:]", "return written", "start returned"),
        ("decode(written, memory, memory_mask)",
         "decode(written, memory)", "padding of the source seen"),
        ("logits.argmax(dim=-1)", "logits.argmin(dim=-1)", "unlikeliest symbol"),
        ("torch.cat([written, symbol], dim=1)",
         "torch.cat([symbol, written], dim=1)", "written backwards"),
        ("<= config.max_len:", "< config.max_len:", "last position refused"),
        ("torch.full_like(source[:, :1], start)",
         "torch.full((len(source), 1), start, device=source.device)",
         "dtype of the start"),
        (".to(source)", "", "dtype of what is written"),
    ],
}
