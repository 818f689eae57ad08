"""All that computes with tensors runs on a GPU, if only on a pretended one."""

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from annotated import (
    attention,
    decoding,
    pronouns,
    recipes,
    recipes_distance,
    recipes_heads,
    recipes_laboratory,
    recipes_ladder,
    recipes_lsh,
    recipes_part2,
    recipes_reversible,
    recipes_text,
    recipes_training,
    recipes_xl,
    recipes_xl_enwik8,
    recipes_xl_options,
    recurrent_attention,
    reformer,
    text_models,
    transformer_xl,
)
from annotated.adaptive import AdaptiveEmbedding, AdaptiveSoftmax
from annotated.attention import (
    MultiHeadAttention,
    record_attention,
    scaled_dot_product_attention,
)
from annotated.data import batches
from annotated.decoding import greedy_decode, sample
from annotated.devices import to_device
from annotated.gpt import GPT, GPTConfig, next_token_loss
from annotated.masks import causal_mask, length_mask, padding_mask
from annotated.positions import (
    LearnedPositionalEmbedding,
    PositionalEncoding,
    RotaryMultiHeadAttention,
    rotary_embedding,
)
from annotated.segments import SegmentLoss, segments
from annotated.seq2seq import exact_matches
from annotated.text import all_windows, ngram_bits, random_windows
from annotated.training import LabelSmoothing, evaluate, fit
from annotated.transformer import Transformer, TransformerConfig
from annotated.transformer_xl import TransformerXL, TransformerXLConfig
from tests.pretended_gpu import GPU, on_gpu, pretended_gpu, ran

ROOT = Path(__file__).resolve().parents[1]

# Each case runs on the pretended GPU what its names say, in a tiny configuration. A
# name is that of a public function, or of a class of models, as ``module.name``.
CASES: dict[tuple[str, ...], Callable[[], object]] = {}

# what no case runs, and why
NO_TENSOR = "neither takes nor gives a tensor"
DATA = "makes data or constants, which are on the CPU until a model reads them"
OWN = "makes a model of its own, on the CPU; cases run the loss that it trains with"
NOT_RUN = {
    "recipes": {
        "date_symbols": NO_TENSOR,
        "uniform_lengths": DATA,
        "skewed_lengths": DATA,
    },
    "recipes_heads": {
        "giving_sentences": DATA,
        "letter_codes": DATA,
        "letter_windows": DATA,
    },
    "recipes_laboratory": {
        "laboratory_settings": NO_TENSOR,
        "laboratory_words": NO_TENSOR,
        "laboratory_batch": DATA,
        "laboratory_rate": NO_TENSOR,
        "train_laboratory": OWN,
    },
    "recipes_ladder": {"ladder_pairs": NO_TENSOR, "train_rung": OWN},
    "recipes_lsh": {
        "prototypes": DATA,
        "gradient_error": OWN,
        "duplicates": DATA,
        "train_duplicate": OWN,
    },
    "recipes_part2": {"copy_batches": DATA, "copy_rate": NO_TENSOR},
    "recipes_text": {"read_text": DATA, "seconds_by_length": OWN},
    "recipes_training": {
        "date_batches": DATA,
        "train_on_few": OWN,
        "begin": NO_TENSOR,
    },
    "recipes_xl": {"train_on_segments": OWN},
    "recipes_xl_options": {
        "remembered": NO_TENSOR,
        "times_added": NO_TENSOR,
        "attention_entropy": OWN,
    },
    "pronouns": {
        "sentences": NO_TENSOR,
        "meant": NO_TENSOR,
        "encode": DATA,
        "train_reader": OWN,
    },
    "text_models": {"path_length": NO_TENSOR},
    "training": {"noam_rate": NO_TENSOR, "noam_schedule": NO_TENSOR},
    "positions": {"frequencies": DATA, "sinusoidal_encoding": DATA},
    "text": {"standard_library": NO_TENSOR, "library_facts": NO_TENSOR},
}
MODULES = [
    *sorted(path.stem for path in (ROOT / "annotated").glob("recipes*.py")),
    *("adaptive", "attention", "decoding", "gpt", "masks", "positions", "pronouns"),
    *("recurrent_attention", "reformer", "reversible", "segments", "seq2seq", "text"),
    *("text_models", "training", "transformer", "transformer_xl"),
]


