"""Answers to the exercises of chapter 20."""

import torch

from tests.exercises.answers import right, wrong


@right("ch20-future")
def leaks(model, tokens, v):
    """All texts in one batch, beside as many that stay; each of two tokens."""
    model.train(False)
    t, found = tokens.shape[1], 0
    for step in (1, 2):
        texts = tokens.repeat(t, 1)
        place = torch.arange(t)
        before = model(texts.clone())  # a row's place in a batch may round it
        texts[place, place] = (tokens[0] - 3 + step) % (v - 3) + 3
        found = found + (model(texts) != before).sum(-1).T
    return (found > 0) & (place[:, None] < place)


@wrong("ch20-future", "is the model still in training mode")
def every_pair(model, tokens, v):
    t = tokens.shape[1]
    return torch.ones(t, t, dtype=torch.bool).triu(1)


@right("ch20-padding")
def look(tokens, pad):
    b, t = tokens.shape
    may, place = torch.zeros(b, 1, t, t, dtype=torch.bool), torch.zeros(b, t).long()
    for row in range(b):
        seen = []
        for i, token in enumerate(tokens[row].tolist()):
            if token != pad:
                place[row, i] = len(seen)
                seen.append(i)
            may[row, 0, i, seen or [0]] = True
    return may, place


@wrong("ch20-padding", "padding isn't hidden")
def causal_alone(tokens, pad):
    t = tokens.shape[1]
    place = ((tokens != pad).cumsum(dim=1) - 1).clamp(min=0)
    return torch.ones(len(tokens), 1, t, t).tril().bool(), place


@right("ch20-loss")
def diagnose(loss, v, pad, end):
    """By what models pay that are sure of one thing."""
    tokens = torch.tensor([[5, 6, 7, 8, 9, 10, 11], [12, 13, end, pad, pad, pad, pad]])
    found, guess = [], torch.tensor(float(v)).log()

    def pays(logits):
        return float(loss(lambda _: logits, tokens))

    zeros = torch.zeros(2, 7, v)
    base = pays(zeros)

    def asked(row, i, token):
        bold = zeros.clone()
        bold[row, i, token] = 1.0
        return pays(bold) < base - 1e-4 * base

    shift = next(k for k in (0, 1, 2) if asked(0, 0, 5 + k))
    if shift != 1:
        found.append(["copies", "", "skips"][shift])
    if any(asked(1, i, pad) for i in range(7)):
        found.append("padding")
    if not any(asked(1, i, end) for i in range(7)):
        found.append("end")
    if not any(asked(0, i, 11) for i in range(7)):
        found.append("last")
    if abs(base / guess - 1) > 0.01:
        found.append("sum" if base > guess else "diluted")
    sure = zeros.clone()
    for row in range(2):
        for i in range(7 - shift):
            sure[row, i, tokens[row, i + shift]] = 40.0
    if pays(sure) > 0.5 * base:
        found.append("softmax")
    return sorted(found)


@right("ch20-cache")
def read_on(model, tokens, past=None):
    """The state is a list of each layer's own, and the count is the mask's."""
    if past is None:
        past = [{} for _ in model.layers]
    n = tokens.shape[1]
    read = past[0]["k"].shape[2] if past[0] else 0
    queries, keys = torch.arange(n) + read, torch.arange(read + n)
    x = model.embed(tokens, queries)
    for i in range(len(past)):
        x = model.layers[i](x, keys <= queries[:, None], past[i])
    return model.logits(x), past


@wrong("ch20-cache", "tokens are read again")
def all_again(model, tokens, past=None):
    whole = tokens if past is None else torch.cat([past, tokens], dim=1)
    t = whole.shape[1]
    x = model.embed(whole, torch.arange(t))
    for layer in model.layers:
        x = layer(x, torch.ones(t, t, dtype=torch.bool).tril())
    return model.logits(x)[:, -tokens.shape[1] :], whole


@wrong("ch20-cache", "something is left of the first one")
def of_the_module(model, tokens, past=None):
    """It begins anew with each text, but keeps one only."""
    if past is None:
        KEPT[model] = [0, [{} for _ in model.layers]]
    past = KEPT[model]
    n, read = tokens.shape[1], past[0]
    x = model.embed(tokens, torch.arange(read, read + n))
    may = torch.ones(n, read + n, dtype=torch.bool).tril(read)
    for layer, kept in zip(model.layers, past[1], strict=True):
        x = layer(x, may, kept)
    past[0] += n
    return model.logits(x), "kept"


KEPT = {}


@right("ch20-modes")
def examine(make, tokens):
    words = []
    model, other = make(), make()
    model.eval()
    other.eval()

    def apart(one, two, seeds):
        outputs = []
        for f, seed in zip((one, two), seeds, strict=True):
            torch.manual_seed(seed)
            outputs.append(f(tokens).detach())
        return (outputs[0] - outputs[1]).abs().max() > 0

    with torch.enable_grad():
        torch.nn.functional.cross_entropy(
            model(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()
        ).backward()
    gradients = [p.grad for p in model.parameters()]
    if any(g is None or g.count_nonzero() == 0 for g in gradients):
        words.append("stuck")
    if not all(g is None or torch.isfinite(g).all() for g in gradients):
        words.append("infinite")
    places = [p.untyped_storage().data_ptr() for p in model.parameters()]
    if len(set(places)) != len(places):
        words.append("torn")
    if apart(model, model, (1, 2)):
        words.append("random")
    other.load_state_dict({n: x.clone() for n, x in model.state_dict().items()})
    if apart(model, other, (3, 3)):
        words.append("lost")
    model.train()
    if not apart(model, model, (1, 2)):
        words.append("idle")
    return sorted(words)


@right("ch20-calls")
def stretch(f, tokens, v):
    """Changes four tokens in four calls at most, then halves."""
    base, t, known = f(tokens), len(tokens), {}

    def sees_back(j):
        if j not in known:
            text = tokens.clone()
            text[j] = 3 if text[j] != 3 else 4
            first = int((f(text) - base).abs().sum(-1).gt(0).float().argmax())
            known[j] = first if first < j else None
        return known[j]

    found = next((j for j in range(t - 1, 0, -30) if sees_back(j) is not None), None)
    if found is None:
        return None
    steps = 1
    while found + steps < t and sees_back(found + steps) is not None:
        steps *= 2
    low, high = found + steps // 2, min(found + steps, t)
    while high - low > 1:
        half = (low + high) // 2
        low, high = (half, high) if sees_back(half) is not None else (low, half)
    return [sees_back(found), low + 1]


@wrong("ch20-calls", "more than 20 times")
def by_the_tens(f, tokens, v):
    for j in range(0, len(tokens), 10):
        f(tokens.index_fill(0, torch.tensor(j), 3))
    return None
