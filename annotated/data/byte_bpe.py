"""Byte-pair encoding of bytes: GPT-2's tokenizer, which knows no unknown character.

Radford et al. (2019), section 2.2. A text is cut into pieces that no token crosses,
each piece becomes the bytes of its UTF-8, and these are joined as in
:mod:`annotated.data.bpe`. There are 256 bytes, so whatever can be written has tokens. A
token's rank says when it was learned; it is the token's id as well. The 50,256 ranks
of GPT-2 come with the package (``annotated/vendor/gpt2_bpe``, with its own licence).
"""

import base64
import gzip
import re
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import pairwise

from torch import Tensor

from annotated import require
from annotated.data.bpe import merge
from annotated.data.vendored import vendored_file

GPT2 = {
    "title": "The ranks of GPT-2's byte-pair encoding, gpt2.tiktoken",
    "version": "openai-whisper 20250625",
    "source": "https://github.com/openai/whisper",
    "licence": "MIT; © 2022 OpenAI",
    "sha256": "f4b9b001e6a94f0303124edf6643adf42e2ba74428cf379978818f50452b7ac2",
}
END_OF_TEXT = "<|endoftext|>"  #: stands between the documents that GPT-2 read

# ---- pieces of a text ----------------------------------------------------------

#: what GPT-2 cuts by, with ASCII in place of \p{L} and \p{N}, which Python's ``re``
#: doesn't have (see :func:`split_text`)
PIECE = re.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d"  # endings of English, in small letters
    r"| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+"  # a word, a number, signs
    r"|\s+(?!\S)|\s+",  # spaces; the last one goes with the word behind it
    re.ASCII,
)


def split_text(text: str) -> list[str]:
    """Return the pieces of a ``text``, which no token crosses; none is lost.

    Words, numbers and runs of signs, each with the space before it, and other spaces.
    The pattern of the paper's code sees letters, digits and spaces of all scripts; here
    one of ASCII stands in for each of the others while the text is cut.
    """
    stand_ins = "".join(map(_stand_in, text))  # as long as the text
    return [text[slice(*found.span())] for found in PIECE.finditer(stand_ins)]


def _stand_in(c: str) -> str:
    if c.isascii():
        return c
    if c.isalnum():
        return "a" if c.isalpha() else "0"
    return "\t" if c.isspace() else "!"


# ---- bytes and letters ---------------------------------------------------------


@cache
def byte_letters() -> dict[int, str]:
    """Return the letter by which GPT-2's files write each byte, in the order of ranks.

    A byte that is a visible character of Latin-1 is that character. The others, a space
    among them, take the letters from "Ā" on: a space is "Ġ", a new line "Ċ".
    """
    seen = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1)]
    seen += range(ord("®"), ord("ÿ") + 1)
    unseen = [byte for byte in range(256) if byte not in seen]
    letters = {byte: chr(byte) for byte in seen}
    return letters | {byte: chr(256 + i) for i, byte in enumerate(unseen)}


def to_letters(token: bytes) -> str:
    """Return a ``token`` as GPT-2's ``vocab.json`` has it, such as "Ġthe"."""
    return "".join(byte_letters()[byte] for byte in token)


# ---- tokens --------------------------------------------------------------------


def join_bytes(piece: bytes, ranks: Mapping[bytes, int]) -> list[bytes]:
    """Return the tokens of a ``piece``: of all neighbours, the oldest join comes first.

    Takes time with the square of the piece's length, which for words is little.

    Args:
        piece: the bytes of one piece of a text.
        ranks: for each token when it was learned.
    """
    tokens = [bytes([byte]) for byte in piece]
    while len(tokens) > 1:
        pair = min(
            pairwise(tokens), key=lambda two: ranks.get(b"".join(two), len(ranks))
        )
        if b"".join(pair) not in ranks:
            break
        tokens = merge(tokens, pair)
    return tokens


