TABLE = r"""
length_mask
    positions < lengths -> positions <= lengths  # off by one
    positions < lengths -> positions >= lengths  # inverted
    [:, None, None, :] -> [None, None, :, :]  # axes
    (size, device=lengths.device) -> (size)  # device
    require.within(0, size, lengths=lengths) -> pass  # lengths unchecked
padding_mask
    tokens != pad -> tokens == pad  # inverted
    tokens != pad -> tokens != 0  # pad ignored
    [:, None, None, :] -> [:, None, :, None]  # queries hidden, not keys
    pad: int = 0 -> pad: int = 1  # default pad
    @require.shapes\n ->  # tokens unchecked
causal_mask
    .tril( -> .triu(  # the future alone
    tril(keys - queries)
        tril()  # as if from the first key
        tril(keys - queries - 1)  # not its own position
        tril(keys - queries + 1)  # one position ahead
    torch.ones(queries, keys -> torch.ones(keys, queries  # axes swapped
    , device=device ->  # device ignored
    require.at_most(queries=queries, keys=keys) -> pass  # more queries than keys
document_mask
    == -> >=  # later documents see earlier ones
    [:, None]\n -> \n  # axes
count_positions
    mask & causal_mask(mask.shape[-1], device=mask.device)
        mask & mask.mT  # later tokens counted
    - 1) -> )  # the token itself counted
    .clamp(min=0) ->  # padding at -1
    , device=mask.device ->  # device
"""
