"""All that computes with tensors runs on a GPU, if only on a pretended one."""

import inspect
import sys
from collections.abc import Callable
from functools import cache
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
from annotated.masks import (
    causal_mask,
    count_positions,
    document_mask,
    length_mask,
    padding_mask,
)
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

# what no case calls, and why
NOT_CALLED = {
    "neither takes nor gives a tensor": """
        bert: sentence_order_pairs
        data.reactions: alike atom_places is_atom parse
        data.glassllm: decode encode
        data.text: library_facts standard_library
        gpt2: count_parameters require_gpt2
        recipes.classification: words_and_pairs words_of
        recipes.date_transformer: begin
        recipes.dates: date_symbols
        recipes.laboratory: laboratory_rate laboratory_words
        recipes.ladder: ladder_pairs
        recipes.long: take_turns
        recipes.patterns: column_pattern grid_pattern stride_patterns
        recipes.planks: seconds_per_step
        recipes.pretraining: common_words cpu_seconds cut_sentence docstrings
        recipes.pretraining: fine_tuning rarity sentences_of shuffled topic_accuracy
        recipes.pronouns: settled
        recipes.reading: by_zone guessing runs_of zone
        recipes.segments_options: remembered times_added
        recipes.text_models: path_length
        sparse: dilated_pattern
        speculative: expected_speedup expected_tokens
        training: noam_rate noam_schedule
        variants: cache_numbers
    """,
    "makes data or constants, which are on the CPU until a model reads them": """
        data.reactions: links reaction_model right_links
        recipes.classification: answers_of films_task functions_task imdb_task
        recipes.gpt2: short_tokenizer token_text
        recipes.long: batches_for
        recipes.lsh: prototypes
        recipes.patterns: copy_batches copy_masks masks_of reachable
        recipes.pretraining: few_labels neighbour_losses unigram_loss
        recipes.reading: skewed_lengths
        recipes.several_heads: letter_codes letter_windows
        recipes.text: read_text
        recipes.translation: multi30k_task number_words_task spelling_task
        recipes.translation: translation_task
        weights: read_safetensors
    """,
    "makes a model of its own, on the CPU; cases run the loss that it trains with": """
        data.glassllm: glass_model to_llama
        recipes.bert: official_bert read_bert
        recipes.borrowed: borrowed_encoder
        recipes.date_transformer: train_on_few
        recipes.gpt2: official_gpt2 small_gpt2 stream_by_depth
        recipes.laboratory: train_laboratory
        recipes.ladder: train_rung
        recipes.lsh: train_duplicate
        recipes.pronouns: train_reader
        recipes.segments: train_on_segments
        recipes.segments_options: attention_entropy
        recipes.text: seconds_by_length
        weights: load_albert load_bert load_gpt2 load_llama
    """,
    "trains or measures a model that stays on the CPU, as the page's does": """
        recipes.large: held_out_bits large_model plain_step rule_of scaled_step
        recipes.large: stochastic_bfloat16 train_checkpointed train_halves training
        recipes.long: bits long_model parts_of pass_over
        recipes.patterns: bits_per_pixel copied glyph heard
        recipes.patterns: train_copy train_grid train_image
    """,
    "runs on the GPU in tests/chapters/ch18/test_ddp.py": "recipes.ddp: main",
}
# What pages train, that of all chapters and that of one, by the name of its file.
TRAINED = {
    path.stem: ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for pattern in ("annotated/recipes/[!_]*.py", "annotated/chapters/*/[!_]*.py")
    for path in sorted(ROOT.glob(pattern))
    if path.stem in TRAINING or path.parent.name == "recipes"
} | {"laboratory": "annotated.page.laboratory_runs"}
recipes = SimpleNamespace(**{n: import_module(m) for n, m in TRAINED.items()})
OTHERS = (
    "adaptive attention bert data.glassllm data.reactions data.text decoding gpt gpt2 "
    "masks positions recurrent_attention reformer reversible segments seq2seq sparse "
    "speculative training transformer transformer_xl variants weights"
).split()
MODULES = [*(f"recipes.{name}" for name in TRAINED), *OTHERS]


def path_of(module: str) -> str:
    folder, _, last = module.rpartition(".")
    return TRAINED[last] if folder == "recipes" else f"annotated.{module}"


