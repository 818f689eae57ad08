"""Page 6c, inside a Transformer: its explorer, tables and proofs."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import log
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotated.masks import causal_mask
from annotated.page.frames import Choice, Html, Slider, explorer, static
from annotated.page.notebook import check_close, check_same, show_table
from annotated.transformer import (
    EncoderLayer,
    FeedForward,
    Transformer,
    TransformerConfig,
)

LETTERS = "·^abcdefghij"  # 0 is padding, 1 the start
STAGES = ["embedding + position"] + [
    f"{i} {kind}"
    for i in (1, 2)
    for kind in ("self-attention", "cross-attention", "feed-forward")
]


def stream_explorer(
    orders: Mapping[str, Any],
    streams: Mapping[str, Tensor],
    shares: Mapping[str, Tensor],
    text: str,
) -> Html:
    """Show the stream of one position, stage by stage.

    Args:
        orders: by norm order, what the browser computes with.
        streams: by norm order, the module's own stream, (stages, t, d).
        shares: what the output layer says to it, (stages, t, v).
        text: the letters to be copied.
    """
    written = ["^", *text[:-1]]
    places = [f"{i}: after {letter}" for i, letter in enumerate(written, 1)]
    checks = []
    for order, i, j in (
        *(("pre", 2, 0), ("pre", 2, 2), ("pre", 5, 6), ("pre", 0, 5)),
        *(("post", 0, 0), ("post", 3, 5), ("post", 5, 6)),
    ):
        added = orders[f"{order}-norm"]["added"]
        values = {
            "stream": streams[order][j, i].tolist(),
            "added": added[j - 1][i] if j else [0.0] * 32,
            "lengths": streams[order][:, i].norm(dim=-1).tolist(),
            "says": [LETTERS[k] for k in shares[order][:, i].argmax(dim=-1).tolist()],
            "shares": shares[order][j, i].tolist(),
        }
        state = {"order": f"{order}-norm", "place": places[i], "stage": STAGES[j]}
        checks.append((state, values))
    return explorer(
        static("ch06/residual_stream.js"),
        {
            "orders": orders,
            "places": places,
            "stages": STAGES,
            "letters": LETTERS,
            "written": written,
            "next": [*text],
        },
        [
            Choice("order", "norm order", list(orders)),
            Slider("place", "position", places, places[1]),
            Slider("stage", "the stream after", STAGES, STAGES[2]),
        ],
        label="One position's residual stream",
        checks=checks,
        question="Which sublayer turns the letter just written into the letter to be "
        "written?",
        caption="The source is f a d e h b. Bars: what the sublayer adds, and the "
        "stream after it. Rows: the stream's length, and the letter read from it.",
    )


def said_table(said: Mapping[str, Mapping], lengths: Mapping[str, Tensor]) -> Html:
    """Show how often streams say a letter written, or the next; and their lengths."""
    rows = []
    for i, stage in enumerate(STAGES):
        row = [stage]
        for norm in ("pre", "post"):
            row += [f"{said[norm][which][i]:.0%}" for which in ("now", "next")]
            row.append(f"{lengths[norm][i]:.1f}")
        rows.append(row)
    names = ("pre: written", "next", "length", "post: written", "next", "length")
    return show_table(["the stream after", *names], rows)


def check_last_stage(
    shares: Mapping[str, Tensor], logits: Mapping[str, Tensor]
) -> None:
    """Prove that the last stage of each stream says what the model's ``logits`` say."""
    for norm, said in shares.items():
        claim = f"{norm}-norm: the last stage gives the logits"
        check_close(claim, said[-1], logits[norm].softmax(dim=-1), 1e-5)


def check_tied() -> None:
    """Prove that a tied matrix gets the sum of its three gradients."""
    tied, untied = (
        Transformer(TransformerConfig(20, 20, 32, 4, 1, 128, 0.0, tied=tied))
        for tied in (True, False)
    )
    untied.load_state_dict(tied.state_dict())
    tables = [untied.source_embedding, untied.target_embedding, untied.output]
    source, target = torch.randint(2, 20, (2, 2, 6))
    one, other = (model(source, target) for model in (tied, untied))
    upstream = torch.randn_like(one)
    one.backward(upstream)
    other.backward(upstream)
    check_close(
        "tied or not, the same logits; tied, the sum of three gradients",
        [one, tied.source_embedding.weight.grad],
        [other, sum(table.weight.grad for table in tables)],
        1e-4,
    )


