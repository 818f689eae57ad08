"""Wrong answers to the exercises of chapter 06."""

from tests.exercises.wrong import Wrong


def _residual(name: str, hint: str, body: str) -> Wrong:
    source = "def residual(x, sublayer, weight, bias, norm):\n" + body.strip("\n")
    return Wrong("ch06-residual", name, source, hint)


def _normed(name: str, hint: str, layer_norm: str) -> Wrong:
    """Both orders, around a layer normalisation of y that is written otherwise."""
    body = f"""
    def layer_norm(y):
{layer_norm.strip(chr(10))}
    if norm == "pre":
        return x + sublayer(layer_norm(x))
    return layer_norm(x + sublayer(x))
"""
    return _residual(name, hint, body)


def _ordered(name: str, hint: str, ends: str) -> Wrong:
    """The normalisation as it should be; `ends` is what is made of it."""
    body = f"""
    def layer_norm(y):
        return torch.nn.functional.layer_norm(y, y.shape[-1:], weight, bias)
{ends.strip(chr(10))}
"""
    return _residual(name, hint, body)


def _encoder(name: str, hint: str, body: str) -> Wrong:
    head = "def encoder_layer(x, attend, feed_forward, norm_1, norm_2, order, mask):\n"
    return Wrong("ch06-encoder-layer", name, head + body.strip("\n"), hint)


def _pre(name: str, hint: str, body: str) -> Wrong:
    """Right in post-norm; `body` is what it does in pre-norm."""
    post = """
    if order == "post":
        x = norm_1(x + attend(x, x, mask))
        return norm_2(x + feed_forward(x))
"""
    return _encoder(name, hint, post + body.strip("\n"))


def _post(name: str, hint: str, body: str) -> Wrong:
    """Right in pre-norm; `body` is what it does in post-norm."""
    pre = """
    if order == "pre":
        read = norm_1(x)
        x = x + attend(read, read, mask)
        return x + feed_forward(norm_2(x))
"""
    return _encoder(name, hint, pre + body.strip("\n"))


def _decoder(name: str, hint: str, body: str) -> Wrong:
    head = """
def decoder_layer(x, memory, parts, mask, memory_mask):
    attend, look, each = (
        parts[name] for name in ("attention", "cross_attention", "feed_forward")
    )
    n1, n2, n3 = parts["norm_1"], parts["norm_2"], parts["norm_3"]
"""
    return Wrong("ch06-decoder-layer", name, head + body.strip("\n"), hint)


def _tie(name: str, hint: str, body: str) -> Wrong:
    source = "def tie(source, target, output):\n" + body.strip("\n")
    return Wrong("ch06-tie", name, source, hint)


def _checked(name: str, hint: str, body: str) -> Wrong:
    """Refuses what does not fit; `body` is what it does otherwise."""
    sizes = """
    shapes = [tuple(m.weight.shape) for m in (source, target, output)]
    if len(set(shapes)) > 1:
        raise ValueError(f"{shapes} should be equal")
"""
    return _tie(name, hint, sizes + body.strip("\n"))


def _leaks(name: str, hint: str, body: str) -> Wrong:
    source = "def leaks(model, length, vocab):\n" + body.strip("\n")
    return Wrong("ch06-find-leak", name, source, hint)


