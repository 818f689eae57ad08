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


WRONG["ch01-additive-scores"] = r"""
asked[..., :, None, :] -> asked[:, :, None, :]
offered[..., None, :, :] -> offered[:, None, :, :]  # your code raised IndexError
\n    asked -> \n    W_q, W_k = (W.T if W.shape[0] == W.shape[1] else W for W in (W_q,
        W_k))\n    asked  # q W_q is not W_q q
) @ w -> ).matmul(w[:, None]).squeeze()  # squeeze() drops every axis
W_q.T -> W_q.detach().T  # no gradient reaches W_q
"""

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


WRONG["ch01-mask-padding"] = """
(padding, lowest) -> (padding, 0.0)  # with a score of 0
(padding, lowest) -> (padding, -20.0)
weights.masked_fill(padding, 0.0) -> weights * (lengths > 0)[:, None, None]
        # and should get exactly 0
(positions < s - lengths[:, None])[:, None, :] -> positions < s - lengths
        # your code raised RuntimeError
scores.masked_fill(padding, lowest).softmax(dim=-1) -> (scores -
        scores.masked_fill(padding, 0.0).amax(-1, True)).exp() * ~padding
        # real scores of −200 get no weight
"""

# ---- temperature -------------------------------------------------------------


@right("ch01-temper")
def temper(scores, tau):
    wide = scores.double()
    wide = (wide - wide.amax(dim=-1, keepdim=True)) / max(tau, 1e-300)
    powers = wide.exp()
    return (powers / powers.sum(dim=-1, keepdim=True)).to(scores.dtype)


WRONG["ch01-temper"] = r"""
if tau > 0:
    tau = max(tau, 1e-3)\n    if tau > 0:  # a small number stands in for τ = 0
    tau = max(tau, 1e-6)\n    if tau > 0:  # however small its lead
    if tau >= 0:\n        scores = scores - scores.amax(-1, True)  # NaN at τ = 0
(scores / tau).softmax(dim=-1) -> (scores / tau).exp() / (scores /
        tau).exp().sum(dim=-1, keepdim=True)  # NaN at τ = 0.01
largest / largest.sum(dim=-1, keepdim=True)
    largest * (largest.cumsum(dim=-1) == 1)  # keys that tie
    largest  # get 1 each
"""

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


WRONG["ch01-decoder-step"] = r"""
state = torch -> new = torch
return logits, state -> return logits, new  # answer after the update
.masked_fill(~mask, -torch.inf) ->
scores.softmax(dim=-1) -> scores.softmax(dim=-1) * mask  # the softmax has seen it
(state @ W_q.T)[:, None, :] -> state @ W_q.T  # your code raised RuntimeError
@ states)[:, 0] -> @ states)[:, 0].detach()  # the context is detached
scores.softmax(dim=-1) -> scores.softmax(dim=-1).detach()
        # the weight of each state is detached
= scorer -> = (W.detach() for W in scorer)  # W_q, W_k and w are detached
-torch.inf -> -20.0  # its score should be −∞
return logits, state, -> return logits, state.detach(),
        # no gradient flows from one step to the step before
logits = -> hidden = torch.tanh((state @ W_q.T)[:, None, :] + states @
        W_k.T)\n    weights = (hidden @ w).masked_fill(~mask,
        -torch.inf).softmax(dim=-1)\n    context = (weights[:, None, :] @ states)[:,
        0]\n    logits =  # you look back once more, with the new state
.masked_fill(~mask, -torch.inf) ->
scores.softmax(dim=-1) -> scores.exp() * mask\n    weights = weights / weights.sum(-1,
        True)  # (and ∞ · 0 is NaN)
"""

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


WRONG["ch01-mended-attention"] = r"""
scores.masked_fill(~mask[:, None, :], -torch.inf) -> scores
scores.softmax(dim=-1) -> scores.softmax(dim=-1) * mask[:, None]\n    weights = weights
        / weights.sum(-1, True)  # 0 is divided by 0
scores.masked_fill(~mask[:, None, :], -torch.inf) -> scores
scores.softmax(dim=-1) -> scores.softmax(dim=-1) * mask[:, None]  # still don't sum to 1
torch.tanh(asked + offered)
    (asked + offered)  # without any tanh
    (asked.tanh() + offered.tanh())  # it adds the same number to all scores of a row
scores.softmax(dim=-1) -> scores.softmax(dim=-1).detach()
        # the weight of each key is detached
-torch.inf -> -20.0  # its score should be −∞
"""
