"""Wrong answers to the exercises of chapter 03."""

from tests.exercises.wrong import Wrong


def _split(name: str, hint: str, body: str) -> Wrong:
    source = "def split_packed(x, heads):\n" + body.strip("\n")
    return Wrong("ch03-split-packed", name, source, hint)


def _merge(name: str, hint: str, body: str) -> Wrong:
    source = "def merge_folded(y, heads):\n" + body.strip("\n")
    return Wrong("ch03-merge-folded", name, source, hint)


def _count(name: str, hint: str, body: str) -> Wrong:
    signature = "d_model, heads, key_value_heads, bias"
    source = f"def count_parameters({signature}):\n" + body.strip("\n")
    return Wrong("ch03-count-parameters", name, source, hint)


def _mixes(name: str, hint: str, body: str) -> Wrong:
    source = "def mixes_tokens(split):\n" + body.strip("\n")
    return Wrong("ch03-mixes-tokens", name, source, hint)


WRONG = [
    # ---- split packed heads ----
    _split("a view alone", "view as (b, t, h, k) first, and then transpose", """
    b, t, width = x.shape
    parts = x.chunk(3, dim=-1)
    return tuple(part.reshape(b, heads, t, width // 3 // heads) for part in parts)
"""),
    _split("one view of everything", "view leaves b and t where they are", """
    b, t, width = x.shape
    return x.reshape(b, 3, heads, t, width // 3 // heads).unbind(1)
"""),
    _split("three in front", "a view begins with the axes that x begins with", """
    b, t, width = x.shape
    return x.reshape(3, b, heads, t, width // 3 // heads).unbind(0)
"""),
    _split("twelve heads, then three", "view leaves b and t where they are", """
    b, t, width = x.shape
    return x.reshape(b, 3 * heads, t, width // 3 // heads).chunk(3, dim=1)
"""),
    _split("packed head by head", "you read x head by head", """
    b, t, width = x.shape
    each = x.view(b, t, heads, width // heads).transpose(1, 2)
    return each.chunk(3, dim=-1)
"""),
    _split("every third number", "you take every third number", """
    b, t, width = x.shape
    apart = x.view(b, t, heads, width // 3 // heads, 3)
    return apart.transpose(1, 2).unbind(-1)
"""),
    _split("dealt out in turn", "every h-th number goes to the same head", """
    b, t, width = x.shape
    parts = x.view(b, t, 3, width // 3 // heads, heads)
    return parts.permute(2, 0, 4, 1, 3).unbind(0)
"""),
    _split("no transpose", "the axes are (b, t, h, k)", """
    b, t, width = x.shape
    return x.view(b, t, 3, heads, width // 3 // heads).unbind(2)
"""),
    _split("the wrong axes transposed", "the axes are (b, h, k, t)", """
    b, t, width = x.shape
    return x.view(b, t, 3, heads, width // 3 // heads).permute(2, 0, 3, 4, 1).unbind(0)
"""),
    _split("heads before the batch", "the batch comes first", """
    b, t, width = x.shape
    return x.view(b, t, 3, heads, width // 3 // heads).permute(2, 3, 0, 1, 4).unbind(0)
"""),
    _split("joined along the batch", "put one behind another", """
    b, t, width = x.shape
    k = width // 3 // heads
    parts = [torch.cat(part.split(k, dim=-1)) for part in x.chunk(3, dim=-1)]
    return tuple(part.view(b, heads, t, k) for part in parts)
"""),
    _split("keys first", "the queries: these are the keys", """
    b, t, width = x.shape
    apart = x.view(b, t, 3, heads, width // 3 // heads).permute(2, 0, 3, 1, 4)
    return apart[1], apart[0], apart[2]
"""),
    _split("the queries three times", "the keys: these are the queries", """
    b, t, width = x.shape
    queries = x[..., : width // 3].view(b, t, heads, width // 3 // heads)
    return (queries.transpose(1, 2),) * 3
"""),
    _split("tokens cut into three", "cut the tokens into three parts", """
    b, t, width = x.shape
    parts = x.chunk(3, dim=1)
    return tuple(p.unflatten(2, (heads, -1)).transpose(1, 2) for p in parts)
"""),
    _split("one tensor", "unbind(0) makes a tuple", """
    b, t, width = x.shape
    return x.view(b, t, 3, heads, width // 3 // heads).permute(2, 0, 3, 1, 4)
"""),
    _split("not split", "the queries: the shape is", """
    return x.chunk(3, dim=-1)
"""),
    _split("heads in reverse", "the heads come in reverse order", """
    b, t, width = x.shape
    apart = x.view(b, t, 3, heads, width // 3 // heads).flip(3)
    return apart.permute(2, 0, 3, 1, 4).unbind(0)
"""),
    _split("works only for a batch of one", "the queries: the shape is", """
    t, width = x.shape[1:]
    apart = x[0].view(t, 3, heads, width // 3 // heads).permute(1, 2, 0, 3)
    return apart[:, None].unbind(0)
"""),
    _split("the sizes of the example", "your code raised RuntimeError", """
    return x.view(2, 3, 3, 2, 2).permute(2, 0, 3, 1, 4).unbind(0)
"""),
    _split("everything in float32", "expected torch.float64", """
    parts = x.float().chunk(3, dim=-1)
    return tuple(p.unflatten(2, (heads, -1)).transpose(1, 2) for p in parts)
"""),
    _split("transposed in place", "changes its argument `x` in place", """
    x.transpose_(1, 2)
    parts = x.chunk(3, dim=1)
    return tuple(p.unflatten(1, (heads, -1)).transpose(2, 3) for p in parts)
"""),
    # ---- merge folded heads ----
    _merge("head-major", "row n·h + j is head j of sequence n", """
    folded, t, k = y.shape
    apart = y.view(heads, folded // heads, t, k)
    return apart.permute(1, 2, 0, 3).flatten(2)
"""),
    _merge("chunks of the batch", "row n·h + j is head j of sequence n", """
    return torch.cat(y.chunk(heads), dim=-1)
"""),
    _merge("a reshape alone", "h has to stand beside k, (b, t, h, k)", """
    folded, t, k = y.shape
    return y.reshape(folded // heads, t, heads * k)
"""),
    _merge("head-major, and a reshape", "before the two become one", """
    folded, t, k = y.shape
    apart = y.view(heads, folded // heads, t, k).transpose(0, 1)
    return apart.reshape(folded // heads, t, heads * k)
"""),
    _merge("tokens first, then a reshape", "the tokens stand in front of b and h", """
    folded, t, k = y.shape
    return y.transpose(0, 1).reshape(folded // heads, t, heads * k)
"""),
    _merge("heads last", "dealt out in turn", """
    folded, t, k = y.shape
    apart = y.view(folded // heads, heads, t, k)
    return apart.permute(0, 2, 3, 1).flatten(2)
"""),
    _merge("a view of what lies otherwise", "Use .reshape(...) instead", """
    folded, t, k = y.shape
    apart = y.view(folded // heads, heads, t, k).transpose(1, 2)
    return apart.view(folded // heads, t, heads * k)
"""),
    _merge("not flattened", "h and k are to become one", """
    return y.unflatten(0, (-1, heads)).transpose(1, 2)
"""),
    _merge("only unfolded", "the heads are to be put side by side", """
    return y.unflatten(0, (-1, heads))
"""),
    _merge("tokens first", "the axes are (t, b, d)", """
    folded, t, k = y.shape
    return y.transpose(0, 1).reshape(t, folded // heads, heads * k)
"""),
    _merge("the mean of the heads", "the heads are averaged", """
    return y.unflatten(0, (-1, heads)).mean(dim=1)
"""),
    _merge("the sum of the heads", "the heads are added up", """
    return y.unflatten(0, (-1, heads)).sum(dim=1)
"""),
    _merge("heads in reverse", "the heads come in reverse order", """
    apart = y.unflatten(0, (-1, heads)).flip(1)
    return apart.transpose(1, 2).flatten(2)
"""),
    _merge("works only for a batch of one", "the shape is (1,", """
    folded, t, k = y.shape
    return y.transpose(0, 1).reshape(1, t, folded * k)
"""),
    _merge("the sizes of the example", "your code raised RuntimeError", """
    return y.view(2, 2, 3, 2).transpose(1, 2).reshape(2, 3, 4)
"""),
    _merge("detached", "no gradient flows from the result", """
    return y.detach().unflatten(0, (-1, heads)).transpose(1, 2).flatten(2)
"""),
    _merge("only one head learns", "the gradient of y is another one", """
    apart = y.unflatten(0, (-1, heads)).transpose(1, 2)
    return torch.cat([apart[:, :, :1], apart[:, :, 1:].detach()], 2).flatten(2)
"""),
    _merge("everything in float32", "expected torch.float64", """
    return y.float().unflatten(0, (-1, heads)).transpose(1, 2).flatten(2)
"""),
    _merge("transposed in place", "changes its argument `y` in place", """
    folded, t, k = y.shape
    y.transpose_(0, 1)
    return y.reshape(t, folded // heads, heads * k).transpose(0, 1)
"""),
    # ---- count parameters ----
    _count("no biases", "the biases are missing", """
    shared = key_value_heads * (d_model // heads)
    return 2 * d_model * d_model + 2 * d_model * shared
"""),
    _count("always biases", "although there are none", """
    shared = key_value_heads * (d_model // heads)
    return (2 * d_model + 2 * shared) * (d_model + 1)
"""),
    _count("nothing shared", "made for key_value_heads heads only", """
    return 4 * d_model * (d_model + bias)
"""),
    _count("no output map", "the output map is missing", """
    shared = key_value_heads * (d_model // heads)
    return (d_model + 2 * shared) * (d_model + bias)
"""),
    _count("three maps, nothing shared", "the output map is missing", """
    return 3 * d_model * (d_model + bias)
"""),
    _count("keys without values", "both have a map", """
    shared = key_value_heads * (d_model // heads)
    return (2 * d_model + shared) * (d_model + bias)
"""),
    _count("as few queries as keys", "they keep all", """
    shared = key_value_heads * (d_model // heads)
    return (d_model + 3 * shared) * (d_model + bias)
"""),
    _count("all four narrow", "queries and output keep d_model", """
    return 4 * key_value_heads * (d_model // heads) * (d_model + bias)
"""),
    _count("biases of the width that goes in", "are as narrow as these", """
    shared = key_value_heads * (d_model // heads)
    return 2 * d_model * d_model + 2 * d_model * shared + 4 * d_model * bias
"""),
    _count("no biases of keys and values", "keys and values have one too", """
    shared = key_value_heads * (d_model // heads)
    return 2 * d_model * (d_model + bias) + 2 * d_model * shared
"""),
    _count("no bias of the output", "the bias of the output map is missing", """
    shared = key_value_heads * (d_model // heads)
    return (d_model + 2 * shared) * (d_model + bias) + d_model * d_model
"""),
    _count("one bias for all", "each of the four maps has its own", """
    shared = key_value_heads * (d_model // heads)
    return 2 * d_model * d_model + 2 * d_model * shared + d_model * bias
"""),
    _count("shared heads of full width", "each shared head is counted with", """
    return (2 + 2 * key_value_heads) * d_model * (d_model + bias)
"""),
    _count("divided by the shared heads", "you divide by key_value_heads", """
    shared = d_model // key_value_heads
    return (2 * d_model + 2 * shared) * (d_model + bias)
"""),
    _count("all heads of full width", "each head is counted with the width", """
    count = (heads + 2 * key_value_heads) * d_model * (d_model + bias)
    return count + heads * d_model * d_model + d_model * bias
"""),
    _count("one shared head", "there are key_value_heads of them", """
    return (2 * d_model + 2 * (d_model // heads)) * (d_model + bias)
"""),
    _count("times the heads", "multiplied by the number of heads", """
    shared = key_value_heads * (d_model // heads)
    return heads * 2 * (d_model + shared) * (d_model + bias)
"""),
    _count("off by one", "add up four maps", """
    shared = key_value_heads * (d_model // heads)
    return 2 * (d_model + shared) * (d_model + bias) + 1
"""),
    _count("not whole", "dividing by // leaves it whole", """
    shared = key_value_heads * d_model / heads
    return 2 * (d_model + shared) * (d_model + bias)
"""),
    _count("a tensor", "int(…) makes one", """
    shared = key_value_heads * (d_model // heads)
    return torch.tensor([d_model, shared, shared, d_model]).sum() * (d_model + bias)
"""),
    _count("what the checks ask", "your code raised KeyError", """
    known = {8: 180, 512: 1050624, 768: 1474560 + 1920 * bias}
    return known[d_model]
"""),
    # ---- find the transposed view ----
    _mixes("always so", "it mixes none", """
    return True
"""),
    _mixes("never so", "it does: with two heads and four tokens", """
    return False
"""),
    _mixes("the other way round", "it mixes none", """
    label = torch.arange(12).view(3, 4, 1)
    return bool((split(label.repeat(1, 1, 15), 5) == label[:, None]).all())
"""),
    _mixes("only the shape", "can you tell the tokens apart", """
    return split(torch.randn(3, 4, 10), 5).shape != (3, 5, 4, 2)
"""),
    _mixes("tokens that are all alike", "can you tell the tokens apart", """
    x = torch.ones(3, 4, 10)
    return not torch.equal(split(x, 5), torch.ones(3, 5, 4, 2))
"""),
    _mixes("compared with the right split", "do not compare with the right split", """
    x = torch.randn(3, 4, 10)
    return not torch.equal(split(x, 5), x.view(3, 4, 5, 2).transpose(1, 2))
"""),
    _mixes("a batch of one", "Try a batch of several", """
    label = torch.arange(4).view(1, 4, 1)
    return not bool((split(label.repeat(1, 1, 10), 5) == label[:, None]).all())
"""),
    _mixes("labels for positions only", "give every token of every sequence", """
    label = torch.arange(4).view(1, 4, 1).repeat(3, 1, 10)
    return not bool((split(label, 5) == torch.arange(4)[:, None]).all())
"""),
    _mixes("labels for sequences only", "can you tell the tokens apart", """
    label = torch.arange(3).view(3, 1, 1)
    rows = split(label.repeat(1, 4, 10), 5)
    return not bool((rows == label[:, None]).all())
"""),
    _mixes("one head", "Do you try several tokens and several heads", """
    label = torch.arange(12).view(3, 4, 1)
    return not bool((split(label.repeat(1, 1, 5), 1) == label[:, None]).all())
"""),
    _mixes("one token", "Do you try several tokens", """
    label = torch.arange(3).view(3, 1, 1)
    return not bool((split(label.repeat(1, 1, 10), 5) == label[:, None]).all())
"""),
    _mixes("two tokens", "try at least three tokens", """
    label = torch.arange(6).view(3, 2, 1)
    return not bool((split(label.repeat(1, 1, 10), 5) == label[:, None]).all())
"""),
    _mixes("the first head only", "in the last head", """
    label = torch.arange(12).view(3, 4, 1)
    return not bool((split(label.repeat(1, 1, 10), 5)[:, 0] == label).all())
"""),
    _mixes("the first number of a row only", "in the last number of each row", """
    label = torch.arange(12).view(3, 4)
    rows = split(label[..., None].repeat(1, 1, 10), 5)
    return not bool((rows[..., 0] == label[:, None]).all())
"""),
    _mixes("the first sequence only", "in the last sequence", """
    label = torch.arange(12).view(3, 4, 1)
    rows = split(label.repeat(1, 1, 10), 5)
    return not bool((rows[0] == label[0]).all())
"""),
    _mixes("the sums of the sequences", "it does", """
    x = torch.randn(3, 4, 10)
    return not torch.allclose(split(x, 5).sum((1, 2, 3)), x.sum((1, 2)), atol=1e-4)
"""),
    _mixes("how it lies in memory", "not how they lie", """
    return split(torch.randn(3, 4, 10), 5).is_contiguous()
"""),
    _mixes("returns a tensor", "returns a tensor", """
    label = torch.arange(12).view(3, 4, 1)
    return (split(label.repeat(1, 1, 10), 5) != label[:, None]).any()
"""),
    _mixes("returns an object of numpy", "returns an object of numpy", """
    label = torch.arange(12).view(3, 4, 1)
    rows = split(label.repeat(1, 1, 10), 5)
    return (rows != label[:, None]).numpy().any()
"""),
    _mixes("prints its answer", "is a `return` missing", """
    label = torch.arange(12).view(3, 4, 1)
    print(bool((split(label.repeat(1, 1, 10), 5) != label[:, None]).any()))
"""),
]  # fmt: skip
