TABLE = r"""
MaskedTransformer.decode
    seen = seen & mask -> pass  # the mask ignored
    padding_mask(target, c.pad) -> padding_mask(target, -1)  # padding seen
    , memory_mask)) -> ))  # padding of the source seen
    [c.pad, self.mask] -> [c.pad]  # [MASK] is an answer
    require.mask(mask, (len(target), c.heads, *(2 * target.shape[1:]))) -> pass  # any
MaskedTransformer.guess_length
    memory * real[..., None] -> memory  # padding counts
    .masked_fill(lengths == 0, -torch.inf) ->  # nothing is a length
    - real.sum(dim=1, keepdim=True) -> - memory.shape[1]  # padding in the length
mask_predict_loss
    costs.sum() / masked.sum() -> costs.sum() / real.sum()  # mean over what was seen
    + length.sum() / sizes.sum() ->  # no length
diffusion_loss
    , masked) / share -> , masked)  # without 1/t
    1 - (torch.rand((), -> 0.5 - 0.5 * (torch.rand((),  # only half of all shares
    costs.sum() / real.sum() -> costs.sum() / masked.sum()  # mean over the masked
    real & (u < share[:, None]) -> u < share[:, None]  # padding masked
    if lengths: -> if True:  # always with its length
diffusion_bits
    * sizes / number / draws -> * sizes / draws  # each mask counts alike
    total / math.log(2) -> total  # nats
    require.count(draws=draws) -> pass  # any number of draws
_real
    require.padding_behind(pad, target=target) -> pass  # padding in front
    require.that(not rows, message) -> pass  # [MASK] as an answer
_costs
    .where(masked, 0.0) ->  # also what was not masked
    target.masked_fill(masked, model.mask) -> target  # the answer is read
_largest
    -scores -> scores  # the smallest
    .masked_fill(~among, torch.inf) ->  # of all positions
mask_predict
    _largest(-logs, -> _largest(logs,  # the surest are masked
    * (rounds - r) // rounds -> * (rounds - r - 1) // rounds  # one round too early
    best.where(masked, logs) -> best  # confidence of what was not asked for
    / count).view -> ).view  # short ones win
    padding_last(source, model.config.pad) -> source  # padding in front read
    with evaluating(model): -> if True:  # with dropout and gradients
    require.count(rounds=rounds) -> pass  # no round
    require.within(1, model.config.max_len, length=length) -> pass  # any length
diffusion_sample
    if remask and done: -> if False:  # never masked again
    free & again -> again  # what was given is masked
    temperature * gumbel -> gumbel  # temperature ignored
    order == "random" -> False  # the surest instead of any
    log.exp() - 2.0 * blocks -> log.exp()  # blocks ignored
    if not (number > 0).any() -> if False  # empty rounds are asked
    require.choice(ORDERS, order=order) -> pass  # any order
    require.count(rounds=rounds, block=block) -> pass  # no rounds
    require.padding_behind(c.pad, canvas=canvas) -> pass  # padding in front
gumbel
    torch.float64 -> torch.float32  # ends at 16.6 nats
    -(-u.log()).log() -> -u.log()  # exponential
"""
