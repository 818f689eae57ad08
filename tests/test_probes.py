"""The probes: each finds its fault, none alarms on a sound model, bad input is told."""

import random
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from annotated import probes
from annotated.chapters.ch20 import faults, sound
from annotated.chapters.ch20.faults import FAULTS, Small, cross_entropy, texts
from annotated.probes import NAMES, probe, require_sound
from annotated.probes._held import modules_of

# a quick one of each family; the benchmark tries all
QUICK = (
    "OneAhead Chunks OnePair TopKeys MaskInEvaluation ShiftedTwice NoSource "
    "GateOfTarget MaskOfRowZero Capacity MeanOfAll FrontCounted Clamped StepAtZero "
    "PieceWithoutMask BeamsOfKeys NoDocumentMask PlacesRunOn AlwaysDropout HalfMask "
    "MendedTooLate DrawnAgain after_the_next end_is_padding one_too_many LoudHead "
    "NeverCalled TiedByData NotSaved"
).split()


def ask(case, **more):
    f, tokens, told = case
    return probe(f, tokens, **(told | more))


@pytest.mark.parametrize("name", QUICK)
def test_a_fault_is_found_by_the_probe_of_its_family(name):
    fault = FAULTS[name]
    report = ask(fault.make(), only=["call", fault.family])
    assert [one.name for one in report.failures] == [fault.family], report


def test_the_corpus_is_large_and_covers_every_probe():
    assert len(FAULTS) >= 80
    assert {one.family for one in FAULTS.values()} == {*NAMES} - {"call"}
    assert all(one.what and one.name == name for name, one in FAULTS.items())


@pytest.mark.parametrize("name", ["GPT, rotary", "BERT"])
def test_a_sound_model_passes_and_is_left_as_it_was(name):
    f, tokens, told = sound.ours()[name]()
    (model,) = modules_of(f)
    model.train()
    next(model.modules()).eval()  # modes may be mixed
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    frozen = next(model.parameters()).requires_grad_(False)
    modes = [m.training for m in model.modules()]
    before = {n: x.clone() for n, x in model.state_dict().items()}
    buffers = {n: x.clone() for n, x in model.named_buffers()}
    torch.manual_seed(5)
    random.seed(5)
    report = probe(f, tokens, **told)
    assert report.ok, report
    drawn = torch.rand(1).item(), random.random()
    torch.manual_seed(5)
    random.seed(5)
    assert drawn == (torch.rand(1).item(), random.random())
    assert modes == [m.training for m in model.modules()]
    assert all(torch.equal(x, before[n]) for n, x in model.state_dict().items())
    assert {n: x.shape for n, x in model.named_buffers()} == {
        n: x.shape for n, x in buffers.items()
    }
    assert all(torch.equal(p.grad, torch.ones_like(p)) for p in model.parameters())
    assert not frozen.requires_grad
    assert [one.name for one in report.outcomes] == list(NAMES)


@pytest.mark.parametrize("length", [1, 2, 5, 33])
def test_texts_may_be_short_and_sources_equal_to_targets(length):
    told = {"pad": 0, "only": [n for n in NAMES if n != "modes and numbers"]}
    both = texts(2, length), texts(2, length)
    for report in (
        probe(Small(), texts(1, length), **told),
        probe(faults.Pooled(), texts(5, length), "encoder", **told),
        probe(faults.Translator(), both, "translation", **told),
    ):
        assert report.ok, report


@pytest.mark.slow
@pytest.mark.parametrize("name", sound.ours())
def test_no_sound_model_alarms(name):
    report = ask(sound.ours()[name]())
    assert report.ok, report


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_found(name):
    fault = FAULTS[name]
    report = ask(fault.make(), only=["call", fault.family])
    assert fault.family in [one.name for one in report.failures], report


def test_the_reformer_reads_the_future_by_its_sort():
    from annotated.reformer import Reformer, ReformerConfig

    torch.manual_seed(0)
    model = Reformer(ReformerConfig(40, 32, 4, 2, 64, max_len=64, chunk=8))
    found = probe(model, texts(), only=["future"])["future"]
    assert found.state == "failed" and "a sort" in found.said
    i, j = found.where
    before, after = map(torch.tensor, found.example)
    assert i < j and not torch.equal(before, after)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("OnePair", "always from the very next token; by"),
        ("RunningMean", "so does a second call: it keeps something"),
        ("TopKeys", "they decide what is read (a sort, a top-k"),
        ("SoftmaxOverRows", "always from the very next token; by"),
    ],
)
def test_a_hint_is_of_the_pair_that_was_found(name, hint):
    said = ask(FAULTS[name].make(), only=["call", "future"])["future"].said
    assert hint in said and ("sort" in said) == ("sort" in hint), said