def public(module: str) -> set[str]:
    """Return a module's public functions and classes of models."""
    path = path_of(module)
    return {
        name
        for name, thing in vars(import_module(path)).items()
        if name[0] != "_" and getattr(thing, "__module__", "") == path
        if inspect.isfunction(thing)
        or (inspect.isclass(thing) and issubclass(thing, nn.Module))
    }


def excused(module: str) -> set[str]:
    lines = "\n".join(NOT_CALLED.values()).splitlines()
    rows = (line.strip().partition(": ") for line in lines)
    return {
        name for owner, _, names in rows if owner == module for name in names.split()
    }


@cache
def called_by(case: Callable[[], None]) -> set[tuple[str, str]]:
    """Run a case on the pretended GPU; return modules and names of what it called.

    Of a class of models, that is any method, inherited ones too.
    """
    called = set()

    def look(frame, event, _):
        module, code = frame.f_globals.get("__name__", ""), frame.f_code
        if not module.startswith("annotated."):
            return
        called.add((module, code.co_qualname.partition(".")[0]))
        if code.co_name == "forward" and "self" in frame.f_locals:
            kinds = type(frame.f_locals["self"]).__mro__
            called.update((kind.__module__, kind.__name__) for kind in kinds)

    ran.clear()
    with pytest.MonkeyPatch.context() as patch, pretended_gpu():
        make_small(patch)
        sys.settrace(look)
        try:
            case()  # raises where devices are mixed
        finally:
            sys.settrace(None)
    assert ran, "nothing ran on the GPU"
    return called


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


def make_small(monkeypatch: pytest.MonkeyPatch) -> None:
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


def case_attention():
    mask = causal_mask(3, device=GPU)[0, 0]
    scaled_dot_product_attention(draw(3, 4), draw(3, 4), draw(3, 4), mask)
    attention.masked_softmax(draw(3, 3), mask)
    module = on_gpu(MultiHeadAttention(8, 2, dropout=0.1))
    with record_attention(module) as maps:
        module(draw(2, 3, 8), mask=causal_mask(3, device=GPU))
    assert maps[""][0].device == GPU


def case_trace():
    torch.manual_seed(0)
    options = {"positions": "rotary", "kv_heads": 1, "activation": "swiglu"}
    model = on_gpu(GPT(GPTConfig(11, **BOTH | options)))
    for step in trace(model, moved(ids(1, 5))):
        assert step.value.device == GPU


def case_adaptive():
    embedding = on_gpu(AdaptiveEmbedding(9, 8, (3, 6), 2))
    softmax = on_gpu(AdaptiveSoftmax(9, 8, (3, 6), 2))
    tokens = moved(torch.arange(9)[None])
    x = embedding(tokens)
    softmax.loss(x, tokens).mean().backward()
    softmax(x)


def case_masks():
    lengths = length_mask(moved(torch.tensor([2, 3])), 3)
    lengths & padding_mask(moved(ids(2, 3))) & causal_mask(3, device=GPU)
    count_positions(document_mask(moved(ids(2, 3))))


def case_positions():
    on_gpu(PositionalEncoding(8, 5, dropout=0.1))(draw(2, 4, 8), start=1)
    on_gpu(LearnedPositionalEmbedding(5, 8))(draw(2, 4, 8))
    rotary_embedding(draw(2, 4, 8), start=3).sum().backward()
    on_gpu(RotaryMultiHeadAttention(8, 2))(draw(2, 3, 8))


def case_variants():
    near = variants.window_mask(3, 5, device=GPU)
    on_gpu(variants.QueryKeyNormAttention(8, 2))(draw(2, 5, 8), mask=near)
    for name in ("all but the window", "all"):  # their attentions are all of these
        model = on_gpu(recipes.planks.plank_model(name, d_model=8, heads=2, layers=1))
        learns(next_token_loss, model, pair(2, 40))


def case_recurrent_attention():
    on_gpu(recurrent_attention.AdditiveAttention(4, 5, 6))(draw(2, 3, 4), draw(2, 7, 5))
    on_gpu(recurrent_attention.DotAttention(4, 5))(draw(2, 3, 4), draw(2, 7, 5))
    kind = recurrent_attention.LocationSensitiveAttention
    mask = length_mask(moved(torch.tensor([7, 3])), 7)[:, 0]
    on_gpu(kind(4, 5, 6))(draw(2, 3, 4), draw(2, 7, 5), mask=mask)


