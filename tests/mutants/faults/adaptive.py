TABLE = r"""
_Clusters.__init__
    d_embed // div_value**i -> d_embed // div_value  # rare words as wide
    * d_model**-0.5 ->  # begins large
    start < end -> start <= end  # an empty cluster
    require.count(div_value ** len(cutoffs), d_embed=d_embed)
        pass  # a cluster without width
_Clusters._map
    std=width**-0.5 -> std=0.02  # narrow clusters begin small
    if width == self.d_model: -> if False:  # a map where none is needed
    bias=False -> bias=True  # a map with a bias
AdaptiveEmbedding.__init__
    self._map(w, w, d_model) -> self._map(w, w, d_model + 1)  # too wide
AdaptiveEmbedding.forward
    - start ->  # rows counted from the first word
    tokens >= start -> tokens > start  # first word of a cluster lost
    * self.d_model**0.5 ->  # no scale
    .to(x.dtype) ->  # no autocast
    require.ids(self.vocab_size, tokens=tokens) -> pass  # ids unchecked
AdaptiveSoftmax.__init__
    * d_model**-0.5 -> * 0.0  # clusters begin at 0
    self._map(w, d_model, w) -> self._map(w, d_model, w + 1)  # too wide
AdaptiveSoftmax.forward
    clusters[..., i - 1, None] + ->  # probability given the cluster alone
    i - 1, None -> -i, None  # rows of the clusters reversed
AdaptiveSoftmax.loss
    >= starts -> > starts  # first word of a cluster in the one before
    - 1 + cluster -> + cluster  # the next cluster's row
    - self.bounds[i] ->  # rows counted from the first word
    accumulate=True -> accumulate=False  # probability of the cluster lost
    return -log_p -> return log_p  # sign
    require.ids(self.vocab_size, target=target) -> pass  # ids unchecked
    @require.shapes(d="d_model") ->  # shapes unchecked
AdaptiveSoftmax._head
    [self.tables[0], self.clusters] -> [self.clusters, self.tables[0]]  # clusters first
AdaptiveSoftmax._tail
    self.tables[i] -> self.tables[i].detach()  # nothing is learned
AdaptiveSoftmax._logs
    self.maps[i](x) -> self.maps[i](x) if i else x  # first map ignored
    .log_softmax(dim=-1, dtype=wide) ->  # not normalised
    torch.promote_types(logits.dtype, torch.float32)
        logits.dtype  # normalised in half precision
        torch.float32  # double precision lost
"""
