"""Answers to the exercises of chapter 03."""

import torch

from tests.exercises.answers import right, wrong


@right("ch03-split-packed")
def split_packed(x, heads):
    k = x.shape[2] // (3 * heads)
    heads_of_all = x.split(k, dim=2)
    parts = [heads_of_all[p * heads : (p + 1) * heads] for p in range(3)]
    return [torch.stack(part, dim=1) for part in parts]


@right("ch03-merge-folded")
def merge_folded(y, heads):
    chosen = torch.eye(heads, dtype=y.dtype)
    apart = y.unflatten(0, (-1, heads))
    return torch.einsum("nhtk,hj->ntjk", apart, chosen).flatten(-2)


@right("ch03-count-parameters")
def count_parameters(d_model, heads, key_value_heads, bias):
    k = d_model // heads
    count = 0
    for width in (heads * k, key_value_heads * k, key_value_heads * k, d_model):
        layer = torch.nn.Linear(d_model, width, bias, device="meta")
        count += sum(parameter.numel() for parameter in layer.parameters())
    return count


@right("ch03-mixes-tokens")
def mixes_tokens(split):
    for b, t, heads in [(3, 3, 3), (3, 4, 5), (4, 5, 3)]:
        x = torch.randn(b, t, 2 * heads, requires_grad=True)
        rows = split(x, heads)
        for n in range(b):
            for i in range(t):
                seen = torch.autograd.grad(rows[n, :, i].sum(), x, retain_graph=True)[0]
                seen[n, i] = 0
                if seen.any():
                    return True
    return False


@right("ch03-multi-head")
def multi_head(x, memory, W_q, W_k, W_v, W_o, heads):
    k = x.shape[2] // heads
    total = 0
    for j in range(heads):
        rows = slice(j * k, (j + 1) * k)
        q, key, v = x @ W_q[rows].T, memory @ W_k[rows].T, memory @ W_v[rows].T
        scores = torch.bmm(q, key.mT) / k**0.5
        powers = torch.exp(scores - scores.amax(dim=2, keepdim=True))
        head = torch.bmm(powers / powers.sum(dim=2, keepdim=True), v)
        total = total + head @ W_o[:, rows].T
    return total


@wrong("ch03-multi-head", "write it out: the attention")
def multi_head(x, memory, W_q, W_k, W_v, W_o, heads):
    found, _ = torch.nn.functional.multi_head_attention_forward(
        x.transpose(0, 1), memory.transpose(0, 1), memory.transpose(0, 1), x.shape[2],
        heads, None, None, None, None, False, 0.0, W_o, None,
        use_separate_proj_weight=True,
        q_proj_weight=W_q, k_proj_weight=W_k, v_proj_weight=W_v,
    )  # fmt: skip
    return found.transpose(0, 1)