def case_transformer():
    smooth = LabelSmoothing(13)

    def loss(model, batch):
        return smooth(model(*batch), batch[1])

    model = transformer(tied=True)
    learns(loss, model, pair(2, 5))
    evaluate(model, loss, [pair(2, 5)])


def case_transformer_xl():
    transformer_xl.relative_shift(draw(2, 3, 5))
    transformer_xl.update_memory(draw(2, 3, 4), draw(2, 3, 4), 4)
    for options in (
        {},
        {"same_length": True, "clamp_len": 2},
        {"cutoffs": (9, 40), "div_value": 2},
    ):
        model, loss = xl(**options, dropout=0.1), SegmentLoss()
        for batch in segments(ids(25, most=96), 2, 4):
            learns(loss, model, batch)
        model(moved(ids(2, 4)), loss.memories)


def case_sparse():
    near, every = sparse.strided_patterns(3)
    pattern = near | sparse.global_pattern([2]) | sparse.fixed_patterns(3)[1]
    masks = [p.mask(9, device=GPU) for p in (pattern, every)]
    assert sparse.reach(masks, 2).device == GPU
    sparse.layers_to_reach(masks)
    patterns = sparse.strided_patterns(3)
    layout = sparse.block_layout(patterns[1], 4, 9, device=GPU)
    q, k, v = (draw(2, 2, 9, 4) for _ in range(3))
    sparse.block_sparse_attention(q, k, v, layout).sum().backward()
    module = on_gpu(sparse.SparseSelfAttention(8, 2, 0.1, pattern=patterns, block=4))
    mask = padding_mask(moved(ids(2, 9)))
    with record_attention(module) as maps:
        module(draw(2, 9, 8), mask=mask).sum().backward()
    assert maps[""][0].device == GPU


def case_reformer():
    reformer.lsh_buckets(draw(2, 9, 4), (4, 2), rounds=2)
    module = on_gpu(reformer.LSHSelfAttention(8, 2, chunk=3, rounds=2, causal=True))
    module(draw(2, 9, 8), mask=padding_mask(moved(ids(2, 9)))).sum().backward()
    sizes = {"d_model": 8, "heads": 2, "layers": 2, "d_ff": 8, "max_len": 16}
    config = reformer.ReformerConfig(96, **sizes, chunk=3, rounds=2, ff_chunk=4)
    learns(next_token_loss, on_gpu(reformer.Reformer(config)), pair(2, 9))


def case_gpt():
    learns(next_token_loss, gpt(), pair(2, 9))
    kinds = {"activation": "swiglu", "norm_kind": "rms", "bias": False}
    config = GPTConfig(96, 8, 2, positions="rotary", kv_heads=1, tied=False, **kinds)
    modern = on_gpu(GPT(config))
    learns(next_token_loss, modern, pair(2, 9))
    sample(modern, moved(ids(2, 3)), max_new_tokens=2)
    for cached in (True, False):
        prompt = moved(torch.tensor([[0, 5, 3], [4, 6, 7]]))
        sample(gpt(), prompt, max_new_tokens=2, pad=0, end=1, cache=cached)


def case_bert():
    narrow = {"embedding_width": 4, "shared": True}
    for options in ({}, narrow):
        model = on_gpu(Bert(BertConfig(96, 8, 2, 2, 8, **options)))
        states = model(moved(ids(2, 5)))
        model.guess_tokens(states).sum().backward()
        model.guess_next(states)
    read, asked = mask_tokens(moved(ids(2, 5)), 96, 95, (0,))
    assert read.device == asked.device == GPU


def case_reactions():
    config = BertConfig(591, 8, 2, 1, 8, embedding_width=4, shared=True)
    attention_maps(on_gpu(Bert(config)), "CO>>CO")


def case_decoding():
    model = transformer()
    greedy_decode(model, moved(ids(2, 5)), start=1, end=2, max_new_tokens=4)
    chances = decoding.tempered(draw(2, 9), 0.7)
    decoding.keep_top_k(chances, 3)
    decoding.keep_top_p(chances, 0.5)
    for keeps in (True, False):
        options = {"top_k": 5, "top_p": 0.9, "cache": keeps, "generator": seeded()}
        sample(gpt(), moved(ids(2, 3)), max_new_tokens=3, **options)


