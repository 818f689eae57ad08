"""Faults of annotated/positions.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "frequencies": [
        ("/ width)", "/ (width - 1))", "divided by one too few"),
        ("-math.log(base)", "math.log(base)", "ever faster"),
        ("torch.float64", "torch.float32", "single precision"),
        ("math.log(base)", "math.log(10000.0)", "base ignored"),
        ("require.even(width=width)", "pass", "odd width"),
    ],
    "sinusoidal_encoding": [
        ("torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)",
         "torch.cat([angles.sin(), angles.cos()], dim=-1)", "halves, not pairs"),
        ("angles.sin(), angles.cos()", "angles.cos(), angles.sin()", "cosine first"),
        ("* frequencies(d_model, base)  #", ".float() * frequencies(d_model, base)"
         ".float()  #", "angles in single precision"),
        ("(d_model, base)  #", "(d_model)  #", "base ignored"),
        (".float()", "", "a table in double precision"),
        ("require.even(d_model=d_model)", "pass", "odd width"),
    ],
    "PositionalEncoding.__init__": [
        ("persistent=False", "persistent=True", "saved"),
        ('self.register_buffer("table", table, persistent=False)', "self.table = table",
         "no buffer"),
        ("nn.Dropout(dropout)", "nn.Dropout(0.0)", "no dropout"),
    ],
    "PositionalEncoding.forward": [
        ("self.dropout(x + _rows(self.table, x, start))",
         "x + self.dropout(_rows(self.table, x, start))", "dropout of the encoding"),
        ("self.dropout(x + _rows(self.table, x, start))",
         "self.dropout(x) + _rows(self.table, x, start)", "dropout of the input"),
        ("x, start))", "x, 0))", "start ignored"),
        ('    @require.shapes(d="d_model")\n', "", "shapes unchecked"),
    ],
    "LearnedPositionalEmbedding.__init__": [
        (", std=0.02", "", "begins large"),
        ("nn.init.normal_(self.table, std=0.02)", "nn.init.zeros_(self.table)",
         "begins with all alike"),
    ],
    "LearnedPositionalEmbedding.forward": [
        ("x, start)", "x, 0)", "start ignored"),
        ("_rows(self.table,", "_rows(self.table.detach(),", "nothing is learned"),
    ],
    "rotary_embedding": [
        ("first * cosine - second * sine, first * sine + second * cosine",
         "first * cosine + second * sine, second * cosine - first * sine",
         "the other way round"),
        ("x[..., 0::2], x[..., 1::2]", "x.chunk(2, dim=-1)", "halves turned"),
        ("torch.arange(start, start + x.shape[-2]", "torch.arange(x.shape[-2]",
         "start ignored"),
        ("* frequencies(x.shape[-1], base)", ".float() * frequencies(x.shape[-1], base)"
         ".float()", "angles in single precision"),
        ("(x.shape[-1], base)", "(x.shape[-1])", "base ignored"),
        ("angles.sin().to(x), angles.cos().to(x)",
         "angles.sin().to(x.dtype), angles.cos().to(x.dtype)", "device of the angles"),
        ("angles.sin().to(x), angles.cos().to(x)",
         "angles.sin().to(x.device), angles.cos().to(x.device)",
         "dtype of the input lost"),
        ("angles.sin().to(x), angles.cos().to(x)",
         "angles.to(x).sin(), angles.to(x).cos()",
         "angles in half precision"),
    ],
    "RotaryMultiHeadAttention._queries_and_keys": [
        (", start=k.shape[-2] - q.shape[-2]", "", "as if the first queries"),
        (", rotary_embedding(k)", ", k", "keys not turned"),
        ("rotary_embedding(q, start=k.shape[-2] - q.shape[-2])", "q",
         "queries not turned"),
        ("require.at_most(queries=q.shape[-2], keys=k.shape[-2])", "pass",
         "more queries than keys"),
    ],
    "_rows": [
        (".to(x.dtype)", "", "dtype of the input lost"),
        ("require.at_most(length=end, max_len=len(table))", "pass", "beyond the table"),
        ("length=end,", "length=end + 1,", "last position refused"),
    ],
}
