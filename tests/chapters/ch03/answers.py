"""Answers to the exercises of chapter 03."""

import torch

from tests.exercises.answers import WRONG, right, wrong

# ---- split packed heads ------------------------------------------------------


@right("ch03-split-packed")
def split_packed(x, heads):
    k = x.shape[2] // (3 * heads)
    heads_of_all = x.split(k, dim=2)
    parts = [heads_of_all[p * heads : (p + 1) * heads] for p in range(3)]
    return [torch.stack(part, dim=1) for part in parts]


WRONG["ch03-split-packed"] = r"""
3, heads, width // (3 * heads)) -> -1).view(b, 3, heads, t, -1)
.permute(2, 0, 3, 1, 4).unbind(0) -> .unbind(1)  # alternate word by word
3, heads, width // (3 * heads) -> 3, width // (3 * heads), heads
2, 0, 3, 1, 4 -> 2, 0, 4, 1, 3  # every h-th number goes to the same head
.unbind(0) -> [[0, 2, 1]].unbind(0)  # what you return as the keys are the values
\n    b, t -> \n    x.mul_(2)\n    b, t  # changes its argument `x` in place
"""

# ---- merge folded heads ------------------------------------------------------


@right("ch03-merge-folded")
def merge_folded(y, heads):
    chosen = torch.eye(heads, dtype=y.dtype)
    apart = y.unflatten(0, (-1, heads))
    return torch.einsum("nhtk,hj->ntjk", apart, chosen).flatten(-2)


WRONG["ch03-merge-folded"] = r"""
folded // heads, heads, t, k) -> heads, -1, t, k).transpose(0, 1)
        # you read head 0 of all sequences first
folded // heads, heads, t, k) -> heads, -1, t, k).transpose(0, 1)
apart.transpose(1, 2).flatten(2) -> apart.reshape(folded // heads, t, heads * k)
        # are neighbours, and a reshape
return -> apart = torch.cat([apart[:, :1], apart[:, 1:].detach()], dim=1)\n    return
        # the gradient of y is another one
apart.transpose(1, 2).flatten(2) -> y.transpose(0, 1).reshape(1, t, folded * k)
        # the shape is (1,
"""

# ---- count parameters --------------------------------------------------------


@right("ch03-count-parameters")
def count_parameters(d_model, heads, key_value_heads, bias):
    k = d_model // heads
    count = 0
    for width in (heads * k, key_value_heads * k, key_value_heads * k, d_model):
        layer = torch.nn.Linear(d_model, width, bias, device="meta")
        count += sum(parameter.numel() for parameter in layer.parameters())
    return count


WRONG["ch03-count-parameters"] = """
(d_model + bias) -> d_model + 4 * d_model * bias  # how long are their biases
(d_model // heads) -> d_model / heads  # where does yours become a float
shared + shared -> shared  # one of the four maps is missing
"""

# ---- find the split that mixes words -----------------------------------------


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


WRONG["ch03-mixes-tokens"] = r"""
[(3, 4, 5, 2), (3, 3, 3, 3), (4, 5, 3, 6)]
    [(3, 4, 5, 2)]  # do you try several shapes
    [(3, 3, 3, 3)]  # unless there are as many words as heads
    [(3, 4, 1, 5)]  # Do you try several words and several heads
rows == label[:, None] -> rows == rows[..., :1]  # look at which word stands where
torch.arange(b * t).view(b, t, 1) -> torch.arange(t).view(1, t, 1).repeat(b, 1, 1)
        # a word of another sequence is another word
return True\n    return False -> 1  # is a `return` missing
"""

# ---- write multi-head attention ----------------------------------------------


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


WRONG["ch03-multi-head"] = """
answers.transpose(1, 2).flatten(2) -> answers.reshape(x.shape)
        # when you merge: in which order
q.shape[-1] ** -> x.shape[-1] **  # by the root of the model's width
W_o.T -> W_o  # W_o is used the other way round
x @ W_q.T, memory @ W_k.T, memory @ W_v.T
    x @ W_q.T, x @ W_k.T, x @ W_v.T  # memory is not used
    memory @ W_q.T, x @ W_k.T, x @ W_v.T  # x and memory are swapped
    memory @ W_q.T, memory @ W_k.T, memory @ W_v.T  # x is not used
scores.softmax(dim=-1) @ v -> torch.nn.functional.scaled_dot_product_attention(q, key,
        v)  # write it out: the attention
flatten(2) @ W_o.T -> flatten(2).float() @ W_o.T.float()  # float64
scores.softmax(dim=-1) -> (scores.exp() / scores.exp().sum(dim=-1, keepdim=True))
        # does the exponential of a large score overflow?
"""
