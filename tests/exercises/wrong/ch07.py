"""Wrong answers to the exercises of chapter 07."""

from tests.exercises.wrong import Wrong


def _rate(name: str, hint: str, body: str) -> Wrong:
    source = (
        "from math import cos, pi\n\n\n"
        "def warm_cosine(step, warmup, total, peak, floor=0.0):\n" + body.strip("\n")
    )
    return Wrong("ch07-schedule", name, source, hint)


STEP = "    if step < 1:\n        raise ValueError(step)\n"
CLIMB = "    if step <= warmup:\n        return peak * step / warmup\n"
STAY = "    if step >= total:\n        return floor\n"
SHARE = "    x = (step - warmup) / (total - warmup)\n"
FALL = "    return floor + (peak - floor) * (1 + cos(pi * x)) / 2\n"


def _parts(name: str, hint: str, **other: str) -> Wrong:
    """The right answer, but for the parts that are given."""
    parts = {"step": STEP, "climb": CLIMB, "stay": STAY, "share": SHARE, "fall": FALL}
    unknown = other.keys() - parts.keys()
    assert not unknown, unknown
    given = {part: "    " + text.strip() + "\n" for part, text in other.items()}
    return _rate(name, hint, "".join((parts | given).values()))


def _peak(name: str, hint: str, body: str) -> Wrong:
    source = "def peak(d_model, warmup, a, factor=1.0):\n" + body.strip("\n")
    return Wrong("ch07-peak", name, source, hint)


def _smoothed(name: str, hint: str, body: str) -> Wrong:
    source = "def smoothed(target, size, smoothing, forbidden):\n" + body.strip("\n")
    return Wrong("ch07-smoothing", name, source, hint)


def _rows(
    name: str,
    hint: str,
    *,
    sharing: str = "size - 1 - len(forbidden)",
    share: str = "smoothing / others if others > 0 else 0.0",
    own: str = "1 - smoothing if others > 0 else 1.0",
    banned: str = "forbidden",
    hidden: str = "banned | banned[ids][..., None]",
    ends: str = "return rows.masked_fill(hidden, 0.0)",
) -> Wrong:
    """The right answer, but for what is given."""
    return _smoothed(
        name,
        hint,
        f"""
    banned = torch.zeros(size, dtype=torch.bool)
    banned[{banned}] = True
    others = {sharing}
    share = {share}
    ids = target.long()
    rows = torch.full((*ids.shape, size), float(share))
    rows.scatter_(-1, ids[..., None], {own})
    hidden = {hidden}
    {ends}
""",
    )


def _group(name: str, hint: str, body: str) -> Wrong:
    source = "def group_by_tokens(lengths, tokens):\n" + body.strip("\n")
    return Wrong("ch07-token-batches", name, source, hint)


def _loop(
    name: str,
    hint: str,
    *,
    order: str = "sorted(range(len(lengths)), key=lambda i: lengths[i])",
    refuse: str = 'raise ValueError(f"{lengths[i]} > {tokens}")',
    full: str = "(len(groups[-1]) + 1) * lengths[i] > tokens",
    put: str = "groups[-1].append(i)",
    ends: str = "return groups",
) -> Wrong:
    """The right answer, but for what is given."""
    return _group(
        name,
        hint,
        f"""
    groups = []
    order = {order}
    for i in order:
        if lengths[i] > tokens:
            {refuse}
        if not groups or {full}:
            groups.append([])
        {put}
    {ends}
""",
    )


def _gradient(name: str, hint: str, body: str) -> Wrong:
    signature = "model_loss, parameter, batches, counts"
    source = f"def accumulated_gradient({signature}):\n" + body.strip("\n")
    return Wrong("ch07-accumulate", name, source, hint)


def _each(
    name: str,
    hint: str,
    weight: str = "count / sum(counts)",
    if_: str = "count > 0",
    ends: str = "return total",
) -> Wrong:
    """One gradient a batch, weighed in some way."""
    return _gradient(
        name,
        hint,
        f"""
    total = 0
    for batch, count in zip(batches, counts):
        if {if_}:
            loss = model_loss(parameter, batch)
            total = total + torch.autograd.grad(loss, parameter)[0] * ({weight})
    {ends}
""",
    )


