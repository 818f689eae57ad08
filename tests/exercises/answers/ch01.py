"""Answers to the exercises of chapter 01."""

import torch

from tests.exercises.answers import right, wrong

# ---- additive scores ---------------------------------------------------------


@right("ch01-additive-scores")
def additive_scores(queries, keys, W_q, W_k, w):
    asked = torch.nn.functional.linear(queries, W_q)
    offered = torch.nn.functional.linear(keys, W_k)
    sums = asked[..., None, :] + offered[..., None, :, :]
    return torch.einsum("...h,h->...", sums.tanh(), w)


@wrong("ch01-additive-scores", "your code raised IndexError")
def additive_scores(queries, keys, W_q, W_k, w):
    a, b = queries @ W_q.T, keys @ W_k.T
    return torch.tanh(a[:, :, None, :] + b[:, None, :, :]) @ w


@wrong("ch01-additive-scores", "q W_q is not W_q q")
def additive_scores(queries, keys, W_q, W_k, w):
    if W_q.shape[0] != W_q.shape[1] or W_k.shape[0] != W_k.shape[1]:
        W_q, W_k = W_q.T, W_k.T
    a, b = queries @ W_q, keys @ W_k
    return torch.tanh(a[..., :, None, :] + b[..., None, :, :]) @ w


@wrong("ch01-additive-scores", "squeeze() drops every axis")
def additive_scores(queries, keys, W_q, W_k, w):
    a, b = queries @ W_q.T, keys @ W_k.T
    sums = torch.tanh(a[..., :, None, :] + b[..., None, :, :])
    return (sums @ w[:, None]).squeeze()


@wrong("ch01-additive-scores", "no gradient reaches W_q")
def additive_scores(queries, keys, W_q, W_k, w):
    a, b = queries @ W_q.detach().T, keys @ W_k.T
    return torch.tanh(a[..., :, None, :] + b[..., None, :, :]) @ w


@wrong("ch01-additive-scores", "a loop over queries or keys")
def additive_scores(queries, keys, W_q, W_k, w):
    asked, offered = queries @ W_q.T, keys @ W_k.T
    rows = [
        torch.tanh(asked[..., i : i + 1, :] + offered) @ w
        for i in range(queries.shape[-2])
    ]
    return torch.stack(rows, dim=-2)


# ---- masked weights --------------------------------------------------------


@right("ch01-mask-padding")
def mask_padding(scores, lengths):
    rows = torch.zeros_like(scores)
    for n, length in enumerate(lengths.tolist()):
        if length:
            rows[n, :, -length:] = scores[n, :, -length:].softmax(dim=-1)
    return rows


@wrong("ch01-mask-padding", "with a score of 0")
def mask_padding(scores, lengths):
    s = scores.shape[-1]
    real = (torch.arange(s) >= s - lengths[:, None])[:, None, :]
    return (scores * real).softmax(dim=-1) * real


@wrong("ch01-mask-padding", "and should get exactly 0")
def mask_padding(scores, lengths):
    s = scores.shape[-1]
    padding = (torch.arange(s) < s - lengths[:, None])[:, None, :]
    weights = scores.masked_fill(padding, -20.0).softmax(dim=-1)
    return weights * (lengths > 0)[:, None, None]


@wrong("ch01-mask-padding", "your code raised RuntimeError")
def mask_padding(scores, lengths):
    s = scores.shape[-1]
    padding = torch.arange(s) < s - lengths
    weights = scores.masked_fill(padding, torch.finfo(scores.dtype).min).softmax(-1)
    return weights.masked_fill(padding, 0.0)


@wrong("ch01-mask-padding", "NaN comes back in the gradient")
def mask_padding(scores, lengths):
    s = scores.shape[-1]
    real = (torch.arange(s) >= s - lengths[:, None])[:, None, :]
    powers = scores.exp() * real
    return (powers / powers.sum(dim=-1, keepdim=True)).nan_to_num(0.0)


