TABLE = r"""
shapes
    if function is None:\n        return partial(shapes, **sizes)
        sizes = {}\n    if function is None:\n        return partial(shapes)
            # what the object fixes forgotten
    type(None) in kinds -> True  # none always taken
    if torch.compiler.is_compiling(): -> if False:  # checks while compiling
    known = numbers.copy() -> known = numbers  # lengths kept between calls
    is not None:\n                known
        is not None and False:\n                known  # size of the object unseen
    if argument.place < len(args): -> if False:  # arguments by place unseen
    elif argument.name in kwargs: -> elif False:  # arguments by name unseen
    @wraps(function) ->  # docstring and signature lost
_Argument.__init__
    axis[0] in "*." -> axis[0] == "*"  # dots are one axis
_Argument.check
    or value.dtype not in self.dtypes ->  # dtype unchecked
    lengths[first:end], *lengths[end:]
        lengths[first:end], *lengths[first:]  # axes counted twice
    len(lengths) == len(self.axes), [] -> True, []  # number of axes unchecked
    known.setdefault(axis, (length, self.name))
        (length, self.name)  # lengths of a letter not compared
mask
    mask.dim() == 3 and len(shape) == 4 -> False  # batch read as heads
    mask.dim() == 2 and len(shape) == 4 -> False  # batch read as queries
    1 < len(mask) == shape[0] == shape[2] -> len(mask) > 1  # (t, s) refused
    1 < len(mask) -> len(mask)  # one row for all refused
    mask.dim() > len(shape) or ->  # too many axes
    m not in (1, n) -> m != n  # no broadcasting
    m not in (1, n) -> m not in (1, n, 0)  # no key
    zip(reversed(mask.shape), reversed(shape),
        zip(mask.shape, shape,  # compared from the left
within
    tensor.device.type != "cpu" -> False  # a GPU has to wait
    if not tensor.numel(): -> if False:  # nothing is refused
    least < low or -> least <= low or  # the least refused
    most > high: -> most >= high:  # the most refused
    if least < low else most -> if least > low else most  # the wrong one named
ids
    within(0, size - 1 -> within(0, size  # one id too many
    within(0, size -> within(1, size  # padding refused
padding_behind
    (~real[:, :1] & real) -> ~real  # all padding refused
    real[:, :1] & real) -> real[:, :1])  # rows of padding alone refused
    that(not rows, message) -> pass  # padding in front taken
count
    or isinstance(number, bool) ->  # True is one
    isinstance(number, Integral) -> isinstance(number, int)  # NumPy refused
    least: int = 1 -> least: int = 0  # nothing is enough
even
    if number % 2: -> if number % 4:  # not four
    least=2 -> least=0  # zero is even
divides
    number % divisor -> divisor % number  # turned round
at_most
    one > other -> one >= other  # equal refused
probability
    0 <= number < 1 -> 0 < number < 1  # no dropout refused
    0 <= number < 1 -> 0 <= number <= 1  # all may be dropped
positive
    0 < number < inf -> 0 <= number < inf  # zero
    0 < number < inf -> 0 < number  # infinite
choice
    value not in options -> value in options  # turned round
that
    if not condition: -> if condition:  # turned round
"""
