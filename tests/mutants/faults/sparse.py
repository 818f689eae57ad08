TABLE = r"""
Pattern
    require.count(period=self.period) -> pass  # a period of 0
    return self.low >= 0
        return self.low > 0  # itself counts as later
        return self.high >= 0  # the pitfall q − k <= w passes for causal
Pattern.__call__
    distance = i - j -> distance = j - i  # the wrong direction
    (distance >= self.low) & ->  # later keys seen
    & (distance <= self.high) ->  # no end of the window
    distance <= self.high -> distance < self.high  # a key too few
    distance % self.period == 0 -> j % self.period == 0  # counted from the beginning
    allowed if self.rule is None else allowed & self.rule(i, j)
        allowed  # rule ignored
    allowed & self.rule(i, j) -> self.rule(i, j)  # a rule instead of bounds
Pattern.__and__
    max(self.low, other.low) -> self.low  # not causal though one is
    min(self.high, other.high) -> max(self.high, other.high)  # looks where nothing is
    lcm( -> gcd(  # looks at other remainders
_both
    one(i, j) & other(i, j) -> other(i, j)  # one of the two
Pattern.__or__
    min(self.low, other.low) -> max(self.low, other.low)  # a part lost
    max(self.high, other.high) -> min(self.high, other.high)  # the far lost
    gcd( -> lcm(  # what has another period lost
_either
    one(i, j) | other(i, j) -> one(i, j) ^ other(i, j)  # what both allow is lost
Pattern.mask
    keys - queries :, None -> :queries, None  # queries are the first positions
    require.at_most(queries=queries, keys=keys) -> pass  # more queries than keys
    [None, None] ->  # no axes for batch and heads
local_pattern
    window - 1) -> window)  # a key too many
    1 - window -> -window  # a key too many after it
    0 if causal else ->  # never causal
    require.count(window=window) -> pass  # an empty window
dilated_pattern
    dilation * (window - 1) -> dilation * window  # a key too many
    far, dilation) -> far)  # no gaps
    0 if causal else ->  # never causal
    require.count(window=window, dilation=dilation) -> pass  # no gap at all
strided_patterns
    period=stride -> stride  # no stride
    Pattern(0 if causal else -inf, -> Pattern(0,  # always causal
    local_pattern(stride, causal) -> local_pattern(stride)  # first step always causal
    require.count(stride=stride) -> pass  # a stride of 0
fixed_patterns
    1 - stride -> 0  # first step always causal
    0 if causal else -inf -> 0  # second step always causal
    require.at_most(summary=summary, stride=stride) -> pass  # more summary than text
    require.count(stride=stride, summary=summary) -> pass  # no summary
_in_one_stretch
    i // stride == j // stride -> i % stride == j % stride  # a strided pattern
_at_an_end
    j % stride >= -> i % stride >=  # queries, not keys, in the summary
    >= stride - summary -> > stride - summary  # a position too few
    >= stride - summary -> < summary  # the first of a stretch, not the last
global_pattern
    0 if causal else -inf -> 0  # always causal
    require.count(0, -> dict(  # positions below 0
    _Rule(_one_is_global, tuple(positions))
        lambda i, j: _one_is_global(i, j, *positions)  # can't be pickled
_one_is_global
    | (j == g) ->  # sees all, isn't seen
    (i == g) | ->  # is seen, doesn't see
    allowed | (i == g) -> (i == g)  # the last one alone
    torch.zeros_like( -> torch.ones_like(  # all are global
reach
    steps[layer % len(steps)] @ heard[-1]
        heard[-1] @ steps[layer % len(steps)]  # layers from the last to the first
    layer % len(steps) -> 0  # the first mask in all layers
    heard[1:] -> heard[:-1]  # a layer too few
    > 0).float() -> > 1).float()  # one path is not enough
    .bool() ->  # numbers
    require.count(layers=layers) -> pass  # no layer
layers_to_reach
    wanted = wanted.tril() -> pass  # the future is wanted too
    if not any(step.triu(1).any() for step in steps):
        if True:  # the future is never wanted
    not any(step.triu(1) -> not all(step.triu(1)  # one causal mask is enough
    still == len(steps) -> still == 1  # gives up after one mask of several
    else 0\n -> else still\n  # pauses add up
    layers % len(steps) -> 0  # the first mask in all layers
    steps[layers % len(steps)] @ heard
        heard @ steps[layers % len(steps)]  # layers from the last to the first
_steps
    (m | own) -> m  # no residual stream
    .any(dim=0) -> [0]  # the first head alone
    require.that(len(masks) > 0, "masks must hold at least one, got none")
        pass  # no mask
    len(shapes) == 1 and ->  # masks of several lengths
    and len(m) == m.shape[1] ->  # masks that aren't square
    m.dim() == 2 and ->  # one axis
BlockLayout
    self.allowed.numel() -> int(self.allowed.sum())  # allowed pairs alone
block_layout
    positions[(positions % pattern.period).argsort(stable=True)]
        positions  # remainders not side by side
    value=-1 -> value=0  # what fills a block counts as position 0
    i.amin(1)[:, None] - j.amax(1)
        i.amax(1)[:, None] - j.amin(1)  # blocks that hold a pair are passed over
    most >= low -> most > low  # the nearest pair passed over
    least <= high -> least < high  # the furthest pair passed over
    possible = may_meet(i, j, pattern.low, pattern.high)
        possible = torch.ones(len(i), len(j), dtype=torch.bool)
            # all blocks looked into
    possible &= may_meet(i % pattern.period, j % pattern.period, 0, 0)
        pass  # all remainders looked into
    & (own >= 0) ->  # fillers among the queries
    & (other >= 0) ->  # fillers among the keys
    some = inside.flatten(1).any(dim=1)
        some = torch.ones(len(inside), dtype=torch.bool)  # empty blocks kept
        some = inside.flatten(1).all(dim=1)  # full blocks alone
    blocks(keys - queries), blocks(0)
        blocks(0), blocks(0)  # queries are as many as keys
    (i - (keys - queries)).clamp -> i.clamp  # places are positions
    i.flatten().argsort()[i.numel() - queries :]
        torch.arange(queries)  # outputs stay sorted by remainder
    [i.numel() - queries :] -> [:queries]  # fillers first
    queries if keys is None else keys -> queries  # keys ignored
    require.count(block=block, queries=queries) -> pass  # a block of nothing
    require.at_most(queries=queries, keys=keys) -> pass  # more queries than keys
    x.to(device) for x in tables -> x for x in tables  # stays on the CPU
block_sparse_attention
    layout.lengths == lengths -> True  # a layout for another length
    require.mask(mask, (*q.shape[:3], k.shape[2])) -> pass  # another batch
    if mask is not None: -> if False:  # padding seen
    allowed & _take(_take -> _take(_take  # padding's mask alone
    torch.promote_types(q.dtype, torch.float32)
        q.dtype  # sums in half precision
        torch.float32  # double precision lost
    q.shape[-1] ** -0.5 -> 1.0  # no scale
    v.shape[-1]) -> q.shape[-1])  # values as wide as queries
    enabled=False -> enabled=True  # autocast inside
    scores.masked_fill_(~allowed, -torch.inf) -> scores  # blocks seen whole
    most = scores.amax(dim=-1, keepdim=True)
        most = torch.zeros_like(scores[..., :1])  # overflow
    torch.finfo(wide).min -> 0.0  # scores far below 0 vanish
    torch.finfo(wide).min -> -torch.inf  # NaN in rows that are empty
    "amax" -> "amin"  # the least of the tops
    scores.sub_(_take(top, rows))
        scores.sub_(most)  # blocks joined as if their tops were alike
    F.dropout(weights, dropout) -> weights  # no dropout
    weights.sum(dim=-1, keepdim=True)
        F.dropout(weights, dropout).sum(dim=-1, keepdim=True)
            # what was dropped is shared among the rest
    total.masked_fill(total == 0, 1.0) -> total  # 0 divided by 0
    _take(heads.flatten(2, 3), layout.place)
        heads.flatten(2, 3)[:, :, : q.shape[2]]  # outputs not put back
    .to(q.dtype)\n -> \n  # comes back in single precision
    _take(values, columns) -> _take(values.detach(), columns)  # no gradient of values
    @ _take(keys, columns).mT -> @ _take(keys, rows).mT  # keys of the query's own block
_take
    .unflatten(2, places.shape)
        .reshape(*x.shape[:2], *places.shape[::-1], *x.shape[3:])  # axes swapped
SparseSelfAttention.__init__
    causal=causal, **options -> **options  # later keys seen
    require.count(block=block) -> pass  # a block of nothing
    isinstance(pattern, Pattern) or len(patterns) == self.heads
        True  # patterns for some of the heads
    not causal or all( -> True or all(  # a pattern that shows the future
    all(p.causal -> any(p.causal  # one causal head is enough
    not causal or ->  # no attention both ways
SparseSelfAttention.attend
    self._for_all_heads(k), self._for_all_heads(v) -> k, v  # shared heads
    self.dropout if self.training else 0.0 -> 0.0  # no dropout
    self.dropout if self.training else 0.0 -> self.dropout  # dropout outside training
    mask, dropout\n -> None, dropout\n  # padding seen
    if not q.shape[2]: -> if False:  # no query refused
    self.score_bias(q, k, **options) is None -> True  # a bias is forgotten
    .transpose(1, 2).flatten(2)
        .reshape(len(q), -1, self.d_model)  # heads and positions mixed
    self._layout(pattern, q, k)
        self._layout(self.patterns[0], q, k)  # the first pattern for all heads
SparseSelfAttention._layout
    _kept_layout( -> block_layout(  # found anew at every call
    self.block -> 64  # blocks of another size
    k.shape[2] -> q.shape[2]  # keys as many as queries
    , q.device ->  # stays on the CPU
SparseSelfAttention._visible
    sparse if mask is None else sparse & mask
        mask  # recorded weights know no pattern
        sparse  # recorded weights know no padding
    torch.cat([p.mask(*sizes) for p in self.patterns], dim=1)
        self.patterns[0].mask(*sizes)  # recorded by the first pattern
"""
