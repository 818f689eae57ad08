"""Page 12c, options of Transformer-XL: its tables, its drawing, its proofs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from annotated.chapters.ch12 import segments_options as options
from annotated.chapters.ch12.segments import SHIFTS
from annotated.page.diagrams import Drawing
from annotated.page.frames import Html
from annotated.page.notebook import check_close, show_table
from annotated.page.pictures import Matrix, chain
from annotated.transformer_xl import TransformerXL, relative_shift

Runs = Sequence[Mapping[str, Any]]


def bits(runs: Runs, length: int, mem_len: int, **option: Any) -> Any:
    """Return bits per character, by seed, of models evaluated with these lengths."""
    wanted = {"length": length, "mem_len": mem_len, **option}
    size = len(wanted) + 2  # and no other option: seed and bits are the rest
    return numpy.array(
        [run["bits"] for run in runs if {**run, **wanted} == run and len(run) == size]
    )


def memory_table(runs: Runs) -> Html:
    """Show the loss by the memory at evaluation, with either option and without."""
    kinds = {
        "neither option": {},
        "same_length": {"same_length": True},
        "clamp_len 63": {"clamp_len": 63},
    }
    rows = []
    for name, option in kinds.items():
        means = (bits(runs, 32, m, **option) for m in (32, 64, 128, 256))
        rows.append((name, *(f"{x.mean():.3f}" if len(x) else "–" for x in means)))
    return show_table(
        ("a memory of", "32, as trained", "64", "128", "256"),
        rows,
        caption="Bits per character, segments of 32, the mean of three seeds. (No "
        "distance is above 63 with a memory of 32.)",
    )


def distances() -> Html:
    """Show which distances two queries see, by either option."""
    distance = torch.arange(2, 4)[:, None] - torch.arange(4)  # (t, s)
    causal, names = distance >= 0, {"rows": [*"ec"], "columns": [*"spec"]}
    same = causal & (distance < 2)
    return chain(
        *(Matrix(distance, "causal", mask=causal, narrow=True, **names), "  "),
        *(Matrix(distance, "same_length", mask=same, narrow=True, **names), "  "),
        Matrix(distance.clamp(max=2), "clamp_len 2", mask=causal, narrow=True, **names),
        caption="A memory of 2, a segment of 2. In the cells: the distance.",
    )


def check_options() -> None:
    """Prove what each option does to what a model sees."""
    text = torch.randperm(96)[:12]
    reached = [
        options.reached_by_change(
            options.reach_model(TransformerXL, layers=1, same_length=same), text, 4
        ).sum()
        for same in (False, True)
    ]
    assert reached == [8, 4], f"the last output depends on {reached} characters"
    swapped = text[[0, 1, 2, 3, 5, 4, *range(6, 12)]]  # distances 7 and 6
    for clamp_len, moves in ((None, True), (5, False)):
        model = options.reach_model(TransformerXL, layers=1, clamp_len=clamp_len)
        outputs = [options.last_output(model, ids, 4) for ids in (swapped, text)]
        same = torch.allclose(*outputs, atol=1e-5)
        assert same != moves, f"clamp_len={clamp_len}: does the output move? {not same}"
    print("✓ segments and memory of 4: the last output depends on 8, by same_length 4")
    print("✓ the two farthest characters swapped: it moves, but not with clamp_len 5")


def seen(kept: Sequence[int], segment: Sequence[int]) -> Html:
    """Draw the positions that a segment sees, ``kept`` in memory and its own."""
    drawing, every = Drawing(350, 44), [*kept, *segment]
    begin = max(18 * len(kept) + 8, 62)  # of the segment, behind the word "memory"
    for x, position in enumerate(every):
        left = 2 + 18 * x if x < len(kept) else 2 + begin + 18 * (x - len(kept))
        twice = every.count(position) > 1
        drawing.frame(left, 20, 18, 22, shade=0.45 if twice else 0)
        drawing.text(left + 9, 36, str(position), size=14)
    for words, left in (("memory", 0), ("segment", begin)):
        drawing.text(2 + left, 14, words, anchor="start", size=14)
    said = f"{len(every) - len({*every})} positions are seen twice."
    return drawing.figure(alt=f"Memory {kept}, segment {[*segment]}: {said}")


def check_swapped() -> None:
    """Prove which positions are remembered twice when two lengths are swapped."""
    right, swapped = (
        options.remembered([4] * 4, 8, 2, update) for update in ("right", "swapped")
    )
    assert right[0] == [0, 1] and swapped[0] == [0, 1, 2, 3]
    assert swapped[1] == [0, 1, 2, 3, 2, 3, 4, 5] and swapped[2] == right[2]
    for lengths in ([4, 4, 4], [3, 5, 2]):
        plain = options.remembered(lengths, 6, 0)
        assert plain == options.remembered(lengths, 6, 0, "swapped")
    print("✓ without ext_len both orders keep the same positions")
    print("✓ with it, segment 2 finds 2 and 3 in memory and reads them again")


def check_distances() -> None:
    """Prove what it saves to multiply by distance, and that (d) needs one row."""
    t, s, d = 32, 64, 64
    q, R, W, v = (torch.randn(n, d, dtype=torch.float64) for n in (t, s, d, 1))
    pairs = R[(torch.arange(s - t, s)[:, None] - torch.arange(s)).clamp(min=0)]
    counts = []
    for compute in (
        lambda: torch.einsum("td,tsd->ts", q, pairs @ W.T),  # for each pair
        lambda: q @ (R @ W.T).T,  # once for each distance
    ):
        with FlopCounterMode(display=False) as counter:
            compute()
        counts.append(counter.get_total_flops() // 2)  # multiplications
    assert counts == [t * s * d * d + t * s * d, s * d * d + t * s * d]
    print(f"✓ {counts[0]:,} multiplications pair by pair, {counts[1]:,} by distance")
    r = R @ W.T
    one_row = (v @ r.T).expand(t, s)
    check_close(
        "(b) and one row of (d), shifted one by one, equal both shifted together",
        relative_shift(q @ r.T) + relative_shift(one_row),
        relative_shift((q + v) @ r.T),
        1e-9,
    )


def entropy_table() -> Html:
    """Show how sharp attention gets as the stream grows."""
    growths, rows = (1, 3, 10, 30, 100), []
    for name, normalised in (
        ("queries from the stream", False),
        ("queries normalised", True),
    ):
        found = [options.attention_entropy(g, normalised=normalised) for g in growths]
        assert found[0] > 1.6 and (found[-1] > 1.6) == normalised
        rows.append((name, *(f"{entropy:.2f}" for entropy in found)))
    # exact: 2.08 = log(8)
    caption = "Entropy of attention to 8 keys, in nats; ln 8 = 2.08 would be uniform."
    return show_table(("stream multiplied by", *map(str, growths)), rows, caption)


def shifts_table() -> Html:
    """Show which cells the published shifts get right, beside a loop by index."""
    scores = torch.arange(1.0, 25).view(3, 8)
    causal = torch.arange(2, 5)[:, None] >= torch.arange(5)  # (t, s)
    shifted: dict[str, Tensor] = {name: f(scores) for name, f in SHIFTS.items()}
    shifted["the paper's, columns 2 to 8"] = relative_shift(scores[:, 1:])[:, :5]
    right = {name: x == shifted["index loop"] for name, x in shifted.items()}
    counts = {name: (int(x.sum()), int(x[causal].sum())) for name, x in right.items()}
    assert [*counts.values()] == [(15, 12), (12, 12), (15, 12), (0, 0), (15, 12)]
    return show_table(
        ("shift", "first row", "cells right", "visible cells right"),
        [
            (
                name,
                " ".join(f"{value:.0f}" for value in shifted[name][0].tolist()),
                f"{every} of 15",
                f"{visible} of 12",
            )
            for name, (every, visible) in counts.items()
        ],
        caption="Visible: keys up to the query.",
    )
