"""Answers to the exercises of chapter 16."""

import math

import torch

from tests.exercises.answers import RIGHT, right, wrong


@right("ch16-bytes")
def truncate(text, merges, most):
    tokens = [bytes([byte]) for byte in text.encode("utf-8")]
    names = {bytes([i]): i for i in range(256)}
    spelled = list(names)
    for a, b in merges:  # they were learned in this order, so one pass is enough
        pair, joined, i = [spelled[a], spelled[b]], [], 0
        while i < len(tokens):
            both = tokens[i : i + 2] == pair
            joined.append(b"".join(pair) if both else tokens[i])
            i += 1 + both
        tokens, names[b"".join(pair)] = joined, len(spelled)
        spelled.append(b"".join(pair))
    tokens = tokens[:most]
    return [names[token] for token in tokens], str(b"".join(tokens), "utf8", "replace")


@right("ch16-count")
def parameters(vocab, d, layers, heads, max_len):
    with torch.device("meta"):
        block = torch.nn.TransformerEncoderLayer(d, heads, 4 * d)
        tables = torch.empty(vocab, d), torch.empty(max_len, d), torch.empty(2, d)
        each = sum(parameter.numel() for parameter in block.parameters())
    return sum(table.numel() for table in tables) + layers * each


@right("ch16-surgery")
def translate(state):
    ours = dict(state)
    for name, tensor in state.items():
        block, _, part = name.partition(".attn.")
        if part == "bias":
            del ours[name]
        elif part == "c_attn.weight" or part == "c_attn.bias":
            q, k, v = torch.tensor_split(ours.pop(name), 3, dim=-1)
            kind = part.removeprefix("c_attn.")
            ours[f"{block}.attn.query.{kind}"] = q.t().contiguous()
            ours[f"{block}.attn.key.{kind}"] = k.t().contiguous()
            ours[f"{block}.attn.value.{kind}"] = v.t().contiguous()
        elif part == "c_proj.weight" or (".mlp." in name and tensor.dim() == 2):
            ours[name] = torch.einsum("io->oi", tensor)
    return ours


@right("ch16-step")
def step(guesses, draft, target, coins):
    for i, guess in enumerate(guesses):
        if coins[i] * draft[i, guess] >= target[i, guess]:
            more = torch.maximum(target[i], draft[i]) - draft[i]
            return i, more / (1 - torch.minimum(target[i], draft[i]).sum())
    return len(guesses), target[-1]


@right("ch16-perplexity")
def report(losses, text):
    every = torch.cat(losses).double()
    per_token = every.mean().exp()
    per_word = per_token ** (len(every) / len(text.split()))
    return (
        per_token,
        per_word,
        every.sum() / len(text.encode("utf8")) * math.log2(math.e),
    )


@right("ch16-cache")
def cache_bytes(t, model):
    layers, window, every = model["layers"], model["window"] or t, model["every"]
    whole = layers // every if every else 0
    tokens = whole * t + (layers - whole) * min(window, t)
    each = model["latent"] and model["latent"] + model["rotary"]
    return model["size"] * tokens * (each or 2 * model["k"] * model["kv_heads"])


@wrong("ch16-count", "a whole number is asked for")
def divided(vocab, d, layers, heads, max_len):
    return parameters(vocab, d, layers, heads, max_len) / 1


RIGHT["ch16-bytes"] = """
return ids, whole -> return tuple(ids), whole  # as good as a list
"""