WRONG = [
    # ---- a residual block ----
    _normed("unbiased", "the deviation is the unbiased one", """
        centred = y - y.mean(dim=-1, keepdim=True)
        variance = y.var(dim=-1, keepdim=True)
        return centred / (variance + 1e-5).sqrt() * weight + bias
"""),
    _normed("as one finds it in a well-known listing", "ε outside the root", """
        mean, std = y.mean(-1, keepdim=True), y.std(-1, keepdim=True)
        return weight * (y - mean) / (std + 1e-5) + bias
"""),
    _normed("ε behind the root", "ε stands outside the root", """
        mean, std = y.mean(-1, keepdim=True), y.std(-1, correction=0, keepdim=True)
        return weight * (y - mean) / (std + 1e-5) + bias
"""),
    _normed("no ε", "ε is missing", """
        mean, std = y.mean(-1, keepdim=True), y.std(-1, correction=0, keepdim=True)
        return weight * (y - mean) / std + bias
"""),
    _normed("another ε", "yours is 1e-6", """
        return torch.nn.functional.layer_norm(y, y.shape[-1:], weight, bias, 1e-6)
"""),
    _normed("the variance", "divided by the variance", """
        centred = y - y.mean(dim=-1, keepdim=True)
        variance = centred.square().mean(dim=-1, keepdim=True)
        return centred / (variance + 1e-5) * weight + bias
"""),
    _normed("not centred", "the mean is not subtracted", """
        variance = y.var(dim=-1, correction=0, keepdim=True)
        return y / (variance + 1e-5).sqrt() * weight + bias
"""),
    _normed("over the places", "taken over the places", """
        centred = y - y.mean(dim=1, keepdim=True)
        variance = centred.square().mean(dim=1, keepdim=True)
        return centred / (variance + 1e-5).sqrt() * weight + bias
"""),
    _normed("over all that a sequence holds", "over places and entries together", """
        centred = y - y.mean(dim=(1, 2), keepdim=True)
        variance = centred.square().mean(dim=(1, 2), keepdim=True)
        return centred / (variance + 1e-5).sqrt() * weight + bias
"""),
    _normed("batch normalisation", "as batch normalisation has it", """
        centred = y - y.mean(dim=(0, 1), keepdim=True)
        variance = centred.square().mean(dim=(0, 1), keepdim=True)
        return centred / (variance + 1e-5).sqrt() * weight + bias
"""),
    _normed("no weight, no bias", "weight and bias are not used", """
        return torch.nn.functional.layer_norm(y, y.shape[-1:])
"""),
    _normed("no bias", "the bias is not used", """
        return torch.nn.functional.layer_norm(y, y.shape[-1:], weight)
"""),
    _normed("the bias first", "the bias is added before", """
        return (torch.nn.functional.layer_norm(y, y.shape[-1:]) + bias) * weight
"""),
    _normed("everything in float32", "the dtype is torch.float32", """
        w, b = weight.float(), bias.float()
        return torch.nn.functional.layer_norm(y.float(), y.shape[-1:], w, b)
"""),
    _normed("detached", "the gradient of x", """
        centred = y - y.mean(dim=-1, keepdim=True).detach()
        variance = centred.square().mean(dim=-1, keepdim=True).detach()
        return centred / (variance + 1e-5).sqrt() * weight + bias
"""),
    _normed("a new tensor", "no gradient reaches weight", """
        w, b = torch.tensor(weight.tolist()).to(y), torch.tensor(bias.tolist()).to(y)
        return torch.nn.functional.layer_norm(y, y.shape[-1:], w, b)
"""),
    _normed("the root of 0", "the gradient of x holds NaN", """
        centred = y - y.mean(dim=-1, keepdim=True)
        deviation = centred.square().mean(dim=-1, keepdim=True).sqrt()
        return centred / (deviation**2 + 1e-5).sqrt() * weight + bias
"""),
    _normed("the mean of the squares", "take the mean of the squared distances", """
        mean = y.mean(dim=-1, keepdim=True)
        variance = y.square().mean(dim=-1, keepdim=True) - mean.square()
        return (y - mean) / (variance + 1e-5).sqrt() * weight + bias
"""),
    _normed("the mean of the squares, not below 0",
            "take the mean of the squared distances", """
        mean = y.mean(dim=-1, keepdim=True)
        variance = (y.square().mean(dim=-1, keepdim=True) - mean.square()).clamp(min=0)
        return (y - mean) / (variance + 1e-5).sqrt() * weight + bias
"""),
    _normed("ε as a floor", "ε is added to the variance, and is no floor", """
        centred = y - y.mean(dim=-1, keepdim=True)
        variance = centred.square().mean(dim=-1, keepdim=True)
        return centred / variance.clamp(min=1e-5).sqrt() * weight + bias
"""),
    _normed("ε as a floor of the deviation", "is only a floor", """
        centred = y - y.mean(dim=-1, keepdim=True)
        deviation = centred.square().mean(dim=-1, keepdim=True).sqrt()
        return centred / deviation.clamp(min=1e-5) * weight + bias
"""),
    _ordered("post is pre", 'this is pre-norm; "post" normalises the sum', """
    return x + sublayer(layer_norm(x))
"""),
    _ordered("pre is post", 'this is post-norm; "pre" normalises', """
    return layer_norm(x + sublayer(x))
"""),
    _ordered("exchanged", "this is pre-norm", """
    if norm == "post":
        return x + sublayer(layer_norm(x))
    return layer_norm(x + sublayer(x))
"""),
    _ordered("the stream is normalised", "what is carried on is normalised too", """
    if norm == "pre":
        x = layer_norm(x)
        return x + sublayer(x)
    return layer_norm(x + sublayer(x))
"""),
    _ordered("what was found is normalised", "only what the sublayer found", """
    if norm == "pre":
        return x + sublayer(layer_norm(x))
    return x + layer_norm(sublayer(x))
"""),
    _ordered("no residual", "the residual is missing", """
    if norm == "pre":
        return sublayer(layer_norm(x))
    return layer_norm(sublayer(x))
"""),
    _ordered("in place", "changes its argument `x` in place", """
    if norm == "pre":
        x += sublayer(layer_norm(x))
        return x
    x += sublayer(x)
    return layer_norm(x)
"""),
    _ordered("the weight in place", "changes its argument `weight` in place", """
    y = x if norm == "pre" else x + sublayer(x)
    y = torch.nn.functional.layer_norm(y, y.shape[-1:])
    y = weight.mul_(1.0001) * y + bias
    return x + sublayer(y) if norm == "pre" else y
"""),
    _residual("the example by heart", "the shape is (1, 1, 2)", """
    return torch.tensor([[[-1.0, 5.0 if norm == "pre" else 1.0]]])
"""),
    _residual("the book's block, its weights forgotten", "weight and bias are not used",
    """
    from annotated.transformer import Residual
    return Residual(x.shape[-1], norm=norm).to(x)(x, sublayer)
"""),
    # ---- an encoder layer ----
    _pre("the key is not normalised", "the query is normalised and the key is not", """
    x = x + attend(norm_1(x), x, mask)
    return x + feed_forward(norm_2(x))
"""),
    _pre("the query is not normalised", "the key is normalised and the query", """
    x = x + attend(x, norm_1(x), mask)
    return x + feed_forward(norm_2(x))
"""),
    _pre("the stream is normalised", "what is carried on is normalised too", """
    x = norm_1(x)
    x = norm_2(x + attend(x, x, mask))
    return x + feed_forward(x)
"""),
    _pre("the end is normalised", "only the end of the stack is", """
    read = norm_1(x)
    x = x + attend(read, read, mask)
    return norm_2(x + feed_forward(norm_2(x)))
"""),
    _pre("the book's order for both", "this is post-norm", """
    x = norm_1(x + attend(x, x, mask))
    return norm_2(x + feed_forward(x))
"""),
    _pre("one norm for both", "norm_1 is used twice", """
    read = norm_1(x)
    x = x + attend(read, read, mask)
    return x + feed_forward(norm_1(x))
"""),
    _pre("both blocks from x", "the second block starts from x again", """
    read = norm_1(x)
    return x + attend(read, read, mask) + feed_forward(norm_2(x))
"""),
    _pre("the first x is added again", "the second residual adds the first x", """
    read = norm_1(x)
    y = x + attend(read, read, mask)
    return x + feed_forward(norm_2(y))
"""),
    _pre("in place", "changes its argument `x` in place", """
    read = norm_1(x)
    x += attend(read, read, mask)
    return x + feed_forward(norm_2(x))
"""),
    _post("the other order", "this is pre-norm", """
    read = norm_1(x)
    x = x + attend(read, read, mask)
    return x + feed_forward(norm_2(x))
"""),
    _post("what was found is normalised", "only what the sublayer found", """
    x = x + norm_1(attend(x, x, mask))
    return x + norm_2(feed_forward(x))
"""),
    _post("no residual", "the residual is missing", """
    x = norm_1(attend(x, x, mask))
    return norm_2(feed_forward(x))
"""),
    _post("the norms exchanged", "norm_1 and norm_2 are exchanged", """
    x = norm_2(x + attend(x, x, mask))
    return norm_1(x + feed_forward(x))
"""),
    _post("the network first", "the feed-forward network comes first", """
    x = norm_2(x + feed_forward(x))
    return norm_1(x + attend(x, x, mask))
"""),
    _post("no network", "the feed-forward network is missing", """
    return norm_1(x + attend(x, x, mask))
"""),
    _post("the mask forgotten", "the mask is not passed on", """
    x = norm_1(x + attend(x, x, None))
    return norm_2(x + feed_forward(x))
"""),
    _post("only one norm, at the end", "expected one residual around the attention", """
    x = x + attend(x, x, mask)
    return norm_2(x + feed_forward(x))
"""),
    _encoder("two arguments", "your code raised TypeError", """
    x = norm_1(x + attend(x, mask))
    return norm_2(x + feed_forward(x))
"""),
    _encoder("detached", "no gradient flows", """
    y = x.detach()
    read = norm_1(y) if order == "pre" else y
    y = y + attend(read, read, mask)
    y = y if order == "pre" else norm_1(y)
    if order == "pre":
        return y + feed_forward(norm_2(y))
    return norm_2(y + feed_forward(y))
"""),
    _encoder("everything in float32", "the dtype is torch.float32", """
    x = x.float()
    if order == "post":
        x = norm_1(x + attend(x, x, mask))
        return norm_2(x + feed_forward(x))
    read = norm_1(x)
    x = x + attend(read, read, mask)
    return x + feed_forward(norm_2(x))
"""),
    _encoder("the example by heart", "the shape is (1, 1, 1)", """
    return torch.tensor([[[49.0 if order == "pre" else 47.0]]])
"""),
    # ---- a decoder layer ----
    _decoder("an encoder layer twice", "the target asks the target", """
    x = n1(x + attend(x, x, mask))
    x = n2(x + look(x, x, mask))
    return n3(x + each(x))
"""),
    _decoder("the memory asks", "in cross-attention the memory asks the target", """
    x = n1(x + attend(x, x, mask))
    x = n2(x + look(memory, x, memory_mask))
    return n3(x + each(x))
"""),
    _decoder("the masks exchanged", "the masks are exchanged", """
    x = n1(x + attend(x, x, memory_mask))
    x = n2(x + look(x, memory, mask))
    return n3(x + each(x))
"""),
    _decoder("causal to the source", "the mask of the target is used twice", """
    x = n1(x + attend(x, x, mask))
    x = n2(x + look(x, memory, mask))
    return n3(x + each(x))
"""),
    _decoder("the future is seen", "the mask of the memory is used twice", """
    x = n1(x + attend(x, x, memory_mask))
    x = n2(x + look(x, memory, memory_mask))
    return n3(x + each(x))
"""),
    _decoder("no mask to the memory", "the mask of the memory is not passed on", """
    x = n1(x + attend(x, x, mask))
    x = n2(x + look(x, memory, None))
    return n3(x + each(x))
"""),
    _decoder("no mask of the target", "the mask of the target is not passed on", """
    x = n1(x + attend(x, x, None))
    x = n2(x + look(x, memory, memory_mask))
    return n3(x + each(x))
"""),
    _decoder("the memory first", "the two attentions are exchanged", """
    x = n1(x + look(x, memory, memory_mask))
    x = n2(x + attend(x, x, mask))
    return n3(x + each(x))
"""),
    _decoder("both to the memory", "both attentions go to the memory", """
    x = n1(x + attend(x, memory, memory_mask))
    x = n2(x + look(x, memory, memory_mask))
    return n3(x + each(x))
"""),
    _decoder("one attention for both", "parts['attention'] is used twice", """
    x = n1(x + attend(x, x, mask))
    x = n2(x + attend(x, memory, memory_mask))
    return n3(x + each(x))
"""),
    _decoder("asks with the first x", "cross-attention asks with x as it came", """
    y = n1(x + attend(x, x, mask))
    y = n2(y + look(x, memory, memory_mask))
    return n3(y + each(y))
"""),
    _decoder("pre-norm", "this is pre-norm", """
    read = n1(x)
    x = x + attend(read, read, mask)
    x = x + look(n2(x), memory, memory_mask)
    return x + each(n3(x))
"""),
    _decoder("what was found is normalised", "only what the sublayer found", """
    x = x + n1(attend(x, x, mask))
    x = x + n2(look(x, memory, memory_mask))
    return x + n3(each(x))
"""),
    _decoder("no residual", "the residual is missing", """
    x = n1(attend(x, x, mask))
    x = n2(look(x, memory, memory_mask))
    return n3(each(x))
"""),
    _decoder("the norms in another order", "norm_2 and norm_3 are exchanged", """
    x = n1(x + attend(x, x, mask))
    x = n3(x + look(x, memory, memory_mask))
    return n2(x + each(x))
"""),
    _decoder("no feed-forward network", "the feed-forward network is missing", """
    x = n1(x + attend(x, x, mask))
    return n2(x + look(x, memory, memory_mask))
"""),
    _decoder("the memory normalised", "it comes ready from the encoder", """
    x = n1(x + attend(x, x, mask))
    x = n2(x + look(x, n2(memory), memory_mask))
    return n3(x + each(x))
"""),
    _decoder("the memory detached", "no gradient reaches memory", """
    x = n1(x + attend(x, x, mask))
    x = n2(x + look(x, memory.detach(), memory_mask))
    return n3(x + each(x))
"""),
    _decoder("in place", "changes its argument `x` in place", """
    x += attend(x, x, mask)
    x = n1(x)
    x = n2(x + look(x, memory, memory_mask))
    return n3(x + each(x))
"""),
    _decoder("the dictionary emptied", "changes its argument `parts` in place", """
    x = parts.pop("norm_1")(x + attend(x, x, mask))
    x = parts.pop("norm_2")(x + look(x, memory, memory_mask))
    return parts.pop("norm_3")(x + each(x))
"""),
    _decoder("the example by heart", "the shape is (1, 1, 1)", """
    return torch.tensor([[[410.0]]])
"""),
    # ---- tie the weights ----
    _checked("names", "nothing is tied", """
    target = source
    output = source
"""),
    _checked("a name for the weight", "nothing is tied", """
    weight = source.weight
    target_weight = output_weight = weight
"""),
    _checked("copied", "the numbers are equal, but copied", """
    with torch.no_grad():
        target.weight.copy_(source.weight)
        output.weight.copy_(source.weight)
"""),
    _checked("the state copied", "the numbers are equal, but copied", """
    target.load_state_dict(source.state_dict())
    output.load_state_dict(source.state_dict())
"""),
    _checked("cloned", "the numbers are equal, but copied", """
    target.weight = torch.nn.Parameter(source.weight.detach().clone())
    output.weight = torch.nn.Parameter(source.weight.detach().clone())
"""),
    _checked("the data", "the numbers lie in one place", """
    target.weight.data = source.weight.data
    output.weight.data = source.weight.data
"""),
    _checked("new parameters", "the numbers lie in one place", """
    target.weight = torch.nn.Parameter(source.weight)
    output.weight = torch.nn.Parameter(source.weight)
"""),
    _checked("no parameter", "your code raised TypeError", """
    target.weight = source.weight.data
    output.weight = source.weight.data
"""),
    _checked("only the embeddings", "the weight of output is another one", """
    target.weight = source.weight
"""),
    _checked("only the target", "the weight of target is another one", """
    output.weight = source.weight
"""),
    _checked("the output's table", "it is one parameter, but that of `output`", """
    source.weight = target.weight = output.weight
"""),
    _checked("a new table for all", "it is one parameter, but a new one", """
    table = torch.nn.Parameter(source.weight.detach().clone())
    source.weight = target.weight = output.weight = table
"""),
    _checked("drawn anew", "the table of the source has other numbers", """
    target.weight = output.weight = source.weight
    torch.nn.init.normal_(source.weight, std=source.weight.shape[1] ** -0.5)
"""),
    _checked("frozen", "does not move the table", """
    source.weight.requires_grad_(False)
    scale = torch.nn.Parameter(torch.ones(()))
    target.register_forward_hook(lambda module, given, found: found * scale)
    target.weight = output.weight = source.weight
"""),
    _checked("a bias besides", "the three modules have further parameters", """
    target.weight = output.weight = source.weight
    output.bias = torch.nn.Parameter(torch.zeros(len(source.weight)).to(source.weight))
"""),
    _tie("refuses nothing", "they do not fit, so raise", """
    target.weight = output.weight = source.weight
"""),
    _tie("the number of numbers", "they do not fit, so raise", """
    if target.weight.numel() != source.weight.numel():
        raise ValueError(f"{tuple(target.weight.shape)}, {tuple(source.weight.shape)}")
    if output.weight.numel() != source.weight.numel():
        raise ValueError(f"{tuple(output.weight.shape)}, {tuple(source.weight.shape)}")
    target.weight = output.weight = source.weight
"""),
    _tie("refuses too late", "is already another one", """
    for module in (target, output):
        shapes = tuple(module.weight.shape), tuple(source.weight.shape)
        if shapes[0] != shapes[1]:
            raise ValueError(f"{shapes}")
        module.weight = source.weight
"""),
    _tie("an assert", "an assert is gone", """
    assert source.weight.shape == target.weight.shape == output.weight.shape
    target.weight = output.weight = source.weight
"""),
    _tie("a message without numbers", "the two numbers that differ", """
    if not source.weight.shape == target.weight.shape == output.weight.shape:
        raise ValueError("sizes do not fit")
    target.weight = output.weight = source.weight
"""),
    _tie("the vocabularies alone", "they do not fit, so raise", """
    sizes = source.num_embeddings, target.num_embeddings, output.out_features
    if len(set(sizes)) > 1:
        raise ValueError(f"vocabularies of {sizes} symbols")
    target.weight = output.weight = source.weight
"""),
    # ---- find the leak of the future ----
    _leaks("its own logit counted", "a logit may depend on the symbol of its own place",
    """
    for _ in range(10):
        ids = torch.randint(vocab, (1, length))
        for place in range(1, length):
            for symbol in range(vocab):
                changed = ids.clone()
                changed[:, place] = symbol
                moved = model(changed)[:, : place + 1] - model(ids)[:, : place + 1]
                if moved.abs().max() > 1e-3:
                    return True
    return False
"""),
    _leaks("everything compared", "a logit may depend on the symbol of its own place",
    """
    ids = torch.randint(vocab, (1, length))
    changed = ids.clone()
    changed[:, -1] = (ids[:, -1] + 1) % vocab
    return not torch.allclose(model(ids), model(changed), atol=1e-3)
"""),
    _leaks("the wrong side", "a logit may depend on the symbol of its own place", """
    for place in range(length - 1):
        ids = torch.randint(vocab, (1, length))
        changed = ids.clone()
        changed[:, place] = (ids[:, place] + 1) % vocab
        moved = model(changed)[:, place + 1 :] - model(ids)[:, place + 1 :]
        if moved.abs().max() > 1e-3:
            return True
    return False
"""),
    _leaks("only the last place", "change every place", """
    if length == 1:
        return False
    for _ in range(10):
        ids = torch.randint(vocab, (1, length))
        for symbol in range(vocab):
            changed = ids.clone()
            changed[:, -1] = symbol
            moved = model(changed)[:, :-1] - model(ids)[:, :-1]
            if moved.abs().max() > 1e-3:
                return True
    return False
"""),
    _leaks("only the first logit", "the last logit but one", """
    if length == 1:
        return False
    for _ in range(10):
        ids = torch.randint(vocab, (1, length))
        for place in range(1, length):
            for symbol in range(vocab):
                changed = ids.clone()
                changed[:, place] = symbol
                if (model(changed) - model(ids))[:, 0].abs().max() > 1e-3:
                    return True
    return False
"""),
    _leaks("only the place before", "the symbol at place 5", """
    for _ in range(10):
        ids = torch.randint(vocab, (1, length))
        for place in range(1, length):
            for symbol in range(vocab):
                changed = ids.clone()
                changed[:, place] = symbol
                moved = (model(changed) - model(ids))[:, place - 1]
                if moved.abs().max() > 1e-3:
                    return True
    return False
"""),
    _leaks("always to the next symbol of zeros", "put every symbol at every place", """
    ids = torch.zeros(1, length, dtype=torch.long)
    for place in range(1, length):
        changed = ids.clone()
        changed[:, place] = 1 % vocab
        if (model(changed) - model(ids))[:, :place].abs().max() > 1e-3:
            return True
    return False
"""),
    _leaks("exactly equal", "compare with a tolerance", """
    for _ in range(10):
        ids = torch.randint(vocab, (1, length))
        for place in range(1, length):
            for symbol in range(vocab):
                changed = ids.clone()
                changed[:, place] = symbol
                if not torch.equal(model(changed)[:, :place], model(ids)[:, :place]):
                    return True
    return False
"""),
    _leaks("a tolerance that is too wide", "by 0.02: compare all of them", """
    for _ in range(10):
        ids = torch.randint(vocab, (1, length))
        for place in range(1, length):
            for symbol in range(vocab):
                changed = ids.clone()
                changed[:, place] = symbol
                moved = model(changed)[:, :place] - model(ids)[:, :place]
                if moved.abs().max() > 0.1:
                    return True
    return False
"""),
    _leaks("cut off", "its logits depend on the length", """
    for _ in range(10):
        ids = torch.randint(vocab, (1, length))
        for place in range(1, length):
            moved = model(ids[:, :place]) - model(ids)[:, :place]
            if moved.abs().max() > 1e-3:
                return True
    return False
"""),
    _leaks("the best symbol compared", "compare all logits", """
    for _ in range(10):
        ids = torch.randint(vocab, (1, length))
        for place in range(1, length):
            for symbol in range(vocab):
                changed = ids.clone()
                changed[:, place] = symbol
                one, other = model(changed)[:, :place], model(ids)[:, :place]
                if (one.argmax(-1) != other.argmax(-1)).any():
                    return True
    return False
"""),
    _leaks("the sum of the logits", "compare each", """
    for _ in range(10):
        ids = torch.randint(vocab, (1, length))
        for place in range(1, length):
            for symbol in range(vocab):
                changed = ids.clone()
                changed[:, place] = symbol
                moved = (model(changed) - model(ids))[:, :place].sum(-1)
                if moved.abs().max() > 1e-3:
                    return True
    return False
"""),
    _leaks("no abs", "with either sign, take .abs()", """
    for _ in range(10):
        ids = torch.randint(vocab, (1, length))
        before = model(ids)
        for place in range(1, length):
            for symbol in range(vocab):
                changed = ids.clone()
                changed[:, place] = symbol
                if (model(changed) - before)[:, :place].max() > 1e-3:
                    return True
    return False
"""),
    _leaks("zeros elsewhere", "zeros or one sequence may miss it", """
    ids = torch.zeros(1, length, dtype=torch.long)
    for place in range(1, length):
        for symbol in range(vocab):
            changed = ids.clone()
            changed[:, place] = symbol
            if (model(changed) - model(ids))[:, :place].abs().max() > 1e-3:
                return True
    return False
"""),
    _leaks("one sequence", "zeros or one sequence may miss it", """
    ids = torch.randint(vocab, (1, length))
    for place in range(1, length):
        changed = ids.repeat(vocab, 1)
        changed[:, place] = torch.arange(vocab)
        if (model(changed) - model(ids))[:, :place].abs().max() > 1e-3:
            return True
    return False
"""),
    _leaks("one counted sequence", "zeros or one sequence may miss it", """
    ids = torch.arange(length)[None] % vocab
    for place in range(1, length):
        changed = ids.repeat(vocab, 1)
        changed[:, place] = torch.arange(vocab)
        if (model(changed) - model(ids))[:, :place].abs().max() > 1e-3:
            return True
    return False
"""),
    _leaks("to the next symbol only", "put every symbol at every place", """
    for _ in range(10):
        ids = torch.randint(vocab, (1, length))
        for place in range(1, length):
            changed = ids.clone()
            changed[:, place] = (ids[:, place] + 1) % vocab
            if (model(changed) - model(ids))[:, :place].abs().max() > 1e-3:
                return True
    return False
"""),
    _leaks("not put back", "your ids are changed in place and stay changed", """
    for _ in range(10):
        ids = torch.randint(vocab, (1, length))
        before = model(ids)
        for place in range(1, length):
            for symbol in range(vocab):
                ids[:, place] = symbol
                if (model(ids) - before)[:, :place].abs().max() > 1e-3:
                    return True
    return False
"""),
    _leaks("changed in place", "your ids are changed in place and stay changed", """
    for _ in range(10):
        ids = torch.randint(vocab, (1, length))
        for place in range(1, length):
            for symbol in range(vocab):
                changed = ids
                changed[:, place] = symbol
                moved = model(changed)[:, :place] - model(ids)[:, :place]
                if moved.abs().max() > 1e-3:
                    return True
    return False
"""),
    _leaks("exchanged", "it does not leak", """
    for _ in range(10):
        ids = torch.randint(vocab, (1, length))
        for place in range(1, length):
            changed = ids.repeat(vocab, 1)
            changed[:, place] = torch.arange(vocab)
            moved = model(changed)[:, :place] - model(ids)[:, :place]
            if moved.abs().max() > 1e-3:
                return False
    return True
"""),
    _leaks("a tensor", "your function returns a tensor", """
    found = torch.tensor(False)
    for _ in range(10):
        ids = torch.randint(vocab, (1, length))
        for place in range(1, length):
            changed = ids.repeat(vocab, 1)
            changed[:, place] = torch.arange(vocab)
            moved = model(changed)[:, :place] - model(ids)[:, :place]
            found = found | (moved.abs() > 1e-3).any()
    return found
"""),
    _leaks("a symbol too many", "your code raised RuntimeError", """
    ids = torch.randint(vocab, (1, length))
    for place in range(1, length):
        changed = ids.clone()
        changed[:, place] += 1
        if (model(changed) - model(ids))[:, :place].abs().max() > 1e-3:
            return True
    return False
"""),
    _leaks("no place is left", "one place has no later one", """
    ids = torch.randint(vocab, (1, length))
    changed = (ids + 1) % vocab
    changed[:, 0] = ids[:, 0]
    first = (model(changed) - model(ids))[:, 0]
    return length == 1 or bool(first.abs().max() > 1e-3)
"""),
]  # fmt: skip
