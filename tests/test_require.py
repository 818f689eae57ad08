"""Messages are compared whole: they are what a reader meets."""

import inspect
from math import inf, nan

import numpy
import pytest
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from annotated import require


@require.shapes
def attend(
    query: Float[Tensor, "*batch t k"],
    key: Float[Tensor, "*batch s k"],
    value: Float[Tensor, "*batch s v"] | None = None,
    *,
    mask: Bool[Tensor, "..."] | None = None,
    scale: float = 1.0,
) -> str:
    """Return what came."""
    return "came"


@require.shapes
def read(tokens: Int[Tensor, "b t"], lengths: Int[Tensor, "b"], row: Float[Tensor, ""]):
    return "came"


@require.shapes
def square(scores: Float[Tensor, "b 1 t t"], rest: Float[Tensor, "... _ 2"]) -> str:
    return "came"


class Layer(nn.Module):
    def __init__(self, d_model: int | None):
        super().__init__()
        self.d_model = d_model

    @require.shapes(d="d_model")
    def forward(self, x: Float[Tensor, "b t d"], y: Float[Tensor, "b d"] | None = None):
        """Double."""
        return 2 * x


def floats(*shape):
    return torch.zeros(shape)


def ints(*shape):
    return torch.zeros(shape, dtype=torch.long)


# ---- shapes ------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("batch", [(), (2,), (2, 3), (0,)])
def test_shapes_that_fit_pass(batch, dtype):
    q, k, v = (floats(*batch, *ends).to(dtype) for ends in ((5, 7), (3, 7), (3, 2)))
    assert attend(q, k, v) == attend(value=v, key=k, query=q) == "came"
    assert attend(q, k, mask=torch.ones(11, dtype=torch.bool), scale=2.0) == "came"
    assert attend(q, k, None, mask=None) == "came"


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64])
def test_integers_numbers_and_scalars_pass(dtype):
    assert read(ints(2, 3).to(dtype), ints(2).to(dtype), torch.tensor(1.0)) == "came"
    assert square(floats(2, 1, 3, 3), floats(7, 5, 3, 2)) == "came"
    assert square(floats(2, 1, 3, 3), floats(5, 2)) == "came"


def test_a_size_may_be_fixed_by_the_object():
    assert Layer(7)(floats(2, 3, 7), floats(2, 7)).shape == (2, 3, 7)
    assert Layer(None)(floats(2, 3, 5)).shape == (2, 3, 5)


Q, K = floats(2, 5, 7), floats(2, 3, 7)
WRONG = {
    "other batch": (
        lambda: attend(Q, floats(1, 3, 7)),
        "key must have the shape (*batch, s, k) with batch=(2,) as in query, "
        "got (1, 3, 7)",
    ),
    "other length": (
        lambda: attend(Q, K, floats(2, 4, 11)),
        "value must have the shape (*batch, s, v) with s=3 as in key, got (2, 4, 11)",
    ),
    "several at once": (
        lambda: attend(Q, K, value=floats(1, 4, 11)),
        "value must have the shape (*batch, s, v) with batch=(2,) as in query and "
        "s=3 as in key, got (1, 4, 11)",
    ),
    "too few axes": (
        lambda: attend(floats(7), K),
        "query must have the shape (*batch, t, k), got (7,)",
    ),
    "too many axes": (
        lambda: read(ints(2, 3, 4), ints(2), floats()),
        "tokens must have the shape (b, t), got (2, 3, 4)",
    ),
    "an axis for a scalar": (
        lambda: read(ints(2, 3), ints(2), floats(1)),
        "row must have the shape (), got (1,)",
    ),
    "not square": (
        lambda: square(floats(2, 1, 3, 4), floats(5, 2)),
        "scores must have the shape (b, 1, t, t) with t=3 as in scores, "
        "got (2, 1, 3, 4)",
    ),
    "a number": (
        lambda: square(floats(2, 2, 3, 3), floats(5, 2)),
        "scores must have the shape (b, 1, t, t), got (2, 2, 3, 3)",
    ),
    "last number": (
        lambda: square(floats(2, 1, 3, 3), floats(5, 3)),
        "rest must have the shape (..., _, 2), got (5, 3)",
    ),
    "fixed by the object": (
        lambda: Layer(7)(floats(2, 3, 5)),
        "x must have the shape (b, t, d) with d=7 as in self.d_model, got (2, 3, 5)",
    ),
    "by the other argument": (
        lambda: Layer(None)(x=floats(2, 3, 5), y=floats(2, 7)),
        "y must have the shape (b, d) with d=5 as in x, got (2, 7)",
    ),
}


