"""ch09/drawings.py: its drawings draw what ran, its checks find what didn't."""

import math
import re

import pytest
import torch

from annotated.batches import Vocabulary, make_batch
from annotated.chapters.ch09 import drawings as ch09
from annotated.page.packed import answers_text, pack_model, unpack_model
from annotated.recipes.translation import Cutter, Translations
from annotated.search import beam_search
from annotated.transformer import Transformer, TransformerConfig

PAIRS = [("ab", ("X", "Y")), ("abba", ("X",)), ("b", ("Y", "Y", "X"))]
TASK = Translations(PAIRS, Cutter(Vocabulary("ab"), Vocabulary("XY"), []))
KNOWN = {"ab": (("X", "Y"), ("AH",)), "abba": (("IH", "X"),), "b": (("Y",),)}


@pytest.fixture
def model():
    torch.manual_seed(0)
    sizes = {"d_model": 8, "heads": 2, "layers": 2, "d_ff": 12, "norm": "pre"}
    made = Transformer(TransformerConfig(5, 5, **sizes, dropout=0.0, max_len=60))
    for weight in made.parameters():
        weight.data += 0.3 * torch.randn_like(weight)
    return made.eval()


def test_a_word_without_its_sound_is_no_key(monkeypatch):
    ch09.key_to_sounds()
    monkeypatch.setattr(ch09, "KEY", "AA odd, AE odd")
    with pytest.raises(AssertionError):
        ch09.key_to_sounds()


def test_padding_of_both_sides_is_counted():
    batch = make_batch(PAIRS, TASK.cutter.source, TASK.cutter.target)
    assert ch09.padding_share(batch) == pytest.approx((5 + 3) / (12 + 12))


def test_levels_of_guessing_are_entropies():
    levels = ch09.counted(TASK)
    shares = (3 / 9, 3 / 9, 3 / 9)  # X, Y, end
    wanted = -sum(p * math.log(p) for p in shares)
    assert levels["how common each is"] == pytest.approx(wanted)
    # at first X twice and Y once; after an X at first, Y or the end; the rest is sure
    first = 2 * math.log(3 / 2) + math.log(3)
    assert levels["after the last two"] == pytest.approx((first + 2 * math.log(2)) / 9)


