TABLE = r"""
ClassifierConfig
    require.choice(POOLINGS, pooling=self.pooling) -> pass  # pooling unchecked
    require.divides(heads=self.heads, d_model=self.d_model)
        pass  # heads that don't divide
pool
    states = states.masked_fill(~real[..., None], 0.0) -> pass  # padding averaged, too
    / real.sum(dim=1, keepdim=True).clamp(min=1) -> / real.shape[1]  # padding counted
    .clamp(min=1) ->  # a text without tokens
    (real.cumsum(dim=1) == 1)
        (real.cumsum(dim=1) == real.sum(1)[:, None])  # the last token
    real & (real.cumsum(dim=1) == 1)
        torch.arange(real.shape[1]) == 0  # the first position, padding or not
    or not states.shape[1] ->  # a batch without positions
    states.masked_fill(~real[..., None], lowest).amax
        states.amax  # padding is 0 in the maximum
    torch.where(some, largest, 0.0) -> largest  # the lowest for no tokens
    require.choice(POOLINGS[:3], pooling=pooling) -> pass  # pooling unchecked
AttentionPooling.weights
    .masked_fill(~real, -torch.inf) ->  # padding attended to
    .nan_to_num() ->  # a text without tokens
TransformerClassifier.states
    padding_mask(tokens, c.pad) -> None  # without a mask
    padding_mask(tokens, c.pad) -> padding_mask(tokens)  # pad ignored
    self.dropout(x) -> x  # no dropout
    require.ids(c.vocab_size, tokens=tokens) -> pass  # ids unchecked
    require.at_most(length=tokens.shape[1], max_len=c.max_len)
        pass  # length unchecked
TransformerClassifier.forward
    tokens != self.config.pad -> tokens != 0  # pad ignored
    , self.config.pooling)) -> ))  # always the mean
"""
