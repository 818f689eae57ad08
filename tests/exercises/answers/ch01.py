"""Answers to the exercises of chapter 01."""

import torch

from tests.exercises.answers import WRONG, right, wrong

# ---- additive scores ---------------------------------------------------------


@right("ch01-additive-scores")
def additive_scores(queries, keys, W_q, W_k, w):
    asked = torch.nn.functional.linear(queries, W_q)
    offered = torch.nn.functional.linear(keys, W_k)
    sums = asked[..., None, :] + offered[..., None, :, :]
    return torch.einsum("...h,h->...", sums.tanh(), w)


@wrong("ch01-additive-scores", "a loop over queries or keys")
def additive_scores(queries, keys, W_q, W_k, w):
    asked, offered = queries @ W_q.T, keys @ W_k.T
    rows = [
        torch.tanh(asked[..., i : i + 1, :] + offered) @ w
        for i in range(queries.shape[-2])
    ]
    return torch.stack(rows, dim=-2)


WRONG["ch01-additive-scores"] = {
    "your code raised IndexError": [
        ("asked[..., :, None, :]", "asked[:, :, None, :]"),
        ("offered[..., None, :, :]", "offered[:, None, :, :]"),
    ],
    "q W_q is not W_q q": (
        "    asked",
        "    W_q, W_k = (W.T if W.shape[0] == W.shape[1] else W for W in (W_q, "
        "W_k))\n    asked",
    ),
    "squeeze() drops every axis": (") @ w", ").matmul(w[:, None]).squeeze()"),
    "no gradient reaches W_q": ("W_q.T", "W_q.detach().T"),
}

# ---- masked weights --------------------------------------------------------


@right("ch01-mask-padding")
def mask_padding(scores, lengths):
    rows = torch.zeros_like(scores)
    for n, length in enumerate(lengths.tolist()):
        if length:
            rows[n, :, -length:] = scores[n, :, -length:].softmax(dim=-1)
    return rows


@wrong("ch01-mask-padding", "NaN comes back in the gradient")
def mask_padding(scores, lengths):
    s = scores.shape[-1]
    real = (torch.arange(s) >= s - lengths[:, None])[:, None, :]
    powers = scores.exp() * real
    return (powers / powers.sum(dim=-1, keepdim=True)).nan_to_num(0.0)


SOFTMAX = "scores.masked_fill(padding, lowest).softmax(dim=-1)"
WRONG["ch01-mask-padding"] = {
    "with a score of 0": ("(padding, lowest)", "(padding, 0.0)"),
    "and should get exactly 0": [
        ("(padding, lowest)", "(padding, -20.0)"),
        ("weights.masked_fill(padding, 0.0)", "weights * (lengths > 0)[:, None, None]"),
    ],
    "your code raised RuntimeError": (
        "(positions < s - lengths[:, None])[:, None, :]",
        "positions < s - lengths",
    ),
    "real scores of −200 get no weight": (
        SOFTMAX,
        "(scores - scores.masked_fill(padding, 0.0).amax(-1, True)).exp() * ~padding",
    ),
}

# ---- temperature -------------------------------------------------------------


@right("ch01-temper")
def temper(scores, tau):
    wide = scores.double()
    wide = (wide - wide.amax(dim=-1, keepdim=True)) / max(tau, 1e-300)
    powers = wide.exp()
    return (powers / powers.sum(dim=-1, keepdim=True)).to(scores.dtype)


COLD = "    if tau > 0:"
SHARED = "largest / largest.sum(dim=-1, keepdim=True)"
WRONG["ch01-temper"] = {
    "a small number stands in for τ = 0": (COLD, f"    tau = max(tau, 1e-3)\n{COLD}"),
    "however small its lead": (COLD, f"    tau = max(tau, 1e-6)\n{COLD}"),
    "NaN at τ = 0": (
        COLD,
        "    if tau >= 0:\n        scores = scores - scores.amax(-1, True)",
    ),
    "NaN at τ = 0.01": (
        "(scores / tau).softmax(dim=-1)",
        "(scores / tau).exp() / (scores / tau).exp().sum(dim=-1, keepdim=True)",
    ),
    "keys that tie": (SHARED, "largest * (largest.cumsum(dim=-1) == 1)"),
    "get 1 each": (SHARED, "largest"),
}

