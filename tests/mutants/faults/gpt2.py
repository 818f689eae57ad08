TABLE = r"""
count_parameters
    4 * (c.d_model**2 + c.d_model) -> 4 * c.d_model**2  # no biases
    + c.d_ff + c.d_model -> + c.d_ff  # no bias at the end of a network
    2 * norm) + norm -> 2 * norm)  # no last norm
    (c.vocab_size + c.max_len) -> (2 * c.vocab_size + c.max_len)  # the head
    (c.vocab_size + c.max_len) -> c.vocab_size  # no positions
    require_gpt2(config) -> pass  # any GPT is counted
require_gpt2
    "tied": [True],\n ->  # untied ones are counted
    "bias": [True],\n ->  # those without biases are counted
    "norm_kind": ["layer"],\n ->  # RMS norms are counted
    "positions": ["learned"],\n ->  # rotary ones are counted
    "kv_heads": [None, config.heads],\n ->  # shared keys are counted
    [None, config.heads] -> [None]  # as many heads of keys refused
    if name != "swiglu" ->  # gated networks are counted
initialise
    (2 * model.config.layers) ** 0.5 -> model.config.layers ** 0.5  # one for each block
    if scaled else 1.0) -> if True else 1.0)  # always scaled
    if scaled else 1.0) -> if False else 1.0)  # never scaled
    if module in last_maps else 1.0 ->  # all are scaled
    nn.init.zeros_(module.bias) -> pass  # biases stay
    nn.init.normal_(model.positions.table, std=std) -> pass  # positions stay
    if model.positions is not None -> if True  # rotary models have no table
    require.positive(std=std) -> pass  # deviation 0
_last_maps
    block.attention.output_map, -> block.attention.value_map,  # values
    block.feed_forward.outer -> block.feed_forward.inner  # the inner map
"""
