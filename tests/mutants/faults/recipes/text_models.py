"""Faults of recipes/text_models.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "PastAverage": [
        ("torch.zeros_like(q), torch.zeros_like(k)", "q, k", "asks"),
    ],
    "GRUText": [
        (" * self.embedding.embedding_dim**0.5", "", "embeddings too small"),
        ("batch_first=True", "batch_first=False", "runs over the batch"),
    ],
    "ConvolutionText": [
        ("(past, 0)", "(past // 2, past // 2)", "sees the future"),
        ("dilation=2**i", "dilation=1", "reaches less far"),
        ("F.relu(norm(x))", "norm(x)", "one linear map"),
        ("x = x + convolution", "x = convolution", "no residual"),
        ("self.norms[-1](x)", "x", "no last norm"),
    ],
    "path_length": [
        ("distance + 1", "distance", "one step too few"),
        ("reach < distance", "reach <= distance", "one too early"),
    ],
    "influence": [
        (".flip(0)", "", "the farthest first"),
        ("model.zero_grad()", "pass", "gradients left behind"),
        ("handle.remove()", "pass", "a hook left behind"),
        ("[:, -1]", "[:, 0]", "the first position"),
        (".amax(dim=-1)", ".sum(dim=-1)", "all logits"),
    ],
}
