"""ch08/drawings.py: its drawings draw what ran, its checks find what didn't."""

from copy import deepcopy
from functools import partial

import pytest
import torch
from torch.nn import functional as F

from annotated.chapters.ch08 import drawings as ch08
from annotated.page.notebook import recorded
from annotated.recipes.copy_task import COPY, SeesAhead, copy_batches
from annotated.transformer import Transformer, TransformerConfig

CONFIG = TransformerConfig(11, 11, **COPY)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Transformer(CONFIG).eval()


def framed(html):
    return html._repr_html_().count("var(--at-right)")


def test_only_letters_in_their_place_are_framed():
    assert framed(ch08.beside("fad.", "fae.")) == 3
    assert framed(ch08.beside("fad.", "fadd.")) == 3
    watched = {"source": [1, 2, 9], "looks": []}
    for step in (20, 30, 40, 50, 60):
        watched["looks"].append({"step": step, "written": [2, 9 if step > 40 else 2]})
    assert framed(ch08.learned(watched)) == 7
    assert "after 50 steps bi" in ch08.learned(watched)._repr_html_()


def test_by_hand_writes_what_the_weights_fetch():
    symbols = F.one_hot(torch.tensor([1, 6, 1, 4]), 11).float()
    picture = ch08.by_hand("afad", torch.eye(4)[[3, 2, 1]], symbols)._repr_html_()
    assert "comes next: daf" in picture and "columns a d f" in picture


def test_the_first_loss_is_that_of_the_page_and_another_is_refused(capsys):
    source, target = next(copy_batches(seed=0, steps=1, size=128))
    loss, guide = ch08.first_loss(CONFIG, source, target[:, :-1], target[:, 1:])
    assert abs(loss - guide) < 0.5
    ch08.check_first_losses(CONFIG, source, target, loss)
    said = capsys.readouterr().out
    assert "3.40 (3.40)" in said and "tied embeddings 4.52" in said
    with pytest.raises(AssertionError):
        ch08.check_first_losses(CONFIG, source, target, loss + 0.003)


def test_orders_are_held_to_what_ran_without_positions(capsys):
    rows = recorded("ablations")["rows"]
    counts = torch.tensor([[0, 1, 1], [0, 2, 0]])
    with pytest.raises(AssertionError):
        ch08.check_orders(counts, 1.17, rows)
    ch08.check_orders(torch.ones(2, 6, dtype=torch.long), 1.17, rows)
    assert "allows 1.79 nats" in capsys.readouterr().out


def generate(model, source, most, start=1, end=None):
    written = [start]
    while len(written) <= most and end not in written[1:]:
        logits = model(source, torch.tensor([written]))[0, -1]
        written.append(logits.argmax().item())
    return written[1:]


def test_a_loop_that_writes_something_else_is_refused(model, capsys):
    source = torch.tensor([[1, *range(2, 11)], [1] * 10])
    ch08.check_generate(generate, [model], source)
    assert capsys.readouterr().out.count("✓") == 1
    with pytest.raises(AssertionError, match="the loop writes"):
        ch08.check_generate(partial(generate, start=2), [model], source)
    weight, (first,) = model.output.weight.data, generate(model, source[:1], 1)
    weight[[first, 3]] = weight[[3, first]]  # now that is a c, and ends the sequence
    with pytest.raises(AssertionError, match="the loop writes"):
        ch08.check_generate(lambda *given, end: generate(*given), [model], source)


def test_weights_come_back_to_an_8_bit_step(model):
    weight = torch.randn(5, 7) * torch.tensor([1.0, 10, 0.1, 3, 1])[:, None]
    step = weight.abs().amax(dim=1, keepdim=True) / 127
    back = ch08.unpack_rows(ch08.pack_rows(weight))
    assert ((back - weight).abs() <= 0.51 * step).all()
    twin = SeesAhead(CONFIG)
    packed, copy = ch08.rounded(twin)
    assert type(copy) is SeesAhead and not copy.training
    assert {"scales", "base64"} == packed["output.weight"].keys()


def test_a_copy_goes_by_what_the_decoder_is_given(model):
    alone = ch08.copied(model, "face", "a", ch08.ALONE)
    ids = [1, 6, 1, 3, 5]
    given = [1]
    for _ in range(4):
        logits = model(torch.tensor([ids]), torch.tensor([given]))[0, -1]
        given.append(int(logits.argmax()))
    assert alone["output"] == ch08.letters(given[1:])
    assert alone["right"] == sum(a == b for a, b in zip(given, ids, strict=True)) - 1
    for kind, begun in ((ch08.FORCED, [4, 6, 1, 3]), (ch08.BACKWARDS, [4, 5, 3, 1])):
        found = ch08.copied(model, "face", "d", kind)
        logits = model(torch.tensor([ids]), torch.tensor([begun]))[0]
        assert found["output"] == ch08.letters(logits.argmax(dim=-1).tolist())
        surest = logits.softmax(dim=-1).amax(dim=-1).min().item()
        assert found["surest"] == pytest.approx(surest, abs=1e-5)


