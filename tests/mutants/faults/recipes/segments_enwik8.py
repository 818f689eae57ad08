"""Faults of recipes/segments_enwik8.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "enwik8_model": [
        ('widths["d_ff"] += widths["d_model"] // 2', "pass", "fewer parameters"),
        ("mem_len=length", "mem_len=length // 2", "half a memory"),
    ],
    "train_on_enwik8": [
        ('kind == "Transformer-XL"', "False", "memories not handed on"),
        ("count()", "range(1)", "read once"),
        ("text.validation", "text.train", "tested on what it learned from"),
        ("torch.manual_seed(seed)", "torch.manual_seed(0)", "seed ignored"),
        ("nats / log(2)", "nats", "nats, not bits"),
    ],
}
