"""ch11/drawings.py, ch11b.py, ch11c.py: what they compute and refuse."""

import math
import re
from functools import partial

import pytest
import torch
from torch import nn

from annotated.attention import record_attention
from annotated.chapters.ch11 import drawings as ch11
from annotated.chapters.ch11 import drawings_b as ch11b
from annotated.chapters.ch11 import drawings_c as ch11c
from annotated.data.text import CHARACTERS, Characters
from annotated.decoding import keep_top_p, sample
from annotated.gpt import GPT, GPTConfig
from annotated.page.notebook import recorded
from annotated.recipes.text import bits_by_position

SYMBOLS = Characters(CHARACTERS)


def small(size=96, **sizes):
    torch.manual_seed(0)
    sizes = {"d_model": 8, "heads": 2, "layers": 2, "d_ff": 8, "max_len": 64} | sizes
    return GPT(GPTConfig(size, **sizes)).double().eval()


def attend(score, past):
    x = torch.tensor([[1.0, 0], [0, 1], [1, 0], [1, 0]])
    scores = torch.tensor([[0.0, score]] * 4) @ x.T
    weights = scores.masked_fill(past == 0, -math.inf).softmax(dim=-1)
    return weights, weights @ x


def test_attention_that_sees_the_future_is_refused(capsys):
    x = torch.tensor([[1.0, 0], [0, 1], [1, 0], [1, 0]])
    ch11.check_mixing(lambda score: attend(score, torch.ones(4, 4).tril()), x)
    assert capsys.readouterr().out.count("✓") == 3
    with pytest.raises(AssertionError, match="chapter 2's"):
        ch11.check_mixing(lambda score: attend(score, torch.ones(4, 4)), x)


def test_a_small_gpt_that_forgets_its_positions_is_refused(capsys):
    class SmallGPT(nn.Module):
        def __init__(self, v, d, heads, layers, longest, forgets=False):
            super().__init__()
            sizes = {"d_model": d, "heads": heads, "layers": layers, "max_len": longest}
            self.same = GPT(GPTConfig(v, d_ff=4 * d, **sizes))
            self.embed = self.same.embedding if forgets else self.same.embed

        def forward(self, tokens):
            return self.same.output(self.same.blocks(self.embed(tokens)))

    ch11.check_small(SmallGPT)
    assert "SmallGPT = the book's GPT" in capsys.readouterr().out
    with pytest.raises(AssertionError):
        ch11.check_small(partial(SmallGPT, forgets=True))


def test_what_the_page_says_of_recorded_models_holds():
    runs = [*recorded("text")["rows"], *recorded("text_rivals")["rows"]]
    assert ch11.by_position(runs, "recurrent").shape == (3, 64)
    ch11.check_positions(runs)
    swapped = {"attention": "average", "average": "attention"}
    with pytest.raises(AssertionError):
        ch11.check_positions(
            [row | {"way": swapped.get(row["way"], row["way"])} for row in runs]
        )
    ours = [row for row in runs if row["way"] == "attention"]
    larger, deeper = recorded("text_larger")["rows"], recorded("text_deeper")
    counting = recorded("text_counts")["rows"]
    ch11.check_scaling(counting, runs, larger, deeper["rows"])
    grown = [row | {"way": "attention"} for row in larger]
    with pytest.raises(AssertionError):
        ch11.check_scaling(counting, grown, ours, deeper["rows"])
    worse = [row | {"bits": 2.7} for row in ours]
    with pytest.raises(AssertionError):
        ch11.check_scaling(counting, worse, larger, deeper["rows"])
    ch11.check_larger(deeper, "    for i in ra", ours[0]["parameters"])
    with pytest.raises(AssertionError):
        ch11.check_larger(deeper, "    def ", ours[0]["parameters"])


def test_bits_in_windows_are_those_of_each_character():
    model, ids = small(), torch.randint(96, (25,))
    bits = ch11.window_bits(model, ids, length=7)
    assert bits.shape == (3, 7)  # what is left over is left out
    by_position = bits_by_position(model, ids, length=7)
    torch.testing.assert_close(torch.tensor(bits).mean(dim=0), by_position)
    with torch.no_grad():
        chances = model(ids[None, 7:14])[0].softmax(dim=-1)
    assert bits[1, 2] == pytest.approx(-math.log2(chances[2, ids[10]]))