def case_speculative():
    draft, target = (draw(3, 9).softmax(dim=-1) for _ in range(2))
    assert speculative.acceptance(draft, target).device == GPU
    assert speculative.residual(draft, target).device == GPU
    given = moved(ids(2, most=9)), draft[:2], target
    assert speculative.speculative_step(*given, seeded()).device == GPU
    for keeps in (True, False):
        options = {"max_new_tokens": 5, "guesses": 2, "cache": keeps}
        prompt = moved(ids(1, 3))
        speculative.speculative_sample(
            gpt(), gpt(), prompt, generator=seeded(), **options
        )


def case_gpt2():
    model, text = gpt2.initialise(gpt()), ids(50)
    recipes.gpt2.text_nats(model, text, 5)
    read = recipes.gpt2.TokenText(text, text, 80)
    recipes.gpt2.bits_per_byte(model, read, 5)


def case_text_windows():
    for text in (ids(50), moved(ids(50))):
        for windows in (random_windows(text, 5, 2, 1, 0), all_windows(text, 5, 2)):
            evaluate(gpt(), next_token_loss, windows)
        ngram_bits(text, text, 2, 11)


def case_tiles():
    q, k, v = (draw(1, 2, 6, 4) for _ in range(3))
    recipes.tiles.TiledAttention.apply(q, k, v, sparse.Pattern(0), 4).sum().backward()


def case_long():
    on_gpu(recipes.long.WrittenOutAttention(8, 2))(draw(2, 3, 8))


def case_patterns():
    masks = [causal_mask(6)] * 2
    sizes = {"d_model": 8, "heads": 2, "d_ff": 8}
    model = on_gpu(recipes.patterns.masked_gpt(masks, 11, 0, **sizes))
    learns(next_token_loss, model, pair(2, 6))


def case_large():
    learns(next_token_loss, recipes.large.with_checkpoints(gpt()), pair(2, 9))


def case_text_models():
    on_gpu(recipes.text_models.PastAverage(8, 2))(draw(2, 3, 8))
    learns(next_token_loss, on_gpu(recipes.text_models.GRUText(11, 8)), pair(2, 9))
    learns(
        next_token_loss, on_gpu(recipes.text_models.ConvolutionText(11, 8)), pair(2, 9)
    )
    recipes.text_models.influence(gpt(), ids(2, 9))


def case_pronouns():
    tokens, wanted = recipes.pronouns.encode(recipes.pronouns.sentences()[0][:5])
    loss = lambda model, batch: cross_entropy(model(batch[0])[0], batch[1])  # noqa: E731
    for roles in ("three", "value", "one", "equal"):
        learns(loss, on_gpu(recipes.pronouns.PronounReader(roles)), (tokens, wanted))


# ---- chapters 1, 5 and 3

PAIRS = [("1 May", "05-01"), ("2 June", "06-02")] * 2
SYMBOLS = recipes.dates.date_symbols(PAIRS)
DATES = recipes.date_transformer.Dates(PAIRS, *SYMBOLS)


def case_seq2seq():
    for way in recipes.dates.DATE_READERS:
        model = on_gpu(recipes.dates.date_reader(way, *SYMBOLS))
        recipes.dates.train_date_reader(model, PAIRS, SYMBOLS)
    exact_matches(model, batches(PAIRS, *SYMBOLS, 3))
    _, weights = recipes.dates.read_dates(model, ["1 May"], SYMBOLS, most=3)
    assert weights.device.type == "cpu", "for a figure"


def case_translation():
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
    some = recipes.refinement
    for kind in some.STEPS:
        model = on_gpu(some.refinement_model(kind, cutter))
        some.train_refinement(kind, model, task, most=2)
    some.refinement_errors(model, cutter, most=3)


def case_classification():
    c = recipes.classification
    task = c.order_task()
    for some in (task.texts, task.answers):
        some["validation"] = some["train"]
    recipe = c.CLASSIFICATION_RECIPES["order"]._replace(steps=2)
    for kind in c.KINDS:
        model = on_gpu(c.make_classifier(kind, task, recipe))
        c.train_classifier(model, task, recipe)
        c.measure(c.reader(model, task), task)
        c.flips(model, task, task.texts["test"][:2], 8)
        logits = c.classify(model, task, task.texts["test"])
        c.reliability(logits, task.answers["test"])
        c.best_temperature(logits, task.answers["test"])