def public(module: str) -> set[str]:
    """Return a module's public functions and classes of models."""
    return {
        name
        for name, thing in vars(import_module(f"annotated.{module}")).items()
        if name[0] != "_" and getattr(thing, "__module__", "") == f"annotated.{module}"
        if inspect.isfunction(thing)
        or (inspect.isclass(thing) and issubclass(thing, nn.Module))
    }


@pytest.mark.parametrize("module", MODULES)
def test_all_that_is_public_runs_on_a_gpu_or_has_a_reason_not_to(module):
    run = {
        name.removeprefix(f"{module}.")
        for names in CASES
        for name in names
        if name.startswith(f"{module}.")
    }
    excused = set(NOT_RUN.get(module, {}))
    assert run | excused == public(module) and not run & excused


def test_a_tensor_left_on_the_cpu_is_noticed():
    with pretended_gpu():
        there = torch.ones(3, device=GPU)
        with pytest.raises(RuntimeError, match=r"two devices: GPU \(3,\), CPU \(3,\)"):
            there + torch.ones(3)
        with pytest.raises(RuntimeError, match="two devices"):
            torch.zeros(3).add_(there)
        with pytest.raises(RuntimeError, match="two devices"):
            torch.cat([there, torch.ones(1)])
        with pytest.raises(TypeError, match="MPS has none"):
            there.double()
        kept = there * torch.tensor(2.0) + torch.ones(3).to(GPU)
        assert kept.device == GPU and kept.tolist() == [3, 3, 3]
        assert kept.cpu().double().sum() == 9, "its numbers come back"


def case(*names: str):
    def add(run):
        CASES[names] = run
        return run

    return add


@pytest.fixture
def small(monkeypatch):
    """Texts and sentences that take no time."""
    ids = torch.arange(400) % 96
    text = recipes_text.Text(ids, ids, None, 96)
    for module in (recipes_text, recipes_reversible, recipes_xl_enwik8):
        monkeypatch.setattr(module, "read_text", lambda name: text)
    for module in (recipes_xl, recipes_xl_options):
        monkeypatch.setattr(module, "library_ids", lambda split: ids)
    windows = (torch.arange(600) % 31).unfold(0, 17, 1)
    monkeypatch.setattr(recipes_heads, "letter_windows", lambda: (windows, windows))
    monkeypatch.setitem(recipes_xl.SEGMENTS, "batch", 2)
    monkeypatch.setattr(recipes_training, "dates", lambda *_: DATES)
    monkeypatch.setattr(recipes_ladder, "ladder_pairs", lambda *_: PAIRS)
    torch.manual_seed(0)


# ---- the cases -----------------------------------------------------------------------

XL = {"d_model": 8, "heads": 2, "layers": 1, "d_ff": 8, "norm": "pre"}
BOTH = {"d_model": 8, "heads": 2, "layers": 1, "d_ff": 8, "max_len": 40, "dropout": 0.1}


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, device=GPU, requires_grad=True)


def ids(*shape: int, most: int = 11) -> Tensor:
    """Return ids as a page makes them: on the CPU."""
    return torch.randint(1, most, shape)


def pair(*shape: int, most: int = 11) -> tuple[Tensor, Tensor]:
    return ids(*shape, most=most), ids(*shape, most=most)


def moved(batch):
    return to_device(batch, GPU)


def learns(loss, model, batch) -> None:
    """Run a loss forward and backward, as ``fit`` does."""
    fit(model, loss, [batch], torch.optim.SGD(model.parameters(), lr=0.1))


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def gpt(size: int = 96, kind=GPT, length: int = 32) -> GPT:
    sizes = {"d_model": 8, "heads": 2, "layers": 1, "d_ff": 8, "dropout": 0.1}
    return on_gpu(kind(GPTConfig(size, **sizes, max_len=length)))


