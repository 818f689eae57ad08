"""Wrong answers to the exercises of chapter 04."""

from tests.exercises.wrong import Wrong


def _left(name: str, hint: str, body: str) -> Wrong:
    source = "def left_padding_mask(lengths, size):\n" + body.strip("\n")
    return Wrong("ch04-left-padding", name, source, hint)


def _prefix(name: str, hint: str, body: str) -> Wrong:
    source = "def prefix_mask(prefix, size):\n" + body.strip("\n")
    return Wrong("ch04-prefix", name, source, hint)


def _window(name: str, hint: str, body: str) -> Wrong:
    source = "def window_mask(queries, keys, width):\n" + body.strip("\n")
    return Wrong("ch04-window", name, source, hint)


def _mean(name: str, hint: str, body: str) -> Wrong:
    source = "def masked_mean(x, mask):\n" + body.strip("\n")
    return Wrong("ch04-masked-mean", name, source, hint)


def _weights(name: str, hint: str, body: str) -> Wrong:
    source = "def masked_weights(energies, mask):\n" + body.strip("\n")
    return Wrong("ch04-repair-weights", name, source, hint)


def _decoder(name: str, hint: str, body: str) -> Wrong:
    source = "def decoder_mask(tokens, pad, training):\n" + body.strip("\n")
    return Wrong("ch04-repair-decoder", name, source, hint)


def _loss(name: str, hint: str, body: str) -> Wrong:
    source = "def masked_loss(logits, targets, pad):\n" + body.strip("\n")
    return Wrong("ch04-repair-loss", name, source, hint)


