"""Answers to the exercises of chapter 16."""

import math

import torch

from tests.exercises.answers import WRONG, right, wrong

# ---- cut a prompt -----------------------------------------------------------


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


WRONG["ch16-bytes"] = """
min(pairs, key=ranks.get)
    pairs[0]  # you join from the left
    max(pairs, key=pairs.count)  # the commonest pair
list(text.encode())
    [min(ord(c), 255) for c in text]  # numbers of characters
    list(text[:most].encode())  # cut before you join
while pairs -> if pairs  # join once, and stop
ids = ids[:most] -> # nothing is cut off
ids = ids[:most] -> ids = ids[: most + 1]  # expected 9 values, got 10
whole.decode("utf-8", errors="replace")
    "".join(spelled[i].decode("utf-8", "replace") for i in ids)  # by itself
    "".join(map(chr, whole))  # each byte is read as a character
    whole.decode()  # UnicodeDecodeError
return ids, whole.decode("utf-8", errors="replace")
    return whole.decode("utf-8", errors="replace")  # two values are asked for
"""


@wrong("ch16-bytes", "you go from left to right")
def greedy(text, merges, most):
    names = [bytes([i]) for i in range(256)]
    for a, b in merges:
        names.append(names[a] + names[b])
    ids, start, whole = [], 0, text.encode()
    while start < len(whole) and len(ids) < most:
        end = len(whole)
        while whole[start:end] not in names:
            end -= 1
        ids.append(names.index(whole[start:end]))
        start = end
    return ids, whole[:start].decode(errors="replace")


# ---- how many parameters? ----------------------------------------------------


@right("ch16-count")
def parameters(vocab, d, layers, heads, max_len):
    with torch.device("meta"):
        block = torch.nn.TransformerEncoderLayer(d, heads, 4 * d)
        tables = torch.empty(vocab, d), torch.empty(max_len, d), torch.empty(2, d)
        each = sum(parameter.numel() for parameter in block.parameters())
    return sum(table.numel() for table in tables) + layers * each


WRONG["ch16-count"] = """
vocab * d + max_len * d
    2 * vocab * d + max_len * d  # the head is counted
    vocab * d + max_len  # in each block an attention
4 * (d * d + d)
    4 * d * d  # biases of the attention
    4 * (d * d + heads)  # expected both tables
    4 * heads * (d * d + d)  # their number makes no difference
+ norm -> # after the last block
2 * norm) -> norm)  # a block has two norms
4 * (d * d + d) -> 4 * d * d
network = d * 4 * d + 4 * d + 4 * d * d + d -> network = 8 * d * d
norm = 2 * d -> norm = d - d  # biases and norms are missing
"""

# ---- the load that doesn't fail ----------------------------------------------


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


WRONG["ch16-surgery"] = """
tensor = tensor.T
    tensor = tensor if tensor.shape[0] == tensor.shape[1] else tensor.T  # is square
    tensor = tensor.reshape(tensor.shape[1], -1)  # mixes the numbers
if name.endswith(turned) -> if tensor.ndim == 2  # but they are tables
if name.endswith(turned) -> if name.endswith((*turned, "wpe.weight"))  # as they were
("query", "key", "value") -> ("key", "query", "value")  # queries come first
tensor.chunk(3)[i] -> tensor[i::3]  # takes every third
".attn.bias" -> "attn.bias_"  # is the causal mask
if "c_attn" in name -> if "c_attn.weight" in name  # a name of ours is missing
return ours -> return {f"transformer.{name}": x for name, x in ours.items()}  # missing
"""


@wrong("ch16-surgery", "aren't (out, in)")
def split_first(state):
    ours = {}
    for name, tensor in state.items():
        if "c_attn" in name:
            for i, part in enumerate("query key value".split()):
                third = tensor.shape[-1] // 3
                kept = tensor[..., i * third : (i + 1) * third]
                ours[name.replace("c_attn", part)] = kept
        elif "c_proj.weight" in name or "c_fc.weight" in name:
            ours[name] = tensor.t()
        elif name[-10:] != ".attn.bias":
            ours[name] = tensor
    return ours


# ---- one step of speculative decoding ----------------------------------------


@right("ch16-step")
def step(guesses, draft, target, coins):
    for i, guess in enumerate(guesses):
        if coins[i] * draft[i, guess] >= target[i, guess]:
            more = torch.maximum(target[i], draft[i]) - draft[i]
            return i, more / (1 - torch.minimum(target[i], draft[i]).sum())
    return len(guesses), target[-1]


WRONG["ch16-step"] = """
(coins < ratio)
    (coins < 1 / ratio)  # you compare with q/p
    (coins < ratio * draft[here, guesses])  # p alone
    (coins > ratio)  # not below p/q
    (ratio > 1)  # the coin decides
    (target[:-1].argmax(-1) == guesses)  # favourite
    (target[here, guesses] > 0)  # every guess is kept
.cumprod(dim=0) -> # whatever its coin
left / left.sum()
    left  # doesn't add up
    target[kept]  # counts twice
    torch.softmax(left, 0)  # there's no softmax
    left / left.max()  # and the distribution of the token after them
.clamp(min=0) -> # less than nothing
return kept, target[t] -> return kept, target[kept - 1]  # the last row
return kept, left / left.sum() -> return kept + 1, left / left.sum()  # before the first
"""

# ---- find the fault: perplexity ----------------------------------------------


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


WRONG["ch16-perplexity"] = """
nats = sum(batch.sum().item() for batch in losses)
    nats = sum(batch.mean().item() for batch in losses) / len(losses) * tokens
        # does a short batch
per_word = math.exp(nats / words)
    per_word = per_token / words * tokens  # what does the word cost
    per_word = per_token ** (words / tokens)  # the other way round
len(text.encode())
    len(text)  # divisor count
    len(text.encode("utf-16"))  # all bits over the bytes
nats = sum(batch.sum().item() for batch in losses) -> nats = sum(batch.mean().item()
        for batch in losses) / len(losses) * tokens
len(text.encode()) -> len(text)  # two faults are left
math.exp(nats / tokens) -> 2 ** (nats / tokens)  # or 2 to bits
/ math.log(2) -> * math.log(2)  # are multiplied
return per_token, per_word, bits -> return per_token, bits  # expected 3 values
"""


@wrong("ch16-perplexity", "average the batches' perplexities")
def averaged(losses, text):
    nats = torch.cat(losses).sum().item()
    each = [math.exp(batch.mean()) for batch in losses]
    per_word = math.exp(nats / len(text.split()))
    return sum(each) / len(each), per_word, nats / math.log(2) / len(text.encode())


# ---- what a cache weighs -----------------------------------------------------


@right("ch16-cache")
def cache_bytes(t, model):
    layers, window, every = model["layers"], model["window"] or t, model["every"]
    whole = layers // every if every else 0
    tokens = whole * t + (layers - whole) * min(window, t)
    each = model["latent"] and model["latent"] + model["rotary"]
    return model["size"] * tokens * (each or 2 * model["k"] * model["kv_heads"])


WRONG["ch16-cache"] = """
2 * model["kv_heads"]
    model["kv_heads"]  # and values as well
    2 * model["heads"]  # queries aren't
model["latent"] + model["rotary"]
    model["latent"]  # the rotary part is kept
    2 * (model["latent"] + model["rotary"])  # kept once
    model["heads"] * (model["latent"] + model["rotary"])  # times the tokens
min(t, model["window"]) -> model["window"]  # isn't full yet
and not whole -> # a layer has no window
range(1, model["layers"] + 1) -> range(model["layers"])  # is the third
* model["size"] -> # not bytes
"""