def transformer(kind=Transformer, size: int = 13, **options) -> Transformer:
    return on_gpu(kind(TransformerConfig(size, size, **BOTH | options)))


def xl(kind=TransformerXL, **options) -> TransformerXL:
    return on_gpu(kind(TransformerXLConfig(96, **XL, mem_len=4, **options)))


@case("attention.masked_softmax", "attention.scaled_dot_product_attention")
def _():
    mask = causal_mask(3, device=GPU)[0, 0]
    scaled_dot_product_attention(draw(3, 4), draw(3, 4), draw(3, 4), mask)
    attention.masked_softmax(draw(3, 3), mask)


@case("attention.record_attention", "attention.MultiHeadAttention")
def _():
    module = on_gpu(MultiHeadAttention(8, 2, dropout=0.1))
    with record_attention(module) as maps:
        module(draw(2, 3, 8), mask=causal_mask(3, device=GPU))
    assert maps[""][0].device == GPU


@case("adaptive.AdaptiveEmbedding", "adaptive.AdaptiveSoftmax")
def _():
    embedding = on_gpu(AdaptiveEmbedding(9, 8, (3, 6), 2))
    softmax = on_gpu(AdaptiveSoftmax(9, 8, (3, 6), 2))
    tokens = moved(torch.arange(9)[None])
    x = embedding(tokens)
    softmax.loss(x, tokens).mean().backward()
    softmax(x)


@case("masks.length_mask", "masks.padding_mask", "masks.causal_mask")
def _():
    lengths = length_mask(moved(torch.tensor([2, 3])), 3)
    lengths & padding_mask(moved(ids(2, 3))) & causal_mask(3, device=GPU)


@case("positions.PositionalEncoding", "positions.LearnedPositionalEmbedding")
def _():
    on_gpu(PositionalEncoding(8, 5, dropout=0.1))(draw(2, 4, 8), start=1)
    on_gpu(LearnedPositionalEmbedding(5, 8))(draw(2, 4, 8))


@case("positions.rotary_embedding", "positions.RotaryMultiHeadAttention")
def _():
    rotary_embedding(draw(2, 4, 8), start=3).sum().backward()
    on_gpu(RotaryMultiHeadAttention(8, 2))(draw(2, 3, 8))


@case("recurrent_attention.ScoredAttention", "recurrent_attention.AdditiveAttention")
def _():
    on_gpu(recurrent_attention.AdditiveAttention(4, 5, 6))(draw(2, 3, 4), draw(2, 7, 5))


@case("recurrent_attention.DotAttention")
def _():
    on_gpu(recurrent_attention.DotAttention(4, 5))(draw(2, 3, 4), draw(2, 7, 5))


@case("recurrent_attention.LocationSensitiveAttention")
def _():
    kind = recurrent_attention.LocationSensitiveAttention
    mask = length_mask(moved(torch.tensor([7, 3])), 7)[:, 0]
    on_gpu(kind(4, 5, 6))(draw(2, 3, 4), draw(2, 7, 5), mask=mask)


@case(
    "transformer.FeedForward",
    "transformer.Residual",
    "transformer.EncoderLayer",
    "transformer.DecoderLayer",
    "transformer.Encoder",
    "transformer.Decoder",
    "transformer.Transformer",
    "training.LabelSmoothing",
    "training.fit",
    "training.evaluate",
    "training.evaluating",
)
def _():
    smooth = LabelSmoothing(13)

    def loss(model, batch):
        return smooth(model(*batch), batch[1])

    model = transformer(tied=True)
    learns(loss, model, pair(2, 5))
    evaluate(model, loss, [pair(2, 5)])


@case("transformer_xl.relative_shift", "transformer_xl.update_memory")
def _():
    transformer_xl.relative_shift(draw(2, 3, 5))
    transformer_xl.update_memory(draw(2, 3, 4), draw(2, 3, 4), 4)