def test_a_bracket_is_open_until_it_is_closed():
    rows = [")" * 12, "(()" + "x" * 9]  # the second bracket is closed
    is_open, is_closed = ch11.bracket_pairs(rows, least=1)
    assert [pair.T.tolist() for pair in is_open] == [
        [[1, distance, 0]] for distance in (8, 9, 10)
    ]
    assert [pair.T.tolist() for pair in is_closed] == [
        [[1, 1 + distance, 1]] for distance in (8, 9, 10)
    ]
    assert ch11.bracket_pairs(rows, least=2) == [[], []]
    twice, _ = ch11.bracket_pairs(rows * 2, least=2)
    assert [pair.shape for pair in twice] == [(3, 2)] * 3


def test_weights_on_brackets_are_in_units_of_the_average():
    model, windows = small(), torch.randint(96, (2, 12))
    # at a distance of 10, two open ones and one that is closed
    pairs = ch11.bracket_pairs(["(()" + "x" * 9, "(()" + "x" * 8], least=1)
    with torch.no_grad(), record_attention(model) as maps:
        model(windows)
    weights = maps["blocks.layers.1.attention"][0]
    measured = ch11.weight_on_brackets(model, windows, pairs)
    for kind, by_head in zip(pairs, measured, strict=True):
        means = [
            torch.stack([weights[b, :, i, j] * (i + 1) for b, i, j in found]).mean(0)
            for found in (distance.T.tolist() for distance in kind)
        ]
        torch.testing.assert_close(by_head, sum(means) / 3)


def test_what_letters_cost_depends_on_where_they_stand():
    rows, bits = ["ab c", "self"], torch.tensor([[9.0, 1, 2, 4], [9, 2, 3, 6]]).numpy()
    assert ch11.letter_bits(rows, bits) == (4, 3)
    rows = ["self.", "xself", "selfs"]
    bits = torch.arange(15.0).view(3, 5).numpy()
    assert ch11.ending_bits(rows, bits, "self") == 2.5


def test_words_that_the_end_may_cut_do_not_count():
    words = ch11.words_of(["of_1 ab abc (def", "begin end."])
    assert words == ["of_", "abc", "begin", "end"]
    assert ch11.word_counts(["end", "end", "edn", "beg"], {"end", "def"}) == (0.5, 3, 1)
    assert ch11.word_counts([], {"end"}) == (0, 0, 0)


def test_pieces_of_code_begin_and_end_as_samples_do():
    code = "".join(
        f"    def f{i:03}(self):\n        return {i:040}\n" for i in range(99)
    )
    pieces = ch11.pieces_of(code, "    def ", seed=0)
    assert len(set(pieces)) == 60 and {len(piece) for piece in pieces} == {56}
    assert all(re.match(r"f\d{3}\(self\):\n", piece) for piece in pieces)
    assert pieces == ch11.pieces_of(code, "    def ", seed=0)
    assert pieces != ch11.pieces_of(code, "    def ", seed=1)


def test_a_loop_that_writes_something_else_is_refused():
    model, prompt = small(), "    def "
    ids = torch.tensor([SYMBOLS.encode(prompt)])

    def write(prompt, length, temperature, top_p, seed=0):
        ids, generator = SYMBOLS.encode(prompt), torch.Generator().manual_seed(seed)
        for _ in range(length):
            with torch.no_grad():
                logits = model(torch.tensor([ids]))[:, -1]
            chances = keep_top_p((logits / temperature).softmax(dim=-1), top_p)
            ids.append(int(torch.multinomial(chances, 1, generator=generator)))
        return "".join(SYMBOLS.decode(ids))

    ch11.check_write(write, model, ids)
    with pytest.raises(AssertionError):
        ch11.check_write(lambda *given: write(*given, seed=1), model, ids)


