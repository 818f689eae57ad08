"""Faults of annotated/page/pair.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "two_processes": [
        ('        return recorded("processes")["pair"]\n', "        raise\n",
         "no page without processes"),
    ],
    "averaged": [
        ("n * len(own) / count", "len(own) / count", "divided twice"),
    ],
    "accumulated": [
        ('and i == 0', 'and i == 1', "the last isn't exchanged"),
    ],
    "joined": [
        ("divide_by_initial_world_size=initial", "divide_by_initial_world_size=True",
         "always divided by all"),
    ],
}