@case(
    "transformer_xl.RelativeMultiHeadAttention",
    "transformer_xl.TransformerXLLayer",
    "transformer_xl.TransformerXL",
    "segments.segments",
)
def _():
    for options in (
        {},
        {"same_length": True, "clamp_len": 2},
        {"cutoffs": (9, 40), "div_value": 2},
    ):
        model, loss = xl(**options, dropout=0.1), SegmentLoss()
        for batch in segments(ids(25, most=96), 2, 4):
            learns(loss, model, batch)
        model(moved(ids(2, 4)), loss.memories)


@case("reformer.lsh_buckets", "reformer.lsh_attention", "reformer.LSHSelfAttention")
def _():
    reformer.lsh_buckets(draw(2, 9, 4), (4, 2), rounds=2)
    module = on_gpu(reformer.LSHSelfAttention(8, 2, chunk=3, rounds=2, causal=True))
    module(draw(2, 9, 8), mask=padding_mask(moved(ids(2, 9)))).sum().backward()


@case(
    "reformer.Reformer",
    "reversible.repeated",
    "reversible.ReversibleBlock",
    "reversible.ReversibleSequence",
    "reversible.ChunkedFeedForward",
)
def _():
    sizes = {"d_model": 8, "heads": 2, "layers": 2, "d_ff": 8, "max_len": 16}
    config = reformer.ReformerConfig(96, **sizes, chunk=3, rounds=2, ff_chunk=4)
    learns(next_token_loss, on_gpu(reformer.Reformer(config)), pair(2, 9))


@case("gpt.GPT", "gpt.next_token_loss")
def _():
    learns(next_token_loss, gpt(), pair(2, 9))


@case("decoding.greedy_decode")
def _():
    model = transformer()
    greedy_decode(model, moved(ids(2, 5)), start=1, end=2, max_new_tokens=4)


@case("decoding.tempered", "decoding.keep_top_k", "decoding.keep_top_p")
def _():
    chances = decoding.tempered(draw(2, 9), 0.7)
    decoding.keep_top_k(chances, 3)
    decoding.keep_top_p(chances, 0.5)


@case("decoding.sample")
def _():
    for cache in (True, False):
        options = {"top_k": 5, "top_p": 0.9, "cache": cache, "generator": seeded()}
        sample(gpt(), moved(ids(2, 3)), max_new_tokens=3, **options)


@case("text.random_windows", "text.all_windows", "text.ngram_bits")
def _():
    for text in (ids(50), moved(ids(50))):
        for windows in (random_windows(text, 5, 2, 1, 0), all_windows(text, 5, 2)):
            evaluate(gpt(), next_token_loss, windows)
        ngram_bits(text, text, 2, 11)


@case("text_models.PastAverage")
def _():
    on_gpu(text_models.PastAverage(8, 2))(draw(2, 3, 8))


@case("text_models.GRUText")
def _():
    learns(next_token_loss, on_gpu(text_models.GRUText(11, 8)), pair(2, 9))


@case("text_models.ConvolutionText")
def _():
    learns(next_token_loss, on_gpu(text_models.ConvolutionText(11, 8)), pair(2, 9))


@case("text_models.influence")
def _():
    text_models.influence(gpt(), ids(2, 9))


@case("pronouns.PronounReader")
def _():
    tokens, wanted = pronouns.encode(pronouns.sentences()[0][:5])
    loss = lambda model, batch: cross_entropy(model(batch[0])[0], batch[1])  # noqa: E731
    for roles in ("three", "value", "one", "equal"):
        learns(loss, on_gpu(pronouns.PronounReader(roles)), (tokens, wanted))


# ---- chapters 1, 5 and 3

PAIRS = [("1 May", "05-01"), ("2 June", "06-02")] * 2
SYMBOLS = recipes.date_symbols(PAIRS)
DATES = recipes_training.Dates(PAIRS, *SYMBOLS)


