"""Faults of annotated/page/records.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "grouped": [
        ("tuple(row.get(key) for key in keys)", "row.get(keys[0])",
         "only the first entry counts"),
    ],
    "dots": [
        (":{style}", "", "every digit is shown"),
    ],
}
