"""annotated/positions.py: against angles and complex numbers computed one by one."""

import cmath
import itertools
import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from annotated import positions
from annotated.attention import record_attention
from annotated.masks import causal_mask, length_mask
from annotated.positions import (
    LearnedPositionalEmbedding,
    PositionalEncoding,
    RotaryMultiHeadAttention,
    frequencies,
    rotary_embedding,
    sinusoidal_encoding,
)
from tests.compare import gradients

# b 2, t 5, d 6 (three pairs), 11 positions in a table
B, T, D, MOST = 2, 5, 6, 11
FAR = 1_000_000
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
BASES = [10000.0, 500.0, 3.0]


def angle(position: int, pair: int, width: int, base: float = 10000.0) -> float:
    """Vaswani et al. (2017), section 3.5."""
    return position / base ** (2 * pair / width)


def encoded(position: int, width: int = D, base: float = 10000.0) -> list[float]:
    row = []
    for pair in range(width // 2):
        row.append(math.sin(angle(position, pair, width, base)))
        row.append(math.cos(angle(position, pair, width, base)))
    return row


def assert_near(actual: Tensor, expected, limit: float, why: str = "") -> None:
    expected = torch.as_tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(
        actual.double(), expected, rtol=0, atol=limit, msg=lambda text: f"{why}\n{text}"
    )


# ---- sinusoidal_encoding -----------------------------------------------------


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("width", [2, 6, 14])
def test_sine_and_cosine_alternate(width, base):
    table = sinusoidal_encoding(MOST, width, base)
    assert table.shape == (MOST, width), "axes are (t, d)"
    assert table.dtype == torch.float32
    for position in range(MOST):
        wanted = encoded(position, width, base)
        assert_near(table[position], wanted, 3e-7, f"position {position}")


def test_far_positions_are_exact_too():
    table = sinusoidal_encoding(FAR + 1, D)
    for position in (10_007, 99_991, FAR - 1, FAR):
        # angles in single precision are wrong by some hundredths there
        assert_near(table[position], encoded(position), 3e-7, f"position {position}")


# ---- PositionalEncoding ------------------------------------------------------


@pytest.mark.parametrize("start", [0, 1, 4, MOST - T])
def test_the_encoding_of_each_position_is_added(start):
    x = torch.randn(B, T, D)
    output = PositionalEncoding(D, MOST)(x, start)
    wanted = torch.tensor([encoded(start + t) for t in range(T)])
    assert_near(output, x.double() + wanted, 1e-6, f"from position {start} on")


def test_there_are_five_thousand_positions_if_no_number_is_given():
    module = PositionalEncoding(D)
    output = module(torch.zeros(1, 1, D), start=4999)
    assert_near(output[0, 0], encoded(4999), 3e-7)
    assert len(module.table) == 5000


def test_the_table_is_no_parameter_and_is_not_saved():
    module = PositionalEncoding(D, MOST)
    assert list(module.parameters()) == []
    assert module.state_dict() == {}
    assert dict(module.named_buffers()).keys() == {"table"}
    assert not module(torch.randn(B, T, D)).requires_grad


@pytest.mark.parametrize("of_table", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_adding_positions_keeps_the_dtype_of_the_input(dtype, of_table):
    x = torch.randn(B, T, D, dtype=dtype)
    modules = (PositionalEncoding(D, MOST), LearnedPositionalEmbedding(MOST, D))
    for module in modules:
        module.to(of_table)
        output = module(x)
        assert output.dtype == dtype
        # the table rounded, perhaps twice, and the sum, of numbers below 4
        limit = 4 * max(torch.finfo(of_table).eps, torch.finfo(dtype).eps, 1e-7)
        assert_near(output, x.double() + module.table[:T].double(), limit)


def test_what_is_dropped_are_numbers_of_the_sum():
    module, x = PositionalEncoding(102, 50, dropout=0.5), torch.randn(3, 50, 102)
    output = module(x)
    kept = output.ne(0)
    assert 0.48 < kept.double().mean() < 0.52  # of 15300: five standard deviations
    whole = (2 * (x + module.table)).double()
    assert_near(output[kept], whole[kept], 1e-6, "what is left is twice as large")


def test_numbers_are_dropped_in_training_alone():
    module, x = PositionalEncoding(D, MOST, dropout=0.5), torch.randn(B, T, D)
    assert torch.equal(module.eval()(x), PositionalEncoding(D, MOST)(x))
    assert not torch.equal(module.train()(x), module(x))


def test_inputs_are_left_alone():
    modules = [PositionalEncoding(D, MOST), LearnedPositionalEmbedding(MOST, D)]
    for run in [*modules, rotary_embedding]:
        x = torch.randn(B, T, D)
        before = x.clone()
        run(x)
        assert torch.equal(x, before)


# ---- LearnedPositionalEmbedding ----------------------------------------------


@pytest.mark.parametrize("start", [0, 1, 4, MOST - T])
def test_the_vector_of_each_position_is_added(start):
    module, x = LearnedPositionalEmbedding(MOST, D), torch.randn(B, T, D)
    output = module(x, start)
    for b, t in itertools.product(range(B), range(T)):
        assert torch.equal(output[b, t], x[b, t] + module.table[start + t])


@pytest.mark.parametrize("start", [0, 1, MOST - T])
def test_learning_reaches_the_rows_that_were_used_and_no_other(start):
    module, x = LearnedPositionalEmbedding(MOST, D).double(), torch.randn(B, T, D)
    output = module(x.double(), start)
    pull = torch.randn(B, T, D, dtype=torch.float64)
    (output * pull).sum().backward()
    gradient = module.table.grad
    for position in range(MOST):
        t = position - start
        wanted = pull[0, t] + pull[1, t] if 0 <= t < T else torch.zeros(D)
        assert_near(gradient[position], wanted, 1e-12, f"position {position}")


def test_learned_vectors_begin_small():
    table = LearnedPositionalEmbedding(101, 103).table
    # of 10403 numbers: five standard deviations of the mean and of the spread
    assert abs(table.mean().item()) < 0.001
    assert 0.0193 < table.std().item() < 0.0207


# ---- rotary_embedding --------------------------------------------------------


def turned(x: Tensor, start: int = 0, base: float = 10000.0) -> Tensor:
    """Su et al. (2021): each pair is a complex number, and a position turns it.

    `x` is `(t, k)`.
    """
    rows = []
    for t, row in enumerate(x.tolist()):
        numbers = []
        for pair in range(len(row) // 2):
            number = complex(row[2 * pair], row[2 * pair + 1])
            number *= cmath.exp(1j * angle(start + t, pair, len(row), base))
            numbers += [number.real, number.imag]
        rows.append(numbers)
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize("batch", [(), (B,), (B, 3)])
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("start", [0, 1, 7])
def test_turning_is_a_product_of_complex_numbers(batch, base, start):
    x = torch.randn(*batch, T, D, dtype=torch.float64)
    output = rotary_embedding(x, start, base)
    assert output.shape == x.shape
    for one, given in zip(output.reshape(-1, T, D), x.reshape(-1, T, D), strict=True):
        assert_near(one, turned(given, start, base), 1e-12)


def test_far_positions_turn_exactly_too():
    x = torch.randn(T, D, dtype=torch.float64)
    # an angle of a million, in double precision, is exact to ten digits
    assert_near(rotary_embedding(x, FAR), turned(x, FAR), 1e-8)
    single = rotary_embedding(x.float(), FAR)
    assert_near(single, turned(x.float(), FAR), 1e-6)


def test_turning_stays_on_the_device_of_its_input():
    x = torch.randn(B, T, D)
    assert rotary_embedding(x.to("meta")).device == torch.device("meta")


# ---- RotaryMultiHeadAttention ------------------------------------------------

# 3 heads of width 4, 11 keys
H, K, S = 3, 4, 11


def make_rotary(dtype=torch.float64) -> RotaryMultiHeadAttention:
    return RotaryMultiHeadAttention(H * K, H).to(dtype)


def sequence(length: int, dtype=torch.float64) -> Tensor:
    return torch.randn(B, length, H * K, dtype=dtype, requires_grad=True)


def rotary_by_complex_numbers(module, query, key, value, mask):
    """The projections, turned as complex numbers; PyTorch's own attention."""
    t, s = query.shape[1], key.shape[1]

    def heads(linear, x):
        mapped = F.linear(x, linear.weight, linear.bias)
        return torch.stack(mapped.split(K, dim=-1), dim=1)  # (b, h, length, k)

    def turn(x, first):
        turns = [
            [cmath.exp(1j * angle(first + p, pair, K)) for pair in range(K // 2)]
            for p in range(x.shape[2])
        ]
        numbers = torch.complex(x[..., 0::2], x[..., 1::2])
        numbers = numbers * torch.tensor(turns, dtype=torch.complex128)
        return torch.view_as_real(numbers).flatten(-2)

    q = turn(heads(module.query_map, query), s - t)
    k = turn(heads(module.key_map, key), 0)
    v = heads(module.value_map, value)
    scores = torch.einsum("bhtk,bhsk->bhts", q, k) / math.sqrt(K)
    weights = scores.masked_fill(~mask, -math.inf).softmax(-1)
    joined = torch.einsum("bhts,bhsk->bthk", weights, v).flatten(2)
    output = F.linear(joined, module.output_map.weight, module.output_map.bias)
    return output, weights


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("length", [T, S])
def test_rotary_heads_by_complex_numbers_forward_and_backward(length, masked):
    module = make_rotary()
    query, key, value = sequence(length), sequence(S), sequence(S)
    mask = torch.ones(1, 1, length, S, dtype=torch.bool)
    if masked:
        mask = causal_mask(length, S) & length_mask(torch.tensor([S, 7]), S)
    with record_attention(module) as maps:
        ours = module(query, key, value, mask if masked else None)
    theirs, weights = rotary_by_complex_numbers(module, query, key, value, mask)
    assert_near(ours, theirs, 1e-10)
    assert_near(maps[""][0], weights, 1e-10)
    named = {"query": query, "key": key, "value": value}
    named |= dict(module.named_parameters())
    for name, one, other in zip(
        named,
        gradients(ours, [*named.values()]),
        gradients(theirs, [*named.values()]),
        strict=True,
    ):
        assert_near(one, other, 1e-10, f"gradient of {name}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_rotation_is_the_right_answer_rounded(dtype):
    x = torch.randn(B, 50, D).to(dtype)
    exact = torch.stack([turned(one, 1003) for one in x])
    module = RotaryMultiHeadAttention(D, 1).to(dtype)
    for output in (rotary_embedding(x, 1003), module.turn(x, 1003)):
        wrong = (output.double() - exact).abs()
        assert output.dtype == dtype
        # half of the last digit, and what angles in single precision add
        assert (wrong <= exact.abs() * torch.finfo(dtype).eps / 2 + 1e-5).all()


def test_a_model_made_half_as_precise_keeps_its_angles():
    module, x = RotaryMultiHeadAttention(D, 1), torch.randn(B, 50, D)
    module.turn(x, 1003)
    half = x.bfloat16()
    assert torch.equal(module.bfloat16().turn(half, 1003), rotary_embedding(half, 1003))


def test_start_is_the_position_of_the_first_key():
    module, x = make_rotary(), sequence(S)
    whole, parts = module.project(x), [module.project(x[:, :4])]
    parts.append(module.project(x[:, 4:6], start=4))
    parts.append(module.project(x[:, 8:], x[:, 6:], start=6))  # the last of the keys
    for i in range(3):
        found = torch.cat([part[i] for part in parts], dim=2)
        wanted = whole[i] if i else whole[i][:, :, [0, 1, 2, 3, 4, 5, 8, 9, 10]]
        assert_near(found, wanted, 1e-12)


@pytest.mark.parametrize("base", BASES)
def test_the_attention_turns_as_the_function_does(base):
    module = RotaryMultiHeadAttention(H * K, H, base=base)
    for dtype in (torch.float64, torch.float32):
        x = torch.randn(B, H, T, K, dtype=dtype)
        assert torch.equal(module.turn(x, 3), rotary_embedding(x, 3, base))


def test_angles_are_computed_once_and_again_for_more_positions(monkeypatch):
    made, compute = [], positions.rotary_table

    def counted(start, end, *given):
        made.append(end)
        return compute(start, end, *given)

    monkeypatch.setattr(positions, "rotary_table", counted)
    module, x = make_rotary(torch.float32), sequence(S, torch.float32)
    for length in (T, T, 3, T):
        module(x[:, :length])
    assert made == [T]
    for start in range(20):  # a position at a time, as a cache reads
        module.project(x[:, :1], start=start)
    assert made == [T, 2 * T, 4 * T]


def test_the_table_of_angles_is_a_buffer_that_is_not_saved():
    module = make_rotary(torch.float32)
    module(sequence(T, torch.float32))
    assert (
        "table" in dict(module.named_buffers()) and "table" not in module.state_dict()
    )
    assert module.to("meta").table.device == torch.device("meta")
    again = make_rotary(torch.float32)
    again.load_state_dict(make_rotary(torch.float32).state_dict())


def test_what_was_read_without_gradients_can_learn_afterwards():
    module, x = make_rotary(), sequence(T)
    with torch.inference_mode():
        module(x)
    (gradient,) = gradients(module(x), [x])
    assert gradient.ne(0).any()


@pytest.mark.parametrize("width", [0, -2, 5, 1])
def test_widths_are_even(width):
    for name, make in (
        ("width", lambda: frequencies(width)),
        ("d_model", lambda: sinusoidal_encoding(T, width)),
        ("d_model", lambda: PositionalEncoding(width, MOST)),
    ):
        with pytest.raises(ValueError, match=f"^{name} must be .* got {width}$"):
            make()


def test_a_table_has_a_position():
    with pytest.raises(ValueError, match=r"^max_len must be an integer ≥ 1, got 0$"):
        PositionalEncoding(D, 0)


both_kinds = pytest.mark.parametrize(
    "module", [PositionalEncoding(D, MOST), LearnedPositionalEmbedding(MOST, D)]
)


@both_kinds
@pytest.mark.parametrize("axes", [(B, T, D + 1), (B, T, 1), (T, D), (B, 1, T, D)])
def test_inputs_have_three_axes_and_the_width_of_the_table(module, axes):
    message = r"^x must have the shape \(b, t, d\).*, got "
    with pytest.raises(ValueError, match=message) as caught:
        module(torch.zeros(axes))
    assert str(caught.value).endswith(str(axes))


@both_kinds
@pytest.mark.parametrize(
    ("length", "start"), [(MOST + 1, 0), (T, MOST - T + 1), (1, MOST)]
)
def test_there_is_no_position_beyond_the_table(module, length, start):
    message = "^length must be at most max_len, got length=12 and max_len=11$"
    with pytest.raises(ValueError, match=message):
        module(torch.zeros(B, length, D), start)


def test_what_is_turned_has_positions_and_an_even_width():
    for run in (rotary_embedding, RotaryMultiHeadAttention(15, 3)):
        with pytest.raises(ValueError, match=r"^width must be even, got 5$"):
            run(torch.randn(B, T, 5 if run is rotary_embedding else 15))
    with pytest.raises(ValueError, match=r"^x must have the shape .* got \(6,\)$"):
        rotary_embedding(torch.randn(D))


def test_rotary_queries_are_the_last_ones_of_the_keys():
    x = torch.randn(B, T, H * K)
    module = make_rotary(torch.float32)
    for run in (module, module.weights):
        with pytest.raises(ValueError, match=r"queries=5 and keys=4$"):
            run(x, x[:, :4])


# ---- positions that aren't in a row ----------------------------------------------


@pytest.mark.parametrize("kind", ["learned", "sinusoidal"])
def test_each_vector_may_have_a_position_of_its_own(kind):
    learned = LearnedPositionalEmbedding(5, 4)
    module = learned if kind == "learned" else PositionalEncoding(4, max_len=5)
    x, places = torch.zeros(2, 3, 4).half(), torch.tensor([[0, 1, 0], [4, 4, 2]])
    found = module(x, positions=places)
    assert torch.equal(found, module.table[places].half())
    for wrong in (-1, 5):
        with pytest.raises(ValueError, match=f"positions .* from 0 to 4, got {wrong}"):
            module(x, positions=torch.full_like(places, wrong))
