"""Faults of annotated/page/ch13.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "hashed": [
        ("angles - turn", "angles + turn", "points turn the other way"),
        ("+ width / 2", "", "a bucket begins at its direction"),
        ("TURNS[:rounds]", "TURNS[:1] * rounds", "all rounds turn alike"),
    ],
    "at_angle": [
        ("other - (other * one).sum(-1, keepdim=True) * one", "other",
         "the angle is another"),
    ],
    "collision_probability": [
        ("same + opposite", "same", "opposite signs are left out"),
        ("buckets // 2 - 1", "buckets // 2", "a column is counted twice"),
    ],
    "check_rounds": [
        ("once=False", "once=True", "rounds that count again aren't compared"),
        ("check_same(", "print(", "nothing is compared"),
    ],
    "check_future": [
        ("moved[0] == 0", "moved[0] >= 0", "the future may be seen"),
    ],
    "_found": [
        (".topk(top)", ".topk(1)", "the heaviest alone counts"),
    ],
    "crossing": [
        ("if ratio >= 1", "if ratio >= 2", "the least length is always named"),
        ("default=0", "default=8192", "the longest length is named"),
    ],
    "check_tradeoff": [
        ("reverse=True", "key=abs, reverse=False", "errors have to rise"),
        ("seconds[r] < seconds", "seconds[r] > seconds", "what is slower is named"),
    ],
    "kept": [
        ("if at not in own", "", "inputs and output count"),
        ("storages[storage.data_ptr()]", "storages[len(storages)]",
         "what is kept twice counts twice"),
    ],
    "accuracy": [
        ('if run["trained"] == kind', "", "models of any kind count"),
        ("for way in ASKED", "for way in right", "columns in another order"),
    ],
    "check_replay": [
        ("gradient(True)", "gradient(False)", "what is replayed isn't compared"),
    ],
    "compared": [
        ("names.index(query)]", "names.index(query) + 1]", "the query is a key"),
    ],
}