class ByteTokenizer:
    """Text to ids and back, by the ranks of bytes that were joined.

    Args:
        ranks: for each token of bytes its rank, which is its id; as
            :func:`parse_ranks` gives them.
        special: tokens that stand for no text, such as ``"<|endoftext|>"``, with the
            ids after those of ``ranks``.

    Raises:
        ValueError: if the ids are not 0, 1, 2, …, each once.
    """

    def __init__(
        self, ranks: Mapping[bytes, int], special: Mapping[str, int] | None = None
    ):
        self.ranks, self.special = dict(ranks), dict(special or {})
        self.tokens = {i: token for token, i in self.ranks.items()}
        self.tokens |= {i: name.encode() for name, i in self.special.items()}
        self.vocab_size = len(self.ranks) + len(self.special)
        require.that(
            self.tokens.keys() == set(range(self.vocab_size)),
            f"ids of ranks and special must be 0 to {self.vocab_size - 1}, each once",
        )

    def encode(self, text: str, allow_special: bool = False) -> list[int]:
        """Return the ids of a ``text``.

        Args:
            text: any; no character is unknown.
            allow_special: whether ``"<|endoftext|>"`` in the text is the special token.
                By default it is text like any other: whoever may write to a model must
                not be able to end its document by that.

        Raises:
            ValueError: if the text has half a surrogate pair, which is no character.
        """
        if half := re.search("[\ud800-\udfff]", text):
            raise ValueError(
                "text must hold whole characters, got half of a surrogate pair, "
                f"{half[0]!r}, at {half.start()}"
            )
        parts = [text]
        if allow_special and self.special:
            longest_first = sorted(self.special, key=len, reverse=True)
            parts = re.split(f"({'|'.join(map(re.escape, longest_first))})", text)
        ids = []
        for i, part in enumerate(parts):
            ids += [self.special[part]] if i % 2 else self._encode_text(part)
        return ids

    def _encode_text(self, text: str) -> list[int]:
        pieces = split_text(text)
        tokens = {p: join_bytes(p.encode(), self.ranks) for p in dict.fromkeys(pieces)}
        return [self.ranks[token] for piece in pieces for token in tokens[piece]]

    def decode_bytes(self, ids: Iterable[int]) -> list[bytes]:
        """Return the bytes of each of the ``ids``; a special token's are its name."""
        ids = ids.tolist() if isinstance(ids, Tensor) else list(ids)
        last = self.vocab_size - 1
        require.count(0, last, **{f"ids[{i}]": n for i, n in enumerate(ids)})
        return [self.tokens[n] for n in ids]

    def decode(self, ids: Iterable[int], errors: str = "replace") -> str:
        """Return the text that ``ids`` stand for.

        Args:
            ids: numbers from 0 to ``vocab_size`` − 1, or a tensor of them, ``(t,)``.
            errors: what becomes of bytes that are no UTF-8, such as those of half an
                emoji: "replace" writes "�" for them, "strict" raises, and so on, as
                ``bytes.decode`` does.

        Raises:
            UnicodeDecodeError: if ``errors`` is "strict" and bytes are no UTF-8.
        """
        return b"".join(self.decode_bytes(ids)).decode("utf-8", errors)


# ---- files ---------------------------------------------------------------------


def parse_ranks(text: str) -> dict[bytes, int]:
    """Return the ranks that the ``text`` of a ``.tiktoken`` file holds.

    A line is a token in base64, a space, and its rank: ``IHRoZQ== 262`` is " the".

    Raises:
        ValueError: if a line is something else, a token or a rank is there twice, ranks
            are not 0, 1, 2, …, or one of the 256 bytes is missing.
    """
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        try:
            coded, rank = line.split(" ")
            token = base64.b64decode(coded, validate=True)
            require.that(token not in ranks, "the token is there twice")
            ranks[token] = int(rank)
        except ValueError as error:
            raise ValueError(
                f"text: line {number} must be a token in base64, a space, and its "
                f"rank, got {line!r}: {error}"
            ) from error
    missing = set(range(len(ranks))) - set(ranks.values())
    require.that(
        not missing,
        f"text must have the ranks 0 to {len(ranks) - 1}, each once; there is no "
        f"{min(missing, default=None)}",
    )
    missing = [byte for byte in range(256) if bytes([byte]) not in ranks]
    require.that(
        not missing, f"text must have all 256 bytes; {len(missing)} are missing"
    )
    return ranks


@cache
def gpt2_tokenizer() -> ByteTokenizer:
    """Return GPT-2's tokenizer, with 50,257 tokens: its ranks and ``<|endoftext|>``.

    Raises:
        DataError: if the file that came with the package is damaged or missing.
    """
    path = vendored_file("gpt2_bpe/gpt2.tiktoken.gz", GPT2["sha256"])
    ranks = parse_ranks(gzip.decompress(path.read_bytes()).decode())
    return ByteTokenizer(ranks, {END_OF_TEXT: len(ranks)})
