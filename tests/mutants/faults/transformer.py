TABLE = r"""
TransformerConfig
    norm: str = "post" -> norm: str = "pre"  # default norm
TransformerConfig.__post_init__
    require.even(d_model=self.d_model) -> pass  # odd width
    require.divides(heads=self.heads, d_model=self.d_model)
        pass  # heads that do not divide
    require.choice(("pre", "post"), norm=self.norm) -> pass  # unknown norm
    - 1, pad=self.pad -> , pad=self.pad  # padding outside the vocabulary
    not self.tied or -> True or  # tied vocabularies of two sizes
BlockConfig
    activation: str = "relu" -> activation: str = "gelu"  # default activation
    require.choice(ACTIVATIONS, activation=self.activation)
        pass  # unknown activation
    require.choice(NORMS, norm_kind=self.norm_kind) -> pass  # unknown norm
    require.positive(norm_epsilon=self.norm_epsilon) -> pass  # any epsilon
FeedForward.__init__
    d_ff, d_model, bias=bias -> d_ff, d_model  # bias of the second map
    d_model, d_ff, bias=bias) if gated -> d_model, d_ff) if gated  # bias of the gate
    ACTIVATIONS[activation] -> F.relu  # activation ignored
FeedForward.forward
    self.outer(self.dropout(inner))
        self.dropout(self.outer(inner))  # dropout of the output
    self.dropout(inner) -> inner  # no dropout
    self.activation(self.gate(x)) * self.inner(x)
        self.gate(x) * self.activation(self.inner(x))  # the gate is not the gate
Residual.__init__
    , eps=epsilon ->  # epsilon ignored
    NORMS[kind] -> nn.LayerNorm  # kind ignored
    require.choice(NORMS, kind=kind) -> pass  # unknown kind
    norm: str = "post" -> norm: str = "pre"  # default order
Residual.forward
    == "pre" -> != "pre"  # orders swapped
    x + self.dropout(sublayer(self.norm(x)))
        (y := self.norm(x)) + self.dropout(sublayer(y))  # stream normalised
    sublayer(self.norm(x)) -> sublayer(x)  # no norm
    self.norm(x + self.dropout(sublayer(x)))
        x + self.norm(self.dropout(sublayer(x)))  # norm of what is added
    x + self.dropout(sublayer(self.norm(x)))
        self.dropout(x + sublayer(self.norm(x)))  # stream dropped
    x + self.dropout(sublayer(x)) -> self.dropout(sublayer(x))  # no residual
last_norm
    config.norm == "post" -> config.norm == "pre"  # last norms swapped
    NORMS[config.norm_kind] -> nn.LayerNorm  # kind ignored
    , eps=config.norm_epsilon ->  # epsilon ignored
_residuals
    c.dropout, c.norm, -> c.dropout, 'post',  # norm ignored
    options = c.dropout -> options = 0.0  # no dropout of what is added
    c.norm_kind -> 'layer'  # kind ignored
    , c.norm_epsilon ->  # epsilon ignored
EncoderLayer.__init__
    c.heads, c.dropout, c.bias -> c.heads, 0.0, c.bias  # no dropout of weights
    c.d_ff, c.dropout, -> c.d_ff, 0.0,  # no dropout in feed-forward networks
    c.heads, c.dropout, c.bias -> c.heads, c.dropout  # biases of attention
    , c.activation, c.bias -> , c.activation  # biases of networks
    c.activation -> 'relu'  # activation ignored
    attention or plain -> plain  # the attention given is ignored
EncoderLayer.forward
    attend, map_each = self -> map_each, attend = self  # residuals swapped
    , mask=mask) -> )  # mask forgotten
    lambda x: -> lambda _:  # attention reads the stream
DecoderLayer.__init__
    c.heads, c.dropout, c.bias -> c.heads, 0.0, c.bias  # no dropout of weights
    c.d_ff, c.dropout, -> c.d_ff, 0.0,  # no dropout in feed-forward networks
    c.heads, c.dropout, c.bias -> c.heads, c.dropout  # biases of attention
    , c.activation, c.bias -> , c.activation  # biases of networks
    c.activation -> 'relu'  # activation ignored
    (attention or plain) -> plain  # the attention given is ignored
    (cross_attention or plain) -> (attention or plain)  # one kind for both
DecoderLayer.forward
    attend, look_up, map -> look_up, attend, map  # residuals swapped
    (x, mask=mask) -> (x)  # mask forgotten
    , mask=memory_mask) -> )  # mask of the memory forgotten
    self.cross_attention(x, memory -> self.attention(x, memory  # one attention for both
    lambda x: self.cross -> lambda _: self.cross  # attention reads the stream
Encoder.__init__
    EncoderLayer(config, attention) for _ in range(config.layers)
        [EncoderLayer(config, attention)] * config.layers  # layers shared
    last_norm(config) -> nn.Identity()  # no last norm
Encoder.forward
    layer(x, mask) -> layer(x)  # mask forgotten
    self.norm(x) -> x  # no last norm
Decoder.__init__
    DecoderLayer(config, attention, cross_attention)\n            for _ in
            range(config.layers)
        [DecoderLayer(config, attention, cross_attention)]\n            * config.layers
            # layers shared
    last_norm(config) -> nn.Identity()  # no last norm
    (config, attention, cross_attention) -> (config)  # attention ignored
Decoder.forward
    , mask, memory_mask) -> , mask)  # mask of the memory forgotten
    , mask, memory_mask) -> , None, memory_mask)  # mask forgotten
    self.norm(x) -> x  # no last norm
Transformer.__init__
    self.source_embedding if c.tied else nn.Embedding(c.target
        nn.Embedding(c.target  # target not tied
    self.output.weight = self.source_embedding.weight -> pass  # output not tied
    , bias=False) -> )  # bias of the output
    std=c.d_model**-0.5 -> std=1.0  # large embeddings
    in (self.source_embedding, self.target_embedding):
        in (self.source_embedding,):  # embeddings of the target as matrices
    nn.init.xavier_uniform_(parameter) -> pass  # not Glorot's
    c.max_len, c.dropout) -> c.max_len)  # no dropout of embeddings
Transformer.encode
    * self.config.d_model**0.5 ->  # embeddings not multiplied
    padding_mask(source, self.config.pad) -> padding_mask(source)  # pad ignored
    self.positions(x), mask), mask
        self.positions(x)), mask  # padding of the source seen
    self.positions(x) -> x  # no positions
    require.ids(self.config.source_vocab, source=source) -> pass  # ids unchecked
Transformer.decode
    * self.config.d_model**0.5 ->  # embeddings not multiplied
    mask = mask & causal_mask(target.shape[1], device=target.device)
        pass  # the future seen
    , device=target.device ->  # device of the causal mask
    mask = mask & causal -> mask = causal  # padding of the target seen
    padding_mask(target, self.config.pad) -> padding_mask(target)  # pad ignored
    self.target_embedding( -> self.source_embedding(  # embedding of the source
    require.ids(self.config.target_vocab
        require.ids(self.config.source_vocab  # ids of the source
    mask, memory_mask) -> mask)  # padding of the source seen
Transformer.forward
    *self.encode(source) -> self.encode(source)[0]  # mask of the memory lost
"""
