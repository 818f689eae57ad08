"""Sound models, which no probe may alarm: the book's, PyTorch's and of `transformers`.

Each is a function that makes it: what to call, tokens, and what the probes are told.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from annotated.bert import Bert, BertConfig
from annotated.chapters.ch20.faults import Case, V, texts
from annotated.classifier import ClassifierConfig, TransformerClassifier
from annotated.decoding import KeyValueCache
from annotated.gpt import GPT, GPTConfig, next_token_loss
from annotated.masks import document_mask
from annotated.recurrent_attention import AdditiveAttention
from annotated.search import DecoderCache
from annotated.seq2seq import AttentionDecoder, RNNEncoder, Seq2Seq
from annotated.sparse import (
    SparseSelfAttention,
    dilated_pattern,
    fixed_patterns,
    local_pattern,
    strided_patterns,
)
from annotated.transformer import Transformer, TransformerConfig
from annotated.transformer_xl import TransformerXL, TransformerXLConfig
from annotated.variants import QueryKeyNormAttention, SlidingWindowAttention


def pair() -> tuple[Tensor, Tensor]:
    """Return sources (2, 20) and targets (2, 24)."""
    return texts(2, 20, 1), texts(2, 24, 2)


def cached(model: GPT) -> dict[str, Callable]:
    """Return what reads with a :class:`KeyValueCache` of a model."""

    def prefill(tokens: Tensor) -> tuple[Tensor, KeyValueCache]:
        cache = KeyValueCache(model)
        return cache.read(tokens), cache

    return {"prefill": prefill, "step": lambda x, cache: (cache.read(x), cache)}


def gpt(attention: Callable | None = None, cache: bool = True, **options: Any) -> Case:
    torch.manual_seed(0)
    config = GPTConfig(V, 32, 4, 2, 64, max_len=256, **options)
    model = GPT(config, attention)
    told = {"pad": 0, "loss": next_token_loss, "train": True}
    if cache:
        told |= cached(model)
    return model, texts(), told


def scores() -> Case:
    """Return what scores each token but the first by a GPT of four ids."""
    torch.manual_seed(0)
    model = GPT(GPTConfig(4, 16, 2, 2, 32, max_len=16))

    def f(tokens: Tensor) -> Tensor:
        logs = model(tokens).log_softmax(-1)[:, :-1]
        return logs.gather(-1, tokens[:, 1:, None])[..., 0]

    return f, texts(2, 8) % 4, {"vocabulary": 4}


def packed() -> Case:
    model, tokens, _ = gpt()

    def read(x: Tensor, documents: Tensor) -> Tensor:
        first = documents[:, 1:] != documents[:, :-1]
        start = torch.cat([first.new_zeros(len(x), 1), first], 1)
        place = torch.arange(x.shape[1]).expand(x.shape)
        begin = torch.where(start, place, 0).cummax(1).values
        return model(x, document_mask(documents), place - begin)

    return model, tokens, {"segments": read}


def causal(model: nn.Module, **told: Any) -> Case:
    return model, texts(), told


def sparse(*patterns: Any) -> Case:
    heads = 4 // len(patterns)
    pattern = [one for one in patterns for _ in range(heads)]
    attention = partial(SparseSelfAttention, 32, 4, pattern=pattern, block=16)
    model, tokens, told = gpt(attention, cache=False)
    del told["pad"]  # fixed patterns count from the first column
    return model, tokens, told


def transformer(norm: str, **options: Any) -> Case:
    torch.manual_seed(0)
    model = Transformer(
        TransformerConfig(V, V, 32, 4, 2, 64, 0.1, norm, max_len=256, **options)
    )

    def prefill(source: Tensor, target: Tensor) -> tuple[Tensor, DecoderCache]:
        cache = DecoderCache(model, source)
        return cache.read(target), cache

    def loss(f: Callable, batch: tuple[Tensor, Tensor]) -> Tensor:
        logits = f(*batch)[:, :-1].flatten(0, 1)
        return nn.functional.cross_entropy(
            logits, batch[1][:, 1:].flatten(), ignore_index=0
        )

    def step(tokens: Tensor, cache: DecoderCache) -> tuple[Tensor, DecoderCache]:
        return cache.read(tokens), cache

    told = {"prefill": prefill, "step": step, "loss": loss, "pad": 0, "train": True}
    return model, pair(), told | {"kind": "translation"}


def seq2seq(attention: bool) -> Case:
    torch.manual_seed(0)
    encoder, look = RNNEncoder(V, 16, 24), AdditiveAttention(24, 48, 16)
    decoder = AttentionDecoder(V, 16, 24, 48, look if attention else None)
    model = Seq2Seq(encoder, decoder)

    def f(source: Tensor, target: Tensor) -> Tensor:
        return model(source, (source != 0).sum(1), target)

    return f, pair(), {"kind": "translation", "pad": 0}


def bert(**options: Any) -> Case:
    torch.manual_seed(0)
    model = Bert(BertConfig(V, 32, 4, 2, 64, max_len=256, **options))

    def guess(tokens: Tensor) -> Tensor:
        return model.guess_tokens(model(tokens))

    return guess, texts(), {"kind": "encoder", "pad": 0}


def classifier(pooling: str, positions: bool = True) -> Case:
    torch.manual_seed(0)
    config = ClassifierConfig(V, 5, 32, 4, 2, 64, pooling=pooling, positions=positions)
    told = {"kind": "encoder", "pad": 0} | ({} if positions else {"positions": False})
    return TransformerClassifier(config), texts(), told


class Recurrent(nn.Module):
    """A GRU or LSTM that predicts the next token."""

    def __init__(self, kind: type[nn.RNNBase]):
        super().__init__()
        self.embedding = nn.Embedding(V, 24)
        self.rnn = kind(24, 32, batch_first=True)
        self.output = nn.Linear(32, V)

    def forward(self, tokens: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        states, state = self.rnn(self.embedding(tokens), state)
        return self.output(states), state


def recurrent(kind: type[nn.RNNBase]) -> Case:
    torch.manual_seed(0)
    model = Recurrent(kind)

    def take(state: Any, rows: Tensor) -> Any:
        if isinstance(state, tuple):
            return tuple(x[:, rows] for x in state)
        return state[:, rows]

    return model, texts(), {"step": model, "reorder": take}


class Convolutions(nn.Module):
    """Causal convolutions, padded on the left."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(V, 32)
        self.layers = nn.ModuleList(
            nn.Conv1d(32, 32, 3, dilation=2**i) for i in range(3)
        )
        self.output = nn.Linear(32, V)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens).mT
        for i, layer in enumerate(self.layers):
            x = x + layer(nn.functional.pad(x, (2 * 2**i, 0))).relu()
        return self.output(x.mT)


