"""Faults of annotated/page/ch12c.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "bits": [
        ("and len(run) == size", "", "runs with another option, too"),
    ],
    "check_memory": [
        ("0 < longer.min()", "True", "a memory may help"),
        ("assert (bits(runs, 32, 0) > numpy.array(without)).all()", "pass",
         "trained without may be worse"),
    ],
    "seen": [
        ("every.count(position) > 1", "every.count(position) > 2",
         "nothing is seen twice"),
    ],
    "check_swapped": [
        ('("right", "swapped")\n', '("right", "right")\n', "nothing is swapped"),
    ],
}
