TABLE = r"""
TransformerXLConfig
    require.even(d_model=self.d_model) -> pass  # odd width
    super().__post_init__() -> pass  # choices unchecked
    require.count(0, mem_len=self.mem_len, ext_len=self.ext_len)
        pass  # negative lengths
    self.same_length and not self.mem_len -> False  # same_length, no memory
    require.divides(heads=self.heads, d_model=self.d_model)
        pass  # heads that do not divide
    require.probability(dropout=self.dropout) -> pass  # any dropout
relative_shift
    F.pad(x, (1, 0)) -> F.pad(x, (0, 1))  # padded after the rows
    line[..., t:] -> line[..., :-t]  # the last numbers dropped
    F.pad(x, (1, 0)) -> F.pad(x.detach(), (1, 0))  # no gradient
    require.at_most(queries=t, keys=s) -> pass  # more queries than keys
    line = F.pad(x, (1, 0)).flatten(-2)  #
        x.mul_(1.5)\n    line = F.pad(x, (1, 0)).flatten(-2)  #  # in place
RelativeMultiHeadAttention.__init__
    self.content_bias = nn.Parameter(torch.zeros(
        self.content_bias = nn.Parameter(torch.empty(  # u is never initialised
    self.position_bias = nn.Parameter(torch.zeros(
        self.position_bias = nn.Parameter(torch.empty(  # v is never initialised
    bias=False, causal -> bias=True, causal  # maps with biases
    , causal=True) -> )  # sees what comes next
    (d_model, heads, dropout, -> (d_model, heads, 0.0,  # no dropout
RelativeMultiHeadAttention.score_bias
    + content ->  # no u
    q + self.position_bias -> q  # no v
    q + self.position_bias -> q + self.content_bias  # u for v
    .flip(0) ->  # R from distance 0 on
    relative_shift(by_distance) -> by_distance  # no shift
    ((q + self.position_bias) * scale) -> (q + self.position_bias)  # no scale
    (self.content_bias * scale) -> self.content_bias  # no scale of u
    self.position_map(positions) -> self.key_map(positions)  # W_kE for W_kR
TransformerXLLayer.__init__
    config.heads, config.dropout -> config.heads, 0.0  # no dropout
TransformerXLLayer.forward
    memory = attend.norm(memory) -> pass  # memory is not normalised
    == "pre" -> == "post"  # normalised where it should not be
    torch.cat([memory, x], dim=1)
        torch.cat([x, memory], dim=1)  # memory after the segment
update_memory
    .detach() ->  # no stop-gradient
    - ext_len ->  # ext_len ignored
    max(0, end - mem_len) -> max(0, end - mem_len + 1)  # one too few
    memory.shape[-2] + max(0, states.shape[-2] - ext_len)
        states.shape[-2] + max(0, memory.shape[-2] - ext_len)  # lengths swapped
    max(0, states.shape[-2] - ext_len)
        states.shape[-2] - ext_len  # older memory lost
    [memory, states] -> [states, memory]  # order
    require.count(0, mem_len=mem_len, ext_len=ext_len) -> pass  # lengths unchecked
TransformerXL.__init__
    last_norm(c) -> nn.LayerNorm(c.d_model)  # end of post-norm normalised
    if c.tied: -> if True:  # always tied
    , persistent=False ->  # the table is saved
    nn.Dropout(c.dropout) -> nn.Dropout(0.0)  # no dropout
TransformerXL.forward
    self._read(tokens, memories) -> self._read(tokens)  # memories ignored
    @require.shapes(layers="config.layers", d="config.d_model") ->  # shapes unchecked
TransformerXL.loss
    x[:, x.shape[1] - target.shape[1] :]
        x[:, : target.shape[1]]  # the first positions predict
        x[:, -target.shape[1] :]  # all positions for no target
    self._read(tokens, memories) -> self._read(tokens)  # memories ignored
    require.at_most(targets=target.shape[1], tokens=tokens.shape[1])
        pass  # more targets than tokens
TransformerXL._read
    key < c.mem_len -> key <= c.mem_len  # one key too many
    if c.same_length: -> if False:  # no same_length
    key.flip(0) -> key  # R from distance 0 on
    .clamp(max=furthest) ->  # no clamp_len
    m + t > len(self.table) -> True  # the table is computed each time
    states.append(layer(states[-1], memory
        states.append(layer(states[-1], memories[0]  # every layer has one memory
    *states, x = states
        states, x = states[1:], states[-1]  # outputs are remembered, not inputs
    self.dropout(self.table[ -> (self.table[  # no dropout of positions
    return self.dropout(self.norm(x)) -> return self.norm(x)  # no dropout of the output
    [self.dropout(self.embedding(tokens))]
        [self.embedding(tokens)]  # no dropout of embeddings
    require.at_most(memories=m, mem_len=c.mem_len) -> pass  # memories too long
    self.norm(x) -> x  # end of pre-norm not normalised
TransformerXL.remember
    c.mem_len, c.ext_len -> c.mem_len  # ext_len ignored
"""