class PyTorchDecoder(nn.Module):
    """``nn.TransformerEncoder`` under a causal mask."""

    def __init__(self, norm_first: bool):
        super().__init__()
        self.embedding, self.places = nn.Embedding(V, 32), nn.Embedding(256, 32)
        layer = nn.TransformerEncoderLayer(
            32, 4, 64, 0.1, batch_first=True, norm_first=norm_first
        )
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.output = nn.Linear(32, V)

    def forward(self, tokens: Tensor) -> Tensor:
        t = tokens.shape[1]
        x = self.embedding(tokens) + self.places(torch.arange(t, device=tokens.device))
        mask = nn.Transformer.generate_square_subsequent_mask(t, tokens.device, x.dtype)
        return self.output(self.blocks(x, mask, is_causal=True))


class PyTorchTransformer(nn.Module):
    """``nn.Transformer`` with embeddings and masks."""

    def __init__(self, norm_first: bool):
        super().__init__()
        self.embedding, self.places = nn.Embedding(V, 32), nn.Embedding(256, 32)
        self.transformer = nn.Transformer(
            32, 4, 2, 2, 64, 0.1, batch_first=True, norm_first=norm_first
        )
        self.output = nn.Linear(32, V)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        pads, t = source == 0, target.shape[1]
        x, y = (
            self.embedding(z) + self.places(torch.arange(z.shape[1]).to(z.device))
            for z in (source, target)
        )
        mask = torch.ones(t, t, dtype=torch.bool, device=target.device).triu(1)
        states = self.transformer(
            x, y, tgt_mask=mask, src_key_padding_mask=pads, memory_key_padding_mask=pads
        )
        return self.output(states)


def of_pytorch(kind: type[nn.Module], norm_first: bool) -> Case:
    torch.manual_seed(0)
    model = kind(norm_first)
    if kind is PyTorchTransformer:
        return model, pair(), {"kind": "translation", "pad": 0}
    return causal(model, train=True)


def xl(**options: Any) -> Case:
    torch.manual_seed(0)
    return causal(TransformerXL(TransformerXLConfig(V, 32, 4, 2, 64, 0.1, **options)))


