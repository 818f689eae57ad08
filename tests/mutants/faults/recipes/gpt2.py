"""Faults of recipes/gpt2.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "official_gpt2": [
        ("not download and not (cache", "not (cache", "never downloaded"),
        ('SIZES["small"]', 'SIZES["medium"]', "another size"),
    ],
}
