"""Faults of annotated/page/memory_calculator.py: (text, replacement, what's wrong)."""

# fmt: off
FAULTS = {
    "asked": [
        ("width // HEAD", "HEAD", "always 64 heads"),
        ('"foreach": True', '"foreach": False', "an update as on a CPU"),
        ('STAGES.index(state["shared"])', "0", "nothing is ever shared"),
    ],
    "memory_bytes": [
        ("card * 1e9", "card * 2**30", "GiB"),
        (" - OWN_USE", "", "nothing is left for the card"),
        ('state["batch"]', "1", "always one text"),
    ],
    "memory_calculator": [
        ("'shared': STAGES[3]", "'shared': STAGES[1]", "only Adam's are shared"),
        ("begin['layers'] // 2", "begin['layers']", "all of the layers"),
        ("for on in (False, True)", "for on in (False,)", "checkpoints are unchecked"),
    ],
    "gigabytes": [
        ("use.total", "use.activations", "activations alone"),
    ],
}