def ours() -> dict[str, Callable[[], Case]]:
    """Return sound models of this book and of PyTorch: a function that makes each."""
    heads = (32, 4)
    window = partial(SlidingWindowAttention, *heads, window=9, causal=True)
    normed = partial(QueryKeyNormAttention, *heads, causal=True)
    made: dict[str, Callable[[], Case]] = {
        "GPT": gpt,
        "GPT, rotary": partial(gpt, positions="rotary"),
        "GPT, shared keys": partial(gpt, positions="rotary", kv_heads=2),
        "GPT, RMSNorm, SwiGLU": partial(gpt, norm_kind="rms", activation="swiglu"),
        "GPT, untied, dropout": partial(gpt, tied=False, dropout=0.1),
        "GPT, sliding window": partial(gpt, window),
        "GPT, QK-norm": partial(gpt, normed),
        "GPT, packed documents": packed,
        "scores of tokens": scores,
        "sparse, local": partial(sparse, local_pattern(9)),
        "sparse, dilated": partial(sparse, dilated_pattern(5, 3)),
        "sparse, strided": partial(sparse, *strided_patterns(8)),
        "sparse, fixed": partial(sparse, *fixed_patterns(8)),
        "Transformer-XL": xl,
        "Transformer-XL, pre-norm": partial(xl, norm="pre", mem_len=16, clamp_len=20),
        "Transformer, post-norm": partial(transformer, "post"),
        "Transformer, pre-norm": partial(transformer, "pre", tied=True),
        "seq2seq": partial(seq2seq, False),
        "seq2seq, attention": partial(seq2seq, True),
        "BERT": bert,
        "ALBERT": partial(bert, embedding_width=16, shared=True),
        "classifier, mean": partial(classifier, "mean"),
        "classifier, attention": partial(classifier, "attention"),
        "classifier of sets": partial(classifier, "mean", positions=False),
        "GRU": partial(recurrent, nn.GRU),
        "LSTM": partial(recurrent, nn.LSTM),
        "causal convolutions": lambda: causal(Convolutions()),
    }
    for order, first in (("post-norm", False), ("pre-norm", True)):
        made[f"nn.TransformerEncoder, {order}"] = partial(
            of_pytorch, PyTorchDecoder, first
        )
        made[f"nn.Transformer, {order}"] = partial(
            of_pytorch, PyTorchTransformer, first
        )
    return made


# ---- of `transformers`, where it is installed ----------------------------------------

SIZES = {
    "vocab_size": V,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
#: what the probes are told | name | class of the model | more of its configuration
ROWS = """
causal | GPT-2 | GPT2LMHeadModel | n_inner=64
causal | Llama | LlamaForCausalLM | num_key_value_heads=2
causal | Mistral | MistralForCausalLM | num_key_value_heads=2, sliding_window=16
causal | Qwen3 | Qwen3ForCausalLM | num_key_value_heads=2, head_dim=8
causal | Gemma 3 | Gemma3ForCausalLM | num_key_value_heads=2, head_dim=8,
    sliding_window=16, query_pre_attn_scalar=8
causal | Phi | PhiForCausalLM |
causal | GPT-NeoX | GPTNeoXForCausalLM |
causal | OPT | OPTForCausalLM | ffn_dim=64, word_embed_proj_dim=32
causal | Falcon | FalconForCausalLM |
causal | Mamba | MambaForCausalLM | state_size=8
encoder | BERT | BertForMaskedLM |
encoder | RoBERTa | RobertaForMaskedLM |
encoder | DistilBERT | DistilBertForMaskedLM | dim=32, n_layers=2, n_heads=4,
    hidden_dim=64
encoder | ALBERT, of transformers | AlbertForMaskedLM | embedding_size=16
encoder | ModernBERT | ModernBertForMaskedLM | local_attention=16, cls_token_id=1,
    sep_token_id=2
encoder | DeBERTa | DebertaV2ForMaskedLM | relative_attention=True,
    pos_att_type=["p2c", "c2p"]
encoder | XLNet | XLNetLMHeadModel | d_model=32, n_layer=2, n_head=4, d_inner=64
translation | T5 | T5ForConditionalGeneration | d_model=32, d_kv=8, d_ff=64,
    num_layers=2, num_heads=4
translation | BART | BartForConditionalGeneration |
translation | Marian | MarianMTModel |
"""
#: name -> kind, class of the model, more of its configuration
PEERS = {
    name: (kind, model, eval(f"dict({more})"))
    for row in ROWS.strip().replace("\n    ", " ").split("\n")
    for kind, name, model, more in [[part.strip() for part in row.split("|")]]
}
BOTH = {  # of encoder–decoders
    f"{part}_{name}": size
    for part in ("encoder", "decoder")
    for name, size in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 64))
}


def peer(name: str) -> Case:
    """Return a model of `transformers` with random weights, one of ``PEERS``."""
    import transformers

    kind, model, more = PEERS[name]
    make = getattr(transformers, model)
    sizes = SIZES | more
    if name == "XLNet":
        del sizes["max_position_embeddings"]  # it has no limit
    if name in ("BART", "Marian"):
        sizes |= BOTH | {"d_model": 32, "decoder_start_token_id": 1}
    if name == "T5":
        sizes |= {"decoder_start_token_id": 0}
    torch.manual_seed(0)
    model = make(make.config_class(**sizes)).eval()
    tokens = pair() if kind == "translation" else texts()
    return model, tokens, {"pad": 0, "kind": kind}
