TABLE = r"""
ScoredAttention.attend
    , mask) -> , None)  # mask forgotten
    , weights\n -> , weights.detach()\n  # weights cut off
    prepared, previous) -> prepared, None)  # previous alignment forgotten
ScoredAttention.forward
    values = keys if values is None else values -> values = keys  # values ignored
    self.prepare(keys) -> keys  # not prepared
    @require.shapes(q="query_size", k="key_size") ->  # shapes unchecked
AdditiveAttention.__init__
    nn.Linear(query_size, hidden, bias=False)
        nn.Linear(query_size, hidden)  # bias of the query
    self.query_size, self.key_size = query_size, key_size -> pass  # widths unchecked
AdditiveAttention.score
    torch.tanh(sums) -> sums  # tanh dropped
    self.query_map(query)[: -> 0 * self.query_map(query)[:  # query unseen
DotAttention.__init__
    bias=False -> bias=True  # bias of the map
    (query_size is None) == (key_size is None) -> True  # one width
DotAttention.score
    prepared.transpose(1, 2)
        prepared.transpose(1, 2) / query.shape[-1] ** 0.5  # scaled
LocationSensitiveAttention.__init__
    padding=padding -> padding=0  # ends cut off
    require.that(kernel % 2 -> require.that(True  # a kernel with no centre
LocationSensitiveAttention.score
    previous[:, None, :] -> previous[:, None, :].roll(1, -1)  # not centred
    self.location_map(location) + ->  # location unseen
    + self.offset ->  # offset forgotten
    prepared.new_zeros(prepared.shape[:2])
        prepared.new_ones(prepared.shape[:2]) / prepared.shape[1]
            # begins as if all was read
LocationSensitiveAttention.attend
    previous = weights[:, 0] -> pass  # alignment not passed on
    previous = weights[:, 0] -> previous = weights[:, 0].detach()  # alignment cut off
    (b, t, s)[:, i : i + 1] -> (b, t, s)[:, :1]  # mask of the first query
    query[:, i : i + 1] -> query[:, :1]  # first query again and again
    mask.expand(b, t, s) -> mask  # mask not spread out
    require.mask(mask, (b, t, s)) -> pass  # mask unchecked
"""
