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


def html(shown):
    return shown._repr_html_()


def test_each_word_has_its_ending_and_its_sounds_framed():
    text = html(ch09.six_sounds())
    assert text.count("var(--at-key)") == text.count("var(--at-value)") == 6
    assert "dough is D OW" in text and "hiccough is HH IH K AH P" in text


def test_the_key_has_a_word_for_each_sound(monkeypatch):
    text = html(ch09.key_to_sounds())
    assert "The 39 sounds" in text and "<code>ZH</code> seizure" in text
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
    losses = [{"loss": loss} for loss in torch.linspace(3, 1, 300).tolist()]
    text = html(ch09.curve(losses, control, {"guessing": 2.5}))
    assert "From step 20 on" in text and "guessing 2.50" in text
    assert "from 2.00 down to 0.00" in text


def test_the_table_of_distances_marks_the_edits():
    text = html(ch09.distance_table(("K", "AA", "M"), ("K", "OW", "M", "Z")))
    assert "2 edits for 4 sounds are 50%" in text and "K AA M for K OW M Z" in text
    assert len(re.findall(r'positive[^"]*wrong"', text)) == 2
    assert "0 edits" in html(ch09.distance_table(("K",), ("K",)))


def records(ours=0.10, eight=0.07, seconds=700):
    rows = [
        {"name": name, "seed": 0, "phonemes": rate, "words": 4 * rate}
        | {"parameters": 9, "cpu_seconds": 60}
        for name, rate in (("ours", ours), ("nn.Transformer", 0.101))
    ]
    larger = [
        {"bits": bits, "beam": 1, "phonemes": eight, "words": 4 * eight}
        for bits in (32, 8)
    ]
    shown = {"rows": larger, "parameters": 99, "cpu_seconds": seconds}
    return {"rows": rows, "tested": 2000}, shown


def test_recorded_models_are_held_to_what_the_page_says():
    text = html(ch09.models_table(*records()))
    assert "<td>10.0%</td><td>40.0%</td>" in text and "28.0%" in text
    for wrong in ({"ours": 0.12}, {"eight": 0.04}, {"eight": 0.11}, {"seconds": 99}):
        with pytest.raises(AssertionError):
            ch09.models_table(*records(**wrong))


def counting(exact=0.998, sevens=0.5, six=0.0, said="soixante-deux mille dix"):
    rows = [
        {"name": name, "seed": seed, "exact": share, "tested": 4000}
        for name, seed, share in (
            ("ours", 0, 0.999),
            ("ours", 1, exact),
            ("nn", 0, 0.1),
        )
    ]
    slip = {"number": 72_010, "written": said}
    left = [
        {"left out": kind, "seed": seed, "exact": share, "wrong": [slip] * seed}
        for kind, share in (("seventy … thousand", sevens), ("six digits", six))
        for seed in (0, 1)
    ]
    return {"rows": rows, "left out": left}


def test_recorded_number_words_are_held_to_what_the_page_says():
    text = ch09.number_words(counting())
    assert "2 seeds: of 4,000, 99.80 to 99.90% are" in text and "50 to 50% of" in text
    for wrong in (
        {"exact": 0.98}, {"sevens": 0.95}, {"six": 0.01}, {"said": "soixante-douze"},
    ):  # fmt: skip
        with pytest.raises(AssertionError):
            ch09.number_words(counting(**wrong))


def test_mistakes_are_sorted():
    written = [("EH",), ("AH", "X"), ("Y",)]
    assert ch09.mistakes(written, KNOWN) == {("AH", "EH"): 1, ("IH", "AH"): 1}
    share, chance = ch09.vowel_share(written, KNOWN)
    assert share == 1 and chance == pytest.approx((1 / 5) ** 2)
    text = html(ch09.errors_sorted(written, KNOWN))
    assert "IH → AH 1" in text and "1–4 letters 67" in text
    assert "at one rate: 58, 0, 0, 0, 0" in text  # 2 edits of 4: 1/2, 3/4, 1/2
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


def test_no_test_word_has_a_relative_in_training():
    at_random, ours = ch09.relatives(0.05)
    assert 0.2 < at_random < 0.4 and ours == 0
    assert ch09.stem_of("smith's") == ch09.stem_of("smiths") == "smith"


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


def test_the_cache_is_proved_and_what_makes_no_sense_is_refused(model, capsys):
    ch09.check_cache(model, torch.tensor([[3, 4, 4], [4, 0, 0]]))
    assert capsys.readouterr().out.count("✓") == 2
    ch09.check_refusals(model, torch.tensor([[3, 4]]))
    said = capsys.readouterr().out
    assert "beam must be an integer" in said and "a real symbol" in said