@pytest.mark.parametrize(("call", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_shape_is_named(call, message):
    with pytest.raises(ValueError) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("call", "name", "kinds"),
    [
        (lambda: attend(Q.long(), K), "query", "floats, got torch.int64"),
        (lambda: read(Q[0], ints(2), K), "tokens", "integers, got torch.float32"),
        (lambda: read(Q[0].bool(), ints(2), K), "tokens", "integers, got torch.bool"),
        (lambda: attend([1.0], K), "query", "floats, got list"),
        (lambda: attend(Q.numpy(), K), "query", "floats, got ndarray"),
        (lambda: attend(Q, None), "key", "floats, got NoneType"),
        (
            lambda: attend(Q, K, mask=floats(5, 3)),
            "mask",
            "booleans (True = may attend), got torch.float32",
        ),
    ],
)
def test_a_wrong_kind_is_named(call, name, kinds):
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == f"{name} must be a tensor of {kinds}"


def test_the_function_looks_as_it_was_written():
    assert inspect.getsource(Layer.forward).startswith("    @require.shapes(d=")
    assert list(inspect.signature(attend).parameters)[-1] == "scale"
    assert attend.__name__ == "attend" and attend.__doc__ == "Return what came."


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiles_as_one_graph_without_checks(dynamic):
    compiled = torch.compile(Layer(7), fullgraph=True, backend="eager", dynamic=dynamic)
    x = torch.randn(2, 3, 7)
    torch.testing.assert_close(compiled(x), 2 * x)
    torch.testing.assert_close(compiled(x[..., :5]), 2 * x[..., :5])


# ---- masks and ids -----------------------------------------------------------


@pytest.mark.parametrize("axes", [(), (5,), (1, 5), (3, 1), (7, 3, 5), (1, 1, 1)])
def test_a_mask_that_broadcasts_passes(axes):
    assert require.mask(torch.ones(axes, dtype=torch.bool), (7, 3, 5)) is None
    assert require.mask(None, (7, 3, 5)) is None


@pytest.mark.parametrize("axes", [(3,), (5, 3), (2, 3, 5), (1, 7, 3, 5), (0,)])
def test_a_mask_of_another_shape_is_refused(axes):
    with pytest.raises(ValueError, match=r"mask .*\(7, 3, 5\).*got \(" + str(axes[0])):
        require.mask(torch.ones(axes, dtype=torch.bool), (7, 3, 5))


@pytest.mark.parametrize("axes", [(2, 3, 5), (1, 3, 5)])
def test_a_mask_whose_batch_would_be_read_as_heads_is_refused(axes):
    with pytest.raises(ValueError, match=r"one mask a sequence pass mask\[:, None\]"):
        require.mask(torch.ones(axes, dtype=torch.bool), (2, 2, 3, 5))


def test_a_mask_that_may_be_of_the_batch_or_of_the_queries_is_refused():
    padding = torch.tensor([[True, True, False], [True, False, False], [True] * 3])
    message = r"got \(3, 3\); .* mask\[None, None\], .* mask\[:, None, None\]"
    with pytest.raises(ValueError, match=message):
        require.mask(padding, (3, 2, 3, 3))
    require.mask(padding, (4, 2, 3, 3))  # only (queries, keys) fits
    require.mask(padding[:1, :1], (1, 2, 1, 3))


def test_ids_in_the_vocabulary_pass():
    assert require.ids(7, tokens=torch.tensor([[0, 6]]), none=ints(0, 3)) is None


@pytest.mark.parametrize("wrong", [-1, 7])
def test_ids_out_of_the_vocabulary_are_refused(wrong):
    message = f"tokens must hold integers from 0 to 6, got {wrong}"
    with pytest.raises(ValueError, match=message):
        require.ids(7, tokens=torch.tensor([[0, wrong, 6]]))


@pytest.mark.parametrize("wrong", [0, 4])
def test_numbers_out_of_bounds_are_refused(wrong):
    with pytest.raises(ValueError, match=f"lengths must .* from 1 to 3, got {wrong}"):
        require.within(1, 3, lengths=torch.tensor([1, wrong, 3]))


def test_numbers_on_another_device_are_not_looked_at():
    assert require.ids(7, tokens=torch.full((2,), 9, device="meta")) is None


# ---- numbers and choices -----------------------------------------------------


@pytest.mark.parametrize("number", [1, 10**12, numpy.int64(3), numpy.uint8(3)])
def test_counts_pass(number):
    assert require.count(heads=number, layers=1) is None
    assert require.count(0, 5, start=0, end=5) is None


@pytest.mark.parametrize(
    "number", [True, numpy.bool_(True), 2.0, "2", None, torch.tensor(2)]
)
def test_what_is_no_integer_is_no_count(number):
    for check in (require.count, require.even):
        with pytest.raises(TypeError, match="heads must be an integer ≥ ") as caught:
            check(heads=number)
        assert str(caught.value).endswith(f"got {number!r}")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: require.count(x=0), "x must be an integer ≥ 1, got 0"),
        (lambda: require.count(0, x=-1), "x must be an integer ≥ 0, got -1"),
        (lambda: require.count(0, 6, x=7), "x must be an integer from 0 to 6, got 7"),
        (lambda: require.even(x=7), "x must be even, got 7"),
        (lambda: require.even(x=0), "x must be an integer ≥ 2, got 0"),
        (lambda: require.divides(x=3, y=8), "x must divide y, got x=3 and y=8"),
        (lambda: require.divides(x=0, y=8), "x must be an integer ≥ 1, got 0"),
        (lambda: require.at_most(x=3, y=2), "x must be at most y, got x=3 and y=2"),
        (lambda: require.probability(x=1), "x must be a number in [0, 1), got 1"),
        (lambda: require.probability(x=nan), "x must be a number in [0, 1), got nan"),
        (lambda: require.positive(x=0), "x must be a number above 0 and finite, got 0"),
        (
            lambda: require.positive(x=inf),
            "x must be a number above 0 and finite, got inf",
        ),
        (lambda: require.that([], "batches must hold one"), "batches must hold one"),
        (lambda: require.choice("ab", x="c"), "x must be one of 'a', 'b', got 'c'"),
    ],
)
def test_numbers_out_of_range_are_named(call, message):
    with pytest.raises(ValueError) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize("number", [True, "0.1", None])
def test_what_is_no_number_is_refused(number):
    for check in (require.probability, require.positive):
        with pytest.raises(TypeError, match=f"rate must be .* got {number!r}"):
            check(rate=number)


def test_numbers_in_range_pass():
    assert require.even(d_model=2) is require.divides(heads=2, d_model=8) is None
    assert require.at_most(length=32, max_len=32) is None
    assert require.probability(dropout=0, smoothing=numpy.float32(0.5)) is None
    assert require.positive(base=1e-9, clip=3) is None
    assert require.choice(("pre", "post"), norm="pre") is None
    assert require.that(torch.tensor(3), "nothing") is None


def test_padding_in_front_is_refused_and_elsewhere_passes():
    rows = torch.tensor([[3, 5, 6], [3, 3, 3], [4, 3, 5], [3, 3, 1], [7, 8, 3]])
    require.padding_behind(3, tokens=rows[[1, 2, 4]])
    with pytest.raises(ValueError, match=r"tokens .*padding first in rows \[0, 3\]"):
        require.padding_behind(3, tokens=rows)
