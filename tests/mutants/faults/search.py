TESTS = ("decoder_cache", "search")
TABLE = r"""
padding_last
    , stable=True -> , descending=True  # padding in front
    hidden = tokens == pad -> hidden = tokens == 0  # pad ignored
    require.that(not empty, -> require.that(True,  # padding alone
Rereader.read
    [self.tokens, tokens] -> [tokens, self.tokens]  # in the wrong order
    , self.memory_mask) -> )  # padding of the source seen
Rereader.keep
    self.memory_mask = self.memory_mask[rows] -> pass  # masks not reordered
    self.tokens[rows], self.memory[rows]
        self.tokens[rows], self.memory  # sources not reordered
Rereader.__init__
    source = padding_last(source, self.pad) -> pass  # padding in front read
    require.that(not model.training, "model must be in evaluation mode")
        pass  # trained with, too
DecoderCache.read
    start + tokens.shape[1], mask -> start + 1, mask  # lengths off by one
    , start=start) -> )  # always at the first position
    padding_mask(self.tokens, self.pad)
        padding_mask(self.tokens, -1)  # padding of the target seen
    self.attend(i, x, mask) -> self.attend(0, x, mask)  # one cache for all
    self.look_up(i, x) -> self.look_up(0, x)  # one memory for all layers
    * model.config.d_model**0.5 ->  # embeddings too small
    model.decoder.norm(x) -> x  # no last norm
    require.ids(model.config.target_vocab, tokens=tokens) -> pass  # ids
DecoderCache.attend
    [past_k, k] -> [k, past_k]  # keys in the wrong order
    [past_v, v] -> [v, past_v]  # values in the wrong order
    self.read_target[i] = k, v -> pass  # nothing kept
    , k, v, mask) -> , k, v)  # without a mask
DecoderCache.look_up
    , self.memory_mask) -> )  # padding of the source seen
DecoderCache.keep
    self.read_target = [(k[rows], v[rows])
        self.read_target = [(k, v)  # beams reordered, cache not
    self.tokens = self.tokens[rows] -> pass  # padding not reordered
    self.read_source = [(k[rows], v[rows])
        self.read_source = [(k, v)  # sources not reordered
    self.sources = self.memory_mask[rows], sources
        _ = self.memory_mask, None  # masks not reordered
    not torch.equal(sources, self.sources) -> True  # copied at each step
cached_greedy_decode
    .masked_fill(ended, config.pad) ->  # writes on after the end
    ended | (symbol == end) -> symbol == end  # the ended forgotten
    ended.all() -> ended.any()  # stops with the first
    reader(model, source) -> Rereader(model, source)  # no cache
    .to(source) ->  # dtype of what is written
    with evaluating(model): -> if True:  # with dropout and gradients
log_probabilities
    .masked_fill(output == past.pad, 0.0) ->  # padding counted
    output[:, :-1]], 1) -> output[:, 1:]], 1)  # reads what is asked
    _log_softmax(past.read(before)) -> past.read(before)  # logits
    with evaluating(model): -> if True:  # with dropout and gradients
    past = reader(model, source) -> past = Rereader(model, source)  # reader ignored
exhaustive_search
    if symbol != pad ->  # writes padding
    if last or ids[-1] == end -> if ids[-1] == end  # the cut off are missing
    if ids[-1] != end] -> ]  # goes on after the end
    log / divisor) -> log)  # no penalty
    -hypothesis.score) -> hypothesis.score)  # the worst first
    require.at_most(sequences=size**max_new_tokens, a_million=10**6) -> pass  # too many
beam_search
    divisor(length) -> divisor(max_new_tokens)  # one penalty for all
    divisor(length) -> divisor(length + 1)  # the start counted
    past.keep((number * beam + parents.gather(1, living)).flatten())
        pass  # cache not reordered
    number * beam + parents -> parents  # rows of the first source
    totals[:, 0] = 0.0 -> totals[:] = 0.0  # the same several times
    logs[..., past.pad] = -torch.inf -> pass  # writes padding
    ended.int().argsort(dim=1, stable=True)[:, :beam]
        torch.arange(beam).expand(len(source), -1)  # goes on after the end
    complete = ended | (length == max_new_tokens)
        complete = ended  # the cut off are lost
    & (best[:, :beam] > -torch.inf) ->  # impossible ones
    complete = complete[:, :beam] & (best[:, :beam] >
        complete = complete & (best >  # the less likely finish
    longer[i, j, 1:] -> longer[i, j]  # start returned
    finished[i].sort(key=lambda hypothesis: -hypothesis.score)
        pass  # in order of length
    (length + 1, max_new_tokens) -> (length,)  # bound of this length
    not (totals > -torch.inf).any()
        totals.amax() == -torch.inf  # a batch of no source
    totals[i] = -torch.inf -> pass  # never stops
    several[:n_best] -> several  # more than asked
    with evaluating(model): -> if True:  # with dropout and gradients
    require.count(0, past.vocab_size - 1, start=start, end=end)
        pass  # no such symbol
    require.count(most=beam, n_best=n_best) -> pass  # more than there are
_continue
    .topk(2 * beam) -> .topk(beam)  # the ended take places
    places // size -> places // beam  # the wrong parents
    written[number, parents]
        written[:, :1].expand(-1, 2 * beam, -1)  # one parent for all
_may_stop
    len(finished) >= beam -> len(finished) >= 1  # the first one finished
    len(finished) >= n_best and -> len(finished) > 0 and  # too few
    and stop == "bound" ->  # never is as bound
    finished[n_best - 1].score -> finished[0].score  # the best alone
_log_softmax
    , dtype=wide ->  # sums in half precision
"""