class Late(Small):
    """A mask that opens after position 150: later tokens are read, not sorted."""

    def past(self, t, s):
        may = super().past(t, s)
        may[150:, 150:] = True
        return may


def test_a_mask_that_opens_beyond_the_tokens_is_no_sort():
    found = probe(Late(), texts(), only="future")["future"]
    assert found.state == "failed" and "of 193" in found.said
    assert "gradient" not in found.said, found.said


def test_the_example_of_a_tiny_leak_is_the_smallest_too():
    found = probe(faults.NormOverTime(), texts(), only="future")["future"]
    assert found.where == (0, 1), found.said
    assert [len(text) for text in found.example] == [2, 2]


# ---- what a report says --------------------------------------------------------------


def test_a_report_is_data_a_text_and_a_drawing():
    report = probe(faults.Chunks(), texts(), "causal", only=["call", "future", "reach"])
    assert not report.ok
    (failure,) = report.failures
    assert failure.name == "future" and failure.where == (0, 1)
    before, after = failure.example
    assert len(before) == 2 and before[0] == after[0] and before[1] != after[1]
    lines = str(report).splitlines()
    assert lines[0] == "Chunks (causal): 2 passed, 1 failed"
    assert lines[2].startswith("✗ future: failed. changing token 1 moves logit 0")
    assert "within chunks of 8" in lines[2]
    assert (
        report.reach.shape == (64, 64) and report.reach[0, 7] > 0 == report.reach[0, 8]
    )
    figure = report.figure()
    assert "224 of them later tokens" in figure.axes[0].get_title()
    figure.canvas.draw()
    with pytest.raises(ValueError, match="reach wasn't measured"):
        probe(faults.Chunks(), texts(), only=["call"]).figure()


def test_what_cannot_be_asked_is_not_passed():
    report = probe(Small(), texts())
    assert report.ok
    assert probe(Small(), texts(), only="modes").outcomes[0].name.startswith("modes")
    states = {one.name: one.state for one in report.outcomes}
    silent = {name for name, state in states.items() if state == "not asked"}
    assert silent == {"padding", "cache", "packing", "loss"}
    for name, argument in (
        ("padding", "pad="),
        ("cache", "step="),
        ("packing", "segments="),
        ("loss", "loss="),
    ):
        assert argument in report[name].said


def test_everything_can_be_asked_of_one_model():
    model = Small()
    report = probe(
        model,
        texts(),
        pad=0,
        end=2,
        step=model.step,
        reorder=model.reorder,
        segments="documents",
        loss=cross_entropy,
        train=True,
        make=Small,
        learn=True,
    )
    assert {one.state for one in report.outcomes} == {"passed"}, report
    assert "beams in any order" in report["cache"].said
    assert "learned by heart" in report["parameters"].said


def test_a_test_may_require_soundness():
    require_sound(Small(), texts(), kind="causal")
    with pytest.raises(AssertionError, match="✗ future: failed"):
        require_sound(faults.NoMask(), texts(), only="future")


@pytest.mark.slow
def test_scores_of_honest_models_add_up_to_one():
    for honest in (faults.Scorer(), lambda x: faults.Scorer().taken(F.pad(x, (1, 0)))):
        report = probe(honest, texts(2, 6) % 4, vocabulary=4, only=["call", "scores"])
        assert report.ok and "add up to 1.0000" in report["scores"].said, report


def test_a_sum_says_which_texts_it_is_of():
    said = probe(Small(), texts(), only="scores")["scores"].said
    assert "all 40 texts of 2 tokens with the same first token add" in said  # v = 40


def test_rounding_is_no_leak():
    class Experts(Small):
        """Each expert multiplies as many rows as chose it: sound but for rounding."""

        def more(self):
            self.experts = nn.ModuleList(nn.Linear(32, 32) for _ in range(2))

        def network(self, layer, x):
            y, out = x.flatten(0, 1), torch.zeros_like(x.flatten(0, 1))
            for n, expert in enumerate(self.experts):
                rows = ((y[:, 0] > 0) == n).nonzero()[:, 0]
                out = out.index_copy(0, rows, expert(y[rows]))
            return super().network(layer, x) + out.view_as(x)

    assert probe(Experts(), texts(), pad=0).ok


