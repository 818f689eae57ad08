"""Answers to the exercises of chapter 01."""

import torch

from tests.exercises.answers import right, wrong


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


@right("ch01-temper")
def temper(scores, tau):
    wide = scores.double()
    wide = (wide - wide.amax(dim=-1, keepdim=True)) / max(tau, 1e-300)
    powers = wide.exp()
    return (powers / powers.sum(dim=-1, keepdim=True)).to(scores.dtype)


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


@right("ch01-mended-attention")
def mended_attention(queries, keys, mask, W_q, W_k, w):
    sums = torch.einsum("btq,hq->bth", queries, W_q).unsqueeze(2)
    sums = sums + torch.einsum("bsk,hk->bsh", keys, W_k).unsqueeze(1)
    scores = torch.einsum("btsh,h->bts", sums.tanh(), w)
    scores = scores.masked_fill(~mask.unsqueeze(1), -torch.inf)
    powers = (scores - scores.amax(-1, keepdim=True)).exp()
    weights = powers / powers.sum(-1, keepdim=True)
    return torch.bmm(weights, keys), weights
