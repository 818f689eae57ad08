"""Faults of annotated/page/ch17.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "formulas": [
        ("window + every - t", "window + every", "the pairs of both count twice"),
        ("stretch + ends - rows", "stretch + ends", "ends see themselves twice"),
        ("(rows - 1) // 2 + rows", "(rows - 1) // 2", "ends don't see themselves"),
    ],
    "counted": [
        ("near | every", "near & every", "what both have, not what either has"),
    ],
    "check_counts": [
        ("    for size in sizes:", "    for size in ():", "nothing is compared"),
    ],
    "pairs_table": [
        ("p / full", "p / t**2", "a share of all pairs, not of the causal ones"),
    ],
    "blocks_picture": [
        ("left + column * c * cell", "left + row * c * cell", "all on the diagonal"),
        ("x + j * cell, y + i * cell", "x + i * cell, y + j * cell", "transposed"),
    ],
    "heard_picture": [
        ("(board(heard)", "(board(masks[0])", "a mask in place of what is heard"),
    ],
    "graph_picture": [
        ("layers + 1 - torch", "layers - torch", "heard a layer too soon"),
        ("heard[-1] | own", "heard[0] | own", "later layers are hidden"),
    ],
    "check_masks": [
        ("(near, every, stretch, ends), strict=True", "(near, every, stretch, stretch)",
         "the ends are held against the stretches"),
    ],
    "check_attention": [
        ("for i in (0, 1))", "for i in (0, 0))", "blocks are compared with themselves"),
    ],
    "dense": [
        ("(q, k, v, mask)", "(q, k, v)", "no mask at all"),
    ],
}