def test_losses_may_be_called_in_several_ways():
    model = Small()

    def of_pair(f, batch):
        return F.cross_entropy(f(batch[0]).flatten(0, 1), batch[1].flatten())

    right = (
        cross_entropy,
        of_pair,
        lambda tokens: cross_entropy(model, tokens),
        lambda logits, tokens: cross_entropy(lambda _: logits, tokens),
        nn.CrossEntropyLoss(ignore_index=0, label_smoothing=0.1),
    )
    for loss in right:
        report = probe(model, texts(), pad=0, loss=loss, only=["call", "loss"])
        assert report["loss"].state == "passed", report
    for loss in (
        lambda tokens: faults.same_token(model, tokens),
        lambda logits, tokens: faults.same_token(lambda _: logits, tokens),
    ):
        report = probe(model, texts(), pad=0, loss=loss, only=["call", "loss"])
        assert "copies its input" in report["loss"].said, report


class Cached(Small):
    """A model with a cache as `transformers` has it."""

    wrong = 0

    def forward(self, input_ids, past_key_values=None, use_cache=False):
        if not use_cache:
            return SimpleNamespace(logits=super().forward(input_ids))
        state = past_key_values or self.begin()
        state.read += self.wrong if past_key_values else 0
        logits, state = self.step(input_ids, state)
        return SimpleNamespace(logits=logits, past_key_values=state)


def test_a_cache_is_found_where_the_model_has_one():
    right, late = Cached(), Cached()
    late.wrong = 1
    said = probe(right, texts(), only=["call", "cache"])["cache"].said
    assert "all at once: all the same" in said and "reorder=" in said
    failure = probe(late, texts(), only=["call", "cache"])["cache"]
    assert failure.where[0] == 1 and "logit 1 is the first that isn't" in failure.said


def test_a_cache_may_be_handed_over_in_several_ways():
    model = Small()
    held = {}

    def prefill(tokens):
        logits, held["state"] = model.step(tokens, None)
        return logits

    def one_at_a_time(tokens, state=None):
        if tokens.shape[1] > 1:
            raise ValueError("one at a time")
        return model.step(tokens, state)

    for told in (
        {
            "step": lambda tokens: model.step(tokens, held["state"])[0],
            "prefill": prefill,
        },
        {"prefill": lambda x: model.step(x, None)[1], "step": model.step},
        {
            "step": lambda x, state: (model.step(x, state)[0][:, -1], state)[0],
            **{"prefill": lambda x: model.step(x, None)},
        },
        {"step": lambda x, state, read: model.step(x, state)},
        {"step": one_at_a_time},
    ):
        report = probe(model, texts(2, 20), only=["call", "cache"], **told)
        assert report["cache"].state == "passed", report


# ---- bad input -----------------------------------------------------------------------


def wrong(change):
    class Wrong(Small):
        def forward(self, x, documents=None):
            return change(self, x, super().forward(x))

    return Wrong()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda *_: "text", "returned str, no tensor, when called with tokens (2, 64)"),
        (lambda *_: None, "returned NoneType, no tensor"),
        (lambda s, x, y: y.argmax(-1), "int64: numbers that are no logits"),
        (lambda s, x, y: y[:, :-1], "the shape (2, 63, 40) and not (2, 64, v)"),
        (lambda s, x, y: y.mean(), "the shape ()"),
        (lambda s, x, y: y.to("meta"), "a tensor without numbers (meta)"),
        (lambda s, x, y: x.zero_() + y[..., 0], "changed its own tokens"),
        (lambda s, x, y: 1 / 0, "raised ZeroDivisionError (division by zero) when"),
    ],
)
def test_what_no_probe_can_read_is_said_in_a_sentence(change, said):
    report = probe(wrong(change), texts())
    assert not report.ok and said in report["call"].said, report
    assert all(one.state != "passed" for one in report.outcomes)


def only_for(condition):
    def change(self, x, logits):
        if not condition(x):
            raise RuntimeError("not today")
        return logits

    return wrong(change)


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        (lambda x: x.shape[1] > 1, "raised RuntimeError (not today) when called with"),
        (lambda x: len(x) != 2, "tokens (2, 64) int64"),
        (lambda x: len(x) != 1, "tokens (1, 64) int64"),
    ],
)
def test_shapes_that_fail_are_named_and_the_other_probes_go_on(condition, said):
    tokens = texts(3) if not condition(texts(2)) else texts()
    report = probe(only_for(condition), tokens)
    assert not report.ok and said in report["call"].said, report
    assert report["scores"].state == report["parameters"].state == "passed", report


def test_a_model_that_reads_one_row_is_asked_row_by_row():
    report = probe(only_for(lambda x: len(x) == 1), texts())
    assert "tokens (2, 64) int64" in report["call"].said
    for name in ("future", "reach", "modes and numbers", "parameters"):
        assert report[name].state == "passed", report