def test_heads_are_held_to_the_staircase():
    maps = torch.zeros(2, 2, 3)
    maps[0, 0, 1] = maps[0, 1, 2] = maps[1, :, 0] = 1
    shown = ch08.attention_explorer({0: (maps, [2, 2], 1.5)}, [1, 2, 9], 1.2)
    assert '"spots": [1.0, 0.0], "right": 1' in shown._repr_html_()


@pytest.mark.parametrize(
    ("name", "layers", "copies"),
    [("no norm", 1, 900), ("no residual", 4, 200), ("no causal mask", 4, 300)],
)
def test_parts_that_are_worth_something_else_are_found(name, layers, copies, capsys):
    parts, deep = recorded("ablations"), recorded("copy_deep")["rows"]
    ch08.check_parts(parts, deep)
    assert "overflows at 152, 168, 134" in capsys.readouterr().out
    parts, deep = deepcopy((parts, deep))
    for row in (*parts["rows"], *deep):
        if (row["name"], row["layers"]) == (name, layers):
            row["exact"][0] = copies
    with pytest.raises(AssertionError, match=name):
        ch08.check_parts(parts, deep)


def test_lengths_are_the_lowest_and_the_highest_seed():
    ways = ch08.lengths_of(recorded("copy_task"))
    assert list(ways) == ["only 10", "mixed", "mixed, end", "mixed, end, shifted"]
    table = ch08.lengths_table(ways)._repr_html_()
    assert "<td>94–97</td>" in table and "<td>0–4</td>" in table
    ch08.check_lengths(ways)
    worse = deepcopy(ways)
    worse["mixed, end, shifted"][1]["16"]["exact"] = 0.7
    with pytest.raises(AssertionError):
        ch08.check_lengths(worse)
    better = deepcopy(ways)
    better["mixed, end"][2]["11"]["exact"] = 0.87
    with pytest.raises(AssertionError):
        ch08.check_lengths(better)


def test_ends_are_the_commonest():
    table = ch08.ends_table(recorded("copy_task")["lengths"])._repr_html_()
    assert "<td>9 (713), 10 (283), 8 (4)</td>" in table


@pytest.mark.parametrize(
    ("rows", "key", "copies"),
    [("rows", (4, 5e-3, "post"), 800), ("rows", (2, 1e-3, "post"), 900)]
    + [("longer", (4, 1e-3, "post"), 940), ("longer", (4, 5e-3, "post"), 30)],
)
def test_depths_that_differ_are_found(rows, key, copies):
    deep = recorded("copy_depth")
    ch08.check_depths(deep)
    for row in deep[rows]:
        if (row["layers"], row["rate"], row["norm"]) == key:
            row["exact"][0] = copies
    with pytest.raises(AssertionError):
        ch08.check_depths(deep)


def test_tables_of_the_published_setting_are_held_to_their_words():
    runs, peaks = recorded("copy_task"), recorded("ablations")["peaks"]
    published = ch08.published_table(runs["source"])._repr_html_()
    assert "<td>993 · 1000 · 1000</td>" in published
    warmups = ch08.warmups_table(runs["shorter"], peaks)._repr_html_()
    assert warmups.count('<th scope="row">40 steps</th>') == 5
    peaks[0]["exact"] = 30
    with pytest.raises(AssertionError):
        ch08.warmups_table(runs["shorter"], peaks)
    for row in runs["source"]:
        row["exact"] = 1
    with pytest.raises(AssertionError):
        ch08.published_table(runs["source"])


def test_spikes_that_do_not_come_down_are_found():
    runs, again = recorded("copy_task"), recorded("copy_parts")
    ch08.check_spikes(runs, again)
    runs["main"][1]["losses"][220] = 0.5
    with pytest.raises(AssertionError):
        ch08.check_spikes(runs, again)


def test_a_rate_curve_says_where_it_ends():
    for steps, word in ((200, "before"), (800, "after")):
        figure = ch08.rate_curve(lambda n: min(n, 400), steps, 400)
        (ax,) = figure.axes
        assert ax.texts[0].get_text() == f"ends {word} the peak"
        assert max(ax.lines[1].get_xdata()) <= steps
