TABLE = r"""
masked_softmax
    softmax(dim=-1)\n    empty -> softmax(dim=-2)\n    empty  # over the queries
    softmax(dim=-1).masked -> softmax(dim=-2).masked  # over the queries, with a mask
    fill(~mask, -torch.inf) -> fill(mask, -torch.inf)  # inverted
    fill(~mask, -torch.inf) -> fill(~mask, -1e4)  # not low enough
    .masked_fill(empty, 0.0)\n    return -> \n    return  # NaN
    softmax(dim=-1).masked_fill(empty, 0.0)
        softmax(dim=-1)  # a row with no key sees all
    ~mask.any( -> ~mask.all(  # any and all
    require.mask(mask, scores.shape) -> pass  # mask unchecked
scaled_dot_product_attention
    scale = query.shape[-1] ** -0.5 -> scale = 1.0  # no scale
    scale = query.shape[-1] -> scale = value.shape[-1]  # scale of the values
    if scale is None: -> if True:  # scale ignored
    , mask) -> , None)  # mask ignored
    (query * scale) @ key.transpose(-2, -1)
        query @ key.transpose(-2, -1) * scale  # overflow before the scale
    F.dropout(weights, dropout) @ value, weights
        (w := F.dropout(weights, dropout)) @ value, w  # weights after dropout
    F.dropout(weights, dropout) -> weights  # no dropout
    F.dropout(weights, dropout) @ value
        F.dropout(weights @ value, dropout)  # dropout of the output
    @require.shapes\n ->  # shapes unchecked
MultiHeadAttention.__init__
    self.output_map = nn.Linear(d_model, d_model, bias=bias)
        self.output_map = nn.Linear(d_model, d_model)  # bias ignored
    require.divides(heads=heads, d_model=d_model) -> pass  # heads that do not divide
    require.probability(dropout=dropout) -> pass  # dropout unchecked
    require.divides(kv_heads=kv_heads, heads=heads)
        pass  # shared heads that do not divide
MultiHeadAttention.forward
    , mask, **options) -> , mask)  # arguments of a variant ignored
    @require.shapes(d="d_model") ->  # shapes unchecked
MultiHeadAttention.project
    self.value_map(value) -> self.value_map(key)  # values ignored
    value = key if value -> value = query if value  # default value
    self.key_map(key) -> self.query_map(key)  # one map for both
    x.unflatten(-1, (-1, k)).transpose(1, 2)
        x.reshape(len(x), -1, x.shape[1], k)  # view without transpose
        x.unflatten(-1, (k, -1)).permute(0, 3, 1, 2)  # heads interleaved
MultiHeadAttention.attend
    q, k, v, dropout_p=dropout, is_causal
        q, k, v, dropout_p=dropout, scale=1.0, is_causal  # no scale
    attn_mask=mask, dropout_p=dropout
        attn_mask=mask, dropout_p=dropout, scale=self.d_model ** -0.5
            # scale of the model
    attn_mask=mask, dropout -> attn_mask=~mask, dropout  # mask inverted
    ).masked_fill(empty, 0.0) -> )  # a row with no key sees all
    ~mask.any( -> ~mask.all(  # any and all
    self.dropout if self.training else 0.0 -> self.dropout  # drops in evaluation
    self.dropout if self.training else 0.0 -> 0.0  # never drops
    heads.transpose(1, 2).flatten(2)
        heads.contiguous().view(len(q), -1, self.d_model)  # heads not brought back
    is_causal=self.causal -> is_causal=False  # sees what comes
    and (square or not self.causal) ->  # as if the first queries
    and (square or not self.causal) -> and not self.causal  # a causal mask in memory
    and bias is None ->  # bias ignored without a mask
    .to(q.dtype) ->  # bias of another dtype
    self.score_bias(q, k, **options)
        self.score_bias(q, k)  # arguments of a variant ignored
MultiHeadAttention._for_all_heads
    x.repeat_interleave(shared, dim=1) -> x.repeat(1, shared, 1, 1)  # dealt out in turn
MultiHeadAttention._visible
    mask = mask & causal_mask( -> mask = causal_mask(  # mask ignored
    require.mask(mask, (*q.shape[:3], k.shape[2])) -> pass  # mask unchecked
    if self.causal: -> if False:  # sees what comes
    torch.atleast_2d(mask) -> mask  # a mask of keys alone
    , device=q.device)\n        return -> )\n        return  # device of the causal mask
MultiHeadAttention.weights
    q * q.shape[-1] ** -0.5 -> q  # no scale
    q * q.shape[-1] ** -0.5 -> q * query.shape[-1] ** -0.5  # scale of the model
    self._visible(q, k, mask) -> self._visible(q, k, None)  # mask ignored
    scores = scores + bias -> pass  # bias ignored
    k = self._for_all_heads(k) -> pass  # shared keys not repeated
    (q, k, **options) -> (q, k)  # arguments of a variant ignored
    torch.promote_types(x.dtype, torch.float32)
        x.dtype  # in half precision
        torch.float32  # double precision lost
record_attention
    isinstance(module, MultiHeadAttention)
        type(module) is MultiHeadAttention  # subclasses unseen
    in model.named_modules() -> in model.named_children()  # children alone
    require.that(attentions, -> require.that(True,  # nothing to record
    torch.no_grad() -> torch.enable_grad()  # graph kept
    weights(query, key, mask, **options)
        weights(query, key, None, **options)  # mask ignored
        weights(query, None, mask, **options)  # key ignored
        weights(query, key, mask)  # arguments of a variant ignored
    weights(*args, **kwargs) -> weights(args[0], **kwargs)  # arguments by place unseen
    with torch.no_grad():
        torch.rand(1)\n            with torch.no_grad():  # draws a random number
    \n            hooks.callback(handle.remove) ->  # hooks stay
    handle.remove -> module._forward_hooks.clear  # hooks of others removed
    yield maps
        try:\n            yield maps\n        except
            BaseException:\n            hooks.pop_all(); raise
            # hooks stay after an exception
"""
