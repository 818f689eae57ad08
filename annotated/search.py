"""Search: of all that could be written for a source, what is written?

First a cache, so that a hypothesis is continued without reading it again; then search
with several hypotheses, and search through all. Letters: b batch, s source length, t
length of what is written, k number of hypotheses, v vocabulary, d model width
(``book/notation.md``).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from annotated import require
from annotated.batches import pad_sequences
from annotated.masks import causal_mask, padding_mask
from annotated.training import evaluating
from annotated.transformer import Transformer

# ---- reading source and target, step by step -------------------------------------


@require.shapes
def padding_last(tokens: Int[Tensor, "b s"], pad: int = 0) -> Int[Tensor, "b s"]:
    """Return ``tokens`` with each row's padding moved behind its real symbols.

    A model that was trained with padding behind has seen every sequence from its first
    position on. Read with padding in front, it would find each one somewhere else.

    Args:
        tokens: ids, padded anywhere.
        pad: the id of padding.

    Returns:
        Ids ``(b, s)``.

    Raises:
        ValueError: if a row is nothing but padding (looked at on the CPU alone).
    """
    hidden = tokens == pad
    if tokens.device.type == "cpu":  # a GPU would have to wait
        empty = hidden.all(dim=1).nonzero().flatten().tolist()
        message = f"tokens must hold a real symbol in rows {empty}, got none"
        require.that(not empty, message)
    return tokens.gather(1, hidden.int().argsort(dim=1, stable=True))


class Rereader:
    """Reads a target step by step, and all of it again at each step.

    Args:
        model: in evaluation mode.
        source: token ids, ``(b, s)``, padded anywhere with the model's pad.

    Raises:
        ValueError: if the model is in training mode, or a source is all padding.
    """

    def __init__(self, model: Transformer, source: Int[Tensor, "b s"]):
        require.that(not model.training, "model must be in evaluation mode")
        self.model, self.pad = model, model.config.pad
        self.vocab_size = model.config.target_vocab
        source = padding_last(source, self.pad)
        self.memory, self.memory_mask = model.encode(source)
        self.tokens = source[:, :0]  # ids that were read, (b, t)

    def read(self, tokens: Int[Tensor, "b t"]) -> Float[Tensor, "b t v"]:
        """Return the logits at new positions, those after all that was read before.

        Args:
            tokens: ids of the new positions.
        """
        self.tokens = torch.cat([self.tokens, tokens], dim=1)
        logits = self.model.decode(self.tokens, self.memory, self.memory_mask)
        return logits[:, -tokens.shape[1] :]

    def keep(self, rows: Int[Tensor, "n"]) -> None:
        """Go on with these ``rows``, in this order; a row may be there several times.

        Row i of the next :meth:`read` goes on where row ``rows[i]`` stopped.
        """
        self.tokens, self.memory = self.tokens[rows], self.memory[rows]
        self.memory_mask = self.memory_mask[rows]


class DecoderCache(Rereader):
    """Reads a target step by step, as :class:`Rereader` does, and nothing twice.

    Two kinds of keys and values are kept: those of the target so far, which grow by a
    position each step, and those of the source, which never change and are computed
    once.

    Arguments as :class:`Rereader`.
    """

    def __init__(self, model: Transformer, source: Int[Tensor, "b s"]):
        super().__init__(model, source)
        memory = self.memory
        layers = model.decoder.layers
        # per layer (b, h, s, k) each; the queries of the memory itself nobody needs
        self.read_source = [n.cross_attention.project(memory)[1:] for n in layers]
        self.read_target = [n.attention.project(memory[:, :0])[1:] for n in layers]
        self.sources = torch.arange(len(source), device=source.device)  # of each row

    @require.shapes
    def read(self, tokens: Int[Tensor, "b t"]) -> Float[Tensor, "b t v"]:
        """Return the logits at new positions, those after all that was read before.

        Args:
            tokens: ids of the new positions.

        Raises:
            ValueError: if they reach beyond ``max_len``, or an id is out of range.
        """
        model, start = self.model, self.tokens.shape[1]
        require.ids(model.config.target_vocab, tokens=tokens)
        self.tokens = torch.cat([self.tokens, tokens], dim=1)
        mask = padding_mask(self.tokens, self.pad)
        mask = mask & causal_mask(tokens.shape[1], start + tokens.shape[1], mask.device)
        x = model.target_embedding(tokens) * model.config.d_model**0.5
        x = model.positions(x, start=start)
        for i, layer in enumerate(model.decoder.layers):
            attend, look_up, map_each = layer.residuals
            x = attend(x, lambda x, i=i: self.attend(i, x, mask))
            x = look_up(x, lambda x, i=i: self.look_up(i, x))
            x = map_each(x, layer.feed_forward)
        return model.output(model.decoder.norm(x))

    def attend(
        self, i: int, x: Float[Tensor, "b t d"], mask: Bool[Tensor, "b 1 t s"]
    ) -> Float[Tensor, "b t d"]:
        """Return what layer ``i`` makes of new positions ``x`` and all before them.

        ``mask`` says where each may look.
        """
        attention = self.model.decoder.layers[i].attention
        q, k, v = attention.project(x)  # new positions alone
        past_k, past_v = self.read_target[i]
        k, v = torch.cat([past_k, k], dim=2), torch.cat([past_v, v], dim=2)
        self.read_target[i] = k, v
        return attention.attend(q, k, v, mask)

    def look_up(self, i: int, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b t d"]:
        """Return what layer ``i`` finds in the source for new positions ``x``."""
        attention = self.model.decoder.layers[i].cross_attention
        q, _, _ = attention.project(x, x[:, :0])  # queries alone: no keys to map
        return attention.attend(q, *self.read_source[i], self.memory_mask)

    @require.shapes
    def keep(self, rows: Int[Tensor, "n"]) -> None:
        """Go on with these ``rows``, in this order; a row may be there several times.

        Row i of the next :meth:`read` goes on where row ``rows[i]`` stopped.
        """
        self.tokens = self.tokens[rows]
        self.read_target = [(k[rows], v[rows]) for k, v in self.read_target]
        sources = self.sources[rows]
        if not torch.equal(sources, self.sources):  # else they would stay as they are
            self.read_source = [(k[rows], v[rows]) for k, v in self.read_source]
            self.memory_mask, self.sources = self.memory_mask[rows], sources


@require.shapes
def cached_greedy_decode(
    model: Transformer,
    source: Int[Tensor, "b s"],
    *,
    start: int,
    end: int | None = None,
    max_new_tokens: int,
    reader: type = DecoderCache,
) -> Int[Tensor, "b t"]:
    """Write what ``greedy_decode`` writes, and read nothing twice.

    :func:`annotated.decoding.greedy_decode`, symbol for symbol.

    Arguments as :func:`~annotated.decoding.greedy_decode`.

    Args:
        reader: :class:`Rereader` reads all again at each step.

    Returns:
        Ids ``(b, t)`` in the dtype of ``source``, without ``start``; the model's pad
        after ``end``.
    """
    config = model.config
    require.count(
        0, config.target_vocab - 1, start=start, **({} if end is None else {"end": end})
    )
    require.count(most=config.max_len, max_new_tokens=max_new_tokens)
    with evaluating(model):
        past = reader(model, source)
        symbol, written = torch.full_like(source[:, :1], start), source[:, :0]
        ended = torch.zeros_like(symbol, dtype=torch.bool)  # (b, 1)
        for _ in range(max_new_tokens):
            symbol = past.read(symbol).argmax(dim=-1).to(source)
            symbol = symbol.masked_fill(ended, config.pad)
            written = torch.cat([written, symbol], dim=1)
            if end is not None:
                ended = ended | (symbol == end)
                if ended.all():
                    break
    return written


# ---- search: which of all sequences? ---------------------------------------------

PENALTIES: dict[str, Callable[[int, float], float]] = {
    # Wu et al. (2016), equation 14
    "gnmt": lambda length, alpha: ((5 + length) / 6) ** alpha,
    "plain": lambda length, alpha: length**alpha,
}
STOPS = ("first", "bound", "never")


class Hypothesis(NamedTuple):
    """A sequence that was found, and how good it is."""

    tokens: list[int]  #: ids, the end symbol included unless it was cut off
    log_probability: float  #: natural logarithm of its probability, given the source
    score: float  #: the same, divided by the length penalty


@require.shapes
def log_probabilities(
    model: Any,
    source: Int[Tensor, "b s"],
    output: Int[Tensor, "b t"],
    *,
    start: int,
    reader: type = Rereader,
) -> Float[Tensor, "b"]:
    """Return how likely a ``model`` finds a given ``output`` for each ``source``.

    If a reference is likelier than what search found, search has failed; if it is less
    likely, the model itself prefers what is wrong.

    Args:
        model: reads in evaluation mode, without gradients.
        source: ids, padded anywhere.
        output: ids without the start symbol, with the end symbol, padded behind it.
        start: the id that training began every target with.
        reader: as for :func:`beam_search`.

    Returns:
        Logarithms ``(b,)``, sums over the symbols of each output.
    """
    with evaluating(model):
        past = reader(model, source)
        before = torch.cat([torch.full_like(output[:, :1], start), output[:, :-1]], 1)
        logs = _log_softmax(past.read(before))
        each = logs.gather(-1, output[..., None].long())[..., 0]  # (b, t)
    return each.masked_fill(output == past.pad, 0.0).sum(dim=1)


@require.shapes
def exhaustive_search(
    model: Transformer,
    source: Int[Tensor, "1 s"],
    *,
    start: int,
    end: int,
    max_new_tokens: int,
    alpha: float = 0.0,
    penalty: str = "gnmt",
) -> list[Hypothesis]:
    """Return every sequence that there is, the best one first.

    For a toy alone: with v symbols and t to write there are about v^t.

    Arguments as :func:`beam_search`.

    Args:
        source: a single one.

    Raises:
        ValueError: if there would be more than a million.
    """
    require.choice(PENALTIES, penalty=penalty)
    pad, size = model.config.pad, model.config.target_vocab
    require.at_most(sequences=size**max_new_tokens, a_million=10**6)
    symbols = [symbol for symbol in range(size) if symbol != pad]
    unfinished, finished = [[]], []
    for length in range(1, max_new_tokens + 1):
        longer = [[*ids, symbol] for ids in unfinished for symbol in symbols]
        last = length == max_new_tokens
        finished += [ids for ids in longer if last or ids[-1] == end]
        unfinished = [ids for ids in longer if ids[-1] != end]
    outputs, lengths = pad_sequences(finished, pad)
    sources = source.expand(len(finished), -1)
    logs = log_probabilities(model, sources, outputs.to(source), start=start).tolist()
    divisors = [PENALTIES[penalty](n, alpha) for n in lengths.tolist()]
    hypotheses = [
        Hypothesis(ids, log, log / divisor)
        for ids, log, divisor in zip(finished, logs, divisors, strict=True)
    ]
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)


@require.shapes
def beam_search(
    model: Any,
    source: Int[Tensor, "b s"],
    *,
    start: int,
    end: int,
    max_new_tokens: int,
    beam: int = 4,
    alpha: float = 0.6,
    penalty: str = "gnmt",
    stop: str = "bound",
    n_best: int = 1,
    reader: type = DecoderCache,
) -> list[list[Hypothesis]]:
    """Return the best sequences that a search with several hypotheses finds.

    At each step every living hypothesis is continued by every symbol but the padding.
    Of all continuations of a source the ``beam`` likeliest count: those with ``end``
    are finished, the likeliest others live on. The score of a finished one is its
    log-probability divided by its own length penalty: ``((5 + n) / 6)^α`` ("gnmt", Wu
    et al., 2016, equation 14) or ``n^α`` ("plain"), where n counts what was written,
    ``end`` included, ``start`` not. What has reached ``max_new_tokens`` is finished
    too, as it stands.

    Args:
        model: writes in evaluation mode, without gradients.
        source: ids, padded anywhere; each is searched as if it were alone.
        start: the id that training began every target with.
        end: the id that ends a sequence.
        max_new_tokens: most symbols to write, ``end`` included, ``start`` not.
        beam: number of hypotheses; 1 with ``stop="first"`` is greedy decoding.
        alpha: α; 0 compares log-probabilities alone, which favours the short.
        penalty: "gnmt" or "plain".
        stop: when to stop with a source. "first": as soon as ``beam`` hypotheses are
            finished. "bound": as soon as no living one can become better than the
            ``n_best`` that are finished: a log-probability only falls, and the penalty
            of a length is known. "never": at ``max_new_tokens``.
        n_best: number of hypotheses to return, at most ``beam``.
        reader: what reads source and target, made from ``model`` and ``source``;
            :class:`Rereader` works without a cache.

    Returns:
        For each source its best hypotheses, at most ``n_best``, the best one first.

    Raises:
        ValueError: if an argument is out of range, or a source is all padding.
    """
    require.count(beam=beam, max_new_tokens=max_new_tokens)
    require.count(most=beam, n_best=n_best)
    require.choice(PENALTIES, penalty=penalty)
    require.choice(STOPS, stop=stop)
    divisor = partial(PENALTIES[penalty], alpha=alpha)
    with evaluating(model):
        past = reader(model, source)
        require.count(0, past.vocab_size - 1, start=start, end=end)
        finished: list[list[Hypothesis]] = [[] for _ in source]
        number = torch.arange(len(source), device=source.device)[:, None]  # (b, 1)
        past.keep(number.expand(-1, beam).flatten())  # row k·i belongs to source i
        written = torch.full_like(number, start).expand(-1, beam)[..., None]
        totals = torch.full(written.shape[:2], -torch.inf, device=source.device)
        totals[:, 0] = 0.0  # at first all are alike, so one speaks for them
        for length in range(1, max_new_tokens + 1):
            logits = past.read(written[..., -1].reshape(-1, 1))[:, -1]
            logs = _log_softmax(logits).unflatten(0, (-1, beam))  # (b, k, v)
            logs[..., past.pad] = -torch.inf
            longer, best, parents = _continue(written, totals, logs)
            ended = longer[..., -1] == end
            complete = ended | (length == max_new_tokens)
            complete = complete[:, :beam] & (best[:, :beam] > -torch.inf)
            for i, j in complete.nonzero().tolist():
                log, ids = best[i, j].item(), longer[i, j, 1:].tolist()
                finished[i].append(Hypothesis(ids, log, log / divisor(length)))
            living = ended.int().argsort(dim=1, stable=True)[:, :beam]
            past.keep((number * beam + parents.gather(1, living)).flatten())
            written, totals = longer[number, living], best.gather(1, living)
            for i, log in enumerate(totals[:, 0].tolist()):
                finished[i].sort(key=lambda hypothesis: -hypothesis.score)
                hopes = [log / divisor(n) for n in (length + 1, max_new_tokens)]
                if _may_stop(finished[i], stop, beam, n_best, max(hopes)):
                    totals[i] = -torch.inf
            if not (totals > -torch.inf).any():
                break
    return [several[:n_best] for several in finished]


def _continue(
    written: Int[Tensor, "b k t"],
    totals: Float[Tensor, "b k"],
    logs: Float[Tensor, "b k v"],
) -> tuple[Int[Tensor, "b _ _"], Float[Tensor, "b _"], Int[Tensor, "b _"]]:
    """Return the 2k likeliest continuations of each source, the likeliest first.

    Twice as many as go on: every hypothesis may have ended once. With them come their
    log-probabilities, and which hypothesis each of them continues.
    """
    beam, size = logs.shape[1:]
    best, places = (totals[..., None] + logs).flatten(1).topk(2 * beam)
    parents, symbols = places // size, places % size
    number = torch.arange(len(written), device=written.device)[:, None]
    longer = torch.cat([written[number, parents], symbols[..., None]], dim=-1)
    return longer, best, parents


def _may_stop(
    finished: list[Hypothesis], stop: str, beam: int, n_best: int, hope: float
) -> bool:
    """Return whether a source is done; ``hope`` is what a living one may still score.

    The best of ``finished`` come first.
    """
    if stop == "first":
        return len(finished) >= beam
    enough = len(finished) >= n_best and stop == "bound"
    return enough and finished[n_best - 1].score >= hope


def _log_softmax(logits: Float[Tensor, "*batch v"]) -> Float[Tensor, "*batch v"]:
    """Return logarithms in single precision at least, for many of them are added."""
    wide = torch.promote_types(logits.dtype, torch.float32)
    return logits.log_softmax(dim=-1, dtype=wide)
