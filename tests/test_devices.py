"""All that computes with tensors runs on a GPU, if only on a pretended one."""

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from annotated import (
    attention,
    decoding,
    gpt2,
    recurrent_attention,
    reformer,
    sparse,
    speculative,
    transformer_xl,
    variants,
)
from annotated.adaptive import AdaptiveEmbedding, AdaptiveSoftmax
from annotated.attention import (
    MultiHeadAttention,
    record_attention,
    scaled_dot_product_attention,
)
from annotated.batches import Vocabulary, batches
from annotated.bert import Bert, BertConfig, mask_tokens, next_sentence_pairs
from annotated.data.reactions import attention_maps
from annotated.data.text import all_windows, ngram_bits, random_windows
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
from annotated.trace import trace
from annotated.training import LabelSmoothing, evaluate, fit
from annotated.transformer import Transformer, TransformerConfig
from annotated.transformer_xl import TransformerXL, TransformerXLConfig
from tests.pretended_gpu import GPU, on_gpu, pretended_gpu, ran

ROOT = Path(__file__).resolve().parents[1]
TRAINING = (
    "borrowed dates ddp distance ladder large long lsh patterns planks pronouns "
    "reading reversible segments segments_enwik8 segments_options tiles"
).split()

# Each case runs on the pretended GPU what its names say, in a tiny configuration. A
# name is that of a public function, or of a class of models, as ``module.name``.
CASES: dict[tuple[str, ...], Callable[[], object]] = {}

