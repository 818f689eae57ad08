"""annotated/refinement.py: what is masked is guessed, in rounds, at a cost."""

import itertools
import math

import pytest
import torch
from torch import nn

from annotated.batches import Vocabulary
from annotated.masks import causal_mask
from annotated.page.packed import pack_model, unpack_refiner
from annotated.recipes.translation import Cutter
from annotated.refinement import (
    MaskedTransformer,
    diffusion_bits,
    diffusion_loss,
    diffusion_sample,
    gumbel,
    mask_predict,
    mask_predict_loss,
)
from annotated.transformer import Transformer, TransformerConfig

# what equal rounds at random positions lose of `chain`, in bits: by enumeration
LOST = {1: 8.6869, 2: 3.3363, 4: 1.0161, 8: 0.0}
# 9 source symbols; of 8 target symbols 0 is padding and 7 the mask
SOURCES, TARGETS, MASK, LONGEST = 9, 8, 7, 12


def make_model(**changes) -> MaskedTransformer:
    given = {"d_model": 8, "heads": 2, "layers": 2, "d_ff": 12, "dropout": 0.0}
    given |= {"max_len": LONGEST, "norm": "pre"} | changes
    model = MaskedTransformer(TransformerConfig(SOURCES, TARGETS, **given)).double()
    with torch.no_grad():  # a model that is unsure, and repeats itself, proves little
        model.target_embedding.weight *= 3.0
        model.output.weight *= 4.0
    return model.eval()


def draw(lengths=(6, 3, 5)) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    source = torch.randint(1, SOURCES, (len(lengths), 5))
    source[1, 3:] = 0
    target = torch.randint(1, MASK, (len(lengths), max(lengths)))
    for row, length in enumerate(lengths):
        target[row, length:] = 0
    return source, target, torch.tensor(lengths)


class Exact(nn.Module):
    """A denoiser that knows a distribution: each conditional is read off its table."""

    def __init__(self, joint: torch.Tensor):
        super().__init__()
        self.joint, self.known = joint, {}
        symbols = len(joint)
        self.mask = symbols + 1  # symbols have the ids from 1 on
        self.config = TransformerConfig(2, symbols + 2, 2, 1, max_len=joint.dim())

    def encode(self, source):
        return torch.zeros(*source.shape, 2).double(), source[:, None, None] != 0

    def decode(self, target, memory, memory_mask=None):
        return torch.stack([self.row(tuple(one)) for one in target.tolist()])

    def row(self, ids):
        if ids not in self.known:
            free = [i for i, one in enumerate(ids) if one == self.mask]
            left = self.joint[
                tuple(slice(None) if i in free else ids[i] - 1 for i in range(len(ids)))
            ]
            logits = torch.full((len(ids), self.mask + 1), -torch.inf).double()
            for place, i in enumerate(free):
                others = [axis for axis in range(len(free)) if axis != place]
                logits[i, 1:-1] = (left.sum(dim=others) if others else left).log()
            for i in set(range(len(ids))) - set(free):
                logits[i, 1] = 0.0
            self.known[ids] = logits
        return self.known[ids]


def chain() -> torch.Tensor:
    """Return the joint distribution of 8 symbols of 4 kinds, each led by the last."""
    rows = [[0.0, 0.8, 0.2, 0.0], [0.0, 0.0, 0.7, 0.3], [0.1, 0.0, 0.0, 0.9]]
    joint = torch.full((4,), 0.25).double()
    for _ in range(7):
        joint = joint[..., None] * torch.tensor([*rows, [0.7, 0.3, 0.0, 0.0]]).double()
    return joint