def test_the_cache_computes_a_position_a_step():
    text = html(ch09.cache_picture(4))
    assert "10 positions computed" in text and "4 positions computed" in text
    assert "keys 4 times" in text and "keys once" in text
    assert text.count('stroke-dasharray="4 4"') == 6
    rows = {"greedy": [(-1.0, "K AE T")]}
    table = html(ch09.hypotheses_table(rows, "cat", [("K", "AE", "T"), ("K",)]))
    assert "36.8%" in table and "cat; the dictionary has K AE T or K." in table


def test_bleu_of_a_sentence_counts_no_word_twice():
    text = html(ch09.bleu_words("a a a b", "a b c d"))
    assert "2 of 4" in text and "1 of 3" in text and "BLEU 0.0; 31.9 as" in text
    exact = html(ch09.bleu_words("a b c d", "a b c d"))
    assert "BLEU 100.0" in exact and "smooths" not in exact
    short = html(ch09.bleu_words("a b c d", "a b c d e f"))
    assert f"brevity is {math.exp(-0.5):.2f}" in short and "“a b c d”" in short
    assert "a b · b c · c d · …" in html(ch09.bleu_words("a b c d e", "x"))


def test_bleu_by_hand_is_compared(capsys):
    outputs = ["a b c d e", "d a", "a b c d d"]
    by_hand = 100.0
    ch09.check_bleu(outputs, "a b c d e", by_hand)
    assert "✓" in capsys.readouterr().out
    with pytest.raises(AssertionError):
        ch09.check_bleu(outputs, "a b c d e", 99.0)
    scores = html(ch09.three_scores("so, well-known.", "so, well known."))
    assert "13a" in scores and "sacrebleu 2" in scores
    assert "Output: so, well-known. Reference: so, well known." in scores


def test_sentences_have_a_number_for_each_seed():
    ours = {"name": "ours", "bleu": 28.25, "cpu_seconds": 300, "signature": "13a"}
    rows = [ours | {"beam 5": {"bleu": 29.5}}, {**ours, "name": "nn.Transformer"}]
    text = html(ch09.multi30k_table({"rows": rows, "pairs": 29000, "symbols": 4000}))
    assert "<td>28.2</td><td>29.5</td><td>5.0</td>" in text and "<td>–</td>" in text


def test_sentences_stand_beside_what_was_written_and_their_map():
    row = {"source": "A dog.", "said": "Ein Hund.", "pieces": ["▁A", "▁dog", "."]}
    row["written"] = ["▁Ein", "▁Hund", ".", "<end>"]
    flat, crossed = [[0.2, 0.3, 0.5]] * 4, [[0.1, 0.8, 0.1], [0.7, 0.2, 0.1]] * 2
    row["maps"] = [flat, crossed]
    assert "A dog.</th><td>Ein Hund.</td>" in html(
        ch09.sentences_table({"rows": [row]})
    )
    said = html(ch09.sentence_map(row))
    assert "Ein at dog, Hund at A, . at dog, end at A" in said


def test_a_random_split_has_to_be_easier_to_be_called_so():
    def record(random, stem):
        splits = (("random", random), ("stem", stem))
        return {"rows": [{"split": s, "words": x} for s, xs in splits for x in xs]}

    said = ch09.by_split(record([0.30, 0.32], [0.40, 0.44]), 0.3, 0.01)
    assert "30% of the test words" in said and "with our split 1%" in said
    assert "2 seeds" in said and "31.0% of the words are wrong instead of 42.0%" in said
    with pytest.raises(AssertionError):
        ch09.by_split(record([0.30, 0.41], [0.40, 0.44]), 0.3, 0.0)


def test_maps_have_a_row_for_each_symbol_written(model):
    maps, said = ch09.cross_maps(model, TASK.cutter, "abba")
    assert maps.shape == (2, 2, len(said), 4)
    assert torch.allclose(maps.sum(dim=-1), torch.ones(2, 2, len(said)))
    figure = ch09.heads_picture(maps[0], said, "abba", tuple(said[:-1]))
    assert [ax.get_title() for ax in figure.axes][:2] == ["head 1", "head 2"]
    assert "as in the dictionary" in figure.get_suptitle()
    other = ch09.heads_picture(maps[0], said, "abba", ("Q",))
    assert "; the dictionary has Q" in other.get_suptitle()


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


def test_the_speller_asks_for_its_model_and_names_all_heads():
    text = html(ch09.speller())
    model, _ = unpack_model(ch09.static(ch09.MODEL))
    layers, heads = model.config.layers, model.config.heads
    assert text.count("<option>layer") == layers * heads
    assert "Load the model (" in text and ch09.MODEL in text