# what no case runs, and why
NO_TENSOR = "neither takes nor gives a tensor"
DATA = "makes data or constants, which are on the CPU until a model reads them"
OWN = "makes a model of its own, on the CPU; cases run the loss that it trains with"
CPU = "trains or measures a model that stays on the CPU, as the page's does"
NOT_RUN = {
    "recipes.large": {
        **dict.fromkeys(("large_model", "held_out_bits", "train_halves"), CPU),
        **dict.fromkeys(("training", "train_checkpointed"), CPU),
        "stochastic_bfloat16": CPU,
        **dict.fromkeys(("plain_step", "rule_of", "scaled_step"), CPU),
    },
    "recipes.ddp": {"main": "runs on the GPU in tests/chapters/ch18/test_ddp.py"},
    "recipes.long": {
        **dict.fromkeys(("long_model", "parts_of", "pass_over", "bits"), CPU),
        "batches_for": DATA,
        "take_turns": NO_TENSOR,
    },
    "recipes.patterns": {
        **dict.fromkeys(("masks_of", "copy_masks", "copy_batches", "reachable"), DATA),
        **dict.fromkeys(("glyph", "copied", "heard", "bits_per_pixel"), CPU),
        **dict.fromkeys(("train_copy", "train_grid", "train_image"), CPU),
        **dict.fromkeys(("column_pattern", "grid_pattern"), NO_TENSOR),
        "stride_patterns": NO_TENSOR,
    },
    "recipes.dates": {"date_symbols": NO_TENSOR},
    "recipes.reading": {
        **dict.fromkeys(("uniform_lengths", "skewed_lengths"), DATA),
        **dict.fromkeys(("guessing", "runs_of", "zone", "by_zone"), NO_TENSOR),
    },
    "recipes.several_heads": {
        "giving_sentences": DATA,
        "letter_codes": DATA,
        "letter_windows": DATA,
    },
    "recipes.laboratory": {
        "laboratory_settings": NO_TENSOR,
        "laboratory_words": NO_TENSOR,
        "laboratory_batch": DATA,
        "laboratory_rate": NO_TENSOR,
        "train_laboratory": OWN,
    },
    "recipes.ladder": {"ladder_pairs": NO_TENSOR, "train_rung": OWN},
    "recipes.lsh": {
        "prototypes": DATA,
        "duplicates": DATA,
        "train_duplicate": OWN,
    },
    "recipes.copy_task": {"copy_batches": DATA, "copy_rate": NO_TENSOR},
    "recipes.text": {"read_text": DATA, "seconds_by_length": OWN},
    "recipes.translation": {
        "spelling_task": DATA,
        "number_words_task": DATA,
        "multi30k_task": DATA,
        "translation_task": DATA,
        "translation_batches": DATA,
    },
    "recipes.date_transformer": {
        "date_batches": DATA,
        "train_on_few": OWN,
        "begin": NO_TENSOR,
    },
    "recipes.segments": {"train_on_segments": OWN},
    "recipes.segments_options": {
        "remembered": NO_TENSOR,
        "times_added": NO_TENSOR,
        "attention_entropy": OWN,
    },
    "recipes.pronouns": {
        **dict.fromkeys(("sentences", "meant", "settled"), NO_TENSOR),
        "encode": DATA,
        "train_reader": OWN,
    },
    "recipes.text_models": {"path_length": NO_TENSOR},
    "training": {"noam_rate": NO_TENSOR, "noam_schedule": NO_TENSOR},
    "positions": {
        "frequencies": DATA,
        "sinusoidal_encoding": DATA,
        "rotary_table": DATA,
    },
    "weights": dict.fromkeys(
        ("load_gpt2", "load_bert", "load_albert", "load_llama"), OWN
    )
    | {"read_safetensors": DATA},
    "recipes.borrowed": {"borrowed_encoder": OWN},
    "bert": {
        **dict.fromkeys(("next_sentence_pairs", "sentence_order_pairs"), NO_TENSOR),
        "pair_ids": NO_TENSOR,
    },
    "recipes.pretraining": {
        **dict.fromkeys(("docstrings", "sentences_of"), NO_TENSOR),
        **dict.fromkeys(("cut_sentence", "cut_texts"), NO_TENSOR),
        **dict.fromkeys(("shuffled", "cpu_seconds", "fine_tuning"), NO_TENSOR),
        **dict.fromkeys(("common_words", "rarity", "topic_accuracy"), NO_TENSOR),
        **dict.fromkeys(("masked_batches", "hide", "questions"), DATA),
        **dict.fromkeys(("unigram_loss", "neighbour_losses", "few_labels"), DATA),
        **dict.fromkeys(("pair_rows", "pair_batches"), DATA),
    },
    "recipes.classification": dict.fromkeys(
        ("answers_of", "films_task", "functions_task", "imdb_task", "order_task"), DATA
    )
    | dict.fromkeys(("words_of", "words_and_pairs"), NO_TENSOR)
    | {"labelled_batches": DATA},
    "data.reactions": {
        **dict.fromkeys(("tokenize", "is_atom", "atom_places"), NO_TENSOR),
        **dict.fromkeys(("parse", "alike"), NO_TENSOR),
        **dict.fromkeys(("reaction_model", "encode"), DATA),
        **dict.fromkeys(("links", "right_links"), DATA),
    },
    "data.glassllm": {
        **dict.fromkeys(("encode", "decode"), NO_TENSOR),
        **dict.fromkeys(("to_llama", "glass_model"), OWN),
    },
    "recipes.planks": {"plank_config": NO_TENSOR, "seconds_per_step": OWN},
    "variants": {"cache_numbers": NO_TENSOR},
    "speculative": dict.fromkeys(("expected_tokens", "expected_speedup"), NO_TENSOR),
    "gpt2": dict.fromkeys(("count_parameters", "require_gpt2"), NO_TENSOR),
    "recipes.gpt2": {
        **dict.fromkeys(("short_tokenizer", "token_text"), DATA),
        **dict.fromkeys(("official_gpt2", "small_gpt2", "stream_by_depth"), OWN),
    },
    "sparse": {
        **dict.fromkeys(("local_pattern", "dilated_pattern"), NO_TENSOR),
        **dict.fromkeys(("strided_patterns", "fixed_patterns"), NO_TENSOR),
    },
    "data.text": {"standard_library": NO_TENSOR, "library_facts": NO_TENSOR},
}
# What pages train, that of all chapters and that of one, by the name of its file.
TRAINED = {
    path.stem: ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for pattern in ("annotated/recipes/[!_]*.py", "annotated/chapters/*/[!_]*.py")
    for path in sorted(ROOT.glob(pattern))
    if path.stem in TRAINING or path.parent.name == "recipes"
} | {"laboratory": "annotated.page.laboratory_runs"}
recipes = SimpleNamespace(**{n: import_module(m) for n, m in TRAINED.items()})
MODULES = [
    *(f"recipes.{name}" for name in TRAINED),
    *("adaptive", "attention", "decoding", "data.glassllm", "gpt", "gpt2", "masks"),
    "positions",
    *(
        "data.reactions",
        "recurrent_attention",
        "reformer",
        "reversible",
        "segments",
        "seq2seq",
        "sparse",
        "speculative",
        "data.text",
    ),
    *("bert", "training", "transformer", "transformer_xl", "variants", "weights"),
]


