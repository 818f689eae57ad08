"""Faults of annotated/recipes_heads.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "giving_sentences": [
        ("tokens[:, [WHO, WHAT, WHOM]]", "tokens[:, [WHO, WHOM, WHAT]]", "exchanged"),
    ],
    "letter_windows": [
        ("windows[cut + 2 * SIDE :]", "windows[cut:]", "test letters seen in training"),
    ],
    "hide_letter": [
        ("windows.clone()", "windows", "the letter is lost"),
    ],
    "right_without_each": [
        ("columns.copy_(kept)", "columns.add_(0)", "heads stay away"),
        ("chunk(attention.heads, dim=1)", "chunk(attention.heads, dim=0)", "its rows"),
    ],
    "GroupedQueryAttention._split": [
        ("repeat_interleave(self.heads // split.shape[1], dim=1)",
         "repeat(1, self.heads // split.shape[1], 1, 1)", "dealt out in turn"),
    ],
}
