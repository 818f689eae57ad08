"""Faults of page/laboratory.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "laboratory": [
        ("require.choice(file[\"experiments\"], experiment=experiment)", "pass",
         "any experiment is taken"),
        ("require.choice(SWITCHES, switch=switch)", "pass", "any switch is taken"),
        ("experiments or file", "file", "a choice of experiments is ignored"),
        ("aria-label=\"{escape(label)}\"", "aria-label=\"{label}\"", "not escaped"),
        ("label, names, list(switches)", "label", "two on a page may share an id"),
        ("map(_code, SHOWN)", "map(_code, SHOWN[1:])", "a part isn't sent"),
    ],
    "_code": [
        ("^\\s*//.*\\n|", "", "comments are sent"),
    ],
}
