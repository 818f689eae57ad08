TESTS = ("decoding", "sampling")
TABLE = r"""
greedy_decode
    [:, -1:] -> [:, :1]  # first position asked
    [:, :1], start) -> [:, :1], config.pad)  # start ignored
    .masked_fill(ended, config.pad) ->  # writes on after the end
    .masked_fill(ended, config.pad) -> .masked_fill(ended, 0)  # pad ignored
    ended | (symbol == end) -> symbol == end  # the ended forgotten
    ended.all() -> ended.any()  # stops with the first
    ended.all() -> False  # never stops early
    if end is not None: -> if end:  # end zero
    return written[:, 1:] -> return written  # start returned
    , memory, memory_mask) -> , memory)  # padding of the source seen
    .to(source) ->  # dtype of what is written
    padding_last(source, config.pad) -> source  # padding in front counts
    with evaluating(model): -> if True:  # with dropout and gradients
    most=config.max_len, -> most=config.max_len - 1,  # last position refused
tempered
    require.that(temperature != 0, f"temperature must be above 0, {instead}")
        pass  # temperature 0 refused without a way out
    (below / max( -> (below * max(  # upside down
    (below / max(temperature, torch.finfo(torch.float32).tiny))
        below  # temperature ignored
    max(temperature, torch.finfo(torch.float32).tiny)
        temperature  # nothing divided by nothing
    logits - logits.amax(dim=-1, keepdim=True) -> logits  # overflow
    .softmax(dim=-1) -> .softmax(dim=0)  # over the batch
keep_top_k
    return kept / kept.sum(dim=-1, keepdim=True) -> return kept  # not shared out
    kept.sum(dim=-1, keepdim=True) -> kept.sum()  # shared by the batch
    .topk(k) -> .topk(k, largest=False)  # the least likely
    places, largest -> places, 1.0  # all alike
keep_top_p
    before >= p -> before > p  # one too many
    - exact  # -> #  # without the one that reaches p
    & (p < 1) ->  # the smallest lost
    , descending=True ->  # the least likely first
    return kept / kept.sum(dim=-1, keepdim=True) -> return kept  # not shared out
    kept.sum(dim=-1, keepdim=True) -> kept.sum()  # shared by the batch
    require.at_most(p=p, one=1) -> pass  # p above one
    require.positive(p=p) -> pass  # p of zero or less
KeyValueCache.read
    (tokens, self.length, positions)
        (tokens, 0, positions)  # always at the first position
    self.length, positions) -> self.length)  # positions ignored
    , mask=mask) -> )  # mask forgotten
    self.length += tokens.shape[1] -> self.length += 1  # one by one
    self.model.blocks.norm(x) -> x  # no last norm
    self.attend, i, -> self.attend, 0,  # one cache for all layers
    i, layer.attention
        i, self.model.blocks.layers[0].attention  # one attention for all layers
    x = map_each(x, layer.feed_forward) -> pass  # no network
    require.that(not self.model.training, "model must be in evaluation mode")
        pass  # trained with, too
KeyValueCache.__init__
    and causal ->  # attention that sees what comes later
    issubclass(kind, MultiHeadAttention) and ->  # LSH attention
KeyValueCache.attend
    , start=self.length) -> )  # every piece turned from 0 on
    [past_k, k] -> [k, past_k]  # keys in the wrong order
    [past_v, v] -> [v, past_v]  # values in the wrong order
    self.kept[i] = k[:, :, -window:], v[:, :, -window:]
        self.kept[i] = v[:, :, -window:], k[:, :, -window:]  # swapped
    getattr(attention, "window", k.shape[2]) -> k.shape[2]  # grows beyond the window
    , None if mask is None else mask[..., -s:]) -> )  # padding is seen
    mask[..., -s:] -> mask[..., :s]  # another column's padding
sample
    logits[:, -1] -> logits[:, 0]  # first position asked
    top_k is not None -> False  # top_k ignored
    top_p is not None -> False  # top_p ignored
    , temperature) -> , 1.0)  # temperature ignored
    , generator=generator) -> )  # seed ignored
    return written[:, prompt.shape[1] :] -> return written  # prompt returned
    past.length if cached else -context
        past.length if cached else 0  # does not slide
    <= context -> <= context + 1  # cached beyond the context
    with evaluating(model): -> if True:  # with dropout and gradients
    if not slide: -> if False:  # context not looked at
    past.length if cached -> -1 if cached  # prompt read by its end
    require.count(max_new_tokens=max_new_tokens) -> pass  # nothing to write
    generator=generator).to(written) -> generator=generator)  # dtype of what is written
    bool((prompt == pad).any()) -> False  # padding is read
    padding_last(prompt.flip(1), pad).flip(1)
        padding_last(prompt, pad)  # goes on behind padding
    prompt = prompt[:, (prompt != pad).any(dim=0)] -> pass  # padding of all takes room
    {"mask": mask, -> {  # padding is seen
    count_positions(mask)[:, first:]}
        torch.arange(written.shape[1])[None].repeat(len(written), 1)[:, first:]}
            # padding counts as a position
    (0, 1), value=True) -> (0, 1))  # what it wrote is hidden
    real[:, None, None, -context:] -> real[:, None, None]  # mask doesn't slide
    symbol = symbol.masked_fill(ended, end if pad is None else pad)
        pass  # writes on after the end
    end if pad is None else pad -> end  # pad ignored after the end
    ended | (symbol == end) -> symbol == end  # the ended forgotten
    and ended.all() -> and ended.any()  # stops with the first
    and ended.all() -> and False  # never stops early
    if end is not None: -> if end:  # end zero
    require.count(0, model.config.vocab_size - 1, **given)
        pass  # end and pad unchecked
"""