def test_the_control_gives_a_word_the_letters_of_another_of_its_length(model, capsys):
    pairs = [("aaaa", ("X",)), ("ab", ("X", "Y")), ("ba", ("Y", "X")), ("bbbb", ("Y",))]
    seen = []

    def loss(given, batch):
        seen.append(batch.source.tolist())
        return torch.tensor(2.0 - (len(seen) - 1) // 2 * (len(seen) % 2))

    control = ch09.Control(model, loss, TASK.cutter, pairs)
    for step in (9, 10, 20, 160, 300):
        control(step)
    assert [one["step"] for one in control.history] == [10, 20, 300]
    own, other = seen[:2]
    assert own == [[3, 4, 0, 0], [4, 3, 0, 0], [3, 3, 3, 3], [4, 4, 4, 4]]
    assert other[1] == own[0] and other[3] == own[2]
    assert control.reads_from() == 20


def test_the_table_of_distances_marks_the_edits():
    text = ch09.distance_table(("K", "AA", "M"), ("K", "OW", "M", "Z")).text
    assert "2 edits for 4 sounds: 50%" in text
    assert len(re.findall(r'positive[^"]*wrong"', text)) == 2
    assert len(re.findall(r"positive lit", text)) == 5  # from corner to corner
    assert "position, 2 differ" in text and "red: its edits" in text
    shifted = ch09.distance_table(("X", "K", "M"), ("K", "M")).text
    assert "1 edit for 2 sounds" in shifted and "position, 3 differ" in shifted
    assert "; red:" not in ch09.distance_table(("K",), ("K",)).text


def test_new_words_are_compared_with_what_people_say(monkeypatch):
    said = {**ch09.PEOPLE, "covid": "K AH V IH D"}
    monkeypatch.setattr(ch09, "translate", lambda *given: [*said.values()])
    text = ch09.as_people_say(None, None)
    assert "4 of the last 5 are" in text and "*covid*, which people say `K OW" in text
    said["covid"] = ch09.PEOPLE["covid"]
    assert ch09.as_people_say(None, None).endswith(
        "5 of the last 5 are as people say them."
    )


def test_mistakes_are_sorted():
    written = [("EH",), ("AH", "X"), ("Y",)]
    assert ch09.mistakes(written, KNOWN) == {("AH", "EH"): 1, ("IH", "AH"): 1}
    share, chance = ch09.vowel_share(written, KNOWN)
    assert share == 1 and chance == pytest.approx((1 / 5) ** 2)
    assert ch09.changes(written, [("AH",), ("X",), ("X",)], KNOWN) == (1, 1, 1)
    assert ch09.changes(written, [("AH",), ("AH", "X"), ("Y",)], KNOWN) == (1, 0, 0)


def test_words_are_sorted_by_their_length():
    written = [("EH",), ("AH", "X"), ("Y",)]
    short, long = ch09.by_length(written, KNOWN, [(1, 2), (3, 9)])
    assert short == [(("EH",), KNOWN["ab"]), (("Y",), KNOWN["b"])]
    assert long == [(("AH", "X"), KNOWN["abba"])]


def test_a_coin_falls_as_unequally_as_it_must():
    assert ch09.as_unequal(5, 5) == 1 and ch09.as_unequal(0, 3) == 2 / 8
    assert ch09.as_unequal(1, 4) == ch09.as_unequal(4, 1) == 2 * 6 / 32


def test_a_beam_that_finds_something_else_is_refused(model, capsys):
    sources = [torch.tensor([[3, 4, 4]]), torch.tensor([[4]])]

    def beam(source, k):
        options = ch09.WRITE | {"stop": "first", "alpha": 0.0}
        [found] = beam_search(model, source, beam=k, n_best=k, **options)
        return [(one.log_probability, [1, *one.tokens]) for one in found]

    ch09.check_beam(beam, model, sources)
    assert capsys.readouterr().out.startswith("✓")
    with pytest.raises(AssertionError):
        ch09.check_beam(lambda *given: beam(*given)[::-1], model, sources)


def test_bleu_of_a_sentence_counts_no_word_twice():
    text = ch09.bleu_words("a a a b", "a b c d").text
    assert "2 of 4" in text and "1 of 3" in text and "BLEU 0.0; 31.9 as" in text
    assert "BLEU 100.0" in ch09.bleu_words("a b c d", "a b c d").text
    short = ch09.bleu_words("a b c d", "a b c d e f").text
    assert f"brevity is {math.exp(-0.5):.2f}" in short


def test_bleu_by_hand_is_compared(capsys):
    outputs = ["a b c d e", "d a", "a b c d d"]
    ch09.check_bleu(outputs, "a b c d e", 100.0)
    assert "✓" in capsys.readouterr().out
    with pytest.raises(AssertionError):
        ch09.check_bleu(outputs, "a b c d e", 99.0)


def test_maps_have_a_row_for_each_symbol_written(model):
    maps, said = ch09.cross_maps(model, TASK.cutter, "abba")
    assert maps.shape == (2, 2, len(said), 4)
    assert torch.allclose(maps.sum(dim=-1), torch.ones(2, 2, len(said)))


def test_a_head_points_if_it_looks_at_the_only_letter_of_a_sound(model, monkeypatch):
    maps = torch.zeros(1, 2, 4, 3)  # layers, heads, sounds, letters
    maps[:, 0, 2, 2] = maps[:, 1, 2, 0] = 1.0  # head 1 at the b, head 2 at the a
    found = {"aab": ["X", "X", "B", "<end>"], "bbb": ["B", "X", "X", "<end>"]}
    monkeypatch.setattr(ch09, "cross_maps", lambda m, c, word: (maps, found[word]))
    found["abc"] = ["B", "B", "X", "<end>"]
    doubtful = ["bbb", "abc"]  # three b, and two B
    points = ch09.pointing(model, TASK.cutter, ["aab", *doubtful])
    assert points.tolist() == [[1.0, 0.0]]


def test_even_steps_from_left_to_right_find_some_letters():
    def rate(*pairs):
        return ch09.steadily(*zip(*pairs, strict=True))

    right, wrong = ("aab", ("X", "X", "B")), ("abaa", ("X", "B"))
    assert rate(right, ("bb", ("B", "X"))) == 1  # two b: in doubt
    assert rate(right, wrong) == 0.5


def test_words_in_ough_are_counted(monkeypatch):
    cough, dough = "K AO F", "D AW"
    said = {"cough": cough, "dough": dough, "tough": "T AH F"}
    monkeypatch.setattr(
        ch09, "translate", lambda model, cutter, words: [said.get(w, "") for w in words]
    )
    text = ch09.ough_said(None, None)
    assert (
        "2 of 6 right: `tough`, `cough` (`K AO F`, also in the dictionary)." in text
        and f"`dough` becomes `{dough}`" in text
    )
    assert "section 9.3 gets 2 of 6" in text


def test_a_packed_model_is_the_same_but_for_rounding(model):
    held_out = answers_text({"b": [("Y", "X")], "ab": [("X",), ("Y",)]}, TASK.cutter)
    assert held_out == ";ab A,B;b BA;"
    script = pack_model("tiny", model, TASK.cutter, held_out)
    assert script.startswith('(globalThis.annotatedModels ||= {})["tiny"] = {')
    assert f'"held_out": "{held_out}"' in script
    again, cutter = unpack_model(script)
    assert cutter.target.symbols == TASK.cutter.target.symbols
    assert cutter.source.symbols == TASK.cutter.source.symbols
    for name, weight in model.state_dict().items():
        wide = weight.dim() == 2
        room = weight.abs().amax(dim=-1, keepdim=True) / 254 if wide else 0.0
        difference = (again.state_dict()[name] - weight).abs()
        assert (difference <= room + 1e-6).all(), name
    repacked = pack_model("tiny", again, cutter, held_out)
    assert repacked == script
