TABLE = r"""
acceptance
    torch.minimum(draft, target) -> draft * target  # both draw the same
    sum(dim=-1) -> sum(dim=0)  # over rows
residual
    (target - draft) -> (draft - target)  # what the draft has more
    left / whole -> left  # no distribution
    torch.where(whole > 0, left / whole, target) -> left / whole  # NaN
    left = (target - draft).clamp(min=0)
        left = target + 0 * draft  # the model once more
speculative_step
    * q < p -> < p  # kept too seldom
    torch.rand(t, generator=generator, dtype=p.dtype) * q < p
        q <= p  # kept only where the model is surer
    .cumprod(dim=0) ->  # goes on behind a refusal
    residual(draft[kept], target[kept])
        target[kept]  # no residual
        residual(draft[0], target[0])  # of the first place
    target[t] if kept == t else -> target[t] if kept else  # the last row
    require.choice({t + 1}, rows_of_target=len(target)) -> pass  # too few rows
    require.ids(draft.shape[1], guesses=guesses) -> pass  # PyTorch's own words
    _distributes(draft) -> True  # any numbers
    _distributes(target) -> True  # any numbers of the model
    (q > 0).all() -> True  # guesses of another
_distributes
    (rows >= 0).all() and ->  # logits
    sums.lt(1e-3).all() -> True  # any sum
expected_tokens
    range(guesses + 1) -> range(guesses)  # without the token more
    0 <= acceptance <= 1 -> True  # any number
    require.count(0, guesses=guesses) -> pass  # fewer than none
expected_speedup
    (guesses * cost + 1) -> (guesses * cost)  # the model for nothing
    cost >= 0 -> True  # any number
Speculated
    tokens: Int[Tensor, "1 t"]  #: ids, without the prompt\n ->  # no tokens
rewind
    if length < cache.length:\n -> if True:\n  # grows by forgetting
    cache.length = length\n ->  # positions go on
    v[:, :, :length]) -> v)  # values stay
    require.count(0, length=length) -> pass  # a length below 0
    k.shape[2] == cache.length -> True  # a window forgets its past
speculative_sample
    (draft, model)] -> (model, model)]  # the draft is never read
    end - written.shape[1] - 1) -> end - written.shape[1])  # one too many
    reader.rewind(written.shape[1] - 1) -> pass  # nothing is forgotten
    rewind(written.shape[1] - 1) -> rewind(written.shape[1])  # the last is never read
    kept.append(len(tokens) - 1) -> kept.append(len(tokens))  # all are kept
    rows if top_k is None else keep_top_k(rows, top_k) -> rows  # no top-k
    rows if top_p is None else keep_top_p(rows, top_p) -> rows  # no nucleus
    cpu(), temperature) -> cpu(), 1.0)  # no temperature
    evaluating(model), evaluating(draft) -> evaluating(draft)  # the model drops out
    require.count(0, guesses=guesses) -> pass  # fewer than none
    require.at_most(one=1, prompt_length=prompt.shape[1]) -> pass  # nothing
    require.count(max_new_tokens=max_new_tokens) -> pass  # none
    written[:, prompt.shape[1] :], kept -> written, kept  # with the prompt
_Reader.__init__
    require.at_most(prompt_and_new_tokens=end, max_len=context)
        pass  # fails on the way
"""
