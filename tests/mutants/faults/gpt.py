TABLE = r"""
GPTConfig
    norm: ClassVar[str] = "pre" -> norm: ClassVar[str] = "post"  # post-norm
    require.divides(heads=self.heads, d_model=self.d_model) -> pass  # heads
    require.probability(dropout=self.dropout) -> pass  # dropout unchecked
    require.choice(("learned", "rotary"), positions=self.positions)
        pass  # unknown positions
    require.positive(rotary_base=self.rotary_base) -> pass  # any base
GPT.__init__
    self.output.weight = self.embedding.weight -> pass  # head not tied
    (self.embedding.weight, std=c.d_model**-0.5)
        (self.embedding.weight)  # begins too large
    nn.init.xavier_uniform_(parameter) -> pass  # PyTorch's own matrices
    nn.Dropout(c.dropout) -> nn.Dropout(0.0)  # no dropout in the sum
    c.vocab_size, bias=False -> c.vocab_size  # bias in the output
    "causal": True -> "causal": False  # sees the future
    attention or ->  # the attention given is ignored
    "kv_heads": c.kv_heads -> "kv_heads": None  # kv_heads ignored
    c.positions == "rotary": -> False:  # rotary positions ignored
    , c.rotary_base\n -> , 10000.0\n  # rotary_base ignored
    c.dropout, c.bias, ** -> c.dropout, True, **  # biases of attention
    c.dropout, c.bias, ** -> 0.0, c.bias, **  # no dropout of weights
    if c.tied: -> if True:  # always tied
    nn.init.normal_(self.output.weight, std=c.d_model**-0.5)\n        nn
        pass\n        nn  # an output of its own begins as PyTorch's
GPT.embed
    (x, start, positions) -> (x, 0, positions)  # start ignored
    (x, start, positions) -> (x, start)  # positions ignored
    if self.positions is not None: -> if False:  # no positions
    require.at_most(length=length, max_len=self.config.max_len)
        pass  # beyond the context
    self.dropout(x) -> x  # no dropout in the sum
    require.ids(self.config.vocab_size, tokens=tokens) -> pass  # ids
GPT.forward
    self.output( -> (  # the stream itself
    , mask)) -> ))  # padding and other documents seen
    , 0, positions) -> )  # padding counts as a position
next_token_loss
    targets.flatten() -> tokens.flatten()  # asks what it reads
    targets.flatten()) -> targets.flatten(), reduction='sum')  # a sum
"""