def public(module: str) -> set[str]:
    """Return a module's public functions and classes of models."""
    folder, _, last = module.rpartition(".")
    path = TRAINED[last] if folder == "recipes" else f"annotated.{module}"
    return {
        name
        for name, thing in vars(import_module(path)).items()
        if name[0] != "_" and getattr(thing, "__module__", "") == path
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
    text = recipes.text.Corpus(ids, ids, None, 96)
    for module in (recipes.text, recipes.reversible, recipes.segments_enwik8):
        monkeypatch.setattr(module, "read_text", lambda name: text)
    for module in (recipes.segments, recipes.segments_options):
        monkeypatch.setattr(module, "library_ids", lambda split: ids)
    windows = (torch.arange(600) % 31).unfold(0, 17, 1)
    monkeypatch.setattr(
        recipes.several_heads, "letter_windows", lambda: (windows, windows)
    )
    monkeypatch.setitem(recipes.segments.SEGMENTS, "batch", 2)
    monkeypatch.setattr(recipes.date_transformer, "dates", lambda *_: DATES)
    monkeypatch.setattr(recipes.ladder, "ladder_pairs", lambda *_: PAIRS)
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


@case("trace.trace")
def _():
    torch.manual_seed(0)
    options = {"positions": "rotary", "kv_heads": 1, "activation": "swiglu"}
    model = on_gpu(GPT(GPTConfig(11, **BOTH | options)))
    for step in trace(model, moved(ids(1, 5))):
        assert step.value.device == GPU


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


@case(
    "positions.rotary_embedding",
    "positions.turn_pairs",
    "positions.RotaryMultiHeadAttention",
)
def _():
    rotary_embedding(draw(2, 4, 8), start=3).sum().backward()
    on_gpu(RotaryMultiHeadAttention(8, 2))(draw(2, 3, 8))


@case(
    "variants.QueryKeyNormAttention",
    "variants.SlidingWindowAttention",
    "variants.window_mask",
    "recipes.planks.Today",
    "recipes.planks.TodayNear",
    "recipes.planks.plank_model",
)
def _():
    near = variants.window_mask(3, 5, device=GPU)
    on_gpu(variants.QueryKeyNormAttention(8, 2))(draw(2, 5, 8), mask=near)
    for name in ("all but the window", "all"):  # their attentions are all of these
        model = on_gpu(recipes.planks.plank_model(name, d_model=8, heads=2, layers=1))
        learns(next_token_loss, model, pair(2, 40))


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
    "transformer.last_norm",
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


@case("sparse.global_pattern", "sparse.reach", "sparse.layers_to_reach")
def _():
    near, every = sparse.strided_patterns(3)
    pattern = near | sparse.global_pattern([2]) | sparse.fixed_patterns(3)[1]
    masks = [p.mask(9, device=GPU) for p in (pattern, every)]
    assert sparse.reach(masks, 2).device == GPU
    sparse.layers_to_reach(masks)


@case(
    "sparse.block_layout",
    "sparse.block_sparse_attention",
    "sparse.SparseSelfAttention",
)
def _():
    patterns = sparse.strided_patterns(3)
    layout = sparse.block_layout(patterns[1], 4, 9, device=GPU)
    q, k, v = (draw(2, 2, 9, 4) for _ in range(3))
    sparse.block_sparse_attention(q, k, v, layout).sum().backward()
    module = on_gpu(sparse.SparseSelfAttention(8, 2, 0.1, pattern=patterns, block=4))
    mask = padding_mask(moved(ids(2, 9)))
    with record_attention(module) as maps:
        module(draw(2, 9, 8), mask=mask).sum().backward()
    assert maps[""][0].device == GPU


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
    kinds = {"activation": "swiglu", "norm_kind": "rms", "bias": False}
    config = GPTConfig(96, 8, 2, positions="rotary", kv_heads=1, tied=False, **kinds)
    modern = on_gpu(GPT(config))
    learns(next_token_loss, modern, pair(2, 9))
    sample(modern, moved(ids(2, 3)), max_new_tokens=2)


@case("bert.Bert")
def _():
    narrow = {"embedding_width": 4, "shared": True}
    for options in ({}, narrow):
        model = on_gpu(Bert(BertConfig(96, 8, 2, 2, 8, **options)))
        states = model(moved(ids(2, 5)))
        model.guess_tokens(states).sum().backward()
        model.guess_next(states)


@case("bert.mask_tokens")
def _():
    read, asked = mask_tokens(moved(ids(2, 5)), 96, 95, (0,))
    assert read.device == asked.device == GPU


@case("data.reactions.attention_maps")
def _():
    config = BertConfig(591, 8, 2, 1, 8, embedding_width=4, shared=True)
    attention_maps(on_gpu(Bert(config)), "CO>>CO")


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


@case(
    "speculative.acceptance",
    "speculative.residual",
    "speculative.speculative_step",
    "speculative.speculative_sample",
    "speculative.rewind",
)
def _():
    draft, target = (draw(3, 9).softmax(dim=-1) for _ in range(2))
    assert speculative.acceptance(draft, target).device == GPU
    assert speculative.residual(draft, target).device == GPU
    given = moved(ids(2, most=9)), draft[:2], target
    assert speculative.speculative_step(*given, seeded()).device == GPU
    for cache in (True, False):
        options = {"max_new_tokens": 5, "guesses": 2, "cache": cache}
        prompt = moved(ids(1, 3))
        speculative.speculative_sample(
            gpt(), gpt(), prompt, generator=seeded(), **options
        )


@case("gpt2.initialise", "recipes.gpt2.text_nats", "recipes.gpt2.bits_per_byte")
def _():
    model, text = gpt2.initialise(gpt()), ids(50)
    recipes.gpt2.text_nats(model, text, 5)
    read = recipes.gpt2.TokenText(text, text, 80)
    recipes.gpt2.bits_per_byte(model, read, 5)


@case("data.text.random_windows", "data.text.all_windows", "data.text.ngram_bits")
def _():
    for text in (ids(50), moved(ids(50))):
        for windows in (random_windows(text, 5, 2, 1, 0), all_windows(text, 5, 2)):
            evaluate(gpt(), next_token_loss, windows)
        ngram_bits(text, text, 2, 11)


@case("recipes.tiles.tiles", "recipes.tiles.forward_tiles")
def _():
    q, k, v = (draw(1, 2, 6, 4) for _ in range(3))
    recipes.tiles.TiledAttention.apply(q, k, v, sparse.Pattern(0), 4).sum().backward()


@case("recipes.long.WrittenOutAttention")
def _():
    on_gpu(recipes.long.WrittenOutAttention(8, 2))(draw(2, 3, 8))


@case("recipes.patterns.MaskedSelfAttention", "recipes.patterns.masked_gpt")
def _():
    masks = [causal_mask(6)] * 2
    sizes = {"d_model": 8, "heads": 2, "d_ff": 8}
    model = on_gpu(recipes.patterns.masked_gpt(masks, 11, 0, **sizes))
    learns(next_token_loss, model, pair(2, 6))


@case("recipes.large.Checkpointed", "recipes.large.with_checkpoints")
def _():
    learns(next_token_loss, recipes.large.with_checkpoints(gpt()), pair(2, 9))


@case("recipes.text_models.PastAverage")
def _():
    on_gpu(recipes.text_models.PastAverage(8, 2))(draw(2, 3, 8))


@case("recipes.text_models.GRUText")
def _():
    learns(next_token_loss, on_gpu(recipes.text_models.GRUText(11, 8)), pair(2, 9))


@case("recipes.text_models.ConvolutionText")
def _():
    learns(
        next_token_loss, on_gpu(recipes.text_models.ConvolutionText(11, 8)), pair(2, 9)
    )


@case("recipes.text_models.influence")
def _():
    recipes.text_models.influence(gpt(), ids(2, 9))


@case("recipes.pronouns.PronounReader")
def _():
    tokens, wanted = recipes.pronouns.encode(recipes.pronouns.sentences()[0][:5])
    loss = lambda model, batch: cross_entropy(model(batch[0])[0], batch[1])  # noqa: E731
    for roles in ("three", "value", "one", "equal"):
        learns(loss, on_gpu(recipes.pronouns.PronounReader(roles)), (tokens, wanted))


# ---- chapters 1, 5 and 3

PAIRS = [("1 May", "05-01"), ("2 June", "06-02")] * 2
SYMBOLS = recipes.dates.date_symbols(PAIRS)
DATES = recipes.date_transformer.Dates(PAIRS, *SYMBOLS)


@case(
    "seq2seq.RNNEncoder",
    "seq2seq.AttentionDecoder",
    "seq2seq.Seq2Seq",
    "seq2seq.teacher_forcing_loss",
    "seq2seq.exact_matches",
    "recipes.dates.date_reader",
    "recipes.dates.train_date_reader",
    "recipes.dates.read_dates",
    "recipes.common.one_cycle",
)
def _():
    for way in recipes.dates.DATE_READERS:
        model = on_gpu(recipes.dates.date_reader(way, *SYMBOLS))
        recipes.dates.train_date_reader(model, PAIRS, SYMBOLS)
    exact_matches(model, batches(PAIRS, *SYMBOLS, 3))
    _, weights = recipes.dates.read_dates(model, ["1 May"], SYMBOLS, most=3)
    assert weights.device.type == "cpu", "for a figure"


@case(
    "recipes.translation.translation_model",
    "recipes.translation.train_translation",
    "recipes.translation.translate",
    "recipes.translation.spelling_errors",
    "recipes.translation.exact_numbers",
)
def _():
    r = recipes.translation.TRANSLATION_RECIPES["spelling"]
    sizes = {"d_model": 8, "heads": 2, "layers": 1, "d_ff": 8}
    r = r._replace(model=r.model | sizes, tokens=40, steps=2)
    pairs = [("cat", ("K", "AE", "T")), ("act", ("AE", "K", "T"))]
    letters, sounds = Vocabulary("cat"), Vocabulary(("K", "AE", "T"))
    cutter = recipes.translation.Cutter(letters, sounds, [])
    task = recipes.translation.Translations(pairs, cutter)
    model = on_gpu(recipes.translation.translation_model(r, cutter))
    recipes.translation.train_translation(model, task, r)
    for beam in (1, 2):
        assert len(recipes.translation.translate(model, cutter, ["tac"], beam)) == 1
    recipes.translation.spelling_errors(model, cutter, most=3)
    recipes.translation.exact_numbers(model, cutter, [7])


@case(
    "recipes.classification.BagOfEmbeddings",
    "recipes.classification.Unmasked",
    "recipes.classification.make_classifier",
    "recipes.classification.train_classifier",
    "recipes.classification.label_loss",
    "recipes.classification.classify",
    "recipes.classification.reader",
    "recipes.classification.flips",
    "recipes.classification.measure",
    "recipes.classification.f1_scores",
    "recipes.classification.best_thresholds",
    "recipes.classification.both_ways",
    "recipes.classification.cross_entropy",
    "recipes.classification.best_temperature",
    "recipes.classification.reliability",
)
def _():
    from annotated.recipes.classification import (
        CLASSIFICATION_RECIPES,
        KINDS,
        best_temperature,
        classify,
        flips,
        make_classifier,
        measure,
        order_task,
        reader,
        reliability,
        train_classifier,
    )

    task = order_task()
    for some in (task.texts, task.answers):
        some["validation"] = some["train"]
    recipe = CLASSIFICATION_RECIPES["order"]._replace(steps=2)
    for kind in KINDS:
        model = on_gpu(make_classifier(kind, task, recipe))
        train_classifier(model, task, recipe)
        measure(reader(model, task), task)
        flips(model, task, task.texts["test"][:2], 6)
        logits = classify(model, task, task.texts["test"])
        reliability(logits, task.answers["test"])
        best_temperature(logits, task.answers["test"])


@case(
    "recipes.pretraining.make_bert",
    "recipes.pretraining.masked_loss",
    "recipes.pretraining.tile_positions",
    "recipes.pretraining.pretrain",
    "recipes.pretraining.guess",
    "recipes.pretraining.BertClassifier",
    "recipes.pretraining.fine_tune",
    "recipes.pretraining.pair_loss",
    "recipes.pretraining.pair_accuracy",
)
def _():
    from annotated.recipes.classification import Labelled, measure, reader
    from annotated.recipes.pretraining import (
        FINE_TUNING,
        FrozenLinear,
        PretrainingRecipe,
        Tokens,
        Unlabelled,
        fine_tune,
        guess,
        make_bert,
        pair_accuracy,
        pair_batches,
        pair_loss,
        pretrain,
        questions,
    )

    rows = [tuple("abcdabcd"), tuple("badcbadc"), tuple("acacacac")] * 2
    texts = Unlabelled(rows, rows, Tokens(rows))
    recipe = PretrainingRecipe(2, 1e-3, 2, 4, 8, d_model=8, d_ff=8, layers=1)
    bert = on_gpu(make_bert(texts.words, recipe))
    pretrain(bert, texts, recipe)
    guess(bert, questions(rows, texts.words))
    splits = ("train", "validation", "test")
    answers = torch.tensor([[1.0], [0.0], [0.0]] * 2)
    task = Labelled(
        ("first",), dict.fromkeys(splits, rows), dict.fromkeys(splits, answers),
        texts.words,
    )  # fmt: skip
    model, _ = fine_tune(bert, task, FINE_TUNING._replace(steps=2))
    measure(reader(model, task), task)
    assert FrozenLinear(bert, task)(rows).device.type == "cpu"
    pairs = next_sentence_pairs([rows[:3], rows[3:]])
    batch = next(pair_batches(pairs, texts.words, recipe))
    pair_loss(bert, moved(batch)).backward()
    pair_accuracy(bert, pairs, texts.words)


@case("recipes.borrowed.SentenceEncoder", "recipes.borrowed.read_vectors")
def _():
    config = BertConfig(vocab_size=9, d_model=8, heads=2, layers=1, d_ff=8, max_len=16)

    class Cutter:
        def encode_batch(self, texts):
            return [SimpleNamespace(ids=[2, 3][: len(text)]) for text in texts]

    model = on_gpu(recipes.borrowed.SentenceEncoder(Bert(config)))
    recipes.borrowed.read_vectors(model, Cutter(), ["a", "ab"])
    assert model(torch.tensor([[2, 3]], device=GPU)).shape == (1, 1)


@case(
    "recipes.reading.ReaderLayer",
    "recipes.reading.Reader",
    "recipes.reading.reading_task",
    "recipes.reading.previous_symbol_loss",
)
def _():
    for way in ("sinusoidal", "learned", "learned, large", "rotary", "none"):
        batch = recipes.reading.reading_task(torch.tensor([4, 6]), seeded())
        learns(
            recipes.reading.previous_symbol_loss,
            on_gpu(recipes.reading.Reader(way)),
            batch,
        )


@case(
    "recipes.distance.BiasedAttention",
    "recipes.distance.ALiBiAttention",
    "recipes.distance.T5Attention",
    "recipes.distance.t5_bucket",
    "recipes.distance.distance_reader",
    "recipes.distance.train_distance",
    "recipes.distance.neighbours_named",
)
def _():
    for kind in recipes.distance.DISTANCE_KINDS:
        model = on_gpu(recipes.distance.distance_reader(kind))
        recipes.distance.train_distance(model, seed=0, steps=2)
        recipes.distance.neighbours_named(model, 9, count=3)


@case(
    "recipes.several_heads.Giving",
    "recipes.several_heads.WordNetwork",
    "recipes.several_heads.with_network",
    "recipes.several_heads.train_giving",
    "recipes.several_heads.answers_right",
)
def _():
    model = on_gpu(recipes.several_heads.with_network(recipes.several_heads.Giving(2)))
    recipes.several_heads.train_giving(model, seed=0, steps=1)
    recipes.several_heads.answers_right(model, count=5)


@case(
    "recipes.several_heads.MissingLetter",
    "recipes.several_heads.hide_letter",
    "recipes.several_heads.letter_loss",
    "recipes.several_heads.train_letters",
    "recipes.several_heads.letters_right",
    "recipes.several_heads.right_without_each",
)
def _():
    attention = MultiHeadAttention(8, 2, kv_heads=1)
    model = on_gpu(recipes.several_heads.MissingLetter(attention))
    recipes.several_heads.train_letters(model, seed=0, steps=2)
    recipes.several_heads.letters_right(model, count=5)
    recipes.several_heads.right_without_each(model)


# ---- chapters 6 to 8, and the laboratory

LAB = {"width": 8, "inner": 8, "heads": 2, "layers": 1, "longest": 3}


@case(
    "recipes.laboratory.LaboratoryTransformer",
    "recipes.laboratory.UnscaledAttention",
    "recipes.laboratory.UnscaledRotaryAttention",
    "recipes.laboratory.NoResidual",
    "recipes.laboratory.laboratory_loss",
    "recipes.laboratory.laboratory_writes",
    "recipes.laboratory.laboratory_exact",
)
def _():
    lab, words = recipes.laboratory, [[3, 4], [4, 3]]
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


@case("recipes.ladder.translations", "recipes.ladder.rung_scores")
def _():
    config = TransformerConfig(*map(len, SYMBOLS), **BOTH | {"norm": "pre"})
    rung = recipes.ladder.Rung(on_gpu(Transformer(config)), *SYMBOLS, [])
    recipes.ladder.translations(rung, ["1 May"])
    recipes.ladder.rung_scores(rung, count=3)


@case(
    "recipes.copy_task.next_symbol_loss",
    "recipes.copy_task.train_copy",
    "recipes.copy_task.with_end",
    "recipes.copy_task.exact_copies",
    "recipes.copy_task.SeesAhead",
    "recipes.copy_task.Shifted",
)
def _():
    for kind in (Transformer, recipes.copy_task.SeesAhead):
        model = transformer(kind)
        model.positions = on_gpu(recipes.copy_task.Shifted(8, 40))
        recipes.copy_task.train_copy(
            model, recipes.copy_task.copy_batches(0, 2, 3), steps=2
        )
        recipes.copy_task.exact_copies(model, seed=0, count=3)
    recipes.copy_task.with_end(moved(torch.tensor([[3, 4, 0], [5, 6, 7]])))


@case("recipes.rates.train_deep")
def _():
    recipes.rates.train_deep(lambda step: 1e-3, seed=0, steps=1, device=GPU)


@case(
    "recipes.parts.take_away",
    "recipes.parts.Replaces",
    "recipes.parts.Skips",
    "recipes.parts.Raw",
)
def _():
    for part in recipes.parts.PARTS:
        model = recipes.parts.take_away(transformer(norm="pre"), part)
        learns(recipes.copy_task.next_symbol_loss, model, pair(2, 5))


@case(
    "recipes.date_transformer.date_model",
    "recipes.date_transformer.train_date_transformer",
)
def _():
    recipes.date_transformer.train_date_transformer(
        lambda step: 1e-3, seed=0, steps=1, device=GPU
    )


@case(
    "recipes.date_transformer.label_loss",
    "recipes.common.paper_adam",
    "recipes.date_transformer.how_well",
    "recipes.date_transformer.differences",
)
def _():
    model = on_gpu(recipes.date_transformer.date_model(0))
    (batch,) = recipes.date_transformer.date_batches(0, 1, DATES)
    optimizer, schedule = recipes.common.paper_adam(model, lambda step: 1e-3)
    fit(
        model,
        recipes.date_transformer.label_loss,
        [batch],
        optimizer,
        schedule=schedule,
    )
    recipes.date_transformer.how_well(model, DATES)
    recipes.date_transformer.differences(model, batch)


# ---- chapters 11 to 14

LIBRARY = recipes.text.TEXT_RECIPES["library"]._replace(batch=2, steps=1)


@case(
    "recipes.text.text_model",
    "recipes.text.train_text",
    "recipes.text.bits_per_character",
    "recipes.text.bits_by_position",
)
def _():
    for way in recipes.text.TEXT_MODELS:
        model, text = on_gpu(recipes.text.text_model(way, 96)), ids(150, most=96)
        recipes.text.train_text(model, text, LIBRARY)
        recipes.text.bits_per_character(model, text, 20)
        recipes.text.bits_by_position(model, text, 20)


@case("recipes.text.run_text_recipe")
def _():
    recipes.text.run_text_recipe("library", GPU, batch=2, steps=1)


@case(
    "recipes.segments.shift_by_index",
    "recipes.segments.paper_shift",
    "recipes.segments.labml_shift",
    "recipes.segments.labml_shift_changed",
)
def _():
    for shift in recipes.segments.SHIFTS.values():
        assert shift(draw(3, 8)).device == GPU


@case("recipes.segments.four_terms", "recipes.segments.slow_attention")
def _():
    module = on_gpu(transformer_xl.RelativeMultiHeadAttention(8, 2))
    recipes.segments.slow_attention(module, draw(2, 3, 8), draw(2, 5, 8))


@case(
    "recipes.segments.RememberingGPT",
    "recipes.segments.token_bits",
    "recipes.segments.bits_by_segment_position",
)
def _():
    remembers = gpt(kind=recipes.segments.RememberingGPT)
    learns(SegmentLoss(), remembers, pair(2, 4))
    for model in (gpt(), remembers, xl()):
        list(recipes.segments.token_bits(model, segments(ids(50, most=96), 2, 6)))
        recipes.segments.bits_by_segment_position(model, 6)


@case("recipes.segments_enwik8.enwik8_model", "recipes.segments_enwik8.train_on_enwik8")
def _():
    widths = {"d_model": 8, "heads": 2, "layers": 1, "d_ff": 8, "max_len": 16}
    for kind in recipes.segments_enwik8.ENWIK8_MODELS:
        options = {"model": widths, "batch": 2, "steps": 2, "precision": None}
        recipes.segments_enwik8.train_on_enwik8(kind, GPU, **options)


@case("recipes.segments_options.swapped_update")
def _():
    recipes.segments_options.swapped_update(draw(4, 2), draw(3, 2), 4, 1)


@case(
    "recipes.segments_options.AttachedXL",
    "recipes.segments_options.reach_model",
    "recipes.segments_options.last_output",
    "recipes.segments_options.reached_by_change",
    "recipes.segments_options.reached_by_gradient",
)
def _():
    model = on_gpu(
        recipes.segments_options.reach_model(recipes.segments_options.AttachedXL)
    )
    text = ids(8, most=96)
    recipes.segments_options.last_output(model, text, 4)
    recipes.segments_options.reached_by_change(model, text, 4)
    recipes.segments_options.reached_by_gradient(model, text, 4)


@case("recipes.segments_options.bits_at")
def _():
    recipes.segments_options.bits_at(xl(), 8, 4, same_length=True)


@case(
    "recipes.lsh.exact_attention",
    "recipes.lsh.meetings",
    "recipes.lsh.recall",
    "recipes.lsh.lost_pairs",
)
def _():
    query, value = draw(2, 9, 4), draw(2, 9, 4)
    buckets = reformer.lsh_buckets(query, 4, rounds=2)
    met = recipes.lsh.meetings(buckets, 3, within=True)
    recipes.lsh.exact_attention(query, value, met[:, 0], causal=True)
    recipes.lsh.recall(query, met, 2, causal=True)
    recipes.lsh.lost_pairs(buckets, met)


@case(
    "recipes.lsh.LSHText",
    "recipes.lsh.second_word",
    "recipes.lsh.duplicate_loss",
    "recipes.lsh.duplicates_right",
)
def _():
    model = gpt(32, recipes.lsh.LSHText, recipes.lsh.LENGTH)
    learns(recipes.lsh.duplicate_loss, model, recipes.lsh.duplicates(2, seeded()))
    recipes.lsh.duplicates_right(model, ["LSH-2"], size=3)


@case(
    "recipes.reversible.layers",
    "recipes.reversible.stored",
    "recipes.reversible.checkpointed",
    "recipes.reversible.reversible",
)
def _():
    stack = on_gpu(recipes.reversible.layers(2, 8, 2, 8, dropout=0.1))
    for way in recipes.reversible.STACKS.values():
        sum(way(stack, draw(2, 5, 8), draw(2, 5, 8))).sum().backward()


@case("recipes.reversible.run_reformer_recipe", "recipes.reversible.reformer")
def _():
    sizes = {"d_model": 8, "heads": 2, "layers": 1, "d_ff": 8}
    sizes |= {"max_len": 64, "rounds": 1, "chunk": 8}
    for kind in ("LSH", "all"):
        options = {"model": sizes, "steps": 1, "batch": 1}
        recipes.reversible.run_reformer_recipe("16k", kind, GPU, **options)


# ---- each of them


@pytest.mark.parametrize("run", CASES.values(), ids=(names[0] for names in CASES))
def test_it_runs_on_a_gpu(run, small):
    ran.clear()
    with pretended_gpu():
        run()  # raises where devices are mixed
    assert ran, "nothing ran on the GPU"