def case_pretraining():
    c, p = recipes.classification, recipes.pretraining
    rows = [tuple("abcdabcd"), tuple("badcbadc"), tuple("acacacac")] * 2
    texts = p.Unlabelled(rows, rows, p.Tokens(rows))
    recipe = p.PretrainingRecipe(2, 1e-3, 2, 4, 8, d_model=8, d_ff=8, layers=1)
    bert = on_gpu(p.make_bert(texts.words, recipe))
    p.pretrain(bert, texts, recipe)
    p.guess(bert, p.questions(rows, texts.words))
    splits = ("train", "validation", "test")
    answers = torch.tensor([[1.0], [0.0], [0.0]] * 2)
    task = c.Labelled(
        ("first",), dict.fromkeys(splits, rows), dict.fromkeys(splits, answers),
        texts.words,
    )  # fmt: skip
    model, _ = p.fine_tune(bert, task, p.FINE_TUNING._replace(steps=2))
    c.measure(c.reader(model, task), task)
    assert p.FrozenLinear(bert, task)(rows).device.type == "cpu"
    pairs = next_sentence_pairs([rows[:3], rows[3:]])
    batch = next(p.pair_batches(pairs, texts.words, recipe))
    p.pair_loss(bert, moved(batch)).backward()
    p.pair_accuracy(bert, pairs, texts.words)


def case_borrowed():
    config = BertConfig(vocab_size=9, d_model=8, heads=2, layers=1, d_ff=8, max_len=16)

    class Cutter:
        def encode_batch(self, texts):
            return [SimpleNamespace(ids=[2, 3][: len(text)]) for text in texts]

    model = on_gpu(recipes.borrowed.SentenceEncoder(Bert(config)))
    recipes.borrowed.read_vectors(model, Cutter(), ["a", "ab"])
    assert model(torch.tensor([[2, 3]], device=GPU)).shape == (1, 1)


def case_reading():
    reading = recipes.reading
    for way in ("sinusoidal", "learned", "learned, large", "rotary", "none"):
        batch = reading.reading_task(torch.tensor([4, 6]), seeded())
        learns(reading.previous_symbol_loss, on_gpu(reading.Reader(way)), batch)


def case_distance():
    for kind in recipes.distance.DISTANCE_KINDS:
        model = on_gpu(recipes.distance.distance_reader(kind))
        recipes.distance.train_distance(model, seed=0, steps=2)
        recipes.distance.neighbours_named(model, 9, count=3)


def case_several_heads():
    heads = recipes.several_heads
    model = on_gpu(heads.with_network(heads.Giving(2)))
    heads.train_giving(model, seed=0, steps=1)
    heads.answers_right(model, count=5)
    attention = MultiHeadAttention(8, 2, kv_heads=1)
    model = on_gpu(heads.MissingLetter(attention))
    heads.train_letters(model, seed=0, steps=2)
    heads.letters_right(model, count=5)
    heads.right_without_each(model)


# ---- chapters 6 to 8, and the laboratory

LAB = {"width": 8, "inner": 8, "heads": 2, "layers": 1, "longest": 3}


def case_laboratory():
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


def case_ladder():
    config = TransformerConfig(*map(len, SYMBOLS), **BOTH | {"norm": "pre"})
    rung = recipes.ladder.Rung(on_gpu(Transformer(config)), *SYMBOLS, [])
    recipes.ladder.translations(rung, ["1 May"])
    recipes.ladder.rung_scores(rung, count=3)


def case_copy_task():
    copy = recipes.copy_task
    for kind in (Transformer, copy.SeesAhead):
        model = transformer(kind)
        model.positions = on_gpu(copy.Shifted(8, 40))
        copy.train_copy(model, copy.copy_batches(0, 2, 3), steps=2)
        copy.exact_copies(model, seed=0, count=3)
    copy.with_end(moved(torch.tensor([[3, 4, 0], [5, 6, 7]])))


def case_train_deep():
    recipes.rates.train_deep(lambda step: 1e-3, seed=0, steps=1, device=GPU)


def case_parts():
    for part in recipes.parts.PARTS:
        model = recipes.parts.take_away(transformer(norm="pre"), part)
        learns(recipes.copy_task.next_symbol_loss, model, pair(2, 5))