# ---- one step of a decoder ---------------------------------------------------


@right("ch01-decoder-step")
def decoder_step(state, last, states, mask, scorer, gru, head):
    W_q, W_k, w = scorer
    rows = []
    for n in range(len(state)):
        real = states[n][mask[n]]
        scores = torch.tanh(W_q @ state[n] + real @ W_k.T) @ w
        weights = torch.zeros_like(states[n, :, 0])
        weights[mask[n]] = scores.exp() / scores.exp().sum()
        rows.append(weights)
    weights = torch.stack(rows)
    context = torch.einsum("bs,bsm->bm", weights, states)
    new = torch.gru_cell(torch.hstack([last, context]), state, *gru)
    logits = torch.nn.functional.linear(torch.hstack([new, context]), *head)
    return logits, new, weights


SOFTMAX = "scores.softmax(dim=-1)"
MASKED = ".masked_fill(~mask, -torch.inf)"
WRONG["ch01-decoder-step"] = {
    "answer after the update": [
        ("    state = torch", "    new = torch"),
        ("return logits, state", "return logits, new"),
    ],
    "the softmax has seen it": [(MASKED, ""), (SOFTMAX, f"{SOFTMAX} * mask")],
    "your code raised RuntimeError": ("(state @ W_q.T)[:, None, :]", "state @ W_q.T"),
    "the context is detached": ("@ states)[:, 0]", "@ states)[:, 0].detach()"),
    "the weight of each state is detached": (SOFTMAX, f"{SOFTMAX}.detach()"),
    "W_q, W_k and w are detached": ("= scorer", "= (W.detach() for W in scorer)"),
    "its score should be −∞": ("-torch.inf", "-20.0"),
    "no gradient flows from one step to the step before": (
        "return logits, state,",
        "return logits, state.detach(),",
    ),
    "you look back once more, with the new state": (
        "    logits = ",
        "    hidden = torch.tanh((state @ W_q.T)[:, None, :] + states @ W_k.T)\n    "
        f"weights = (hidden @ w){MASKED}.softmax(dim=-1)\n    context = (weights[:, "
        "None, :] @ states)[:, 0]\n    logits = ",
    ),
    "(and ∞ · 0 is NaN)": [
        (MASKED, ""),
        (SOFTMAX, "scores.exp() * mask\n    weights = weights / weights.sum(-1, True)"),
    ],
}

# ---- find the fault ----------------------------------------------------------


@right("ch01-mended-attention")
def mended_attention(queries, keys, mask, W_q, W_k, w):
    sums = torch.einsum("btq,hq->bth", queries, W_q).unsqueeze(2)
    sums = sums + torch.einsum("bsk,hk->bsh", keys, W_k).unsqueeze(1)
    scores = torch.einsum("btsh,h->bts", sums.tanh(), w)
    scores = scores.masked_fill(~mask.unsqueeze(1), -torch.inf)
    powers = (scores - scores.amax(-1, keepdim=True)).exp()
    weights = powers / powers.sum(-1, keepdim=True)
    return torch.bmm(weights, keys), weights


TANH = "torch.tanh(asked + offered)"
LATE = (
    "    scores = scores.masked_fill(\n        ~mask[:, None, :], -torch.inf\n    )  "
    "# before the softmax\n",
    "",
)
WRONG["ch01-mended-attention"] = {
    "0 is divided by 0": [
        LATE,
        (
            SOFTMAX,
            f"{SOFTMAX} * mask[:, None]\n    weights = weights / weights.sum(-1, True)",
        ),
    ],
    "still don't sum to 1": [LATE, (SOFTMAX, f"{SOFTMAX} * mask[:, None]")],
    "without any tanh": (TANH, "(asked + offered)"),
    "it adds the same number to all scores of a row": (
        TANH,
        "(asked.tanh() + offered.tanh())",
    ),
    "the weight of each key is detached": (SOFTMAX, f"{SOFTMAX}.detach()"),
    "its score should be −∞": ("-torch.inf", "-20.0"),
}