@case(
    "seq2seq.RNNEncoder",
    "seq2seq.AttentionDecoder",
    "seq2seq.Seq2Seq",
    "seq2seq.teacher_forcing_loss",
    "seq2seq.exact_matches",
    "recipes.date_reader",
    "recipes.train_dates",
    "recipes.read_dates",
    "recipes.one_cycle",
)
def _():
    for way in recipes.WAYS:
        model = on_gpu(recipes.date_reader(way, *SYMBOLS))
        recipes.train_dates(model, PAIRS, SYMBOLS)
    exact_matches(model, batches(PAIRS, *SYMBOLS, 3))
    _, weights = recipes.read_dates(model, ["1 May"], SYMBOLS, most=3)
    assert weights.device.type == "cpu", "for a figure"


@case(
    "recipes.ReaderLayer",
    "recipes.Reader",
    "recipes.reading_task",
    "recipes.previous_symbol_loss",
)
def _():
    for way in ("sinusoidal", "learned", "learned, large", "rotary", "none"):
        batch = recipes.reading_task(torch.tensor([4, 6]), seeded())
        learns(recipes.previous_symbol_loss, on_gpu(recipes.Reader(way)), batch)


@case(
    "recipes_distance.BiasedAttention",
    "recipes_distance.ALiBiAttention",
    "recipes_distance.T5Attention",
    "recipes_distance.t5_bucket",
    "recipes_distance.distance_reader",
    "recipes_distance.train_distance",
    "recipes_distance.neighbours_named",
)
def _():
    for kind in recipes_distance.KINDS:
        model = on_gpu(recipes_distance.distance_reader(kind))
        recipes_distance.train_distance(model, seed=0, steps=2)
        recipes_distance.neighbours_named(model, 9, count=3)


@case(
    "recipes_heads.Giving",
    "recipes_heads.WordNetwork",
    "recipes_heads.with_network",
    "recipes_heads.train_giving",
    "recipes_heads.answers_right",
)
def _():
    model = on_gpu(recipes_heads.with_network(recipes_heads.Giving(2)))
    recipes_heads.train_giving(model, seed=0, steps=1)
    recipes_heads.answers_right(model, count=5)


@case(
    "recipes_heads.GroupedQueryAttention",
    "recipes_heads.MissingLetter",
    "recipes_heads.hide_letter",
    "recipes_heads.letter_loss",
    "recipes_heads.train_letters",
    "recipes_heads.letters_right",
    "recipes_heads.right_without_each",
)
def _():
    attention = recipes_heads.GroupedQueryAttention(8, 2, shared=1)
    model = on_gpu(recipes_heads.MissingLetter(attention))
    recipes_heads.train_letters(model, seed=0, steps=2)
    recipes_heads.letters_right(model, count=5)
    recipes_heads.right_without_each(model)


# ---- chapters 6 to 8, and the laboratory

LAB = {"width": 8, "inner": 8, "heads": 2, "layers": 1, "longest": 3}


@case(
    "recipes_laboratory.LaboratoryTransformer",
    "recipes_laboratory.UnscaledAttention",
    "recipes_laboratory.UnscaledRotaryAttention",
    "recipes_laboratory.NoResidual",
    "recipes_laboratory.laboratory_loss",
    "recipes_laboratory.laboratory_writes",
    "recipes_laboratory.laboratory_exact",
)
def _():
    lab, words = recipes_laboratory, [[3, 4], [4, 3]]
    for changes in (
        {},
        {"model": "decoder", "positions": "rotary", "scaled": False},
        {"positions": "learned", "scaled": False, "residual": False, "causal": False},
        {"norm": "none", "positions": "none", "feed_forward": False},
    ):
        settings = lab.laboratory_settings(**LAB | changes)
        model = on_gpu(lab.LaboratoryTransformer(settings))
        lab.laboratory_loss(model, settings, words).backward()
        lab.laboratory_writes(model, settings, words)
        lab.laboratory_exact(model, settings, words)