@torch.no_grad()
def first_losses(config: TransformerConfig) -> Html:
    """Show what a fresh model says, tied and untied, and what that costs."""
    rows, v = [], config.target_vocab
    for name, tied in (("tied", True), ("untied", False)):
        torch.manual_seed(0)
        model = Transformer(replace(config, tied=tied))
        source, target = torch.randint(1, v, (2, 4, 10))
        logits = model(source, target)
        own = logits.gather(-1, target[..., None]).mean().item()
        same = (logits.argmax(dim=-1) == target).float().mean().item()
        half = logits.var(dim=-1).mean().item() / 2
        # averaged over every label that could be the right one
        loss = (logits.logsumexp(dim=-1) - logits.mean(dim=-1)).mean().item()
        excess = loss - log(v)
        if tied:
            assert own > 5 and same > 0.9 and excess > 0.7
        else:
            assert abs(own) < 1 and same < 0.1 and abs(excess - half) < 0.05
        rows.append([name, f"{own:.1f}", f"{same:.0%}", f"{half:.2f}", f"{loss:.2f}"])
    return show_table(
        [
            "fresh model",
            "logit of the symbol just read",
            "where it's the likeliest",
            "half the variance of the logits",
            "loss, mean over all labels",
        ],
        rows,
        f"d = {config.d_model}, v = {v}, so ln v = {log(v):.2f}; pre-norm",
    )


def check_network() -> None:
    """Prove what a feed-forward network is called elsewhere, and what its ReLU does."""

    def by_convolution(network: nn.Module, x: Tensor) -> Tensor:
        first, second = (m.weight[..., None] for m in (network.inner, network.outer))
        inner = F.conv1d(x.mT, first, network.inner.bias).relu()
        return F.conv1d(inner, second, network.outer.bias).mT

    given = FeedForward(d_model=8, d_ff=32), torch.randn(2, 5, 8)
    claim = "network = convolution of width 1"
    check_same(claim, FeedForward.forward, by_convolution, *given)
    network, x = given
    W_1, b_1, W_2, b_2 = network.parameters()
    one_map = x @ (W_2 @ W_1).T + (W_2 @ b_1 + b_2)
    without = (x @ W_1.T + b_1) @ W_2.T + b_2
    check_close("without the ReLU: two maps = one", without, one_map, 1e-5)
    assert (network(x) - one_map).abs().max() > 0.1, "the ReLU changes nothing"


def component_table(multiplications: Callable[[int], Mapping[str, int]]) -> Html:
    """Show the share of each kind of module in a base model's multiplications."""
    shares: dict[int, dict[str, float]] = {}
    d, d_ff, symbols = 512, 2048, 37000
    for t in (64, 512, 4096):
        sums, counts = defaultdict(int), multiplications(t)
        for name, count in counts.items():
            sums[name.split(".")[-1]] += count
        maps = sum(sums[f"{what}_map"] for what in ("query", "key", "value", "output"))
        parts = {
            "maps of attention": maps,
            "scores and sums": sums["attention"] + sums["cross_attention"] - maps,
            "networks": sums["feed_forward"],
            "output layer": sums["output"],
        }
        maps, scores = 18 * 4 * d**2 * t, 18 * 2 * t * d * t
        by_hand = maps, scores, 12 * 2 * d * d_ff * t, t * symbols * d
        assert tuple(parts.values()) == by_hand, f"by hand: {by_hand}, counted: {parts}"
        assert sum(by_hand) == counts["Transformer"]
        shares[t] = {name: n / sum(by_hand) for name, n in parts.items()}
    assert shares[64]["scores and sums"] < 0.05
    assert shares[4096]["scores and sums"] == max(shares[4096].values())
    return show_table(
        ["", *(f"{t} words" for t in shares)],
        [[part, *(f"{shares[t][part]:.0%}" for t in shares)] for part in shares[64]],
        "Share of the multiplications of the base model",
    )


@torch.no_grad()
def check_masks() -> None:
    """Prove that positions interact by attention alone, as far as masks let them."""
    sizes = {"d_model": 32, "heads": 4, "d_ff": 64, "dropout": 0.0}
    layer = EncoderLayer(TransformerConfig(9, 9, **sizes))
    x = torch.randn(1, 6, 32)
    changed = torch.cat([x[:, :5], torch.randn(1, 1, 32)], dim=1)  # the last word
    alone = torch.eye(6, dtype=torch.bool)  # each position sees itself
    for name, mask in {
        "no": None,
        "a causal": causal_mask(6),
        "its own": alone,
    }.items():
        moved = (layer(x, mask) - layer(changed, mask))[:, :-1].abs().max().item()
        assert (moved > 0) == (name == "no"), f"{name} mask: {moved}"
        print(f"✓ {name} mask: the last word moves the others by {moved:.2f}")


def check_today(rms_norm: Callable, swiglu: Callable) -> None:
    """Prove a notebook's RMSNorm and gated network against PyTorch and the module."""
    x, gain = torch.randn(2, 5, 8), torch.randn(8)
    theirs = F.rms_norm(x, (8,), gain, 1e-6)
    check_close("equals PyTorch's RMSNorm", rms_norm(x, gain), theirs, 1e-5)
    centred = x - x.mean(dim=-1, keepdim=True)
    ours = rms_norm(centred, gain)
    claim = "on vectors of mean 0, layer norm and RMSNorm agree"
    check_close(claim, ours, F.layer_norm(centred, (8,), gain, eps=1e-6), 1e-5)
    network = FeedForward(8, 12, activation="swiglu", bias=False)
    check_same(
        "swiglu = FeedForward(activation='swiglu')",
        FeedForward.forward,
        lambda n, x: swiglu(x, n.gate.weight, n.inner.weight, n.outer.weight),
        *(network, x),
    )