@wrong("ch01-mask-padding", "real scores of −200 get no weight")
def mask_padding(scores, lengths):
    s = scores.shape[-1]
    real = (torch.arange(s) >= s - lengths[:, None])[:, None, :]
    kept = scores * real
    powers = (kept - kept.amax(dim=-1, keepdim=True)).exp() * real
    return powers / powers.sum(dim=-1, keepdim=True).clamp(min=1e-30)


# ---- temperature -------------------------------------------------------------


@right("ch01-temper")
def temper(scores, tau):
    wide = scores.double()
    wide = (wide - wide.amax(dim=-1, keepdim=True)) / max(tau, 1e-300)
    powers = wide.exp()
    return (powers / powers.sum(dim=-1, keepdim=True)).to(scores.dtype)


@wrong("ch01-temper", "a small number stands in for τ = 0")
def temper(scores, tau):
    return (scores / max(tau, 1e-3)).softmax(dim=-1)


@wrong("ch01-temper", "however small its lead")
def temper(scores, tau):
    return (scores / max(tau, 1e-6)).softmax(dim=-1)


@wrong("ch01-temper", "NaN at τ = 0")
def temper(scores, tau):
    scores = scores - scores.max(dim=-1, keepdim=True).values
    return (scores / tau).softmax(dim=-1)


@wrong("ch01-temper", "NaN at τ = 0.01")
def temper(scores, tau):
    if tau == 0:
        largest = (scores == scores.amax(dim=-1, keepdim=True)).to(scores.dtype)
        return largest / largest.sum(dim=-1, keepdim=True)
    powers = (scores / tau).exp()
    return powers / powers.sum(dim=-1, keepdim=True)


@wrong("ch01-temper", "keys that tie")
def temper(scores, tau):
    if tau == 0:
        chosen = torch.nn.functional.one_hot(scores.argmax(-1), scores.shape[-1])
        return chosen.to(scores.dtype)
    gaps = scores - scores.amax(dim=-1, keepdim=True)
    return (gaps / tau).softmax(dim=-1)


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


def one_step(state, last, states, mask, scorer, gru, head, read, answer, mend):
    hidden = torch.tanh((state @ scorer[0].T)[:, None] + states @ scorer[1].T)
    weights = mend((hidden @ scorer[2]), mask)
    context = torch.einsum("bs,bsm->bm", weights, states)
    new = torch.gru_cell(torch.cat(read(last, context), -1), state, *gru)
    logits = torch.cat(answer(new, context, state), -1) @ head[0].T + head[1]
    return logits, new, weights


def masked(scores, mask):
    return scores.masked_fill(~mask, -torch.inf).softmax(-1)


@wrong("ch01-decoder-step", "answer after the update")
def decoder_step(state, last, states, mask, scorer, gru, head):
    return one_step(
        state, last, states, mask, scorer, gru, head,
        lambda last, context: (last, context),
        lambda new, context, old: (old, context),
        masked,
    )  # fmt: skip


@wrong("ch01-decoder-step", "the softmax has seen it")
def decoder_step(state, last, states, mask, scorer, gru, head):
    return one_step(
        state, last, states, mask, scorer, gru, head,
        lambda last, context: (last, context),
        lambda new, context, old: (new, context),
        lambda scores, mask: scores.softmax(-1) * mask,
    )  # fmt: skip


@wrong("ch01-decoder-step", "your code raised RuntimeError")
def decoder_step(state, last, states, mask, scorer, gru, head):
    hidden = torch.tanh(state @ scorer[0].T + states @ scorer[1].T)
    weights = masked(hidden @ scorer[2], mask)
    context = torch.einsum("bs,bsm->bm", weights, states)
    new = torch.gru_cell(torch.cat([last, context], -1), state, *gru)
    return torch.cat([new, context], -1) @ head[0].T + head[1], new, weights