@case("recipes_ladder.translations", "recipes_ladder.rung_scores")
def _():
    config = TransformerConfig(*map(len, SYMBOLS), **BOTH | {"norm": "pre"})
    rung = recipes_ladder.Rung(on_gpu(Transformer(config)), *SYMBOLS, [])
    recipes_ladder.translations(rung, ["1 May"])
    recipes_ladder.rung_scores(rung, count=3)


@case(
    "recipes_part2.next_symbol_loss",
    "recipes_part2.train_copy",
    "recipes_part2.with_end",
    "recipes_part2.exact_copies",
    "recipes_part2.SeesAhead",
    "recipes_part2.Shifted",
)
def _():
    for kind in (Transformer, recipes_part2.SeesAhead):
        model = transformer(kind)
        model.positions = on_gpu(recipes_part2.Shifted(8, 40))
        recipes_part2.train_copy(model, recipes_part2.copy_batches(0, 2, 3), steps=2)
        recipes_part2.exact_copies(model, seed=0, count=3)
    recipes_part2.with_end(moved(torch.tensor([[3, 4, 0], [5, 6, 7]])))


@case("recipes_part2.train_deep")
def _():
    recipes_part2.train_deep(lambda step: 1e-3, seed=0, steps=1, device=GPU)


@case(
    "recipes_part2.take_away",
    "recipes_part2.Replaces",
    "recipes_part2.Skips",
    "recipes_part2.Raw",
)
def _():
    for part in recipes_part2.PARTS:
        model = recipes_part2.take_away(transformer(norm="pre"), part)
        learns(recipes_part2.next_symbol_loss, model, pair(2, 5))


@case("recipes_training.date_model", "recipes_training.train_dates")
def _():
    recipes_training.train_dates(lambda step: 1e-3, seed=0, steps=1, device=GPU)


@case(
    "recipes_training.label_loss",
    "recipes_training.paper_adam",
    "recipes_training.how_well",
    "recipes_training.differences",
)
def _():
    model = on_gpu(recipes_training.date_model(0))
    (batch,) = recipes_training.date_batches(0, 1, DATES)
    optimizer, schedule = recipes_training.paper_adam(model, lambda step: 1e-3)
    fit(model, recipes_training.label_loss, [batch], optimizer, schedule=schedule)
    recipes_training.how_well(model, DATES)
    recipes_training.differences(model, batch)


# ---- chapters 11 to 14

LIBRARY = recipes_text.RECIPES["library"]._replace(batch=2, steps=1)


@case(
    "recipes_text.text_model",
    "recipes_text.train_text",
    "recipes_text.bits_per_character",
    "recipes_text.bits_by_position",
)
def _():
    for way in recipes_text.WAYS:
        model, text = on_gpu(recipes_text.text_model(way, 96)), ids(150, most=96)
        recipes_text.train_text(model, text, LIBRARY)
        recipes_text.bits_per_character(model, text, 20)
        recipes_text.bits_by_position(model, text, 20)


@case("recipes_text.run_recipe")
def _():
    recipes_text.run_recipe("library", GPU, batch=2, steps=1)


@case(
    "recipes_xl.shift_by_index",
    "recipes_xl.paper_shift",
    "recipes_xl.labml_shift",
    "recipes_xl.labml_shift_changed",
)
def _():
    for shift in recipes_xl.SHIFTS.values():
        assert shift(draw(3, 8)).device == GPU


@case("recipes_xl.four_terms", "recipes_xl.slow_attention")
def _():
    module = on_gpu(transformer_xl.RelativeMultiHeadAttention(8, 2))
    recipes_xl.slow_attention(module, draw(2, 3, 8), draw(2, 5, 8))


@case(
    "recipes_xl.RememberingGPT", "recipes_xl.token_bits", "recipes_xl.bits_by_position"
)
def _():
    remembers = gpt(kind=recipes_xl.RememberingGPT)
    learns(SegmentLoss(), remembers, pair(2, 4))
    for model in (gpt(), remembers, xl()):
        list(recipes_xl.token_bits(model, segments(ids(50, most=96), 2, 6)))
        recipes_xl.bits_by_position(model, 6)


