"""Faults of annotated/page/ch06c.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "said_table": [
        ('("now", "next")', '("next", "now")', "columns swapped"),
    ],
    "check_last_stage": [
        ("said[-1]", "logits[norm].softmax(dim=-1)", "logits compared with themselves"),
    ],
    "first_losses": [
        ("dim=-1) == target", "dim=-1) == source", "another symbol than the last read"),
    ],
    "component_table": [
        ("assert tuple(parts.values()) == by_hand", "assert by_hand",
         "nothing is compared"),
    ],
    "check_masks": [
        ("torch.eye(6, dtype=torch.bool)", "None", "nothing is hidden"),
    ],
    "check_today": [
        ("rms_norm(x, gain), theirs", "theirs, theirs", "PyTorch against itself"),
    ],
}
