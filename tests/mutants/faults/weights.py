TABLE = r"""
load_gpt2
    *maps, transposed=True -> *maps  # query, key and value map not transposed
    ("query", "key", "value") -> ("key", "query", "value")  # another order
    "wte.weight")\n -> "wpe.weight")\n  # the output is no position
    activation="gelu_tanh", ->  # another activation
    ".attn.bias", ->  # masks of older files
load_bert
    "LayerNorm.gamma": "LayerNorm.weight", ->  # names of 2018
    f"{ours}residuals.1.norm" -> f"{ours}residuals.0.norm"  # one norm for both
    if not n.endswith(".position_ids") ->  # positions of older files
    _drop_copy(state, f"{head}decoder.bias", f"{head}bias")
        pass  # the bias is there twice
load_albert
    _require(config, norm_kind="layer", bias=True, shared=True)
        pass  # another kind of model
    ("gelu", "gelu_tanh") -> ("gelu_tanh",)  # the exact one refused
    config.embedding_width is not None -> True  # no width
    f"{ours}residuals.1.norm" -> f"{ours}residuals.0.norm"  # one norm for both
    "predictions.bias")\n -> "predictions.dense.bias")\n  # another bias
    if not n.endswith(".position_ids") ->  # positions of older files
    delattr(model, name) -> pass  # a head without weights
    "sop_classifier.classifier": "follows" ->  # sentences never ordered
read_safetensors
    "little" -> "big"  # the other end first
    header.pop("__metadata__", None) -> pass  # what is no tensor
    (ValueError, KeyError, TypeError, AttributeError)
        (ValueError, KeyError)  # other JSON
    8 + int -> int  # eight bytes too early
_tensor
    end <= len(numbers) -> True  # a file cut off
    end - begin == prod(shape) * dtype.itemsize -> True  # another shape
    .reshape(shape) ->  # flat
    begin=begin, ->  # offsets into the header
    **{f"shape[{i}]": n for i, n in enumerate(shape)} ->  # lengths below 0
    if begin == end: -> if False:  # an empty tensor
load_llama
    "feed_forward.gate" -> "feed_forward.inner"  # the gate is not filled
    (layer.attention.query_map, layer.attention.key_map)
        (layer.attention.query_map,)  # keys in another order
    if not n.endswith(".inv_freq") ->  # angles of older files
    if config.tied: -> if False:  # an output that is not there
_in_pairs
    (-1, 2, width // 2) -> (-1, width // 2, 2)  # the other way round
    heads.transpose(1, 2) -> heads  # halves
_fill
    shape[::-1] if entry.transposed else shape -> shape  # transposed refused
    , which is transposed ->  # not told
    part.data.copy_(piece) -> part.data = piece  # not copied
    if name not in entries -> if False  # unexpected names
    faults.append(f"{name} is missing: {wanted} wanted") -> pass  # missing
    model.eval() -> model  # in training
_require
    require.choice([value], -> dict(  # another kind of model
_drop_copy
    twin.shape == first.shape and torch.equal(twin, first) -> True  # another table
"""
