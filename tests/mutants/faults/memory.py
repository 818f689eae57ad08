TABLE = r"""
MemoryUse.total
    sum(self) -> max(self)  # the largest part alone
kept_activations
    stream + 2 * tokens) -> stream + tokens)  # no mean
    3 if mixed else 1 -> 1  # autocast makes one copy
    4 * tokens * config.heads
        narrow * tokens * config.heads  # sums of softmaxes in half precision
    INNER[config.activation] * inner -> 2 * inner  # a ReLU keeps both
    copies = _copies(config) if mixed else 0 -> copies = 0  # no copies
    _copies(config) if mixed else 0 -> _copies(config)  # always copies
    wide * (logits + 1) -> narrow * (logits + 1)  # the loss in half precision
    dropout=config.dropout -> dropout=0.0  # dropout is taken
    require_gpt2(config) -> pass  # any GPT is predicted
    require.at_most(length=length, max_len=config.max_len)
        pass  # longer than the context
_copies
    return 2 * -> return 4 *  # in single precision
memory_timeline
    (two - one) -> two  # the tables are in every block
    weights if accumulating else gradients
        gradients  # gradients of before are forgotten
    enumerate((3, 2, 1)) -> enumerate((1, 2, 3))  # parameters are shared first
    -(-shared[i] // shards) -> shared[i] // shards  # the last one is too full
    held = entry if checkpointed else -> held =  # checkpoints keep all
    (c.layers * _copies(c) if checkpointed else 0) -> 0  # no copies are cached
    2 * logits) -> logits)  # one gradient of the logits
    (i - 1) * held + kept["block"] -> i * held  # nothing is computed again
    entry + 2 * inner -> entry  # networks need nothing
    2 * table) -> table)  # gradients of a tied table are one
    weights if foreach else 2 * table -> 2 * table  # one at a time
    if stage:  # -> if stage > 1:  #  # stage 1 updates everything everywhere
    whole if OPTIMIZERS[optimizer] else 0 -> whole  # SGD as Adam
training_memory
    return max( -> return min(  # the emptiest moment
largest_batch
    1 + left // each -> left // each  # one fewer
    min(most -> max(most  # the roomiest moment counts
    return 0 -> continue  # weights that don't fit
    require.positive(room=room) -> pass  # infinite room
kept_bytes
    if at not in own ->  # parameters count, too
    kept[x.untyped_storage().data_ptr()] = x
        kept[id(x)] = x  # a storage counts twice
profiled_bytes
    sorted(begins) -> sorted(begins)[:1]  # all in the first work
    total += size -> total = size  # changes, not what's held
    sorted(changes) -> changes  # not in order
"""
