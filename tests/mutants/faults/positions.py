TABLE = r"""
frequencies
    / width) -> / (width - 1))  # divided by one too few
    -math.log(base) -> math.log(base)  # ever faster
    torch.float64 -> torch.float32  # single precision
    math.log(base) -> math.log(10000.0)  # base ignored
    require.even(width=width) -> pass  # odd width
sinusoidal_encoding
    torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
        torch.cat([angles.sin(), angles.cos()], dim=-1)  # halves, not pairs
    angles.sin(), angles.cos() -> angles.cos(), angles.sin()  # cosine first
    * frequencies(d_model, base)  #
        .float() * frequencies(d_model, base).float()  #  # angles in single precision
    (d_model, base)  # -> (d_model)  #  # base ignored
    .float() ->  # a table in double precision
    require.even(d_model=d_model) -> pass  # odd width
PositionalEncoding.__init__
    persistent=False -> persistent=True  # saved
    self.register_buffer("table", table, persistent=False)
        self.table = table  # no buffer
    nn.Dropout(dropout) -> nn.Dropout(0.0)  # no dropout
PositionalEncoding.forward
    self.dropout(x + _rows(self.table, x, start, positions))
        x + self.dropout(_rows(self.table, x, start, positions))
            # dropout of the encoding
        self.dropout(x) + _rows(self.table, x, start, positions)  # dropout of the input
    x, start, p -> x, 0, p  # start ignored
    start, positions) -> start, None)  # positions ignored
    @require.shapes(d="d_model") ->  # shapes unchecked
LearnedPositionalEmbedding.__init__
    , std=0.02 ->  # begins large
    nn.init.normal_(self.table, std=0.02)
        nn.init.zeros_(self.table)  # begins with all alike
LearnedPositionalEmbedding.forward
    x, start, p -> x, 0, p  # start ignored
    start, positions) -> start, None)  # positions ignored
    _rows(self.table, -> _rows(self.table.detach(),  # nothing is learned
rotary_embedding
    (start, start + x.shape[-2] -> (0, x.shape[-2]  # start ignored
    , base)) -> ))  # base ignored
    @require.shapes\n ->  # shapes unchecked
rotary_table
    * frequencies(width, base)
        .float() * frequencies(width, base).float()  # angles in single precision
    (width, base) -> (width)  # base ignored
    angles.cos(), angles.sin() -> angles.sin(), angles.cos()  # sine first
turn_pairs
    first * cosine - second * sine, first * sine + second * cosine
        first * cosine + second * sine, second * cosine - first * sine
            # the other way round
    unflatten(-1, (-1, 2)).unbind(-1) -> chunk(2, dim=-1)  # halves turned
    torch.promote_types(x.dtype, torch.float32)
        x.dtype  # turned in half precision
        torch.float32  # double precision lost
    .to(x.device) ->  # device of the table
    .flatten(-2).to(x.dtype) -> .flatten(-2)  # dtype of the input lost
RotaryMultiHeadAttention.__init__
    persistent=False -> persistent=True  # saved
    self.base = base -> self.base = 10000.0  # base ignored
RotaryMultiHeadAttention.project
    start + k.shape[2] - q.shape[2]
        start  # as if the first queries
        k.shape[2] - q.shape[2]  # start of the queries ignored
    self.turn(k, start) -> k  # keys not turned
    self.turn(k, start) -> self.turn(k, 0)  # start of the keys ignored
    self.turn(q, first) -> q  # queries not turned
    require.at_most(queries=q.shape[2], keys=k.shape[2])
        pass  # more queries than keys
RotaryMultiHeadAttention.turn
    end > len(self.table) -> True  # computed at each call
    or self.table.dtype != wide ->  # angles in half precision
    max(end, 2 * len(self.table)) -> end  # computed for each new position
    torch.inference_mode(False) -> torch.no_grad()  # no learning after inference mode
    self.table[start:end] -> self.table[: end - start]  # start ignored
    , self.base) -> )  # base ignored
_rows
    table[start:end].to(x.dtype) -> table[start:end]  # dtype of the input lost
    table[positions].to(x.dtype) -> table[positions]  # dtype lost beside positions
    require.within(0, len(table) - 1, positions=positions)
        pass  # positions beyond the table
    require.at_most(length=end, max_len=len(table)) -> pass  # beyond the table
    length=end, -> length=end + 1,  # last position refused
"""
