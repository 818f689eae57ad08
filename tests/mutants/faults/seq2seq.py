TABLE = r"""
Memory
    summary: Tensor  #: ``(b, m)``, a vector for each source\n    mask: Tensor
        mask: Tensor\n    summary: Tensor  # summary and mask swapped
Step
    state: Tensor  #: ``(b, d)``\n    context: Tensor
        context: Tensor\n    state: Tensor  # state and context swapped
RNNEncoder.__init__
    , padding_idx=pad ->  # padding learns
RNNEncoder.forward
    [last[0], last[1]] -> [last[1], last[0]]  # directions swapped
    torch.cat([last[0], last[1]], dim=-1) -> states[:, -1]  # wrong end
    lengths.cpu() -> torch.full_like(lengths, size).cpu()  # padding read
    enforce_sorted=False -> enforce_sorted=True  # sorted sources only
    , total_length=size ->  # padding cut off
    require.within(1, size -> require.within(0, size  # empty sources
    require.ids(self.embedding.num_embeddings, source=source) -> pass  # ids unchecked
AttentionDecoder.__init__
    padding_idx=pad -> padding_idx=0  # pad ignored
    require.choice((None, width), query_size=attention.query_size)
        pass  # width of the query unchecked
AttentionDecoder.start
    torch.tanh(self.bridge(memory.summary))
        self.bridge(memory.summary)  # tanh dropped
    weights = state.new_zeros( -> weights = state.new_ones(  # first alignment
AttentionDecoder.prepare
    self.attention.prepare(memory.states) -> memory.states  # not prepared
AttentionDecoder.look
    memory.summary, torch -> memory.states[:, 0], torch  # bottleneck
    memory.mask, previous -> None, previous  # mask forgotten
    memory.mask, previous -> memory.mask, None  # previous alignment forgotten
AttentionDecoder.step
    [last, before.context]
        [last, torch.zeros_like(before.context)]  # no input feeding
    self.look(state, -> self.look(before.state,  # asks too early
    [last, context] -> [last, before.context]  # context too late
    [state, context] -> [before.state, context]  # state too late
AttentionDecoder.forward
    embedded[:, i], steps[-1]
        embedded[:, i], steps[0]  # state not carried
        embedded[:, 0], steps[-1]  # reads the start symbol alone
    step.logits for step in steps[1:]
        step.logits for step in steps[:-1]  # logits off by one
    step.weights for step in steps[1:]
        step.weights for step in steps[:-1]  # alignments off by one
Seq2Seq.forward
    require.ids(self.decoder.head.out_features, target=target) -> pass  # ids unchecked
Seq2Seq.greedy
    (source.shape[0],), start) -> (source.shape[0],), end)  # start symbol
    .masked_fill(ended, pad) ->  # writes on after the end
    .masked_fill(ended, pad) -> .masked_fill(ended, 0)  # pad ignored
    ended | (token == end) -> ended | (token == pad)  # end ignored
    if ended.all() -> if ended.any()  # stops with the first
    if ended.all() -> if False  # never stops early
    @torch.no_grad() ->  # graph kept
    (embedded, step, -> (embedded, self.decoder.start(memory),  # state forgotten
RecurrentReader.__init__
    padding_last(source, self.pad) -> source  # padding in front
    (source != self.pad).sum(dim=1)
        torch.full_like(source[:, 0], source.shape[1])  # padding read
    require.that(not model.training, "model must be in evaluation mode")
        pass  # training mode unnoticed
RecurrentReader.read
    embedded, self.last,
        embedded, self.decoder.start(self.memory),  # state forgotten
RecurrentReader.keep
    self.last = Step(*(one[rows] for one in self.last))
        pass  # states stay in their rows
    self.memory = Memory(*(one[rows] for one in self.memory))
        pass  # sources stay in their rows
    self.prepared = self.prepared[rows] -> pass  # keys stay in their rows
teacher_forcing_loss
    ignore_index=Vocabulary.pad -> ignore_index=-100  # padding counts
    ignore_index=Vocabulary.pad -> ignore_index=Vocabulary.end  # end does not count
    batch.labels -> batch.target  # not one step ahead
exact_matches
    .all(dim=1) -> .any(dim=1)  # one right symbol is enough
    (tokens == labels) -> (tokens == labels)[:, :-1]  # too long is right
    (tokens == labels) -> ((tokens == labels) | (tokens == 0))  # too short is right
    with evaluating(model): -> if True:  # decodes in training mode
    Vocabulary.start, -> Vocabulary.pad,  # start symbol
"""
