"""Faults of annotated/page/ch02.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "settled": [
        ("max((step for step", "min((step for step", "once right is enough"),
        ('seed.get("start")) == (kind, start)', 'start) == (kind, start)',
         "other starts count"),
    ],
    "found": [
        (".where(said == right, -1.0)", "", "sentences with a wrong answer are found"),
        ("place if noun[i] == 1 else animal", "animal if noun[i] == 1 else place",
         "the right noun is called wrong"),
    ],
    "look_back": [
        ("[choices.index(tuple(only))] if only", "[0] if only", "another sentence"),
    ],
    "second_look": [
        ("range(2 - LOOKS.index(look))", "range(1 + LOOKS.index(look))",
         "first and second look swapped"),
    ],
    "films": [
        ("a * x + c * y > 0", "x > 0", "every taste likes the same"),
    ],
    "at_the_query": [
        ("scale * q", "q", "never divided"),
        ("q.grad.norm", "q.norm", "the query itself"),
    ],
    "by_hand": [
        ("scale * sum", "sum", "scores that are not scaled"),
    ],
    "check_loops": [
        ("loops, 1e-5", "loops, 10", "anything is equal"),
    ],
    "check_set": [
        ("*pair, 1e-5", "*pair, 100", "anything is equivariant"),
    ],
    "check_learned": [
        ("max(right) <= 0.85", "True", "an average may learn it"),
    ],
}
