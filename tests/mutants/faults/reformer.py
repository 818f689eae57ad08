TABLE = r"""
lsh_buckets
    [turned, -turned] -> [turned, turned]  # axes in one direction alone
    .max(dim=-1) -> .min(dim=-1)  # the furthest axis
    rounds, vectors.shape[-1], size // 2
        1, vectors.shape[-1], size // 2  # all rounds share a map
    generator=generator, ->  # generator ignored
    None if generator is None else generator.device
        None  # a generator of a GPU on the CPU
    found * size + nearest -> found + nearest  # digits added
    require.even(buckets=size) -> pass  # odd number of buckets
    require.count(rounds=rounds, -> require.count(  # no rounds
lsh_attention
    (query / length.masked_fill(length == 0, 1.0)) -> query  # keys keep their lengths
    .masked_fill(length == 0, 1.0)
        # 0 divided by 0
        .clamp(min=1e-12)  # the gradient of a query of zeros explodes
    key = scale * -> key =  # no scale
    .reshape(prod(batch), rounds, n * c)
        .view(prod(batch), rounds, n * c)  # buckets must be contiguous
    n = max(2, ceil(t / c)) -> n = max(2, t // c)  # the last positions cut off
    real if mask is None else mask -> real  # mask ignored
    ids.masked_fill(~real[:, None], torch.iinfo(ids.dtype).max)
        ids  # padding sorted among the text
    time = time.masked_fill(~real, n * c) -> pass  # padding is met
    torch.cat([own[:, 1:2], own[:, :-1]], dim=1)
        own.roll(1, 1)  # the first chunk looks at the last
        torch.cat([own[:, 1:], own[:, -2:-1]], dim=1)  # the chunk after
    torch.cat([near, own], dim=2)
        torch.cat([own, near], dim=2)  # itself not where it is looked for
    0 if repeats else i -> i if repeats else 0  # repeats inverted
    scores.diagonal(c, -2, -1).fill_(torch.finfo(scores.dtype).min / 2)
        pass  # attends to itself
    torch.finfo(scores.dtype).min / 2 -> -torch.inf  # alone, NaN
    scores = scores.masked_fill_(hidden, -torch.inf) -> pass  # nothing hidden
    (scores - top).exp() -> scores.exp()  # overflow
    place[:, i]) for x in sums -> order[:, i]) for x in sums  # sorted again
    (top - top.amax(dim=0)).exp()
        torch.ones_like(top)  # rounds joined as if their tops were alike
    / (share * denominator).sum(dim=0)
        / denominator.sum(dim=0)  # denominators of different scales added
    heads = heads.masked_fill(~real[..., None], 0.0) -> pass  # padding gets something
    order = ids.argsort(dim=-1, stable=True)
        order = (-ids).argsort(dim=-1, stable=True)  # buckets from last to first
    _rows(value, near) -> _rows(value.detach(), near)  # no gradient of values
    require.count(chunk=chunk, positions=t, rounds=rounds)
        pass  # empty chunk or text
_hidden
    look_up(time, own)[..., None] if causal else ->  # the future is seen
    > latest -> >= latest  # off by one
    .clamp(min=0) ->  # the first chunk's look ahead is forgotten
    | (theirs == first + 1) ->  # own chunk of earlier rounds forgotten
    | (theirs == first) ->  # chunk before, of earlier rounds, forgotten
_rows
    len(places) * t, t, -> len(places), 1,  # rows of other sequences
LSHSelfAttention.__init__
    require.divides(heads=heads, d_model=d_model) -> pass  # heads that do not divide
    require.count(chunk=chunk, rounds=rounds) -> pass  # an empty chunk
    self.query_map = nn.Linear(d_model, d_model, bias=False)
        self.query_map = nn.Linear(d_model, d_model)  # a map with bias
ReformerConfig
    super().__post_init__() -> pass  # sizes unchecked
    require.choice({getattr(GPTConfig, name)}, **{name: getattr(self, name)})
        pass  # options that would be ignored
LSHSelfAttention.forward
    , mask, buckets) -> , mask)  # buckets ignored
LSHSelfAttention.project
    self.value_map(x) -> self.query_map(x)  # values are queries
    x.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        x.reshape(len(x), self.heads, x.shape[1], -1)  # view without transpose
LSHSelfAttention.attend
    repeated(self._hash(query)) -> self._hash(query)  # hashed anew when rebuilt
    if buckets is None -> if True  # buckets ignored
    causal=self.causal -> causal=False  # never causal
    scale=self.scale -> scale=1.0  # scale ignored
    repeats=self.repeats -> repeats=False  # repeats ignored
    self.output_map(heads.transpose(1, 2).flatten(2))
        self.output_map(heads.flatten(2).view(len(query), -1, self.d_model))
            # heads and positions mixed
LSHSelfAttention.hash
    self.project(x)[0] -> self.project(x)[1]  # values hashed
LSHSelfAttention._hash
    2 * ceil(query.shape[2] / self.chunk) -> 2  # two buckets at any length
    (2 * ceil(sqrt(buckets) / 2),) * 2
        2 * ceil(sqrt(buckets) / 2)  # one digit forgotten
Reformer.__init__
    causal=True -> causal=False  # sees what comes
    reading(make()), reading(network) -> make(), network  # streams as they are
    nn.Dropout(c.dropout) -> nn.Dropout(0.0)  # what is added isn't dropped
    c.d_ff, c.dropout, c.ff_chunk -> c.d_ff, 0.0, c.ff_chunk  # no dropout in networks
    , c.ff_chunk) -> )  # chunks of another size
    c.chunk, c.rounds) -> c.chunk)  # rounds as they come
    attention or partial(hashed, causal=True)
        partial(hashed, causal=True)  # the attention given is ignored
    for _ in range(c.layers) -> for _ in range(1)  # one block
Reformer.forward
    self.positions(self.embedding(tokens)) -> self.embedding(tokens)  # no positions
    self.blocks(x, x) -> self.blocks(x, 0 * x)  # one stream begins empty
    [y1, y2] -> [y1, y1]  # one stream read twice
    self.norm(torch.cat([y1, y2], dim=-1))
        torch.cat([y1, y2], dim=-1)  # not normalised
    require.ids(self.config.vocab_size, tokens=tokens) -> pass  # any id
"""