@case("recipes_xl_enwik8.enwik8_model", "recipes_xl_enwik8.train_on_enwik8")
def _():
    widths = {"d_model": 8, "heads": 2, "layers": 1, "d_ff": 8, "max_len": 16}
    for kind in recipes_xl_enwik8.KINDS:
        options = {"model": widths, "batch": 2, "steps": 2, "precision": None}
        recipes_xl_enwik8.train_on_enwik8(kind, GPU, **options)


@case("recipes_xl_options.swapped_update")
def _():
    recipes_xl_options.swapped_update(draw(4, 2), draw(3, 2), 4, 1)


@case(
    "recipes_xl_options.AttachedXL",
    "recipes_xl_options.reach_model",
    "recipes_xl_options.last_output",
    "recipes_xl_options.reached_by_change",
    "recipes_xl_options.reached_by_gradient",
)
def _():
    model = on_gpu(recipes_xl_options.reach_model(recipes_xl_options.AttachedXL))
    text = ids(8, most=96)
    recipes_xl_options.last_output(model, text, 4)
    recipes_xl_options.reached_by_change(model, text, 4)
    recipes_xl_options.reached_by_gradient(model, text, 4)


@case("recipes_xl_options.bits_at")
def _():
    recipes_xl_options.bits_at(xl(), 8, 4, same_length=True)


@case(
    "recipes_lsh.exact_attention",
    "recipes_lsh.meetings",
    "recipes_lsh.recall",
    "recipes_lsh.lost_pairs",
)
def _():
    query, value = draw(2, 9, 4), draw(2, 9, 4)
    buckets = reformer.lsh_buckets(query, 4, rounds=2)
    met = recipes_lsh.meetings(buckets, 3, within=True)
    recipes_lsh.exact_attention(query, value, met[:, 0], causal=True)
    recipes_lsh.recall(query, met, 2, causal=True)
    recipes_lsh.lost_pairs(buckets, met)


@case(
    "recipes_lsh.LSHText",
    "recipes_lsh.second_word",
    "recipes_lsh.duplicate_loss",
    "recipes_lsh.duplicates_right",
)
def _():
    model = gpt(32, recipes_lsh.LSHText, recipes_lsh.LENGTH)
    learns(recipes_lsh.duplicate_loss, model, recipes_lsh.duplicates(2, seeded()))
    recipes_lsh.duplicates_right(model, ["LSH-2"], size=3)


@case(
    "recipes_reversible.layers",
    "recipes_reversible.stored",
    "recipes_reversible.checkpointed",
    "recipes_reversible.reversible",
    "recipes_reversible.CausalAttention",
)
def _():
    stack = on_gpu(recipes_reversible.layers(2, 8, 2, 8, dropout=0.1))
    for way in recipes_reversible.WAYS.values():
        sum(way(stack, draw(2, 5, 8), draw(2, 5, 8))).sum().backward()


@case("recipes_reversible.PrintedBlock", "recipes_reversible.undo_by_iteration")
def _():
    block = on_gpu(recipes_reversible.PrintedBlock(nn.Linear(8, 8), nn.Linear(8, 8)))
    y1, y2 = block(draw(2, 3, 8), draw(2, 3, 8))
    recipes_reversible.undo_by_iteration(block, y1, y2, 2)


@case("recipes_reversible.run_recipe", "recipes_reversible.reformer")
def _():
    sizes = {"d_model": 8, "heads": 2, "layers": 1, "d_ff": 8}
    sizes |= {"max_len": 64, "rounds": 1, "chunk": 8}
    for kind in ("LSH", "all"):
        options = {"model": sizes, "steps": 1, "batch": 1}
        recipes_reversible.run_recipe("16k", kind, GPU, **options)


# ---- each of them


@pytest.mark.parametrize("run", CASES.values(), ids=(names[0] for names in CASES))
def test_it_runs_on_a_gpu(run, small):
    ran.clear()
    with pretended_gpu():
        run()  # raises where devices are mixed
    assert ran, "nothing ran on the GPU"
