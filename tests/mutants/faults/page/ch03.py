"""Faults of annotated/page/ch03.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "looks": [
        ("row.argmax()", "row.argmin()", "named after the word it avoids"),
    ],
    "parted": [
        ("max(shared", "min(shared", "once apart is enough"),
        ("min(range(3)", "max(range(3)", "the question that waits least"),
    ],
    "neighbours": [
        ("average = average[order]", "pass", "heads in another order than their names"),
        ("SIDE - 2 : SIDE + 3", "SIDE - 1 : SIDE + 4", "one letter to the right"),
        ("1 - near", "near", "the rest is the near"),
    ],
    "by_heads": [
        ("grouped(rows, key)", 'grouped(rows, "seed")', "by seed"),
    ],
    "stages": [
        ("way == WAYS[1]", "way != WAYS[1]", "the two ways exchanged"),
        ("answers if straight else", "answers if not straight else", "no way back"),
    ],
    "guess": [
        ("8 * r : 8 * r + 8", "8 * r : 8 * r + 4", "half a head is left"),
        ("copy.deepcopy(model)", "model", "heads stay removed"),
        ("- SIDE\n", "\n", "counted from the left end"),
    ],
    "flips": [
        ("if letter != every", "", "heads that flip nothing are named"),
    ],
    "by_loops": [
        ("None if mask is None else", "None if mask is not None else", "no mask"),
    ],
    "check_multi_head": [
        ("toys[0], merged, 1e-5", "toys[0], toys[0], 1e-5", "any toy passes"),
    ],
    "check_costs": [
        ("== 2 * wanted", ">= 2 * wanted", "any cost passes"),
    ],
    "check_class": [
        ("mask=mask", "mask=None", "no masks"),
    ],
    "check_record": [
        ("min(map(min, giving[heads])) >= 0.99", "giving[heads]", "any answers"),
    ],
    "check_orders": [
        ("[outputs[0]] * 5", "outputs[1:]", "each order passes"),
    ],
    "check_rank": [
        ("rank == k", "rank", "any rank passes"),
    ],
    "check_grouped": [
        ("repeat_interleave(times, dim=0)", "repeat(times, 1, *[1] * (own.dim() - 1))",
         "groups of heads that stand apart"),
    ],
    "network_table": [
        ('worst >= 0.99 if row["network"] else', "", "a network may fail"),
    ],
    "grouped_table": [
        ("min(0.01, spread)", "1", "any loss passes"),
    ],
    "on_padding": [
        ("max(padding) < 0.4", "False", "no weight on padding passes"),
    ],
    "check_einsum": [
        ("torch.randn(2, 7, x.shape[-1])", "x", "no cross-attention"),
    ],
    "check_temperature": [
        ("gaps[3] > 0.1", "True", "never flatter"),
    ],
}
