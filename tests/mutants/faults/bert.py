TABLE = r"""
BertConfig
    activation: str = "gelu" -> activation: str = "relu"  # another activation
    norm_epsilon: float = 1e-12 -> norm_epsilon: float = 1e-5  # epsilon
    norm: ClassVar[str] = "post" -> norm: ClassVar[str] = "pre"  # pre-norm
    require.divides(heads=self.heads, d_model=self.d_model) -> pass  # heads
    require.probability(dropout=self.dropout) -> pass  # dropout unchecked
    require.count(0, self.vocab_size - 1, pad=self.pad) -> pass  # pad outside
    require.count(embedding_width=self.embedding_width) -> pass  # no width
Bert.__init__
    self.output.weight = self.embedding.weight -> pass  # head not tied
    nn.init.normal_(parameter, std=0.02) -> pass  # PyTorch's own matrices
    nn.init.zeros_(parameter) -> pass  # PyTorch's own biases
    c.embedding_width is not None
        c.embedding_width != c.d_model  # no map where the width is the model's
    nn.Linear(c.d_model, width)
        nn.Linear(c.d_model, c.d_model)  # the head as wide as the model
    if c.shared: -> if False:  # every layer its own
    layer for _ in range(c.layers) -> layer for _ in range(1)  # used once
    nn.Dropout(c.dropout) -> nn.Dropout(0.0)  # no dropout in the sum
Bert.forward
    + self.segments(segments) ->  # no segments
    self.dropout(self.norm(x)) -> self.dropout(x)  # the sum not normalised
    self.dropout(self.norm(x)) -> self.norm(x)  # nothing dropped
    padding_mask(tokens, c.pad) if mask is None else mask
        mask  # padding is seen
        padding_mask(tokens, c.pad)  # mask ignored
    padding_mask(tokens, c.pad) -> padding_mask(tokens)  # pad ignored
    require.ids(c.vocab_size, tokens=tokens) -> pass  # ids
    require.ids(c.segments, segments=segments) -> pass  # segments
    require.padding_behind(c.pad, tokens=tokens) -> pass  # padding in front
Bert.guess_tokens
    self.activation(self.transform(states)) -> self.transform(states)  # no activation
    self.transform_norm( -> (  # no norm
Bert.pool
    states[:, 0] -> states[:, -1]  # the last state
    .tanh() ->  # no tanh
    states.shape[1], -> True,  # no state to pool
mask_tokens
    asked &= ~torch.isin(tokens, special) -> pass  # padding asked for
    {mask, *special} -> {*special}  # the mask asked for
    others = ordinary[places -> others = every[places  # special tokens drawn
    (draw >= masked) & ->  # random tokens over masks
    draw < masked + drawn -> draw < 1  # none kept
    < rate -> > rate  # all others
    torch.rand(tokens.shape, generator=generator).to(tokens.device) < rate
        torch.rand(tokens.shape) < rate  # the generator ignored
    dtype=tokens.dtype, ->  # 64 bits, whatever the tokens have
    len(shares) == 3 and ->  # two shares
    require.count(0, vocab_size - 1, mask=mask) -> pass  # no such mask
    min(shares) >= 0 and ->  # shares below 0
    abs(sum(shares) - 1) < 1e-6 -> True  # shares unchecked
    0 <= rate <= 1 -> True  # rate unchecked
    0 <= rate <= 1 -> 0 <= rate < 1  # all may not be asked for
    require.that(len(ordinary), "special must
        (len(ordinary), "special must  # nothing to draw
next_sentence_pairs
    other + (other >= i) -> other  # from the same document
    elsewhere.choice(full[other + (other >= i)])
        full[other + (other >= i)][0]  # always a first sentence
    if label: -> if not label:  # labels turned round
    draw.randrange(2) -> 1  # none follows
    len(full) > 1, -> True,  # one document
    elsewhere.randrange(len(full) - 1)
        draw.randrange(len(full) - 1)  # other labels than those of the order
sentence_order_pairs
    if label else -> if not label else  # labels turned round
    filter(None, documents) -> documents[1:]  # a document lost
pair_ids
    [start, *first, end, *second, end]
        [start, *first, *second, end]  # nothing between
    len(first) + 2 -> len(first) + 1  # [SEP] in the second segment
"""
