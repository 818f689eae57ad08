"""Other right answers: the checks look at what comes out, not at how it is written."""

RIGHT = {
    "ch01-additive-scores": [
        """
def additive_scores(queries, keys, W, U, v):
    sums = (queries @ W.mT).unsqueeze(-2) + (keys @ U.mT).unsqueeze(-3)
    return (torch.tanh(sums) * v).sum(dim=-1)
""",
        """
def additive_scores(queries, keys, W, U, v):
    asked = torch.nn.functional.linear(queries, W)
    offered = torch.nn.functional.linear(keys, U)
    sums = asked[..., None, :] + offered[..., None, :, :]
    return torch.einsum("...h,h->...", sums.tanh(), v)
""",
    ],
    "ch01-mask-padding": [
        """
def mask_padding(energies, lengths):
    s = energies.size(-1)
    padding = torch.arange(s) < (s - lengths)[:, None, None]
    return energies.masked_fill(padding, -torch.inf).softmax(dim=-1).nan_to_num()
""",
        """
def mask_padding(energies, lengths):
    rows = torch.zeros_like(energies)
    for n, length in enumerate(lengths.tolist()):
        if length:
            rows[n, :, -length:] = energies[n, :, -length:].softmax(dim=-1)
    return rows
""",
        """
def mask_padding(energies, lengths):
    real = (torch.arange(energies.shape[-1]).flip(0) < lengths[:, None])[:, None]
    weights = torch.where(real, energies, -torch.inf).softmax(dim=-1)
    return torch.where(real, weights, 0.0)
""",
    ],
    "ch01-temper": [
        """
def temper(energies, tau):
    gaps = energies - energies.max(dim=-1, keepdim=True).values
    if tau == 0:
        gaps, tau = gaps.masked_fill(gaps < 0, -torch.inf), 1.0
    return torch.softmax(gaps / tau, dim=-1)
""",
        """
def temper(energies, tau):
    wide = energies.double()
    wide = (wide - wide.amax(dim=-1, keepdim=True)) / max(tau, 1e-300)
    powers = wide.exp()
    return (powers / powers.sum(dim=-1, keepdim=True)).to(energies.dtype)
""",
    ],
    "ch02-tempered": [
        """
def tempered(x, tau):
    energies = torch.einsum("bik,bjk->bij", x, x) / tau.view(-1, 1, 1)
    return energies.softmax(dim=2) @ x
""",
        """
def tempered(x, tau):
    q = x / tau[:, None, None]
    return torch.nn.functional.scaled_dot_product_attention(q, x, x, scale=1.0)
""",
    ],
    "ch02-scaled-energies": [
        """
def scaled_energies(q, k):
    root = q.size(2) ** 0.25
    return torch.einsum("btk,bsk->bts", q / root, k / root)
""",
        """
def scaled_energies(q, k):
    wide = q.float() @ k.float().mT / q.shape[-1] ** 0.5
    if q.dtype.itemsize < 4:
        return wide.to(q.dtype)
    return (q * q.shape[-1] ** -0.5) @ k.mT
""",
    ],
    "ch02-uniform-factor": [
        """
def uniform_factor(width):
    q, k = 2 * torch.rand(10_000, width) - 1, 2 * torch.rand(10_000, width) - 1
    return 1 / (q * k).sum(dim=-1).std()
""",
        """
def uniform_factor(width):
    return (9 / width) ** 0.5
""",
    ],
    "ch02-is-equivariant": [
        """
def is_equivariant(f):
    for t in (2, 3, 4, 5, 6, 7, 8, 9):
        x, p = torch.randn(t, 5), torch.randperm(t)
        if (f(x[p]) - f(x)[p]).abs().max() > 1e-4:
            return False
        if (f(x.flip(0)) - f(x).flip(0)).abs().max() > 1e-4:
            return False
    return True
""",
        """
def is_equivariant(f):
    x = torch.randn(5, 3, dtype=torch.float64)
    swaps = []
    for i in range(5):
        for j in range(i):
            p = torch.arange(5)
            p[i], p[j] = j, i
            swaps.append(torch.allclose(f(x)[p], f(x[p])))
    return all(swaps)
""",
    ],
}
