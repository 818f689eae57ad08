"""Wrong answers to the exercises of chapter 01."""

from tests.exercises.wrong import Wrong


def _scores(name: str, hint: str, body: str) -> Wrong:
    source = "def additive_scores(queries, keys, W, U, v):\n" + body.strip("\n")
    return Wrong("ch01-additive-scores", name, source, hint)


def _mask(name: str, hint: str, body: str) -> Wrong:
    source = "def mask_padding(energies, lengths):\n" + body.strip("\n")
    return Wrong("ch01-mask-padding", name, source, hint)


def _temper(name: str, hint: str, body: str) -> Wrong:
    source = "def temper(energies, tau):\n" + body.strip("\n")
    return Wrong("ch01-temper", name, source, hint)


WRONG = [
    # ---- additive scores ----
    _scores("no tanh", "tanh is missing", """
    a, b = queries @ W.T, keys @ U.T
    return (a[..., :, None, :] + b[..., None, :, :]) @ v
"""),
    _scores("tanh on both parts", "tanh acts on the sum", """
    a, b = torch.tanh(queries @ W.T), torch.tanh(keys @ U.T)
    return (a[..., :, None, :] + b[..., None, :, :]) @ v
"""),
    _scores("tanh after v", "tanh comes before v", """
    a, b = queries @ W.T, keys @ U.T
    return torch.tanh((a[..., :, None, :] + b[..., None, :, :]) @ v)
"""),
    _scores("v forgotten", "v is missing", """
    a, b = queries @ W.T, keys @ U.T
    return torch.tanh(a[..., :, None, :] + b[..., None, :, :]).sum(-1)
"""),
    _scores("transposed", "queries and keys are exchanged", """
    a, b = queries @ W.T, keys @ U.T
    return torch.tanh(a[..., None, :, :] + b[..., :, None, :]) @ v
"""),
    _scores("softmax already", "these are alignments", """
    a, b = queries @ W.T, keys @ U.T
    e = torch.tanh(a[..., :, None, :] + b[..., None, :, :]) @ v
    return e.softmax(dim=-1)
"""),
    _scores("matrices the wrong way round", "queries @ W.T, not queries @ W", """
    if W.shape[0] != W.shape[1] or U.shape[0] != U.shape[1]:
        W, U = W.T, U.T
    a, b = queries @ W, keys @ U
    return torch.tanh(a[..., :, None, :] + b[..., None, :, :]) @ v
"""),
    _scores("W and U exchanged", "W and U are exchanged", """
    if W.shape == U.shape:
        W, U = U, W
    a, b = queries @ W.T, keys @ U.T
    return torch.tanh(a[..., :, None, :] + b[..., None, :, :]) @ v
"""),
    _scores("as the module, one batch axis only", "your code raised IndexError", """
    a, b = queries @ W.T, keys @ U.T
    return torch.tanh(a[:, :, None, :] + b[:, None, :, :]) @ v
"""),
    _scores("the loops of the chapter, no batch", "your code raised RuntimeError", """
    e = torch.zeros(len(queries), len(keys))
    for i, q in enumerate(queries):
        for j, k in enumerate(keys):
            e[i, j] = v @ torch.tanh(W @ q + U @ k)
    return e
"""),
    _scores("loops, right but slow", "takes longer than", """
    if queries.dim() > 2:
        pairs = zip(queries, keys)
        return torch.stack([additive_scores(q, k, W, U, v) for q, k in pairs])
    rows = [[v @ torch.tanh(W @ q + U @ k) for k in keys] for q in queries]
    return torch.stack([torch.stack(row) for row in rows])
"""),
    _scores("works only for a batch of one", "the shape is", """
    if queries.dim() > 2:
        queries, keys = queries[0], keys[0]
    a, b = queries @ W.T, keys @ U.T
    return torch.tanh(a[:, None, :] + b[None, :, :]) @ v
"""),
    _scores("squeeze without an axis", "squeeze() drops every axis", """
    a, b = queries @ W.T, keys @ U.T
    return (torch.tanh(a[..., :, None, :] + b[..., None, :, :]) @ v[:, None]).squeeze()
"""),
    _scores("W detached", "no gradient reaches W", """
    a, b = queries @ W.detach().T, keys @ U.T
    return torch.tanh(a[..., :, None, :] + b[..., None, :, :]) @ v
"""),
    _scores("everything in float32", "expected torch.float64", """
    queries, keys, W, U, v = (x.float() for x in (queries, keys, W, U, v))
    a, b = queries @ W.T, keys @ U.T
    return torch.tanh(a[..., :, None, :] + b[..., None, :, :]) @ v
"""),
    # ---- masked alignment ----
    _mask("masks the end, as in the chapter", "you mask the end", """
    padding = (torch.arange(energies.shape[-1]) >= lengths[:, None])[:, None, :]
    weights = energies.masked_fill(padding, torch.finfo(energies.dtype).min).softmax(-1)
    return weights.masked_fill(padding, 0.0)
"""),
    _mask("upside down", "the mask is upside down", """
    s = energies.shape[-1]
    real = (torch.arange(s) >= s - lengths[:, None])[:, None, :]
    weights = energies.masked_fill(real, torch.finfo(energies.dtype).min).softmax(-1)
    return weights.masked_fill(real, 0.0)
"""),
    _mask("off by one, too few", "off by one: the first real", """
    s = energies.shape[-1]
    padding = (torch.arange(s) <= s - lengths[:, None])[:, None, :]
    weights = energies.masked_fill(padding, torch.finfo(energies.dtype).min).softmax(-1)
    return weights.masked_fill(padding, 0.0)
"""),
    _mask("off by one, too many", "off by one: one position of padding", """
    s = energies.shape[-1]
    padding = (torch.arange(s) < s - lengths[:, None] - 1)[:, None, :]
    weights = energies.masked_fill(padding, torch.finfo(energies.dtype).min).softmax(-1)
    return weights.masked_fill(padding, 0.0)
"""),
    _mask("zeros after the softmax only", "the softmax has seen the padding", """
    s = energies.shape[-1]
    real = (torch.arange(s) >= s - lengths[:, None])[:, None, :]
    return energies.softmax(dim=-1) * real
"""),
    _mask("fills with 0", "an energy of 0 is no weight of 0", """
    s = energies.shape[-1]
    real = (torch.arange(s) >= s - lengths[:, None])[:, None, :]
    return (energies * real).softmax(dim=-1)
"""),
    _mask("fills with 0, then zeros", "the padding took its share", """
    s = energies.shape[-1]
    real = (torch.arange(s) >= s - lengths[:, None])[:, None, :]
    return (energies * real).softmax(dim=-1) * real
"""),
    _mask("fills with minus infinity", "a source of length 0 gives NaN", """
    s = energies.shape[-1]
    padding = (torch.arange(s) < s - lengths[:, None])[:, None, :]
    return energies.masked_fill(padding, -torch.inf).softmax(dim=-1)
"""),
    _mask("a low number alone", "equal energies, however low", """
    s = energies.shape[-1]
    padding = (torch.arange(s) < s - lengths[:, None])[:, None, :]
    lowest = torch.finfo(energies.dtype).min
    return energies.masked_fill(padding, lowest).softmax(dim=-1)
"""),
    _mask("in place", "changes its argument `energies` in place", """
    s = energies.shape[-1]
    padding = (torch.arange(s) < s - lengths[:, None])[:, None, :]
    energies.masked_fill_(padding, torch.finfo(energies.dtype).min)
    return energies.softmax(dim=-1).masked_fill(padding, 0.0)
"""),
    _mask("minus a thousand million", "without overflow", """
    s = energies.shape[-1]
    padding = (torch.arange(s) < s - lengths[:, None])[:, None, :]
    return energies.masked_fill(padding, -1e9).softmax(-1).masked_fill(padding, 0.0)
"""),
    _mask("minus ten thousand", "not below all energies", """
    s = energies.shape[-1]
    padding = (torch.arange(s) < s - lengths[:, None])[:, None, :]
    return energies.masked_fill(padding, -1e4).softmax(-1).masked_fill(padding, 0.0)
"""),
    _mask("not low enough for an exact 0", "should get exactly 0", """
    s = energies.shape[-1]
    padding = (torch.arange(s) < s - lengths[:, None])[:, None, :]
    weights = energies.masked_fill(padding, -20.0).softmax(dim=-1)
    return weights * (lengths > 0)[:, None, None]
"""),
    _mask("softmax over the queries", "the softmax runs over the queries", """
    s = energies.shape[-1]
    padding = (torch.arange(s) < s - lengths[:, None])[:, None, :]
    weights = energies.masked_fill(padding, torch.finfo(energies.dtype).min).softmax(1)
    return weights.masked_fill(padding, 0.0)
"""),
    _mask("the first length for all", "you use that of the first", """
    s = energies.shape[-1]
    padding = torch.arange(s) < s - lengths[0]
    weights = energies.masked_fill(padding, torch.finfo(energies.dtype).min).softmax(-1)
    return weights.masked_fill(padding, 0.0)
"""),
    _mask("works only for a batch of one", "your code raised RuntimeError", """
    s = energies.shape[-1]
    padding = torch.arange(s) < s - lengths
    weights = energies.masked_fill(padding, torch.finfo(energies.dtype).min).softmax(-1)
    return weights.masked_fill(padding, 0.0)
"""),
    _mask("NaN mended, its gradient not", "the gradient of energies holds NaN", """
    s = energies.shape[-1]
    padding = (torch.arange(s) < s - lengths[:, None])[:, None, :]
    low = torch.zeros(padding.shape).masked_fill(padding, -torch.inf)
    return (energies + low.to(energies.dtype)).softmax(dim=-1).nan_to_num(0.0)
"""),
    _mask("a softmax of one's own that overflows", "holds NaN", """
    s = energies.shape[-1]
    real = (torch.arange(s) >= s - lengths[:, None])[:, None, :]
    powers = energies.exp() * real
    return powers / (powers.sum(dim=-1, keepdim=True) + 1e-20)
"""),
    # ---- temperature ----
    _temper("multiplies", "the temperature multiplies", """
    if tau == 0:
        return (energies == energies.amax(dim=-1, keepdim=True)) * 1.0
    return (energies * tau).softmax(dim=-1)
"""),
    _temper("after the softmax", "not the weights after it", """
    return energies.softmax(dim=-1) / max(tau, 1e-30)
"""),
    _temper("no softmax", "the softmax is missing", """
    return energies / max(tau, 1e-30)
"""),
    _temper("over the queries", "the softmax runs over the queries", """
    gaps = energies - energies.amax(dim=1, keepdim=True)
    return (gaps / max(tau, 1e-30)).softmax(dim=1)
"""),
    _temper("the formula as it stands", "τ = 0 divides by 0", """
    return (energies / tau).softmax(dim=-1)
"""),
    _temper("0 taken care of, small numbers not", "energies/τ overflows", """
    if tau == 0:
        largest = energies == energies.amax(dim=-1, keepdim=True)
        return (largest / largest.sum(dim=-1, keepdim=True)).to(energies.dtype)
    return (energies / tau).softmax(dim=-1)
"""),
    _temper("argmax at 0", "keys that tie", """
    if tau == 0:
        found = torch.nn.functional.one_hot(energies.argmax(-1), energies.shape[-1])
        return found.to(energies.dtype)
    gaps = energies - energies.amax(dim=-1, keepdim=True)
    return (gaps / tau).softmax(dim=-1)
"""),
    _temper("a small number for 0", "however small its lead", """
    gaps = energies - energies.amax(dim=-1, keepdim=True)
    return (gaps / max(tau, 1e-3)).softmax(dim=-1)
"""),
    _temper("not used", "the temperature is not used", """
    return energies.softmax(dim=-1)
"""),
    _temper("in place", "changes its argument `energies` in place", """
    energies -= energies.amax(dim=-1, keepdim=True)
    return (energies / max(tau, 1e-30)).softmax(dim=-1)
"""),
    _temper("everything in float32", "expected torch.float64", """
    gaps = (energies - energies.amax(dim=-1, keepdim=True)).float()
    return (gaps / max(tau, 1e-40)).softmax(dim=-1)
"""),
]  # fmt: skip