def test_what_the_browser_has_to_show_is_what_sample_writes():
    model, prompt = small(), "def"
    answer = ch11.answers(model, SYMBOLS, [[0.5] * 70, [0.0] * 3])
    state, values = answer(prompt, 1.0, 0.001, 1)  # the likeliest alone
    ids = torch.tensor([SYMBOLS.encode(prompt)])
    new = sample(model, ids, max_new_tokens=70, top_k=1, slide=True)[0].tolist()
    assert values["written"] == "".join(SYMBOLS.decode(new)) and values["kept"] == 1
    assert state == {"prompt": "def", "temperature": 1.0, "top_p": 0.001, "seed": 1}
    assert len(answer("a\\n", 1, 1, 2)[1]["written"]) == 3
    assert answer("a\\n", 1, 1, 2)[1]["chances"] == answer("a\n", 1, 1, 2)[1]["chances"]


def test_each_character_costs_what_the_64_before_it_say():
    model = small()
    text = (
        "x" * 70 + "    def __delitem__(self, key):\n        del self.dict\n    pass\n"
    )
    ids = torch.tensor(SYMBOLS.encode(text))
    (first, *_) = ch11.surprises(model, ids, text).text.split("bits&#34;")
    with torch.no_grad():
        logits = model(ids[None, 6:70])[0, -1]
    bits = -logits.log_softmax(-1)[ids[70]].item() / math.log(2)
    assert f'title="{bits:.1f} bits"' in first


@pytest.mark.parametrize("distance", range(1, 29))
def test_layers_of_the_convolution_carry_over_the_distance(distance):
    moved = ch11b.steps_up(distance)
    assert sum(moved) == distance
    steps = zip(moved, ch11b.JUMPS, strict=False)
    assert all(m % jump == 0 and m <= 4 * jump for m, jump in steps)


def test_a_cache_of_another_size_is_refused():
    model = small(d_model=48, heads=4).float()
    config = recorded("cached_sampling")["model"]
    ch11c.check_memory(lambda n, d, s, size: 2 * n * d * s * size, model, config)
    with pytest.raises(AssertionError):
        ch11c.check_memory(lambda n, d, s, size: n * d * s * size, model, config)


LETTERS = " (,abcdefg"


def encode(text):
    return torch.tensor([[LETTERS.index(letter) for letter in text]])


def tiny():
    torch.manual_seed(21)
    model = small(len(LETTERS), d_model=4, heads=1, max_len=8).float()
    torch.nn.init.normal_(model.positions.table, std=0.5)
    return model


def test_a_loop_without_positions_is_refused(capsys):
    model = tiny()

    def read_one(token, kept, start=None):
        x = model.embed(token, start=len(kept[0][0]) if start is None else start)[0]
        for i, block in enumerate(model.blocks.layers):
            attention, y = block.attention, block.residuals[0].norm(x)
            k = torch.cat([kept[i][0], attention.key_map(y)])
            v = torch.cat([kept[i][1], attention.value_map(y)])
            kept[i] = [k, v]
            weights = (attention.query_map(y) @ k.T / 2).softmax(dim=-1)
            x = x + attention.output_map(weights @ v)
            x = x + block.feed_forward(block.residuals[1].norm(x))
        return model.output(model.blocks.norm(x))

    ch11c.check_loop(model, read_one, encode)
    with pytest.raises(AssertionError, match="one by one"):
        ch11c.check_loop(model, lambda *given: read_one(*given, start=0), encode)
    ch11c.check_pitfalls(model, encode)
    assert "refused: model must be in evaluation mode" in capsys.readouterr().out


def test_counting_backs_off_to_shorter_contexts():
    train, size = torch.tensor([0, 1, 2, 0, 1, 1, 0, 2]), 3
    one = (3 + 3 / 3) / (8 + 3)  # 3 of 8 characters, of three kinds
    after = (2 + 2 * one) / (3 + 2)  # twice of the three after a 0, of two kinds
    bits = ch11.back_off_bits(train, torch.tensor([0, 1]), 1, size)
    assert [2**-some for some in bits] == pytest.approx([one, after])
    for n in range(3):  # the chances of all continuations sum to 1
        texts = [torch.tensor([2, 0, last][2 - n :]) for last in range(3)]
        found = [ch11.back_off_bits(train, text, n, size)[-1] for text in texts]
        assert sum(2**-some for some in found) == pytest.approx(1)
    said = ch11.counting_said([4.5, 2.3, 2.4], 2.41, 2.04)
    assert "2.30 bits with 1 characters" in said and "again, 2.40" in said