@wrong("ch01-decoder-step", "the context is detached")
def decoder_step(state, last, states, mask, scorer, gru, head):
    return one_step(
        state, last, states, mask, scorer, gru, head,
        lambda last, context: (last, context.detach()),
        lambda new, context, old: (new, context.detach()),
        masked,
    )  # fmt: skip


@wrong("ch01-decoder-step", "the weight of each state is detached")
def decoder_step(state, last, states, mask, scorer, gru, head):
    return one_step(
        state, last, states, mask, scorer, gru, head,
        lambda last, context: (last, context),
        lambda new, context, old: (new, context),
        lambda scores, mask: masked(scores, mask).detach(),
    )  # fmt: skip


@wrong("ch01-decoder-step", "W_q, W_k and w are detached")
def decoder_step(state, last, states, mask, scorer, gru, head):
    return one_step(
        state, last, states, mask, [weight.detach() for weight in scorer], gru, head,
        lambda last, context: (last, context),
        lambda new, context, old: (new, context),
        masked,
    )  # fmt: skip


@wrong("ch01-decoder-step", "its score should be −∞")
def decoder_step(state, last, states, mask, scorer, gru, head):
    return one_step(
        state, last, states, mask, scorer, gru, head,
        lambda last, context: (last, context),
        lambda new, context, old: (new, context),
        lambda scores, mask: scores.masked_fill(~mask, -20.0).softmax(-1),
    )  # fmt: skip


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


@wrong("ch01-mended-attention", "you divide 0 by 0")
def mended_attention(queries, keys, mask, W_q, W_k, w):
    sums = (queries @ W_q.T)[:, :, None] + (keys @ W_k.T)[:, None]
    weights = (torch.tanh(sums) @ w).softmax(dim=-1) * mask[:, None, :]
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights @ keys, weights


@wrong("ch01-mended-attention", "still don't sum to 1")
def mended_attention(queries, keys, mask, W_q, W_k, w):
    sums = (queries @ W_q.T)[:, :, None] + (keys @ W_k.T)[:, None]
    weights = (torch.tanh(sums) @ w).softmax(dim=-1) * mask[:, None, :]
    return weights @ keys, weights


@wrong("ch01-mended-attention", "without any tanh")
def mended_attention(queries, keys, mask, W_q, W_k, w):
    sums = (queries @ W_q.T)[:, :, None] + (keys @ W_k.T)[:, None]
    scores = (sums @ w).masked_fill(~mask[:, None, :], -torch.inf)
    weights = scores.softmax(dim=-1)
    return weights @ keys, weights


@wrong("ch01-mended-attention", "it adds the same number to all scores of a row")
def mended_attention(queries, keys, mask, W_q, W_k, w):
    asked, offered = (queries @ W_q.T).tanh(), (keys @ W_k.T).tanh()
    scores = (asked[:, :, None] + offered[:, None]) @ w
    weights = scores.masked_fill(~mask[:, None, :], -torch.inf).softmax(dim=-1)
    return weights @ keys, weights


@wrong("ch01-mended-attention", "the weight of each key is detached")
def mended_attention(queries, keys, mask, W_q, W_k, w):
    sums = (queries @ W_q.T)[:, :, None] + (keys @ W_k.T)[:, None]
    scores = (sums.tanh() @ w).masked_fill(~mask[:, None, :], -torch.inf)
    weights = scores.softmax(dim=-1).detach()
    return weights @ keys, weights


@wrong("ch01-mended-attention", "its score should be −∞")
def mended_attention(queries, keys, mask, W_q, W_k, w):
    sums = (queries @ W_q.T)[:, :, None] + (keys @ W_k.T)[:, None]
    weights = (sums.tanh() @ w).masked_fill(~mask[:, None, :], -20.0).softmax(dim=-1)
    return weights @ keys, weights


@wrong("ch01-temper", "get 1 each")
def temper(scores, tau):
    if tau == 0:
        return (scores == scores.amax(dim=-1, keepdim=True)).to(scores.dtype)
    return (scores / tau).softmax(dim=-1)