def written(joint: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return sequences from ``joint``, ids from 1 on, and their log₂ probabilities."""
    places = torch.multinomial(joint.flatten(), count, replacement=True)
    ids = torch.stack(torch.unravel_index(places, joint.shape), dim=1) + 1
    return ids, joint.flatten()[places].log2()


# ---- the model -------------------------------------------------------------------


def test_it_is_the_transformer_with_another_mask():
    model, (source, target, _) = make_model(), draw()
    plain = Transformer(model.config).double()
    plain.load_state_dict(model.state_dict(), strict=False)
    wanted = plain(source, target)
    memory = model.encode(source)
    logits = model.decode(target, *memory, mask=causal_mask(target.shape[1]))
    assert (logits[..., [0, MASK]] == -torch.inf).all()
    torch.testing.assert_close(logits[..., 1:MASK], wanted[..., 1:MASK])
    assert not torch.allclose(model(source, target)[0, 0, 1:MASK], wanted[0, 0, 1:MASK])


def test_padding_is_seen_by_nobody():
    model, (source, target, lengths) = make_model(), draw()
    logits = model(source, target)
    together = model.guess_length(*model.encode(source))
    for row, (length, size) in enumerate(zip(lengths.tolist(), (5, 3, 5), strict=True)):
        alone = source[row : row + 1, :size], target[row : row + 1, :length]
        torch.testing.assert_close(model(*alone)[0], logits[row, :length])
        guessed = model.guess_length(*model.encode(alone[0]))[0]
        torch.testing.assert_close(together[row], guessed)
        assert guessed[0] == -torch.inf
        torch.testing.assert_close(guessed.exp().sum().item(), 1.0)


# ---- mask-predict ----------------------------------------------------------------


def test_one_round_is_one_forward_pass():
    model, (source, target, lengths) = make_model(), draw()
    canvas = target.masked_fill(target != 0, MASK)
    logs = model(source, canvas).log_softmax(-1)
    best, guess = (x.masked_fill(target == 0, 0) for x in logs.max(-1))
    found = mask_predict(model, source, rounds=1, length=lengths)
    assert torch.equal(found.tokens, guess) and len(found.rounds) == 1
    torch.testing.assert_close(found.score, best.sum(1) / lengths)
    sampled = diffusion_sample(model, source, rounds=1, length=lengths, temperature=0)
    assert torch.equal(sampled.tokens, guess)


def test_mask_predict_is_this_loop():
    model, (source, _, _) = make_model(), draw()
    found = mask_predict(model, source, rounds=4, candidates=3)
    for row in range(len(source)):
        alone = source[row : row + 1, : (5, 3, 5)[row]]
        memory, best = model.encode(alone), None
        for length in model.guess_length(*memory)[0].topk(3).indices.tolist():
            ids, sure = [MASK] * length, [-math.inf] * length
            for r in range(4):
                order = sorted(range(length), key=lambda i: sure[i])
                again = order[: length * (4 - r) // 4]
                read = [MASK if i in again else one for i, one in enumerate(ids)]
                logs = model.decode(torch.tensor([read]), *memory)[0].log_softmax(-1)
                for i in again:
                    sure[i], ids[i] = logs[i].max().item(), int(logs[i].argmax())
            if best is None or sum(sure) / length > best[0]:
                best = sum(sure) / length, ids
        assert found.tokens[row, : len(best[1])].tolist() == best[1]
        assert not found.tokens[row, len(best[1]) :].any()
        torch.testing.assert_close(found.score[row].item(), best[0])


def test_more_rounds_than_symbols_and_modes():
    model, (source, _, lengths) = make_model(dropout=0.3).train(), draw()
    found = mask_predict(model, source, rounds=40, length=lengths)
    assert model.training and not found.score.requires_grad
    assert torch.equal(found.tokens != 0, torch.arange(6) < lengths[:, None])
    sampled = diffusion_sample(model, source, rounds=40, length=lengths)
    assert 6 <= len(sampled.rounds) <= 14  # at most one for each symbol
    assert not (sampled.tokens == MASK).any()


# ---- diffusion: sampling ---------------------------------------------------------


@pytest.mark.parametrize("order", ["blocks", "surest"])  # left to right, or the surest
def test_one_symbol_a_round_is_greedy_decoding_of_the_same_scores(order):
    model, (source, _, lengths) = make_model(), draw((6, 6, 6))
    memory, ids, rows = model.encode(source), torch.full((3, 6), MASK), torch.arange(3)
    for i in range(6):
        best, guess = model.decode(ids, *memory).softmax(-1).max(-1)
        surest = best.masked_fill(ids != MASK, -1).argmax(1)
        place = torch.full((3,), i) if order == "blocks" else surest
        ids[rows, place] = guess[rows, place]
    options = {"rounds": 6, "length": lengths, "temperature": 0}
    found = diffusion_sample(model, source, order=order, **options)
    assert torch.equal(found.tokens, ids)


@pytest.mark.parametrize("order", ["random", "surest", "blocks"])
def test_each_round_writes_its_share(order):
    model, (source, _, lengths) = make_model(), draw((6, 3, 6))
    options = {"rounds": 3, "order": order, "block": 3, "length": lengths}
    found = diffusion_sample(model, source, **options)
    for r, one in enumerate(found.rounds, start=1):
        new = (one.read == MASK) & (one.written != MASK)
        assert new.sum(1).tolist() == [2, 1, 2]
        assert (one.written == MASK).sum(1).tolist() == [6 - 2 * r, 3 - r, 6 - 2 * r]
        every = model(source, one.read).log_softmax(-1)
        right = every.gather(-1, one.written[..., None])[..., 0]
        torch.testing.assert_close(one.logs[new], right[new])
    if order == "blocks":
        assert (found.rounds[0].written[0, 3:] == MASK).all()


def test_what_is_given_stays_and_what_is_masked_again_is_written_again():
    model, (source, target, _) = make_model(), draw()
    canvas = target.clone()
    canvas[0, 1:4], canvas[2, 2:4] = MASK, MASK  # in row 1, nothing is masked
    found = diffusion_sample(model, source, rounds=8, remask=0.6, canvas=canvas)
    given = canvas != MASK
    assert torch.equal(found.tokens[given], target[given]) and found.score[1] == 0
    assert not (found.tokens == MASK).any()
    pairs = list(itertools.pairwise(found.rounds))
    assert any(((b.read == MASK) & (a.written != MASK)).any() for a, b in pairs)
    full = diffusion_sample(model, source, rounds=8, canvas=target)
    assert torch.equal(full.tokens, target) and not full.rounds


def test_new_diego():
    joint = torch.zeros(2, 2, 2).double()[..., 0]
    joint[0, 0] = joint[1, 1] = 0.5  # New York, San Diego
    source, length = torch.ones(4000, 1).long(), torch.full((4000,), 2)
    for rounds, mixed in ((1, 0.5), (2, 0.0)):
        found = diffusion_sample(Exact(joint), source, rounds=rounds, length=length)
        share = (found.tokens[:, 0] != found.tokens[:, 1]).double().mean().item()
        assert abs(share - mixed) < 0.04


def test_temperature_and_noise():
    joint = torch.tensor([0.8, 0.2]).double()
    source, length = torch.ones(20_000, 1).long(), torch.ones(20_000).long()
    for temperature in (0.0, 0.5, 1.0):
        wanted = 0.2**2 / (0.2**2 + 0.8**2) if temperature == 0.5 else 0.2 * temperature
        options = {"length": length, "temperature": temperature}
        found = diffusion_sample(Exact(joint), source, rounds=1, **options)
        share = (found.tokens == 2).double().mean().item()
        assert abs(share - wanted) < 0.015
    noise = gumbel((200_000,), torch.Generator().manual_seed(0))
    assert noise.dtype == torch.float64
    assert abs(noise.mean().item() - 0.5772) < 0.01


# ---- diffusion: the bound --------------------------------------------------------


def test_losses_are_these_sums():
    model, (source, target, lengths) = make_model(), draw()
    memory = model.encode(source)
    length = -model.guess_length(*memory).gather(1, lengths[:, None]).sum()
    canvas = target.masked_fill(target != 0, MASK)
    logs = model(source, canvas).log_softmax(-1).gather(-1, target[..., None])[..., 0]
    whole = -logs[target != 0].sum()
    all_masked = torch.ones(3).double()
    loss = diffusion_loss(model, source, target, share=all_masked)
    torch.testing.assert_close(loss, (whole + length) / 14)
    loss = diffusion_loss(model, source, target, share=all_masked, lengths=False)
    torch.testing.assert_close(loss, whole / 14)
    g, masked = torch.Generator().manual_seed(2), torch.zeros(3, 6, dtype=torch.bool)
    u, order = (
        torch.rand(3, generator=g),
        torch.rand(3, 6, generator=g, dtype=torch.float64),
    )
    for row, (number, size) in enumerate(zip(1 + u * lengths, lengths, strict=True)):
        masked[row, order[row, :size].topk(int(number)).indices] = True
    logits = model(source, target.masked_fill(masked, MASK))
    cost = -logits.log_softmax(-1).gather(-1, target[..., None])[..., 0][masked].mean()
    loss = mask_predict_loss(model, source, target, g.manual_seed(2))
    torch.testing.assert_close(loss, cost + length / 14)
    mask_predict_loss(model.train(), source, target).backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_loss_and_bits_have_one_mean_and_bound_the_likelihood():
    model, (source, target, _) = make_model(), draw()
    source, target = source[:1], target[:1, :3]
    memory = model.encode(source)

    def log(kept, i):
        read = [int(target[0, j]) if j in kept else MASK for j in range(3)]
        logits = model.decode(torch.tensor([read]), *memory)[0, i]
        return logits.log_softmax(-1)[target[0, i]].item()

    orders = list(itertools.permutations(range(3)))
    each = [sum(log(o[:k], o[k]) for k in range(3)) for o in orders]
    bound = -sum(each) / len(each)
    likelihood = -math.log(sum(map(math.exp, each)) / len(each))  # of the sampler
    assert bound > likelihood + 1e-3
    g = torch.Generator().manual_seed(0)
    many = [tensor.expand(4000, -1) for tensor in (source, target)]
    bits = diffusion_bits(model, *many, 3, lengths=False, generator=g).mean()
    assert abs(bits.item() * math.log(2) - bound) < 0.02 * bound
    with torch.no_grad():
        loss = diffusion_loss(model, *many, lengths=False, generator=g).item()
    assert abs(3 * loss - bound) < 0.06 * bound
    length = -model.guess_length(*memory)[0, 3] / math.log(2)
    less, more = (
        diffusion_bits(model, source, target, 3, counted, g.manual_seed(1))
        for counted in (False, True)
    )
    torch.testing.assert_close(more - less, length[None])


def test_an_exact_denoiser_reaches_the_entropy_and_loses_by_the_round():
    joint = chain()
    model, source = Exact(joint), torch.ones(200, 1).long()
    target, logs = written(joint, 200)
    bits = diffusion_bits(model, source, target, 8, lengths=False)
    # what an order's conditionals cost adds up to the whole, so no average is needed
    assert abs((bits + logs).mean().item()) < 0.3

    class Told(Exact):  # writes the target, whatever it thinks
        def decode(self, read, *_):
            return nn.functional.one_hot(target, self.mask + 1).double().log()

    for rounds, wanted in LOST.items():
        length = torch.full((200,), 8)
        found = diffusion_sample(Told(joint), source, rounds=rounds, length=length)
        assert torch.equal(found.tokens, target)
        apart = torch.zeros(200).double()
        for one in found.rounds:
            new = (one.read == model.mask) & (one.written != model.mask)
            every = model.decode(one.read, None).log_softmax(-1) / math.log(2)
            right = every.gather(-1, target[..., None])[..., 0]
            apart -= right.where(new, 0.0).sum(1)
        error = (apart + logs).mean().item() - wanted
        assert abs(error) < (0.5 if rounds < 8 else 1e-6)


def test_a_packed_model_is_the_same_but_for_eight_bits():
    cutter = Cutter(Vocabulary("abcdef"), Vocabulary("ABCD"), [])
    model, (source, target, _) = make_model(), draw()
    script = pack_model("one", model, cutter)
    packed, same = unpack_refiner(script)
    assert same.target.symbols == cutter.target.symbols and packed.mask == MASK
    logits = packed(source, target)[..., 1:MASK].double()
    wanted = model(source, target)[..., 1:MASK]
    assert 0 < (logits - wanted).abs().max() < 0.2 * wanted.std()


# ---- bad input -------------------------------------------------------------------

EMPTY = [[0, 0], [1, 0], [1, 1]]
MESSAGES = [
    (mask_predict, {"rounds": 0}, "rounds must be an integer ≥ 1, got 0"),
    (mask_predict, {"candidates": 13}, "candidates must be an integer from 1 to 12"),
    (mask_predict, {"length": [0, 1, 2]}, "length must .* from 1 to 12, got 0"),
    (mask_predict, {"length": [1, 13, 2]}, "length must .* got 13"),
    (mask_predict, {"length": [1] * 3, "candidates": 2}, "candidates must be 1 if"),
    (mask_predict, {"source": EMPTY}, "real symbol in rows .0."),
    (diffusion_sample, {"source": EMPTY}, "real symbol in rows .0."),
    (diffusion_sample, {"rounds": 0}, "rounds must be an integer ≥ 1, got 0"),
    (diffusion_sample, {"length": [1, 13, 2]}, "length must .* got 13"),
    (diffusion_sample, {"order": "best"}, "order must be one of 'random', 'surest'"),
    (diffusion_sample, {"block": 0}, "block must be an integer ≥ 1"),
    (diffusion_sample, {"remask": 1.0}, "remask must be a number in .0, 1., got 1.0"),
    (diffusion_sample, {"temperature": -1}, "temperature must be a number ≥ 0, got -1"),
    (diffusion_sample, {"canvas": [[8]] * 3}, "canvas must hold integers from 0 to 7"),
    (diffusion_sample, {"canvas": [[0, 7]] * 3}, "canvas must be padded behind"),
    (diffusion_sample, {"canvas": [[7]] * 3, "length": [1] * 3}, "length or canvas"),
    (diffusion_loss, {"share": [0.5, 0.0, 1.0]}, "share must be in .0, 1., got .0.0"),
    (diffusion_loss, {"share": [0.5, 1.5, 1.0]}, "share must be in .0, 1., got .1.5"),
    (diffusion_loss, {"share": [1.0, 1.0, math.nan]}, "share must .* got .nan"),
    (diffusion_loss, {"target": [[1], [0], [1]]}, "got none in rows .1."),
    (mask_predict_loss, {"target": [[1], [7], [1]]}, "without .MASK. .7., .* .1."),
    (diffusion_bits, {"target": [[0, 1]] * 3}, "target must be padded behind"),
    (diffusion_bits, {"draws": 0}, "draws must be an integer ≥ 1"),
]


@pytest.mark.parametrize(("function", "changes", "message"), MESSAGES)
def test_bad_input(function, changes, message):
    source, target, _ = draw()
    writes = function in (mask_predict, diffusion_sample)
    given = {"source": source} | ({"rounds": 2} if writes else {"target": target})
    for name, value in changes.items():
        given[name] = torch.tensor(value) if isinstance(value, list) else value
    with pytest.raises(ValueError, match=message):
        function(make_model(), **given)


def test_masks_are_boolean_and_no_padding():
    with pytest.raises(ValueError, match="pad must not be"):
        make_model(pad=MASK)
    model, (source, target, _) = make_model(), draw()
    memory = model.encode(source)
    with pytest.raises(TypeError, match="mask must be a tensor of booleans"):
        model.decode(target, *memory, mask=torch.ones(6, 6))
    with pytest.raises(ValueError, match="mask must be broadcastable"):
        model.decode(target, *memory, mask=causal_mask(5))