WRONG = [
    # ---- padding on the left ----
    _left("padding on the right", "the first tokens are True", """
    return (torch.arange(size) < lengths[:, None])[:, None, None, :]
"""),
    _left("the book's mask", "the first tokens are True", """
    from annotated.masks import length_mask
    return length_mask(lengths, size)
"""),
    _left("exchanged", "True and False are exchanged", """
    return (torch.arange(size) < size - lengths[:, None])[:, None, None, :]
"""),
    _left("compared with the length", "as many tokens as are real", """
    return (torch.arange(size) >= lengths[:, None])[:, None, None, :]
"""),
    _left("a slice from −0", "[-0:] is the whole row", """
    mask = torch.zeros(len(lengths), 1, 1, size, dtype=torch.bool)
    for n, length in enumerate(lengths):
        mask[n, ..., -length:] = True
    return mask
"""),
    _left("one too few", "one real token is missing", """
    return (torch.arange(size) > size - lengths[:, None])[:, None, None, :]
"""),
    _left("one too many", "one place too many", """
    return (torch.arange(size) >= size - 1 - lengths[:, None])[:, None, None, :]
"""),
    _left("the first length for all", "the first sequence is used for all", """
    row = torch.arange(size) >= size - lengths[0]
    return row.expand(len(lengths), 1, 1, size)
"""),
    _left("as wide as the longest", "it should be `size` wide", """
    size = int(lengths.max())
    return (torch.arange(size) >= size - lengths[:, None])[:, None, None, :]
"""),
    _left("two axes", "two axes of size 1", """
    return torch.arange(size) >= size - lengths[:, None]
"""),
    _left("three axes", "the axis of the heads is missing", """
    return (torch.arange(size) >= size - lengths[:, None])[:, None]
"""),
    _left("the tokens as queries", "the tokens stand on the axis of the queries", """
    return (torch.arange(size) >= size - lengths[:, None])[:, None, :, None]
"""),
    _left("the sequences as queries", "the sequences stand on the axis of the queries",
    """
    return (torch.arange(size) >= size - lengths[:, None])[None, None]
"""),
    _left("zeros and ones", "expected torch.bool", """
    return (torch.arange(size) >= size - lengths[:, None]).int()[:, None, None, :]
"""),
    _left("in place", "changes its argument `lengths` in place", """
    lengths.neg_().add_(size)
    return (torch.arange(size) >= lengths[:, None])[:, None, None, :]
"""),
    _left("no axis for the batch", "your code raised RuntimeError", """
    return (torch.arange(size) >= size - lengths)[:, None, None, :]
"""),
    _left("the example by heart", "the shape is (3, 1, 1, 4)", """
    rows = [[0, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 1]]
    return torch.tensor(rows).bool()[:, None, None, :]
"""),
    # ---- a prefix and then causal ----
    _prefix("joined by &", "joined by &", """
    j, n = torch.arange(size), prefix[:, None, None, None]
    return (j < n) & (j <= j[:, None])
"""),
    _prefix("causal only", "this is the causal mask", """
    square = torch.ones(len(prefix), 1, size, size, dtype=torch.bool)
    return square.tril()
"""),
    _prefix("the book's causal mask", "the shape is (1, 1, 4, 4)", """
    from annotated.masks import causal_mask
    return causal_mask(size)
"""),
    _prefix("prefix only", "only the prefix is seen", """
    within = torch.arange(size) < prefix[:, None, None, None]
    return within.expand(-1, 1, size, size)
"""),
    _prefix("not oneself", "does not see itself", """
    j, n = torch.arange(size), prefix[:, None, None, None]
    return (j < n) | (j < j[:, None])
"""),
    _prefix("one too long", "one too long", """
    j, n = torch.arange(size), prefix[:, None, None, None]
    return (j <= n) | (j <= j[:, None])
"""),
    _prefix("one too short", "one too short", """
    j, n = torch.arange(size), prefix[:, None, None, None]
    return (j < n - 1) | (j <= j[:, None])
"""),
    _prefix("the prefix sees the answer", "see all that comes behind it", """
    j, n = torch.arange(size), prefix[:, None, None, None]
    return (j[:, None] < n) | (j <= j[:, None])
"""),
    _prefix("triu", "tril, not triu", """
    j, n = torch.arange(size), prefix[:, None, None, None]
    return (j < n) | torch.ones(size, size, dtype=torch.bool).triu()
"""),
    _prefix("exchanged", "True and False are exchanged", """
    j, n = torch.arange(size), prefix[:, None, None, None]
    return (j >= n) & (j > j[:, None])
"""),
    _prefix("transposed", "queries and keys are exchanged", """
    j, n = torch.arange(size), prefix[:, None, None, None]
    return ((j < n) | (j <= j[:, None])).mT
"""),
    _prefix("the first prefix for all", "prefix of the first sequence is used", """
    mask = torch.ones(len(prefix), 1, size, size, dtype=torch.bool).tril()
    mask[..., : prefix[0]] = True
    return mask
"""),
    _prefix("no axis for the queries", "on the axis of the queries", """
    j = torch.arange(size)
    mask = (j < prefix[:, None]) | (j <= j[:, None])
    return mask.expand(len(prefix), 1, size, size)
"""),
    _prefix("three axes", "the axis of the heads is missing", """
    j = torch.arange(size)
    return (j < prefix[:, None, None]) | (j <= j[:, None])
"""),
    _prefix("zeros and ones", "expected torch.bool", """
    j, n = torch.arange(size), prefix[:, None, None, None]
    return ((j < n) | (j <= j[:, None])).float()
"""),
    _prefix("in place", "changes its argument `prefix` in place", """
    prefix -= 1
    j, n = torch.arange(size), prefix[:, None, None, None]
    return (j <= n) | (j <= j[:, None])
"""),
    # ---- a causal window ----
    _window("no window", "no window", """
    square = torch.ones(1, 1, queries, keys, dtype=torch.bool)
    return square.tril(keys - queries)
"""),
    _window("the book's causal mask", "no window", """
    from annotated.masks import causal_mask
    return causal_mask(queries, keys)
"""),
    _window("the future too", "the future is seen", """
    square = torch.ones(1, 1, queries, keys, dtype=torch.bool)
    return square.triu(keys - queries - width + 1)
"""),
    _window("both sides", "the window reaches into the future", """
    own = torch.arange(queries)[:, None] + keys - queries
    return ((torch.arange(keys) - own).abs() < width)[None, None]
"""),
    _window("one too wide", "one too wide", """
    square = torch.ones(1, 1, queries, keys, dtype=torch.bool)
    return square.tril(keys - queries).triu(keys - queries - width)
"""),
    _window("one too narrow", "one too narrow", """
    square = torch.ones(1, 1, queries, keys, dtype=torch.bool)
    return square.tril(keys - queries).triu(keys - queries - width + 2)
"""),
    _window("without one's own key", "does not see its own key", """
    own = torch.arange(queries)[:, None] + keys - queries
    j = torch.arange(keys)
    return ((j < own) & (j >= own - width))[None, None]
"""),
    _window("nothing shifted", "should stand at the last key", """
    square = torch.ones(1, 1, queries, keys, dtype=torch.bool)
    return square.tril().triu(1 - width)
"""),
    _window("the upper edge alone is shifted", "the lower edge of the window", """
    square = torch.ones(1, 1, queries, keys, dtype=torch.bool)
    return square.tril(keys - queries).triu(1 - width)
"""),
    _window("the lower edge alone is shifted", "the upper edge of the window", """
    square = torch.ones(1, 1, queries, keys, dtype=torch.bool)
    return square.tril().triu(keys - queries + 1 - width)
"""),
    _window("before the window", "the keys before the window", """
    square = torch.ones(1, 1, queries, keys, dtype=torch.bool)
    return square.tril(keys - queries - width)
"""),
    _window("exchanged", "True and False are exchanged", """
    square = torch.ones(1, 1, queries, keys, dtype=torch.bool)
    return ~square.tril(keys - queries).triu(keys - queries + 1 - width)
"""),
    _window("transposed", "queries and keys are exchanged", """
    square = torch.ones(1, 1, queries, keys, dtype=torch.bool)
    return square.tril(keys - queries).triu(keys - queries + 1 - width).mT
"""),
    _window("two axes", "two axes of size 1", """
    square = torch.ones(queries, keys, dtype=torch.bool)
    return square.tril(keys - queries).triu(keys - queries + 1 - width)
"""),
    _window("minus infinity and 0", "expected torch.bool", """
    square = torch.ones(1, 1, queries, keys, dtype=torch.bool)
    square = square.tril(keys - queries).triu(keys - queries + 1 - width)
    return torch.zeros(1, 1, queries, keys).masked_fill(~square, -torch.inf)
"""),
    _window("the width from the front", "expected the `width` keys that end", """
    mask = torch.zeros(1, 1, queries, keys, dtype=torch.bool)
    for i in range(queries):
        own = i + keys - queries
        mask[..., i, own - width + 1 : own + 1] = True  # a start below 0 wraps
    return mask
"""),
    # ---- the masked mean ----
    _mean("divided by t", "which counts the padding too", """
    return x.masked_fill(~mask[:, 0, 0, :, None], 0).mean(dim=1)
"""),
    _mean("no mask", "the mask is not used", """
    return x.mean(dim=1)
"""),
    _mean("the mean of the padding", "this is the mean of the padding", """
    padding = ~mask[:, 0, 0, :, None]
    total = x.masked_fill(~padding, 0).sum(dim=1)
    return total / padding.sum(dim=1).clamp(min=1)
"""),
    _mean("the sum", "not divided by the number of real tokens", """
    return x.masked_fill(~mask[:, 0, 0, :, None], 0).sum(dim=1)
"""),
    _mean("the largest number for all", "you use the largest", """
    real = mask[:, 0, 0, :, None]
    total = x.masked_fill(~real, 0).sum(dim=1)
    return total / real.sum(dim=1).max().clamp(min=1)
"""),
    _mean("the number of the batch", "you use that of the batch", """
    real = mask[:, 0, 0, :, None]
    return x.masked_fill(~real, 0).sum(dim=1) / real.sum().clamp(min=1)
"""),
    _mean("0 divided by 0", "should give zeros, not 0/0", """
    real = mask[:, 0, 0, :, None]
    return x.masked_fill(~real, 0).sum(dim=1) / real.sum(dim=1)
"""),
    _mean("mended behind the division", "comes back in the gradient", """
    real = mask[:, 0, 0, :, None]
    total, count = (x.nan_to_num(0, 0, 0) * real).sum(dim=1), real.sum(dim=1)
    return torch.where(count > 0, total / count, 0)
"""),
    _mean("multiplied by the mask", "0 times that is NaN", """
    real = mask[:, 0, 0, :, None]
    return (x * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)
"""),
    _mean("the first tokens", "not the first ones", """
    counts = mask.sum(dim=-1).flatten().tolist()
    rows = [one[:n].sum(dim=0) / max(n, 1) for one, n in zip(x, counts)]
    return torch.stack(rows)
"""),
    _mean("in place", "changes its argument `x` in place", """
    real = mask[:, 0, 0, :, None]
    return x.masked_fill_(~real, 0).sum(dim=1) / real.sum(dim=1).clamp(min=1)
"""),
    _mean("an axis too many", "not (b, 1, d)", """
    real = mask[:, 0, 0, :, None]
    total = x.masked_fill(~real, 0).sum(dim=1, keepdim=True)
    return total / real.sum(dim=1, keepdim=True).clamp(min=1)
"""),
    _mean("squeezed", "squeeze() drops every axis", """
    real = mask[:, 0, 0, :, None]
    total = x.masked_fill(~real, 0).sum(dim=1)
    return (total / real.sum(dim=1).clamp(min=1)).squeeze()
"""),
    _mean("one mean for the batch", "each sequence keeps its own", """
    real = mask[:, 0, 0, :, None]
    total = x.masked_fill(~real, 0).sum(dim=1)
    return (total / real.sum(dim=1).clamp(min=1)).mean(dim=0)
"""),
    _mean("the mean of the entries", "mean of each vector's entries", """
    return x.mean(dim=-1)
"""),
    _mean("something added to the number", "with nothing added to it", """
    real = mask[:, 0, 0, :, None]
    return x.masked_fill(~real, 0).sum(dim=1) / (real.sum(dim=1) + 1e-3)
"""),
    _mean("something small added to the number", "with nothing added to it", """
    real = mask[:, 0, 0, :, None]
    return x.masked_fill(~real, 0).sum(dim=1) / (real.sum(dim=1) + 1e-6).to(x)
"""),
    _mean("no gradient", "no gradient flows", """
    real = mask[:, 0, 0, :, None]
    total = x.detach().masked_fill(~real, 0).sum(dim=1)
    return total / real.sum(dim=1).clamp(min=1)
"""),
    _mean("everything in float32", "expected torch.float64", """
    real = mask[:, 0, 0, :, None]
    total = x.float().masked_fill(~real, 0).sum(dim=1)
    return total / real.sum(dim=1).clamp(min=1)
"""),
    _mean("the mask as it is", "the shape is", """
    total = x.masked_fill(~mask.transpose(2, 3), 0).sum(dim=1)
    return total / mask.sum(dim=-1).clamp(min=1)
"""),
    # ---- broken: the weights ----
    _weights("as it was", "the mask has no effect", """
    energies.masked_fill(~mask, -1e-9)
    return energies.softmax(dim=-1)
"""),
    _weights("nearly 0", "−1e-9 is nearly 0", """
    energies = energies.masked_fill(~mask, -1e-9)
    return energies.softmax(dim=-1)
"""),
    _weights("multiplied by the mask", "exp(0) is 1", """
    return (energies * mask).softmax(dim=-1)
"""),
    _weights("the fill in place", "changes its argument `energies` in place", """
    energies.masked_fill_(~mask, -torch.inf)
    return energies.softmax(dim=-1).nan_to_num(0)
"""),
    _weights("only minus infinity", "the softmax of −∞ alone is 0/0", """
    return energies.masked_fill(~mask, -torch.inf).softmax(dim=-1)
"""),
    _weights("−1e9", "without overflow", """
    return energies.masked_fill(~mask, -1e9).softmax(dim=-1)
"""),
    _weights("the lowest number", "the same weight for every key", """
    lowest = torch.finfo(energies.dtype).min
    return energies.masked_fill(~mask, lowest).softmax(dim=-1)
"""),
    _weights("empty rows attend to all", "attends to everything", """
    mask = mask | ~mask.any(dim=-1, keepdim=True)
    return energies.masked_fill(~mask, -torch.inf).softmax(dim=-1)
"""),
    _weights("exchanged", "the wrong way round", """
    weights = energies.masked_fill(mask, -torch.inf).softmax(dim=-1)
    return weights.nan_to_num(0)
"""),
    _weights("masked after the softmax", "mask before the softmax", """
    return energies.softmax(dim=-1).masked_fill(~mask, 0)
"""),
    _weights("over the queries", "the softmax runs over the queries", """
    lowest = torch.finfo(energies.dtype).min
    weights = energies.masked_fill(~mask, lowest).softmax(dim=-2)
    return weights.masked_fill(~mask, 0)
"""),
    _weights("no softmax", "the softmax is missing", """
    return energies.masked_fill(~mask, 0)
"""),
    _weights("−1e4", "a real energy may be lower", """
    weights = energies.masked_fill(~mask, -1e4).softmax(dim=-1)
    return weights * mask.any(dim=-1, keepdim=True)
"""),
    _weights("−1e6", "a real energy may be lower", """
    low = max(-1e6, torch.finfo(energies.dtype).min)
    weights = energies.masked_fill(~mask, low).softmax(dim=-1)
    return weights * mask.any(dim=-1, keepdim=True)
"""),
    _weights("no gradient", "no gradient flows", """
    weights = energies.detach().masked_fill(~mask, -torch.inf).softmax(dim=-1)
    return weights.nan_to_num(0)
"""),
    _weights("everything in float32", "expected torch.float16", """
    weights = energies.float().masked_fill(~mask, -torch.inf).softmax(dim=-1)
    return weights.nan_to_num(0)
"""),
    # ---- broken: the decoder's mask ----
    _decoder("as it was", "joined by |", """
    t = tokens.shape[1]
    mask = (tokens != pad)[:, None, None, :].expand(-1, 1, t, t)
    if training:
        mask = mask | torch.ones(t, t, dtype=torch.bool).tril()
    return mask
"""),
    _decoder("half mended: &", "when training is False: it must be the same", """
    t = tokens.shape[1]
    mask = (tokens != pad)[:, None, None, :].expand(-1, 1, t, t)
    if training:
        mask = mask & torch.ones(t, t, dtype=torch.bool).tril()
    return mask
"""),
    _decoder("half mended: evaluation", "joined by |", """
    t = tokens.shape[1]
    real = (tokens != pad)[:, None, None, :]
    return real | torch.ones(t, t, dtype=torch.bool).tril()
"""),
    _decoder("no padding in evaluation", "padding is seen when training is False", """
    (b, t), device = tokens.shape, tokens.device
    causal = torch.ones(b, 1, t, t, dtype=torch.bool, device=device).tril()
    return causal & (tokens != pad)[:, None, None, :] if training else causal
"""),
    _decoder("causal only", "padding is seen", """
    b, t = tokens.shape
    return torch.ones(b, 1, t, t, dtype=torch.bool).tril()
"""),
    _decoder("padding only", "the future is seen", """
    t = tokens.shape[1]
    return (tokens != pad)[:, None, None, :].expand(-1, 1, t, t)
"""),
    _decoder("not oneself", "does not see itself", """
    t = tokens.shape[1]
    real = (tokens != pad)[:, None, None, :]
    return real & torch.ones(t, t, dtype=torch.bool).tril(-1)
"""),
    _decoder("triu", "tril, not triu", """
    t = tokens.shape[1]
    real = (tokens != pad)[:, None, None, :]
    return real & torch.ones(t, t, dtype=torch.bool).triu()
"""),
    _decoder("queries masked as well", "the queries of padding are masked as well", """
    t = tokens.shape[1]
    real = tokens != pad
    both = real[:, None, None, :] & real[:, None, :, None]
    return both & torch.ones(t, t, dtype=torch.bool).tril()
"""),
    _decoder("queries masked instead", "padding stands on the axis of the queries", """
    t = tokens.shape[1]
    real = (tokens != pad)[:, None, :, None]
    return real & torch.ones(t, t, dtype=torch.bool).tril()
"""),
    _decoder("padding is 0", "not always 0", """
    t = tokens.shape[1]
    real = (tokens != 0)[:, None, None, :]
    return real & torch.ones(t, t, dtype=torch.bool).tril()
"""),
    _decoder("exchanged", "True and False are exchanged", """
    t = tokens.shape[1]
    padding = (tokens == pad)[:, None, None, :]
    return padding | torch.ones(t, t, dtype=torch.bool).triu(1)
"""),
    _decoder("transposed", "queries and keys are exchanged", """
    t = tokens.shape[1]
    real = (tokens != pad)[:, None, None, :]
    return (real & torch.ones(t, t, dtype=torch.bool).tril()).mT
"""),
    _decoder("three axes", "the axis of the heads is missing", """
    t = tokens.shape[1]
    return (tokens != pad)[:, None] & torch.ones(t, t, dtype=torch.bool).tril()
"""),
    _decoder("no axes for padding", "the shape is", """
    t = tokens.shape[1]
    return (tokens != pad) & torch.ones(1, 1, t, t, dtype=torch.bool).tril()
"""),
    _decoder("zeros and ones", "expected torch.bool", """
    t = tokens.shape[1]
    return (tokens != pad).int()[:, None, None, :] * torch.ones(t, t).tril().int()
"""),
    _decoder("in place", "changes its argument `tokens` in place", """
    t = tokens.shape[1]
    tokens -= pad
    return tokens.bool()[:, None, None, :] & torch.ones(t, t).tril().bool()
"""),
    # ---- broken: the loss ----
    _loss("as it was", "padding counts as a loss of 0", """
    losses = torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), targets, reduction="none"
    )
    return (losses * (targets != pad)).mean()
"""),
    _loss("padding counted", "the loss at the padding is counted", """
    return torch.nn.functional.cross_entropy(logits.transpose(1, 2), targets)
"""),
    _loss("PyTorch's own mean", "the mean of nothing is 0/0", """
    return torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), targets, ignore_index=pad
    )
"""),
    _loss("the sum", "not divided by the number of real targets", """
    return torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), targets, ignore_index=pad, reduction="sum"
    )
"""),
    _loss("divided by the sentences", "divided by the number of sentences", """
    total = torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), targets, ignore_index=pad, reduction="sum"
    )
    return total / len(targets)
"""),
    _loss("the mean of means", "mean of the sentences' means", """
    losses = torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), targets, ignore_index=pad, reduction="none"
    )
    return (losses.sum(dim=1) / (targets != pad).sum(dim=1).clamp(min=1)).mean()
"""),
    _loss("one for each sentence", "one loss for each sentence", """
    losses = torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), targets, ignore_index=pad, reduction="none"
    )
    return losses.sum(dim=1) / (targets != pad).sum(dim=1).clamp(min=1)
"""),
    _loss("one for each place", "their mean is wanted", """
    return torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), targets, ignore_index=pad, reduction="none"
    )
"""),
    _loss("the padding alone", "only the loss at the padding is counted", """
    losses = torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), targets, reduction="none"
    )
    padding = targets == pad
    return (losses * padding).sum() / padding.sum().clamp(min=1)
"""),
    _loss("a transpose that is a view", "view and reshape change", """
    b, t, v = logits.shape
    losses = torch.nn.functional.cross_entropy(
        logits.reshape(b, v, t), targets, reduction="none"
    )
    real = targets != pad
    return (losses * real).sum() / real.sum().clamp(min=1)
"""),
    _loss("no logarithm", "the probabilities have no logarithm", """
    p = logits.softmax(dim=-1).gather(2, targets[..., None])[..., 0]
    real = targets != pad
    return -(p * real).sum() / real.sum().clamp(min=1)
"""),
    _loss("padding is 0", "not always 0", """
    losses = torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), targets, reduction="none"
    )
    real = targets != 0
    return (losses * real).sum() / real.sum().clamp(min=1)
"""),
    _loss("padding without logits", "expected the mean of −log p", """
    words = torch.arange(logits.shape[-1])
    losses = torch.nn.functional.cross_entropy(
        logits.masked_fill(words == pad, -1e4).transpose(1, 2), targets,
        reduction="none",
    )
    real = targets != pad
    return (losses * real).sum() / real.sum().clamp(min=1)
"""),
    _loss("a plain number", "expected a tensor, got float", """
    losses = torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), targets, reduction="none"
    )
    real = targets != pad
    return (losses * real).sum().item() / max(real.sum().item(), 1)
"""),
    _loss("no gradient", "no gradient flows", """
    losses = torch.nn.functional.cross_entropy(
        logits.detach().transpose(1, 2), targets, reduction="none"
    )
    real = targets != pad
    return (losses * real).sum() / real.sum().clamp(min=1)
"""),
    _loss("everything in float32", "the dtype is torch.float32", """
    losses = torch.nn.functional.cross_entropy(
        logits.float().transpose(1, 2), targets, reduction="none"
    )
    real = targets != pad
    return (losses * real).sum() / real.sum().clamp(min=1)
"""),
    _loss("targets marked in place", "changes its argument `targets` in place", """
    real = (targets != pad).sum().clamp(min=1)
    targets[targets == pad] = -100
    total = torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), targets, reduction="sum"
    )
    return total / real
"""),
]  # fmt: skip
