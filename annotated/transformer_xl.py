"""Transformer-XL: segments that remember, and scores that know distances alone.

Letters: b batch, t length of a segment, s memory and segment together, h heads, d model
width, k head width, v vocabulary (``book/notation.md``). Memories of all layers are one
tensor: (layers, b, length of the memory, d).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from annotated import require
from annotated.adaptive import AdaptiveEmbedding, AdaptiveSoftmax
from annotated.attention import MultiHeadAttention
from annotated.positions import sinusoidal_encoding
from annotated.transformer import BlockConfig, EncoderLayer, last_norm


@dataclass(frozen=True)
class TransformerXLConfig(BlockConfig):
    """Everything that a Transformer-XL is made from (Dai et al., 2019).

    Raises:
        ValueError: if a number is out of range, ``heads`` does not divide ``d_model``,
            or ``same_length`` meets no memory.
    """

    vocab_size: int  #: number of symbols
    d_model: int = 512  #: width of the residual stream, even
    heads: int = 8  #: heads of each attention; they must divide ``d_model``
    layers: int = 6  #: number of layers
    d_ff: int = 2048  #: inner width of the feed-forward networks
    dropout: float = 0.0  #: probability of dropout, as in the Transformer
    #: "post" normalises each sum, as the paper has it; "pre" what a sublayer reads,
    #: memory included, and the end of the stack
    norm: str = "post"
    mem_len: int = 0  #: most positions that are remembered from earlier segments
    ext_len: int = 0  #: last positions of a segment that the next one reads again
    same_length: bool = False  #: each query sees ``mem_len`` keys, itself included
    clamp_len: int | None = None  #: distances beyond this one count as this one
    cutoffs: tuple[int, ...] = ()  #: of the adaptive embedding and softmax
    div_value: int = 4  #: how many times narrower each cluster is than the last
    tied: bool = True  #: whether embedding and softmax share their tables

    def __post_init__(self):
        super().__post_init__()
        sizes = "vocab_size d_model heads layers d_ff".split()
        require.count(**{name: getattr(self, name) for name in sizes})
        require.count(0, mem_len=self.mem_len, ext_len=self.ext_len)
        require.even(d_model=self.d_model)
        require.divides(heads=self.heads, d_model=self.d_model)
        require.probability(dropout=self.dropout)
        require.choice(("pre", "post"), norm=self.norm)
        require.count(0, clamp_len=0 if self.clamp_len is None else self.clamp_len)
        if self.same_length and not self.mem_len:
            raise ValueError("same_length needs mem_len ≥ 1, got mem_len=0")


@require.shapes
def relative_shift(x: Float[Tensor, "*batch t s"]) -> Float[Tensor, "*batch t s"]:
    """Move each row left by the number of rows below it: distances line up with keys.

    Dai et al. (2019), appendix B. Column c of ``x`` is the score of distance s − 1 − c;
    column j of the result is that of key j. A zero is put before each row, the rows
    are read as one line, its first t numbers are skipped, and the rest is cut into
    rows of s again: each cut falls one number earlier in its row than the cut before.

    Args:
        x: a score for each query and distance, ``(…, t, s)``, t at most s.

    Returns:
        ``(…, t, s)``, exact for all keys but those after their query, which get zeros
        and numbers of the next row, for a causal mask to hide.
    """
    t, s = x.shape[-2:]
    require.at_most(queries=t, keys=s)
    line = F.pad(x, (1, 0)).flatten(-2)  # t rows of s + 1, one after another
    return line[..., t:].unflatten(-1, (t, s))


class RelativeMultiHeadAttention(MultiHeadAttention):
    """Causal attention whose scores know the distance of a key, not its position.

    Dai et al. (2019), section 3.3: ``q·k + q·W R + u·k + v·W R``, terms (a) to (d). W
    is ``position_map``, u ``content_bias``, v ``position_bias``, one of each a layer.
    ``d_model``, ``heads`` and ``dropout`` are as in its parent; no map has a bias.
    Queries are the last of the keys' positions.
    """

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout, bias=False, causal=True)
        self.position_map = nn.Linear(d_model, d_model, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(heads, 1, d_model // heads))
        self.position_bias = nn.Parameter(torch.zeros(heads, 1, d_model // heads))

    @require.shapes(d="d_model")
    def score_bias(
        self,
        q: Float[Tensor, "b h t k"],
        k: Float[Tensor, "b h s k"],
        positions: Float[Tensor, "s d"] | None = None,
    ) -> Float[Tensor, "b h t s"]:
        """Return terms (b), (c) and (d), scaled as (a) is, which the parent adds.

        Args:
            q: queries.
            k: keys, of memory and segment.
            positions: the vectors R of the distances s − 1 to 0; sinusoids if none.
        """
        if positions is None:
            positions = sinusoidal_encoding(k.shape[2], self.d_model).flip(0).to(q)
        r = self.position_map(positions).unflatten(-1, (self.heads, -1))  # (s, h, k)
        scale = q.shape[-1] ** -0.5
        by_distance = ((q + self.position_bias) * scale) @ r.permute(1, 2, 0)
        content = (self.content_bias * scale) @ k.mT  # (b, h, 1, s): (c) of all queries
        return relative_shift(by_distance) + content  # (b) + (d), and (c), without (a)


class TransformerXLLayer(EncoderLayer):
    """Relative attention to memory and segment, then a feed-forward network.

    Dai et al. (2019), section 3.3. ``config`` holds widths, heads and the rest.
    """

    def __init__(self, config: TransformerXLConfig):
        super().__init__(config)
        parts = config.d_model, config.heads, config.dropout
        self.attention = RelativeMultiHeadAttention(*parts)

    def forward(
        self,
        x: Float[Tensor, "b t d"],
        memory: Float[Tensor, "b _ d"],
        mask: Bool[Tensor, "1 1 t s"] | None,
        positions: Float[Tensor, "s d"],
    ) -> Float[Tensor, "b t d"]:
        """Return ``x`` after a look at ``memory`` by ``mask`` and ``positions``."""
        attend, map_each = self.residuals
        if attend.norm_order == "pre":
            memory = attend.norm(memory)  # as queries are: both meet in one product

        def look(x: Tensor) -> Tensor:
            both = torch.cat([memory, x], dim=1)
            return self.attention(x, both, mask=mask, positions=positions)

        return map_each(attend(x, look), self.feed_forward)


@require.shapes
def update_memory(
    memory: Float[Tensor, "*batch _ d"],
    states: Float[Tensor, "*batch _ d"],
    mem_len: int,
    ext_len: int = 0,
) -> Float[Tensor, "*batch _ d"]:
    """Return the last ``mem_len`` states, without those that will be read again.

    Dai et al. (2019), section 3.2. No gradient flows into what is remembered.

    Args:
        memory: what was remembered, ``(…, m, d)``.
        states: those of the segment that was just read, ``(…, t, d)``.
        mem_len: most states to remember.
        ext_len: last states of the segment to leave out.
    """
    require.count(0, mem_len=mem_len, ext_len=ext_len)
    end = memory.shape[-2] + max(0, states.shape[-2] - ext_len)
    joined = torch.cat([memory, states], dim=-2)
    return joined[..., max(0, end - mem_len) : end, :].detach()


class TransformerXL(nn.Module):
    """A language model that reads a text in segments and remembers those before.

    Dai et al. (2019). Each layer attends to its own input of earlier segments too.
    Lengths may change after training: give it a ``config`` with others.
    """

    def __init__(self, config: TransformerXLConfig):
        super().__init__()
        c = self.config = config
        sizes = c.vocab_size, c.d_model, c.cutoffs, c.div_value
        self.embedding = AdaptiveEmbedding(*sizes)
        self.layers = nn.ModuleList(TransformerXLLayer(c) for _ in range(c.layers))
        self.norm = last_norm(c)
        self.output = AdaptiveSoftmax(*sizes)
        self.dropout = nn.Dropout(c.dropout)
        self.register_buffer("table", torch.empty(0, c.d_model), persistent=False)
        for module in self.layers.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
        if c.tied:
            self.output.tables = self.embedding.tables

    @require.shapes(layers="config.layers", d="config.d_model")
    def forward(
        self,
        tokens: Int[Tensor, "b t"],
        memories: Float[Tensor, "layers b _ d"] | None = None,
    ) -> tuple[Float[Tensor, "b t v"], Float[Tensor, "layers b _ d"]]:
        """Return log-probabilities of the next symbols, and new memories.

        Args:
            tokens: ids of a segment, ``(b, t)``.
            memories: what the segment before gave, ``(layers, b, m, d)``; none at the
                beginning of a text.

        Raises:
            ValueError: if an id is outside the vocabulary (looked at on the CPU alone),
                or ``memories`` don't fit.
        """
        x, memories = self._read(tokens, memories)
        return self.output(x), memories

    @require.shapes(layers="config.layers", d="config.d_model")
    def loss(
        self,
        tokens: Int[Tensor, "b t"],
        target: Int[Tensor, "b _"],
        memories: Float[Tensor, "layers b _ d"] | None = None,
    ) -> tuple[Float[Tensor, "b _"], Float[Tensor, "layers b _ d"]]:
        """Return the loss of each target, in nats, and new memories.

        ``target`` holds what follows the last ``tokens``, or all; see :meth:`forward`
        for ``memories``.
        """
        x, memories = self._read(tokens, memories)
        require.at_most(targets=target.shape[1], tokens=tokens.shape[1])
        return self.output.loss(x[:, x.shape[1] - target.shape[1] :], target), memories

    def _read(
        self,
        tokens: Int[Tensor, "b t"],
        memories: Float[Tensor, "_ b _ d"] | None = None,
    ) -> tuple[Float[Tensor, "b t d"], Float[Tensor, "_ b _ d"]]:
        c = self.config
        if memories is None:
            memories = self.table.new_zeros(c.layers, len(tokens), 0, c.d_model)
        m, t = memories.shape[2], tokens.shape[1]
        require.at_most(memories=m, mem_len=c.mem_len)
        key, mask = torch.arange(m + t, device=tokens.device), None
        if c.same_length:
            mask = (key[m:, None] - key < c.mem_len)[None, None]  # (1, 1, t, s)
        if m + t > len(self.table):  # computed once, and again for more keys
            self.table = sinusoidal_encoding(m + t, c.d_model).to(self.table)
        furthest = m + t if c.clamp_len is None else c.clamp_len
        positions = self.dropout(self.table[key.flip(0).clamp(max=furthest)])
        states = [self.dropout(self.embedding(tokens))]
        for layer, memory in zip(self.layers, memories, strict=True):
            states.append(layer(states[-1], memory, mask, positions))
        *states, x = states
        return self.dropout(self.norm(x)), self.remember(memories, torch.stack(states))

    def remember(
        self, memories: Float[Tensor, "*batch _ d"], states: Float[Tensor, "*batch _ d"]
    ) -> Float[Tensor, "*batch _ d"]:
        """Return new memories, from old ``memories`` and a segment's ``states``."""
        c = self.config
        return update_memory(memories, states, c.mem_len, c.ext_len)
