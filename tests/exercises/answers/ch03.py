"""Answers to the exercises of chapter 03."""

import torch

from tests.exercises.answers import right, wrong

# ---- split packed heads ------------------------------------------------------


@right("ch03-split-packed")
def split_packed(x, heads):
    k = x.shape[2] // (3 * heads)
    heads_of_all = x.split(k, dim=2)
    parts = [heads_of_all[p * heads : (p + 1) * heads] for p in range(3)]
    return [torch.stack(part, dim=1) for part in parts]


@wrong("ch03-split-packed", "alternate word by word")
def split_packed(x, heads):
    b, t, width = x.shape
    return x.reshape(b, 3 * heads, t, width // 3 // heads).chunk(3, dim=1)


@wrong("ch03-split-packed", "every h-th number goes to the same head")
def split_packed(x, heads):
    b, t, width = x.shape
    parts = x.view(b, t, 3, width // 3 // heads, heads)
    return parts.permute(2, 0, 4, 1, 3).unbind(0)


@wrong("ch03-split-packed", "what you return as the keys are the values")
def split_packed(x, heads):
    b, t, width = x.shape
    apart = x.view(b, t, 3, heads, width // 3 // heads).permute(2, 0, 3, 1, 4)
    return apart[0], apart[2], apart[1]


@wrong("ch03-split-packed", "changes its argument `x` in place")
def split_packed(x, heads):
    x.transpose_(1, 2)
    parts = x.chunk(3, dim=1)
    return tuple(p.unflatten(1, (heads, -1)).transpose(2, 3) for p in parts)


# ---- merge folded heads ------------------------------------------------------


@right("ch03-merge-folded")
def merge_folded(y, heads):
    chosen = torch.eye(heads, dtype=y.dtype)
    apart = y.unflatten(0, (-1, heads))
    return torch.einsum("nhtk,hj->ntjk", apart, chosen).flatten(-2)


@wrong("ch03-merge-folded", "you read head 0 of all sequences first")
def merge_folded(y, heads):
    return torch.cat(y.chunk(heads), dim=-1)


@wrong("ch03-merge-folded", "are neighbours, and a reshape")
def merge_folded(y, heads):
    folded, t, k = y.shape
    apart = y.view(heads, folded // heads, t, k).transpose(0, 1)
    return apart.reshape(folded // heads, t, heads * k)


@wrong("ch03-merge-folded", "the gradient of y is another one")
def merge_folded(y, heads):
    apart = y.unflatten(0, (-1, heads)).transpose(1, 2)
    return torch.cat([apart[:, :, :1], apart[:, :, 1:].detach()], 2).flatten(2)


@wrong("ch03-merge-folded", "the shape is (1,")
def merge_folded(y, heads):
    folded, t, k = y.shape
    return y.transpose(0, 1).reshape(1, t, folded * k)


# ---- count parameters --------------------------------------------------------


@right("ch03-count-parameters")
def count_parameters(d_model, heads, key_value_heads, bias):
    k = d_model // heads
    count = 0
    for width in (heads * k, key_value_heads * k, key_value_heads * k, d_model):
        layer = torch.nn.Linear(d_model, width, bias, device="meta")
        count += sum(parameter.numel() for parameter in layer.parameters())
    return count


@wrong("ch03-count-parameters", "how long are their biases")
def count_parameters(d_model, heads, key_value_heads, bias):
    shared = key_value_heads * (d_model // heads)
    return 2 * d_model * d_model + 2 * d_model * shared + 4 * d_model * bias


@wrong("ch03-count-parameters", "where does yours become a float")
def count_parameters(d_model, heads, key_value_heads, bias):
    shared = key_value_heads * d_model / heads
    return 2 * (d_model + shared) * (d_model + bias)


@wrong("ch03-count-parameters", "one of the four maps is missing")
def count_parameters(d_model, heads, key_value_heads, bias):
    k = d_model // heads
    widths = {"query": d_model, "key": key_value_heads * k, "output": d_model}
    return sum(width * (d_model + bias) for width in widths.values())


# ---- find the split that mixes words -----------------------------------------


@right("ch03-mixes-tokens")
def mixes_tokens(split):
    for b, t, heads in [(3, 3, 3), (3, 4, 5), (4, 5, 3)]:
        x = torch.randn(b, t, 2 * heads, requires_grad=True)
        rows = split(x, heads)
        for n in range(b):
            for i in range(t):
                (reached,) = torch.autograd.grad(
                    rows[n, :, i].sum(), x, retain_graph=True
                )
                reached[n, i] = 0
                if reached.any():
                    return True
    return False


@right("ch03-mixes-tokens")
def mixes_tokens(split):
    for heads in (3, 4, 5):
        x = torch.randn(3, 5, 4 * heads)
        for n in range(3):
            for i in range(5):
                other = x.clone()
                other[n, i] = torch.randn(4 * heads)
                moved = split(other, heads) != split(x, heads)
                moved = moved.any(dim=3)  # (b, h, t)
                moved[n, :, i] = False
                if moved.any():
                    return True
    return False


@wrong("ch03-mixes-tokens", "do you try several shapes")
def mixes_tokens(split):
    label = torch.arange(12).view(3, 4, 1)
    return bool((split(label.repeat(1, 1, 10), 5) != label[:, None]).any())


@wrong("ch03-mixes-tokens", "unless there are as many words as heads")
def mixes_tokens(split):
    label = torch.arange(9).view(3, 3, 1)
    return bool((split(label.repeat(1, 1, 9), 3) != label[:, None]).any())


@wrong("ch03-mixes-tokens", "Do you try several words and several heads")
def mixes_tokens(split):
    label = torch.arange(12).view(3, 4, 1)
    return not bool((split(label.repeat(1, 1, 5), 1) == label[:, None]).all())


@wrong("ch03-mixes-tokens", "look at which word stands where")
def mixes_tokens(split):
    label = torch.arange(12).view(3, 4, 1)
    rows = split(label.repeat(1, 1, 10), 5)
    return bool((rows != rows[..., :1]).any())


@wrong("ch03-mixes-tokens", "a word of another sequence is another word")
def mixes_tokens(split):
    one = torch.arange(4).view(1, 4, 1).repeat(3, 1, 10)
    return not bool((split(one, 5) == torch.arange(4)[:, None]).all())


@wrong("ch03-mixes-tokens", "is a `return` missing")
def mixes_tokens(split):
    label = torch.arange(12).view(3, 4, 1)
    print(bool((split(label.repeat(1, 1, 10), 5) != label[:, None]).any()))


# ---- write multi-head attention ----------------------------------------------


@right("ch03-multi-head")
def multi_head(x, memory, W_q, W_k, W_v, W_o, heads):
    k = x.shape[2] // heads
    total = 0
    for j in range(heads):
        rows = slice(j * k, (j + 1) * k)
        q, key, v = x @ W_q[rows].T, memory @ W_k[rows].T, memory @ W_v[rows].T
        powers = torch.exp(torch.bmm(q, key.mT) / k**0.5)
        head = torch.bmm(powers / powers.sum(dim=2, keepdim=True), v)
        total = total + head @ W_o[:, rows].T
    return total


@wrong("ch03-multi-head", "when you merge: in which order")
def multi_head(x, memory, W_q, W_k, W_v, W_o, heads):
    b, t, d = x.shape
    parts = [(y @ W.T).view(b, -1, heads, d // heads).permute(0, 2, 1, 3)
             for y, W in ((x, W_q), (memory, W_k), (memory, W_v))]  # fmt: skip
    weights = torch.softmax(parts[0] @ parts[1].mT * (d // heads) ** -0.5, -1)
    return (weights @ parts[2]).reshape(b, t, d) @ W_o.T


@wrong("ch03-multi-head", "by the root of the model's width")
def multi_head(x, memory, W_q, W_k, W_v, W_o, heads):
    d = x.shape[-1]
    q, key, v = (
        torch.stack((y @ W.T).chunk(heads, -1), 1)
        for y, W in ((x, W_q), (memory, W_k), (memory, W_v))
    )
    answers = (q @ key.mT / d**0.5).softmax(-1) @ v
    return torch.cat(answers.unbind(1), -1) @ W_o.T


@wrong("ch03-multi-head", "W_o is used the other way round")
def multi_head(x, memory, W_q, W_k, W_v, W_o, heads):
    q, key, v = (
        torch.stack((y @ W.T).chunk(heads, -1), 1)
        for y, W in ((x, W_q), (memory, W_k), (memory, W_v))
    )
    answers = (q @ key.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
    return torch.cat(answers.unbind(1), -1) @ W_o


@wrong("ch03-multi-head", "memory is not used")
def multi_head(x, memory, W_q, W_k, W_v, W_o, heads):
    q, key, v = (torch.stack((x @ W.T).chunk(heads, -1), 1) for W in (W_q, W_k, W_v))
    answers = (q @ key.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
    return torch.cat(answers.unbind(1), -1) @ W_o.T


@wrong("ch03-multi-head", "x and memory are swapped")
def multi_head(x, memory, W_q, W_k, W_v, W_o, heads):
    q, key, v = (
        torch.stack((y @ W.T).chunk(heads, -1), 1)
        for y, W in ((memory, W_q), (x, W_k), (x, W_v))
    )
    answers = (q @ key.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
    return torch.cat(answers.unbind(1), -1) @ W_o.T


@wrong("ch03-multi-head", "x is not used")
def multi_head(x, memory, W_q, W_k, W_v, W_o, heads):
    q, key, v = (
        torch.stack((memory @ W.T).chunk(heads, -1), 1) for W in (W_q, W_k, W_v)
    )
    answers = (q @ key.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
    return torch.cat(answers.unbind(1), -1) @ W_o.T


@wrong("ch03-multi-head", "write it out: the attention")
def multi_head(x, memory, W_q, W_k, W_v, W_o, heads):
    parts = [
        torch.stack((y @ W.T).chunk(heads, -1), 1)
        for y, W in ((x, W_q), (memory, W_k), (memory, W_v))
    ]
    answers = torch.nn.functional.scaled_dot_product_attention(*parts)
    return torch.cat(answers.unbind(1), -1) @ W_o.T


@wrong("ch03-multi-head", "write it out: the attention")
def multi_head(x, memory, W_q, W_k, W_v, W_o, heads):
    found, _ = torch.nn.functional.multi_head_attention_forward(
        x.transpose(0, 1), memory.transpose(0, 1), memory.transpose(0, 1), x.shape[2],
        heads, None, None, None, None, False, 0.0, W_o, None,
        use_separate_proj_weight=True,
        q_proj_weight=W_q, k_proj_weight=W_k, v_proj_weight=W_v,
    )  # fmt: skip
    return found.transpose(0, 1)


@wrong("ch03-multi-head", "float64")
def multi_head(x, memory, W_q, W_k, W_v, W_o, heads):
    q, key, v = (
        torch.stack((y @ W.T).chunk(heads, -1), 1)
        for y, W in ((x, W_q), (memory, W_k), (memory, W_v))
    )
    answers = (q @ key.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
    return (torch.cat(answers.unbind(1), -1) @ W_o.T).float()