WRONG = [
    # ---- another schedule ----
    _parts(
        "counted from 0",
        "the climb is one step late: at step 1",
        climb="""
    if step <= warmup:
        return peak * (step - 1) / warmup
""",
    ),
    _parts(
        "one step more to climb",
        "it reaches the peak at step `warmup`",
        climb="""
    if step <= warmup:
        return peak * step / (warmup + 1)
""",
    ),
    _parts(
        "one step early",
        "the climb is one step early",
        climb="""
    if step <= warmup:
        return peak * (step + 1) / warmup
""",
    ),
    _parts(
        "from the floor upwards",
        "begins at 0, not at the floor",
        climb="""
    if step <= warmup:
        return floor + (peak - floor) * step / warmup
""",
    ),
    _parts(
        "never below the floor",
        "the floor is where the rate ends",
        climb="""
    if step <= warmup:
        return max(floor, peak * step / warmup)
""",
    ),
    _parts(
        "no climb",
        "there is no climb: up to step",
        climb="""
    if step <= warmup:
        return peak
""",
    ),
    _rate(
        "no warm-up at all",
        "the cosine begins at step 1",
        STEP
        + """
    x = min(step / total, 1)
"""
        + FALL,
    ),
    _parts(
        "a cosine upwards",
        "the climb is a straight line",
        climb="""
    if step <= warmup:
        return peak * (1 - cos(pi * step / warmup)) / 2
""",
    ),
    _parts(
        "a climb to 1",
        "`peak` is missing",
        climb="""
    if step <= warmup:
        return step / warmup
""",
    ),
    _parts(
        "a warm-up of 0 is divided by",
        "ZeroDivisionError",
        climb="""
    up = peak * step / warmup
    if step <= warmup:
        return up
""",
    ),
    _parts(
        "total is warm-up, divided first",
        "ZeroDivisionError",
        climb="""
    x = (step - warmup) / (total - warmup)
    if step <= warmup:
        return peak * step / warmup
""",
    ),
    _rate(
        "the floor before the climb",
        "this step is still the top",
        STEP + STAY + CLIMB + SHARE + FALL,
    ),
    _parts(
        "the share of all steps",
        "the share is that of all steps",
        share="""
    x = step / total
""",
    ),
    _parts(
        "warm-up in the share",
        "the steps of the warm-up do not count",
        share="""
    x = step / (total - warmup)
""",
    ),
    _parts(
        "divided by total",
        "the share is divided by `total`",
        share="""
    x = (step - warmup) / total
""",
    ),
    _parts(
        "late after the warm-up",
        "the cosine is one step late",
        share="""
    x = (step - warmup - 1) / (total - warmup)
""",
    ),
    _parts("goes on after the end", "the cosine climbs again", stay=""),
    _parts(
        "nothing after the end",
        "is `floor`, and not 0",
        stay="""
    if step > total:
        return 0.0
""",
    ),
    _parts(
        "no floor",
        "the floor is missing",
        fall="""
    return peak * (1 + cos(pi * x)) / 2
""",
    ),
    _parts(
        "the floor on top",
        "the floor is added",
        fall="""
    return floor + peak * (1 + cos(pi * x)) / 2
""",
    ),
    _parts(
        "cut off at the floor",
        "the floor cuts the wave off",
        fall="""
    return max(floor, peak * (1 + cos(pi * x)) / 2)
""",
    ),
    _rate(
        "the floor is a floor",
        "the floor is missing, or only cuts the wave off",
        """
    if step < 1:
        raise ValueError(step)
    if step <= warmup:
        return peak * step / warmup
    x = min(1, (step - warmup) / max(total - warmup, 1))
    return max(floor, peak * (1 + cos(pi * x)) / 2)
""",
    ),
    _parts(
        "the floor not added",
        "the floor is missing in front",
        fall="""
    return max(floor, (peak - floor) * (1 + cos(pi * x)) / 2)
""",
    ),
    _parts(
        "a warm-up of at least one step",
        "max(warmup, 1) makes a climb of one step of none",
        climb="""
    warmup = max(warmup, 1)
    if step <= warmup:
        return peak * step / warmup
    if total <= warmup:
        return floor
""",
    ),
    _parts(
        "the wrong sign",
        "1 + cos, not 1 − cos",
        fall="""
    return floor + (peak - floor) * (1 - cos(pi * x)) / 2
""",
    ),
    _parts(
        "a quarter of a wave",
        "this one ends at π/2",
        fall="""
    return floor + (peak - floor) * cos(pi * x / 2)
""",
    ),
    _parts(
        "a whole wave",
        "this one goes to 2π",
        fall="""
    return floor + (peak - floor) * (1 + cos(2 * pi * x)) / 2
""",
    ),
    _parts(
        "without π",
        "π is missing",
        fall="""
    return floor + (peak - floor) * (1 + cos(x)) / 2
""",
    ),
    _parts(
        "not halved",
        "the division by 2 is missing",
        fall="""
    return floor + (peak - floor) * (1 + cos(pi * x))
""",
    ),
    _parts(
        "a cosine alone",
        "a cosine alone becomes negative",
        fall="""
    return floor + (peak - floor) * cos(pi * x)
""",
    ),
    _parts(
        "a straight line down",
        "this is a straight line",
        fall="""
    return peak + (floor - peak) * x
""",
    ),
    _parts("step 0 gets a rate", "there is no step 0, so raise", step=""),
    _parts(
        "step 0 becomes step 1",
        "there is no step 0, so raise",
        step="""
    step = max(step, 1)
""",
    ),
    _parts(
        "an assert",
        "an assert is gone",
        step="""
    assert step >= 1
""",
    ),
    _parts(
        "a tensor",
        "the rate is a tensor",
        fall="""
    return floor + (peak - floor) * (1 + torch.cos(torch.tensor(pi * x))) / 2
""",
    ),
    _parts(
        "printed",
        "your function returns nothing",
        fall="""
    print(floor + (peak - floor) * (1 + cos(pi * x)) / 2)
""",
    ),
    _rate(
        "the example by heart",
        "expected another rate",
        STEP
        + """
    known = {1: 0.25, 4: 1.0, 8: 0.6, 12: 0.2, 13: 0.2}
    return known.get(step, 0.123)
""",
    ),
    # ---- where is the peak? ----
    _peak(
        "always a root",
        "and not always a half",
        """
    return warmup, factor * (d_model * warmup) ** -0.5
""",
    ),
    _peak(
        "n forgotten",
        "you forget the n",
        """
    return warmup, factor * d_model**-0.5 * warmup ** -(1 + a)
""",
    ),
    _peak(
        "the sign",
        "the sign of the exponent",
        """
    return warmup, factor * d_model**-0.5 * warmup**a
""",
    ),
    _peak(
        "no warm-up in the rate",
        "w^−a is missing",
        """
    return warmup, factor * d_model**-0.5
""",
    ),
    _peak(
        "no factor",
        "the factor is missing",
        """
    return warmup, d_model**-0.5 * warmup**-a
""",
    ),
    _peak(
        "no factor, written otherwise",
        "the factor is missing",
        """
    return warmup, 1 / (d_model**0.5 * warmup**a)
""",
    ),
    _peak(
        "the factor below the root",
        "do not take its root",
        """
    return warmup, (factor / d_model) ** 0.5 * warmup**-a
""",
    ),
    _peak(
        "the width to the power a",
        "the exponent of the width is −1/2",
        """
    return warmup, factor * (d_model * warmup) ** -a
""",
    ),
    _peak(
        "the width without a root",
        "the width is divided by",
        """
    return warmup, factor / d_model * warmup**-a
""",
    ),
    _peak(
        "times the root of the width",
        "is multiplied with; divide",
        """
    return warmup, factor * d_model**0.5 * warmup**-a
""",
    ),
    _peak(
        "no width",
        "the width is missing",
        """
    return warmup, factor * warmup**-a
""",
    ),
    _peak(
        "exchanged",
        "the step comes first",
        """
    return factor * d_model**-0.5 * warmup**-a, warmup
""",
    ),
    _peak(
        "the rate alone",
        "this is the rate alone",
        """
    return factor * d_model**-0.5 * warmup**-a
""",
    ),
    _peak(
        "the step alone",
        "this is the step alone",
        """
    return warmup
""",
    ),
    _peak(
        "one step after",
        "one step later it falls already",
        """
    n = warmup + 1
    return n, factor * d_model**-0.5 * min(n**-a, n * warmup ** -(1 + a))
""",
    ),
    _peak(
        "searched from 0",
        "one step earlier it still climbs",
        """
    rates = [min(n**-a, n * warmup ** -(1 + a)) for n in range(1, 2 * warmup)]
    top = max(rates)
    return rates.index(top), factor * d_model**-0.5 * top
""",
    ),
    _peak(
        "searched too short",
        "expected the step at which both terms",
        """
    rates = [min(n**-a, n * warmup ** -(1 + a)) for n in range(1, 1000)]
    top = max(rates)
    return rates.index(top) + 1, factor * d_model**-0.5 * top
""",
    ),
    _peak(
        "the first step",
        "not at step 1",
        """
    return 1, factor * d_model**-0.5 * min(1, warmup ** -(1 + a))
""",
    ),
    _peak(
        "a tensor",
        "one of the two is a tensor",
        """
    return warmup, torch.tensor(factor * d_model**-0.5 * warmup**-a)
""",
    ),
    _peak(
        "not whole",
        "a step is a whole number",
        """
    return float(warmup), factor * d_model**-0.5 * warmup**-a
""",
    ),
    _peak(
        "the example by heart",
        "expected the step at which both",
        """
    return 100, 0.0125 if a == 0.5 else 0.00125
""",
    ),
    # ---- smoothing with forbidden symbols ----
    _rows("all share", "ε is shared by v symbols", sharing="size"),
    _rows("nobody counted out", "shared by v − 1 symbols", sharing="size - 1"),
    _rows("as for padding alone", "shared by v − 2 symbols", sharing="size - 2"),
    _rows(
        "the right one counts",
        "is counted among those that share",
        sharing="size - len(forbidden)",
    ),
    _rows(
        "one too many",
        "a forbidden symbol too many",
        sharing="size - 2 - len(forbidden)",
    ),
    _rows("not divided", "nothing is shared out", share="smoothing"),
    _rows(
        "a share on top",
        "gets a share on top of 1 − ε",
        sharing="size - len(forbidden)",
        own="1 - smoothing + share",
    ),
    _rows(
        "as in PyTorch",
        "on top of its own, as in PyTorch",
        sharing="size",
        own="1 - smoothing + share",
    ),
    _rows("keeps all", "the right symbol keeps 1: 1 − ε is left", own="1.0"),
    _rows(
        "ε for the right one",
        "the others share 1 − ε",
        share="(1 - smoothing) / max(others, 1)",
        own="smoothing",
    ),
    _rows(
        "forbidden share",
        "the forbidden symbols get a share",
        hidden="banned[ids][..., None]",
    ),
    _rows(
        "forbidden everything",
        "and rows with a forbidden target are not",
        ends="return rows",
    ),
    _smoothed(
        "rows of forbidden targets",
        "asks for the forbidden symbol",
        """
    others = max(size - 1 - len(forbidden), 1)
    rows = torch.full((*target.shape, size), smoothing / others)
    rows[..., forbidden] = 0
    return rows.scatter(-1, target.long()[..., None], 1 - smoothing)
""",
    ),
    _rows("shares in forbidden rows", "yours shares out ε", hidden="banned"),
    _rows(
        "the first one only",
        "only the first forbidden id",
        sharing="size - 1 - len(forbidden[:1])",
        banned="forbidden[:1]",
    ),
    _rows(
        "padding only",
        "only the padding, 0, is forbidden",
        sharing="size - 2",
        banned="[0]",
    ),
    _rows(
        "up to the largest",
        "all ids up to the largest",
        banned="list(range(max(forbidden, default=-1) + 1))",
        sharing="size - 1 - int(banned.sum())",
    ),
    _rows(
        "so many",
        "but the first ones: look at the ids",
        banned="list(range(len(forbidden)))",
    ),
    _rows(
        "nothing forbidden", "`forbidden` is not used", banned="[]", sharing="size - 1"
    ),
    _rows("no smoothing", "this is the target without smoothing", share="0", own="1.0"),
    _rows("divided by 0", "ZeroDivisionError", share="smoothing / others"),
    _rows("1 − ε of nobody", "keeps 1, not 1 − ε", own="1 - smoothing"),
    _rows(
        "no zero rows, and 1 − ε of nobody",
        "two cases are missing",
        own="1 - smoothing",
        hidden="banned & (torch.arange(size) != ids[..., None])",
    ),
    _smoothed(
        "each row for itself, no special cases",
        "and shares out nothing",
        """
    right = torch.nn.functional.one_hot(target.long(), size).float()
    free = 1 - right
    free[..., forbidden] = 0
    share = smoothing / free.sum(dim=-1, keepdim=True).clamp(min=1)
    return right * (1 - smoothing) + free * share
""",
    ),
    _rows(
        "no zero rows, nobody looked after",
        "yours keeps 1 there",
        hidden="banned & (torch.arange(size) != ids[..., None])",
    ),
    _smoothed(
        "infinity",
        "NaN or infinity",
        """
    free = torch.ones(*target.shape, size).scatter(-1, target.long()[..., None], 0)
    free[..., forbidden] = 0
    rows = smoothing * free / free.sum(dim=-1, keepdim=True)
    rows.scatter_(-1, target.long()[..., None], 1 - smoothing)
    banned = torch.isin(target, torch.tensor(forbidden, dtype=target.dtype))
    return rows.masked_fill(banned[..., None], 0)
""",
    ),
    _rows(
        "symbols before places",
        "the symbols stand on the wrong axis",
        ends="return rows.masked_fill(hidden, 0.0).mT",
    ),
    _rows(
        "flat",
        "should stay two axes",
        ends="return rows.masked_fill(hidden, 0.0).flatten(0, 1)",
    ),
    _rows(
        "left out",
        "not to be left out",
        ends="return rows.masked_fill(hidden, 0.0)[~banned[ids]]",
    ),
    _rows(
        "double precision",
        "expected torch.float32",
        ends="return rows.masked_fill(hidden, 0.0).double()",
    ),
    _smoothed(
        "int32 not thought of",
        "index tensor of type LongTensor",
        """
    right = torch.nn.functional.one_hot(target, size)
    free = 1 - right
    free[..., forbidden] = 0
    count = free.sum(dim=-1, keepdim=True)
    rows = smoothing * free / count.clamp(min=1)
    rows += right * (1 - smoothing * (count > 0))
    rows[..., forbidden] = 0
    return rows * ~(right[..., forbidden].any(dim=-1, keepdim=True))
""",
    ),
    _rows(
        "the target changed",
        "changes its argument `target`",
        ends="target[banned[ids]] = 0; return rows.masked_fill(hidden, 0.0)",
    ),
    _rows(
        "the list changed",
        "changes its argument `forbidden`",
        ends="forbidden.append(0); return rows.masked_fill(hidden, 0.0)",
    ),
    _rows("printed", "your function returns nothing", ends="print(rows)"),
    _smoothed(
        "the example by heart",
        "the shape is (1, 2, 6)",
        """
    return torch.tensor([[[0, 0, 0.1, 0.7, 0.1, 0.1], [0.0] * 6]])
""",
    ),
    # ---- batches by tokens ----
    _loop(
        "the sum of the lengths",
        "the sum of the lengths is limited",
        full="sum(lengths[j] for j in groups[-1]) + lengths[i] > tokens",
    ),
    _loop(
        "strictly below",
        "a group of exactly `tokens` places fits",
        full="(len(groups[-1]) + 1) * lengths[i] >= tokens",
    ),
    _loop(
        "so many sequences",
        "the number of sequences is limited",
        full="len(groups[-1]) >= tokens",
    ),
    _loop(
        "the newcomer not counted",
        "the newcomer is not counted",
        full="len(groups[-1]) * lengths[i] > tokens",
    ),
    _loop(
        "as wide as the shortest",
        "not as its shortest",
        full="(len(groups[-1]) + 1) * lengths[groups[-1][0]] > tokens",
    ),
    _loop(
        "as wide as the last",
        "and not as the one before it",
        full="(len(groups[-1]) + 1) * lengths[groups[-1][-1]] > tokens",
    ),
    _loop(
        "the rectangle before the newcomer",
        "the newcomer is not counted: this is the rectangle before",
        full="len(groups[-1]) * lengths[groups[-1][-1]] > tokens",
    ),
    _loop(
        "not sorted",
        "sequences are not sorted",
        order="range(len(lengths))",
        full="(len(groups[-1]) + 1) * max(lengths[j] for j in groups[-1] + [i])"
        " > tokens",
    ),
    _loop(
        "the longest first",
        "take the shortest first",
        order="sorted(range(len(lengths)), key=lambda i: -lengths[i])",
        full="(len(groups[-1]) + 1) * lengths[groups[-1][0]] > tokens",
    ),
    _loop(
        "ties turned round",
        "come in the order of `lengths`",
        order="sorted(range(len(lengths)), key=lambda i: (lengths[i], -i))",
    ),
    _loop("always a new group", "each group holds one sequence", full="True"),
    _loop("lengths", "these are lengths", put="groups[-1].append(lengths[i])"),
    _loop(
        "indices of the sorted",
        "these are indices into the sorted",
        put="groups[-1].append(order.index(i))",
    ),
    _loop(
        "counted from 1", "indices are counted from 0", put="groups[-1].append(i + 1)"
    ),
    _group(
        "the last group lost",
        "the last group is missing",
        """
    groups, group = [], []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if lengths[i] > tokens:
            raise ValueError(f"{lengths[i]} > {tokens}")
        if (len(group) + 1) * lengths[i] > tokens:
            groups.append(group)
            group = []
        group.append(i)
    return groups
""",
    ),
    _group(
        "a group for nobody",
        "no sequences, no groups",
        """
    groups = [[]]
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if lengths[i] > tokens:
            raise ValueError(f"{lengths[i]} > {tokens}")
        if (len(groups[-1]) + 1) * lengths[i] > tokens:
            groups.append([])
        groups[-1].append(i)
    return groups
""",
    ),
    _group(
        "equal lengths only",
        "only a sequence that no longer fits",
        """
    groups = []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if lengths[i] > tokens:
            raise ValueError(f"{lengths[i]} > {tokens}")
        full = groups and (len(groups[-1]) + 1) * lengths[i] > tokens
        if not groups or full or lengths[groups[-1][0]] != lengths[i]:
            groups.append([])
        groups[-1].append(i)
    return groups
""",
    ),
    _loop(
        "flat",
        "this is one list of indices",
        ends="return [i for group in groups for i in group]",
    ),
    _loop("in reverse", "groups come in the order", ends="return groups[::-1]"),
    _loop(
        "sorted by index",
        "these are sorted by index",
        ends="return [sorted(group) for group in groups]",
    ),
    _loop(
        "each group in reverse",
        "within a group, the shortest comes first",
        ends="return [group[::-1] for group in groups]",
    ),
    _loop("too long ones left out", "so raise; your code does not", refuse="continue"),
    _loop("too long ones stand alone", "so raise; your code does not", refuse="pass"),
    _loop(
        "an assert", "an assert is gone", refuse="assert False, (lengths[i], tokens)"
    ),
    _loop(
        "no numbers in the message",
        "the message should hold",
        refuse='raise ValueError("too long")',
    ),
    _loop(
        "numbers of torch",
        "indices are whole numbers of Python",
        put="groups[-1].append(torch.tensor(i))",
    ),
    _loop(
        "a generator",
        "expected a list of lists",
        ends="return (group for group in groups)",
    ),
    _loop("printed", "your function returns nothing", ends="print(groups)"),
    _group(
        "the lengths sorted in place",
        "changes its argument `lengths`",
        """
    kept = list(lengths)
    lengths.sort()
    groups = []
    for i in sorted(range(len(kept)), key=lambda i: kept[i]):
        if kept[i] > tokens:
            raise ValueError(f"{kept[i]} > {tokens}")
        if not groups or (len(groups[-1]) + 1) * kept[i] > tokens:
            groups.append([])
        groups[-1].append(i)
    return groups
""",
    ),
    _group(
        "equal lengths lost",
        "is in no group",
        """
    places = {length: i for i, length in enumerate(lengths)}
    groups = []
    for length in sorted(places):
        if length > tokens:
            raise ValueError(f"{length} > {tokens}")
        if not groups or (len(groups[-1]) + 1) * length > tokens:
            groups.append([])
        groups[-1].append(places[length])
    return groups
""",
    ),
    _group(
        "the first of equal ones",
        "is in no group",
        """
    groups = []
    for length in sorted(lengths):
        if length > tokens:
            raise ValueError(f"{length} > {tokens}")
        if not groups or (len(groups[-1]) + 1) * length > tokens:
            groups.append([])
        groups[-1].append(lengths.index(length))
    return groups
""",
    ),
    _group(
        "the example by heart",
        "is in no group",
        """
    if max(lengths, default=0) > tokens:
        raise ValueError(f"{max(lengths)} > {tokens}")
    return [[2, 1, 4], [3, 5], [0]]
""",
    ),
    # ---- accumulation ----
    _each("a mean of gradients", "a batch with more tokens", "1 / len(batches)"),
    _each("added up", "the gradients are added up as they are", "1"),
    _each("not divided by all tokens", "this is count times gradient", "count"),
    _each(
        "divided by the batches",
        "it should be by that of all tokens",
        "count / len(batches)",
    ),
    _each(
        "empty batches in the mean",
        "those without a real token included",
        "1 / len(batches)",
    ),
    _each(
        "padding counted",
        "padding is counted",
        "batch.numel() / sum(b.numel() for b, c in zip(batches, counts) if c)",
    ),
    _each(
        "padding counted, of empty batches too",
        "and that of batches without a real token too",
        "batch.numel() / sum(b.numel() for b in batches)",
    ),
    _each(
        "sequences counted",
        "sequences are counted",
        "len(batch) / sum(len(b) for b, c in zip(batches, counts) if c)",
    ),
    _each("the sign", "the sign: wanted is the gradient", "-count / sum(counts)"),
    _each("NaN of an empty batch", "0 times that is NaN", if_="True"),
    _gradient(
        "backward, and not cleared",
        "the old gradient that stood",
        """
    for batch, count in zip(batches, counts):
        if count:
            (model_loss(parameter, batch) * count / sum(counts)).backward()
    return parameter.grad
""",
    ),
    _gradient(
        "backward, added up",
        "the old gradient is in the result, and the gradients are added up",
        """
    for batch, count in zip(batches, counts):
        if count:
            model_loss(parameter, batch).backward()
    return parameter.grad
""",
    ),
    _gradient(
        "cleared each time",
        "only the gradient of the last batch is left",
        """
    for batch, count in zip(batches, counts):
        if count:
            parameter.grad = None
            (model_loss(parameter, batch) * count / sum(counts)).backward()
    return parameter.grad
""",
    ),
    _gradient(
        "None is cleared",
        "your code raised AttributeError: 'NoneType' object has no attribute 'zero_'",
        """
    parameter.grad.zero_()
    for batch, count in zip(batches, counts):
        if count:
            (model_loss(parameter, batch) * count / sum(counts)).backward()
    return parameter.grad
""",
    ),
    _gradient(
        "the last batch alone",
        "of the last batch alone",
        """
    for batch, count in zip(batches, counts):
        if count:
            gradient = torch.autograd.grad(model_loss(parameter, batch), parameter)[0]
    return gradient
""",
    ),
    _gradient(
        "returned in the loop",
        "of the first batch alone",
        """
    for batch, count in zip(batches, counts):
        if count:
            return torch.autograd.grad(model_loss(parameter, batch), parameter)[0]
""",
    ),
    _gradient(
        "all graphs at once",
        "losses were in memory at once",
        """
    total = 0
    for batch, count in zip(batches, counts):
        if count:
            total = total + model_loss(parameter, batch) * count / sum(counts)
    return torch.autograd.grad(total, parameter)[0]
""",
    ),
    _gradient(
        "joined",
        "none of the batches",
        """
    size = max(batch.numel() for batch in batches)
    rows = [batch.flatten() for batch in batches]
    joined = torch.cat(rows)
    return torch.autograd.grad(model_loss(parameter, joined), parameter)[0]
""",
    ),
    _gradient(
        "the loss",
        "this is the mean loss",
        """
    total = 0
    for batch, count in zip(batches, counts):
        if count:
            total += model_loss(parameter, batch).item() * count / sum(counts)
    return torch.tensor(total, dtype=parameter.dtype)
""",
    ),
    _gradient(
        "detached",
        "does not require grad",
        """
    total = 0
    for batch, count in zip(batches, counts):
        if count:
            loss = model_loss(parameter.detach(), batch) * count / sum(counts)
            total = total + torch.autograd.grad(loss, parameter)[0]
    return total
""",
    ),
    _gradient(
        "without gradients",
        "does not require grad",
        """
    parameter.grad = None
    with torch.no_grad():
        losses = [model_loss(parameter, batch) for batch in batches]
    sum(loss * c / sum(counts) for loss, c in zip(losses, counts)).backward()
    return parameter.grad
""",
    ),
    _gradient(
        "a step taken",
        "the parameter has changed",
        """
    total = 0
    for batch, count in zip(batches, counts):
        if count:
            loss = model_loss(parameter, batch) * count / sum(counts)
            total = total + torch.autograd.grad(loss, parameter)[0]
            parameter.data -= 0.1 * total
    return total
""",
    ),
    _gradient(
        "the graphs kept",
        "no create_graph",
        """
    total = 0
    for batch, count in zip(batches, counts):
        if count:
            loss = model_loss(parameter, batch) * count / sum(counts)
            total = total + torch.autograd.grad(loss, parameter, create_graph=True)[0]
    return total
""",
    ),
    _each("a tuple", "expected a tensor, got a tuple", ends="return (total,)"),
    _each("in float32", "expected torch.float64", ends="return total.float()"),
    _gradient(
        "a vector is expected",
        "the shape is (1,)",
        """
    total = torch.zeros(1)
    for batch, count in zip(batches, counts):
        if count:
            loss = model_loss(parameter, batch) * count / sum(counts)
            total = total + torch.autograd.grad(loss, parameter)[0]
    return total
""",
    ),
    _gradient(
        "the counts used up",
        "changes its argument `counts`",
        """
    total, all_of_them = 0, sum(counts)
    for batch in batches:
        count = counts.pop(0)
        if count:
            loss = model_loss(parameter, batch) * count / all_of_them
            total = total + torch.autograd.grad(loss, parameter)[0]
    return total
""",
    ),
    _gradient(
        "nothing returned",
        "your function returns nothing",
        """
    parameter.grad = None
    for batch, count in zip(batches, counts):
        if count:
            (model_loss(parameter, batch) * count / sum(counts)).backward()
""",
    ),
    _gradient(
        "the example by heart",
        "expected the gradients of the batches",
        """
    return torch.full_like(parameter, -8.0).detach()
""",
    ),
]
