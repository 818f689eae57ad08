TABLE = r"""
QueryKeyNormAttention.__init__
    self.query_norm = nn.RMSNorm(width, eps=1e-6)
        self.query_norm = nn.LayerNorm(width, eps=1e-6)  # the mean is subtracted
    width = self.d_model // self.heads -> width = 1  # every number by itself
    self.key_norm = nn.RMSNorm(width, eps=1e-6)
        self.key_norm = self.query_norm  # one gain for both
QueryKeyNormAttention.project
    query, key, value, start) -> query, key, value)  # start ignored
    query, key, value, start) -> query, None, None, start)  # sources ignored
    return self.query_norm(q), self.key_norm(k), v
        return self.query_norm(q), k, v  # keys as they were
        return self.query_norm(q), self.key_norm(k), self.key_norm(v)
            # values are normalised, too
window_mask
    - queries - window) -> - queries - window + 1)  # a key too few
    - queries - window) -> - window - 1)  # counted from the first query
    return past & ~ -> return ~  # keys after their query
    require.count(window=window) -> pass  # a window of none
    causal_mask(queries, keys, device)
        causal_mask(queries, queries, device)  # no more keys than queries
SlidingWindowAttention.__init__
    require.count(window=window) -> pass  # a window of none
    require.choice([True], causal=self.causal) -> pass  # looks ahead
SlidingWindowAttention.attend
    self._visible(q, k, mask)) -> mask)  # no window
SlidingWindowAttention._visible
    near if mask is None else near & mask
        near  # a given mask is ignored
        near if mask is None else mask  # a given mask replaces the window
cache_numbers
    min(length, window) -> max(length, window)  # the window adds
    2 * heads -> heads  # keys alone
    config.heads if config.kv_heads is None else config.kv_heads
        config.heads  # shared heads count as often as they're used
    sum(latent) -> latent[0]  # no turned key
    config.layers * length -> length  # one layer
    require.count(0, length=length) -> pass  # a length below 0
    require.count(window=window) -> pass  # a window of none
"""
