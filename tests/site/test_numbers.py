"""annotated/page/static/numbers.js in the browser, against PyTorch and Python."""

import pytest
import torch
from torch import nn

from annotated.attention import record_attention
from annotated.page.frames import pack, static, unpack
from annotated.transformer import Encoder, TransformerConfig

pytestmark = pytest.mark.covers("numbers.js")


@pytest.fixture(scope="module")
def js(browser):
    """Evaluate an expression of `numbers` and the arguments a, b, c."""
    page = browser.new_page()
    yield lambda expression, *arguments: page.evaluate(
        f"([a, b, c]) => {{ {static('numbers.js')}; return {expression}; }}",
        [*arguments, *[None] * (3 - len(arguments))],
    )
    page.close()


def normal(*size: int) -> torch.Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(sum(size)))


def agrees(found, expected: torch.Tensor) -> bool:
    return torch.allclose(torch.tensor(found), expected, rtol=1e-5, atol=1e-6)


def test_products_and_sums(js):
    matrix, u, v = normal(5, 3), normal(3), normal(3) + 2
    assert agrees(js("numbers.times(a, b)", matrix.tolist(), u.tolist()), matrix @ u)
    assert agrees(js("numbers.dot(a, b)", u.tolist(), v.tolist()), u @ v)
    assert agrees(js("numbers.plus(a, b)", u.tolist(), v.tolist()), u + v)
    assert agrees(js("numbers.sum(a)", u.tolist()), u.sum())
    assert agrees(js("numbers.norm(a)", u.tolist()), u.norm())
    assert js("numbers.argmax(a)", u.tolist()) == u.argmax()
    assert js("numbers.range(a)", 3) == [0, 1, 2]


def test_softmax_with_hidden_keys_and_with_none_left(js):
    scores = torch.tensor([900.0, 2.0, -torch.inf, 899.0])
    assert agrees(js("numbers.softmax(a)", scores.tolist()), scores.softmax(-1))
    assert js("numbers.softmax([-Infinity, -Infinity])") == [0, 0]


def test_sigmoid_and_layer_norm(js):
    x = normal(7)
    assert agrees(js("a.map(numbers.sigmoid)", x.tolist()), x.sigmoid())
    norm = nn.LayerNorm(7)
    nn.init.normal_(norm.weight, generator=torch.Generator().manual_seed(0))
    nn.init.normal_(norm.bias, generator=torch.Generator().manual_seed(1))
    arguments = x.tolist(), norm.weight.tolist(), norm.bias.tolist()
    assert agrees(js("numbers.layerNorm(a, b, c)", *arguments), norm(x))


def test_activations_and_norms_of_bert(js):
    x = torch.cat([torch.linspace(-9, 9, 181), torch.tensor([1e-9, -1e-9])]).double()
    found = torch.tensor(js("a.map(numbers.erf)", x.tolist()), dtype=x.dtype)
    torch.testing.assert_close(found, x.erf(), rtol=1e-13, atol=0)
    for name, function in (("gelu", nn.functional.gelu), ("relu", torch.relu)):
        found = js(f"a.map(numbers.activations.{name})", x.tolist())
        assert agrees(found, function(x).float())
    small = 1e-5 * normal(7).double()
    ones, zeros = [1.0] * 7, [0.0] * 7
    script = "numbers.layerNorm(a, b, c, 1e-12)"
    found = js(script, small.tolist(), ones, zeros)
    assert agrees(found, nn.functional.layer_norm(small, (7,), eps=1e-12).float())


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_a_whole_encoder(js, norm, activation):
    sizes = {"d_model": 6, "heads": 2, "layers": 2, "d_ff": 5, "dropout": 0.0}
    options = {"norm": norm, "activation": activation, "norm_epsilon": 1e-3}
    torch.manual_seed(0)
    encoder = Encoder(TransformerConfig(2, 2, **sizes, **options)).eval()
    for parameter in encoder.parameters():
        nn.init.normal_(parameter)
    weights = {f"encoder.{n}": p.tolist() for n, p in encoder.state_dict().items()}
    x = normal(4, 6)
    found = js("numbers.encode(a, b, c)", weights, sizes | options, x.tolist())
    assert agrees(found["states"], encoder(x[None])[0])
    with record_attention(encoder) as maps:
        encoder(x[None])
    wanted = maps["layers.1.attention"][0][0].transpose(0, 1)
    assert agrees(found["maps"], wanted)


@pytest.mark.parametrize("size", [(5,), (2, 3), (2, 3, 5)])
def test_unpack(js, size):
    packed = pack(normal(*size))
    assert agrees(js("numbers.unpack(a)", packed), unpack(packed))


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("numbers.fixed(-1.25, 1)", "−1.3"),
        ("numbers.fixed(-0.001, 2)", "0.00"),
        ("numbers.scientific(0.000312, 1)", "3.1 · 10⁻⁴"),
        ("numbers.scientific(4.5e12, 0)", "5 · 10¹²"),
    ],
)
def test_numbers_for_people(js, expression, text):
    assert js(expression) == text
