"""Wrong answers to the exercises of chapter 02."""

from tests.exercises.wrong import Wrong


def _tempered(name: str, hint: str, body: str) -> Wrong:
    source = "def tempered(x, tau):\n" + body.strip("\n")
    return Wrong("ch02-tempered", name, source, hint)


def _scaled(name: str, hint: str, body: str) -> Wrong:
    source = "def scaled_energies(q, k):\n" + body.strip("\n")
    return Wrong("ch02-scaled-energies", name, source, hint)


def _factor(name: str, hint: str, body: str) -> Wrong:
    source = "def uniform_factor(width):\n" + body.strip("\n")
    return Wrong("ch02-uniform-factor", name, source, hint)


def _equivariant(name: str, hint: str, body: str) -> Wrong:
    source = "def is_equivariant(f):\n" + body.strip("\n")
    return Wrong("ch02-is-equivariant", name, source, hint)


WRONG = [
    # ---- self-attention with a temperature ----
    _tempered("multiplies", "the temperature multiplies", """
    raw = torch.bmm(x, x.transpose(1, 2)) * tau[:, None, None]
    return torch.bmm(raw.softmax(dim=-1), x)
"""),
    _tempered("not used", "the temperature is not used", """
    raw = torch.bmm(x, x.transpose(1, 2))
    return torch.bmm(raw.softmax(dim=-1), x)
"""),
    _tempered("after the softmax", "it belongs before it", """
    raw = torch.bmm(x, x.transpose(1, 2))
    return torch.bmm(raw.softmax(dim=-1) / tau[:, None, None], x)
"""),
    _tempered("√k as well", "divided by √k as well", """
    raw = torch.bmm(x, x.transpose(1, 2)) / tau[:, None, None]
    return torch.bmm((raw / x.shape[-1] ** 0.5).softmax(dim=-1), x)
"""),
    _tempered("the first temperature for all", "you use the first for all", """
    raw = torch.bmm(x, x.transpose(1, 2)) / tau[0]
    return torch.bmm(raw.softmax(dim=-1), x)
"""),
    _tempered("no axes for the temperature", "divided along the wrong axis", """
    raw = torch.bmm(x, x.transpose(1, 2)) / tau
    return torch.bmm(raw.softmax(dim=-1), x)
"""),
    _tempered("one axis for the temperature", "tau[:, None] is another", """
    raw = torch.bmm(x, x.transpose(1, 2)) / tau[:, None]
    return torch.bmm(raw.softmax(dim=-1), x)
"""),
    _tempered("softmax over the wrong axis", "the softmax runs over the wrong axis", """
    raw = torch.bmm(x, x.transpose(1, 2)) / tau[:, None, None]
    return torch.bmm(raw.softmax(dim=1), x)
"""),
    _tempered("a transpose that is a view", "view and reshape change", """
    b, t, k = x.shape
    raw = torch.bmm(x, x.view(b, k, t)) / tau[:, None, None]
    return torch.bmm(raw.softmax(dim=-1), x)
"""),
    _tempered("returns the weights", "these are the weights", """
    raw = torch.bmm(x, x.transpose(1, 2)) / tau[:, None, None]
    return raw.softmax(dim=-1)
"""),
    _tempered("no softmax", "the softmax is missing", """
    return torch.bmm(torch.bmm(x, x.transpose(1, 2)) / tau[:, None, None], x)
"""),
    _tempered("the input scaled in place", "changes its argument `x` in place", """
    values = x.clone()
    x /= tau[:, None, None] ** 0.5
    return torch.bmm(torch.bmm(x, x.transpose(1, 2)).softmax(dim=-1), values)
"""),
    _tempered("temperatures as plain numbers", "no gradient reaches tau", """
    raws = [one @ one.T / t for one, t in zip(x, tau.tolist())]
    return torch.stack([raw.softmax(-1) @ one for raw, one in zip(raws, x)])
"""),
    _tempered("works only for a batch of one", "the shape is", """
    x = x[0]
    return ((x @ x.T / tau[0]).softmax(dim=-1) @ x)[None]
"""),
    _tempered("everything in float32", "expected torch.float64", """
    x, tau = x.float(), tau.float()
    raw = torch.bmm(x, x.transpose(1, 2)) / tau[:, None, None]
    return torch.bmm(raw.softmax(dim=-1), x)
"""),
    # ---- the scaling ----
    _scaled("no factor", "the factor 1/√k is missing", """
    return q @ k.transpose(1, 2)
"""),
    _scaled("no root", "divided by k, not by √k", """
    return q @ k.transpose(1, 2) / q.shape[-1]
"""),
    _scaled("multiplied", "it should divide", """
    return q @ k.transpose(1, 2) * q.shape[-1] ** 0.5
"""),
    _scaled("root of the number of keys", "root of the number of keys", """
    return (q / k.shape[1] ** 0.5) @ k.transpose(1, 2)
"""),
    _scaled("root of the number of queries", "root of the number of queries", """
    return (q / q.shape[1] ** 0.5) @ k.transpose(1, 2)
"""),
    _scaled("root of the batch size", "root of the batch size", """
    return (q / len(q) ** 0.5) @ k.transpose(1, 2)
"""),
    _scaled("scaled after the product", "the energies overflow", """
    return q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
"""),
    _scaled("softmax already", "these are weights", """
    return ((q / q.shape[-1] ** 0.5) @ k.transpose(1, 2)).softmax(dim=-1)
"""),
    _scaled("exchanged", "queries and keys are exchanged", """
    return k @ (q / q.shape[-1] ** 0.5).transpose(1, 2)
"""),
    _scaled("a transpose that is a reshape", "view and reshape change", """
    b, s, width = k.shape
    return (q / width**0.5) @ k.reshape(b, width, s)
"""),
    _scaled("in place", "changes its argument `q` in place", """
    q /= q.shape[-1] ** 0.5
    return q @ k.transpose(1, 2)
"""),
    _scaled("works only for a batch of one", "the shape is", """
    return ((q[0] / q.shape[-1] ** 0.5) @ k[0].T)[None]
"""),
    _scaled("left in float32", "the dtype is torch.float32", """
    return q.float() @ k.float().transpose(1, 2) / q.shape[-1] ** 0.5
"""),
    # ---- the factor of other entries ----
    _factor("variance 1", "the factor for variance 1", """
    return width**-0.5
"""),
    _factor("one vector's variance", "1/3 · 1/3", """
    return (3 / width) ** 0.5
"""),
    _factor("the spread", "that is the spread", """
    return width**0.5 / 3
"""),
    _factor("the variance", "that is the variance", """
    return width / 9
"""),
    _factor("no root", "1 over the variance", """
    return 9 / width
"""),
    _factor("no width", "the factor depends on it", """
    return 3.0
"""),
    _factor("the width, not its root", "grows as its root", """
    return 3 / width
"""),
    _factor("measured on entries from 0 to 1", "measured, the factor is", """
    q, k = torch.rand(10_000, width), torch.rand(10_000, width)
    return 1 / (q * k).sum(dim=-1).std().item()
"""),
    _factor("one pair a batch only", "measured, the factor is", """
    q, k = 2 * torch.rand(10, width) - 1, 2 * torch.rand(10, width) - 1
    return 1 / (q * k).sum(dim=-1).std().item()
"""),
    # ---- equivariance ----
    _equivariant("always so", "row i is the sum of rows 0 to i", """
    return True
"""),
    _equivariant("never so", "it is equivariant", """
    return False
"""),
    _equivariant("invariance instead", "compare f(x[p]) with f(x)[p]", """
    x, p = torch.randn(6, 3), torch.randperm(6)
    return torch.allclose(f(x[p]), f(x), atol=1e-5)
"""),
    _equivariant("shuffled twice", "compare f(x[p]) with f(x)[p]", """
    x, p = torch.randn(6, 3), torch.tensor([1, 2, 3, 4, 5, 0])
    return torch.allclose(f(x[p])[p], f(x), atol=1e-5)
"""),
    _equivariant("equal to the last digit", "not with ==", """
    for _ in range(20):
        x, p = torch.randn(7, 3), torch.randperm(7)
        if not (f(x[p]) == f(x)[p]).all():
            return False
    return True
"""),
    _equivariant("columns instead of rows", "Do you shuffle the rows", """
    for _ in range(20):
        x, p = torch.randn(6, 3), torch.randperm(3)
        if not torch.allclose(f(x[:, p]), f(x)[:, p], atol=1e-5):
            return False
    return True
"""),
    _equivariant("a shuffle that moves nothing", "that really moves them", """
    x, p = torch.randn(6, 3), torch.arange(6)
    return torch.allclose(f(x[p]), f(x)[p], atol=1e-5)
"""),
    _equivariant("reversal only", "it commutes with reversing", """
    x = torch.randn(6, 3)
    return torch.allclose(f(x.flip(0)), f(x).flip(0), atol=1e-5)
"""),
    _equivariant("rolling only", "it commutes with rolling", """
    x = torch.randn(6, 3)
    return torch.allclose(f(x.roll(2, 0)), f(x).roll(2, 0), atol=1e-5)
"""),
    _equivariant("one swap only", "try several", """
    x, p = torch.randn(5, 3), torch.tensor([0, 2, 1, 3, 4])
    return torch.allclose(f(x[p]), f(x)[p], atol=1e-5)
"""),
    _equivariant("no numbers below 0", "only numbers below 0 tell", """
    for _ in range(20):
        x, p = torch.rand(6, 3), torch.randperm(6)
        if not torch.allclose(f(x[p]), f(x)[p], atol=1e-5):
            return False
    return True
"""),
    _equivariant("too large a tolerance", "a small difference is a difference", """
    for _ in range(20):
        x, p = torch.randn(6, 3), torch.randperm(6)
        if not torch.allclose(f(x[p]), f(x)[p], atol=0.1):
            return False
    return True
"""),
    _equivariant("returns a tensor", "returns a tensor", """
    x, p = torch.randn(6, 3), torch.randperm(6)
    return (f(x[p]) - f(x)[p]).abs().max() < 1e-5
"""),
    _equivariant("prints its answer", "is a `return` missing", """
    x, p = torch.randn(6, 3), torch.randperm(6)
    print(torch.allclose(f(x[p]), f(x)[p], atol=1e-5))
"""),
]  # fmt: skip