def test_a_model_that_is_random_or_raises_now_and_then_is_reported():
    report = probe(wrong(lambda s, x, y: y + 1e-3 * torch.randn_like(y)), texts())
    assert "it draws in evaluation" in report["modes and numbers"].said
    assert report["future"].state == report["reach"].state == "passed", report
    calls = []

    def tired(self, x, logits):
        calls.append(x)
        if len(calls) == 20:
            raise RuntimeError("tired")
        return logits

    report = probe(wrong(tired), texts())
    assert len(report.failures) == 1 and "tired" in report.failures[0].said, report


def test_a_slow_model_is_asked_what_fits_into_the_time():
    def slow(self, x, logits):
        time.sleep(0.2)
        return logits

    began = time.monotonic()
    report = probe(wrong(slow), texts(), seconds=1)
    assert time.monotonic() - began < 10
    assert report["call"].state == "passed"
    assert "don't fit into what is left of seconds=1" in report["future"].said


def test_prints_stay_out_of_the_report(capsys):
    report = probe(wrong(lambda s, x, y: print("layer 1") or y), texts())
    assert report.ok and "it prints ('layer 1'" in report["call"].said
    assert capsys.readouterr().out == ""


def test_objects_and_tuples_that_hold_logits_are_read():
    for change in (
        lambda s, x, y: (y, "cache"),
        lambda s, x, y: SimpleNamespace(logits=y, loss=None),
        lambda s, x, y: {"logits": y},
    ):
        assert probe(wrong(change), texts(), loss=cross_entropy_of, pad=0).ok


def cross_entropy_of(f, tokens):
    out = f(tokens)
    out = out[0] if isinstance(out, tuple) else out
    out = out["logits"] if isinstance(out, dict) else getattr(out, "logits", out)
    return cross_entropy(lambda _: out, tokens)


@pytest.mark.parametrize(
    ("tokens", "how", "error"),
    [
        (torch.randn(2, 8), {}, "tokens must be a tensor of integers, got"),
        (torch.zeros(8).long(), {}, r"tokens must be \(b, t\), not empty, got \(8,\)"),
        (torch.zeros(0, 8).long(), {}, "not empty"),
        (texts(), {"kind": "decoder"}, "kind must be one of 'causal', 'encoder'"),
        (texts(), {"kind": "translation"}, "a pair"),
        (texts(), {"only": ["futur"]}, "only must be one of"),
        (texts(), {"pad": "0"}, "pad must be an id, an integer, got '0'"),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(tokens, how, error):
    with pytest.raises((TypeError, ValueError), match=error):
        probe(Small(), tokens, **how)
    with pytest.raises(TypeError, match="f must be a module or a function, got int"):
        probe(3, texts())


# ---- the command ---------------------------------------------------------------------


def test_the_command_fails_where_a_probe_fails(tmp_path):
    torch.save(texts(), tmp_path / "tokens.pt")
    (tmp_path / "tokens.txt").write_text("3 4 5 6 7 8 9 10\n4 4 5 6 7 8 9 3 8\n")

    def run(name, *options):
        command = [sys.executable, "-m", "annotated.probes", name, "--only", "future"]
        command += ["--only", "call", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    module = "annotated.chapters.ch20.faults"
    file = ["--kind", "causal", "--tokens", str(tmp_path / "tokens.pt")]
    status, out, _ = run(f"{module}:Small", *file)
    assert status == 0 and out.startswith("Small (causal): 2 passed")
    status, out, _ = run(f"{module}:NoMask", "--tokens", str(tmp_path / "tokens.txt"))
    assert status == 1 and "✗ future" in out and "(2, 8) int64" in out
    status, _, error = run("annotated.gone:f")
    assert status == 2 and "annotated.gone" in error
    assert probes.__doc__


class LongAlone(Small):
    """Takes ids of one kind."""

    def forward(self, tokens):
        assert tokens.dtype == torch.int64
        return super().forward(tokens)


class SingleAlone(Small):
    """Computes in single precision alone."""

    def forward(self, tokens):
        out = super().forward(tokens)
        assert out.dtype == torch.float32
        return out


@pytest.mark.parametrize(
    "model, probed, said",
    [
        (LongAlone, "call", "torch.int32 ids are refused"),
        (SingleAlone, "batch", "not asked in double precision"),
    ],
)
def test_what_was_refused_is_said(model, probed, said):
    report = probe(model(), texts(), only=["call", probed])
    assert report.ok and said in report[probed].said
    assert said not in probe(Small(), texts(), only=["call", probed])[probed].said
