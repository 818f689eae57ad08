"""Faults of annotated/gpt.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "GPTConfig": [
        ('norm: ClassVar[str] = "pre"', 'norm: ClassVar[str] = "post"', "post-norm"),
        ("require.divides(heads=self.heads, d_model=self.d_model)", "pass", "heads"),
        ("require.probability(dropout=self.dropout)", "pass", "dropout unchecked"),
    ],
    "GPT.__init__": [
        ("self.output.weight = self.embedding.weight", "pass", "head not tied"),
        ("std=c.d_model**-0.5", "std=1.0", "begins too large"),
        ("nn.init.xavier_uniform_(parameter)", "pass", "PyTorch's own matrices"),
        ("nn.Dropout(c.dropout)", "nn.Dropout(0.0)", "no dropout in the sum"),
        ("c.vocab_size, bias=False", "c.vocab_size", "bias in the output"),
        (", causal=True", "", "sees the future"),
        ("attention or ", "", "the attention given is ignored"),
    ],
    "GPT.embed": [
        (", start))", "))", "start ignored"),
        ("self.positions(self.embedding(tokens), start)", "self.embedding(tokens)",
         "no positions"),
        ("self.dropout(", "(", "no dropout in the sum"),
        ("require.ids(self.config.vocab_size, tokens=tokens)", "pass", "ids"),
    ],
    "GPT.forward": [
        ("self.output(", "(", "the stream itself"),
    ],
    "next_token_loss": [
        ("targets.flatten()", "tokens.flatten()", "asks what it reads"),
        ("targets.flatten())", "targets.flatten(), reduction='sum')", "a sum"),
    ],
}
