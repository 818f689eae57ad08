"""Faults of annotated/bert.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "BertConfig": [
        ('activation: str = "gelu"', 'activation: str = "relu"', "another activation"),
        ("norm_epsilon: float = 1e-12", "norm_epsilon: float = 1e-5", "epsilon"),
        ('norm: ClassVar[str] = "post"', 'norm: ClassVar[str] = "pre"', "pre-norm"),
        ("require.divides(heads=self.heads, d_model=self.d_model)", "pass", "heads"),
        ("require.probability(dropout=self.dropout)", "pass", "dropout unchecked"),
        ("require.count(0, self.vocab_size - 1, pad=self.pad)", "pass", "pad outside"),
        ("require.count(embedding_width=self.embedding_width)", "pass", "no width"),
    ],
    "Bert.__init__": [
        ("self.output.weight = self.embedding.weight", "pass", "head not tied"),
        ("nn.init.normal_(parameter, std=0.02)", "pass", "PyTorch's own matrices"),
        ("nn.init.zeros_(parameter)", "pass", "PyTorch's own biases"),
        ("c.embedding_width is not None", "c.embedding_width != c.d_model",
         "no map where the width is the model's"),
        ("nn.Linear(c.d_model, width)", "nn.Linear(c.d_model, c.d_model)",
         "the head as wide as the model"),
        ("if c.shared:", "if False:", "every layer its own"),
        ("layer for _ in range(c.layers)", "layer for _ in range(1)", "used once"),
        ("nn.Dropout(c.dropout)", "nn.Dropout(0.0)", "no dropout in the sum"),
    ],
    "Bert.forward": [
        (" + self.segments(segments)", "", "no segments"),
        ("self.dropout(self.norm(x))", "self.dropout(x)", "the sum not normalised"),
        ("self.dropout(self.norm(x))", "self.norm(x)", "nothing dropped"),
        ("padding_mask(tokens, c.pad) if mask is None else mask", "mask",
         "padding is seen"),
        ("padding_mask(tokens, c.pad) if mask is None else mask",
         "padding_mask(tokens, c.pad)", "mask ignored"),
        ("padding_mask(tokens, c.pad)", "padding_mask(tokens)", "pad ignored"),
        ("require.ids(c.vocab_size, tokens=tokens)", "pass", "ids"),
        ("require.ids(c.segments, segments=segments)", "pass", "segments"),
    ],
    "Bert.guess_tokens": [
        ("self.activation(self.transform(states))", "self.transform(states)",
         "no activation"),
        ("self.transform_norm(", "(", "no norm"),
    ],
    "Bert.pool": [
        ("states[:, 0]", "states[:, -1]", "the last state"),
        (".tanh()", "", "no tanh"),
    ],
}