def case_date_transformer():
    dates = recipes.date_transformer
    dates.train_date_transformer(lambda step: 1e-3, seed=0, steps=1, device=GPU)
    model = on_gpu(dates.date_model(0))
    (batch,) = dates.date_batches(0, 1, DATES)
    optimizer, schedule = recipes.common.paper_adam(model, lambda step: 1e-3)
    fit(model, dates.label_loss, [batch], optimizer, schedule=schedule)
    dates.how_well(model, DATES)
    dates.differences(model, batch)


# ---- chapters 11 to 14

LIBRARY = recipes.text.TEXT_RECIPES["library"]._replace(batch=2, steps=1)


def case_text():
    for way in recipes.text.TEXT_MODELS:
        model, text = on_gpu(recipes.text.text_model(way, 96)), ids(150, most=96)
        recipes.text.train_text(model, text, LIBRARY)
        recipes.text.bits_per_character(model, text, 20)
        recipes.text.bits_by_position(model, text, 20)
    recipes.text.run_text_recipe("library", GPU, batch=2, steps=1)


def case_segments():
    for shift in recipes.segments.SHIFTS.values():
        assert shift(draw(3, 8)).device == GPU
    module = on_gpu(transformer_xl.RelativeMultiHeadAttention(8, 2))
    recipes.segments.slow_attention(module, draw(2, 3, 8), draw(2, 5, 8))
    remembers = gpt(kind=recipes.segments.RememberingGPT)
    learns(SegmentLoss(), remembers, pair(2, 4))
    for model in (gpt(), remembers, xl()):
        list(recipes.segments.token_bits(model, segments(ids(50, most=96), 2, 6)))
        recipes.segments.bits_by_segment_position(model, 6)


def case_segments_enwik8():
    widths = {"d_model": 8, "heads": 2, "layers": 1, "d_ff": 8, "max_len": 16}
    for kind in recipes.segments_enwik8.ENWIK8_MODELS:
        options = {"model": widths, "batch": 2, "steps": 2, "precision": None}
        recipes.segments_enwik8.train_on_enwik8(kind, GPU, **options)


def case_segments_options():
    options = recipes.segments_options
    options.swapped_update(draw(4, 2), draw(3, 2), 4, 1)
    model = on_gpu(options.reach_model(options.AttachedXL))
    text = ids(8, most=96)
    options.last_output(model, text, 4)
    options.reached_by_change(model, text, 4)
    options.reached_by_gradient(model, text, 4)
    options.bits_at(xl(), 8, 4, same_length=True)


def case_lsh():
    query, value = draw(2, 9, 4), draw(2, 9, 4)
    buckets = reformer.lsh_buckets(query, 4, rounds=2)
    met = recipes.lsh.meetings(buckets, 3, within=True)
    recipes.lsh.exact_attention(query, value, met[:, 0], causal=True)
    recipes.lsh.recall(query, met, 2, causal=True)
    recipes.lsh.lost_pairs(buckets, met)
    model = gpt(32, recipes.lsh.LSHText, recipes.lsh.LENGTH)
    learns(recipes.lsh.duplicate_loss, model, recipes.lsh.duplicates(2, seeded()))
    recipes.lsh.duplicates_right(model, ["LSH-2"], size=3)


def case_reversible():
    stack = on_gpu(recipes.reversible.layers(2, 8, 2, 8, dropout=0.1))
    for way in recipes.reversible.STACKS.values():
        sum(way(stack, draw(2, 5, 8), draw(2, 5, 8))).sum().backward()
    sizes = {"d_model": 8, "heads": 2, "layers": 1, "d_ff": 8}
    sizes |= {"max_len": 64, "rounds": 1, "chunk": 8}
    for kind in ("LSH", "all"):
        options = {"model": sizes, "steps": 1, "batch": 1}
        recipes.reversible.run_reformer_recipe("16k", kind, GPU, **options)


# ---- each of them

CASES = {
    name.removeprefix("case_"): thing
    for name, thing in list(globals().items())
    if name.startswith("case_")
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_runs_on_a_gpu(case):
    assert called_by(case)  # and what it calls meets no tensor of another device


@pytest.mark.parametrize("module", MODULES)
def test_all_that_is_public_is_called_by_a_case_or_has_a_reason_not_to(module):
    called = set().union(*map(called_by, CASES.values()))
    left = {name for name in public(module) if (path_of(module), name) not in called}
    assert left == excused(module)
