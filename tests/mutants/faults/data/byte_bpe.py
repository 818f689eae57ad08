TABLE = r"""
split_text
    PIECE.finditer(stand_ins) -> PIECE.finditer(text)  # ASCII alone has words
    text[slice(*found.span())] -> found.group()  # stand-ins come out
_stand_in
    "a" if c.isalpha() else "0" -> "a"  # numbers of other scripts are letters
    "\t" if c.isspace() else "!" -> "!"  # other spaces are signs
    return "\t" -> return " "  # any space goes with a word
    \n    if c.isascii():\n        return c ->  # all letters alike
byte_letters
    ord("¬") + 1 -> ord("¬")  # one letter too late
    chr(256 + i) -> chr(256 + byte)  # the byte's own place
    byte not in seen -> byte in seen  # the visible ones
to_letters
    byte_letters()[byte] -> chr(byte)  # a space is a space
join_bytes
    ranks.get(b"".join(two), len(ranks))
        -ranks.get(b"".join(two), -1)  # the youngest first
    \n        if b"".join(pair) not in ranks:\n            break ->  # all joined
ByteTokenizer.__init__
    self.tokens.keys() == set(range(self.vocab_size)) -> True  # any ids
    len(self.ranks) + len(self.special) -> len(self.ranks)  # specials left out
    name.encode() for name, i -> b"" for name, i  # specials lost
ByteTokenizer.encode
    allow_special and self.special -> self.special  # always special
    key=len, reverse=True -> key=len  # the shortest first
    map(re.escape, longest_first) -> longest_first  # | is an alternative
    allow_special: bool = False -> allow_special: bool = True  # by default
ByteTokenizer._encode_text
    for piece in pieces for -> for piece in tokens for  # each piece once
    pieces = split_text(text) -> pieces = [text]  # tokens cross words
    pieces = split_text(text) -> pieces = text.split()  # spaces lost
ByteTokenizer.decode_bytes
    self.vocab_size - 1 -> self.vocab_size  # one too many
    require.count(0, last, -> dict(  # a KeyError
    ids.tolist() if isinstance(ids, Tensor) else list(ids)
        list(ids)  # what a model wrote is refused
ByteTokenizer.decode
    b"".join(self.decode_bytes(ids)).decode("utf-8", errors)
        "".join(b.decode("utf-8", errors) for b in self.decode_bytes(ids))
            # each token alone
    "utf-8", errors -> "utf-8", "replace"  # never refused
    "utf-8", errors -> "latin-1"  # another code
parse_ranks
    validate=True -> validate=False  # other signs skipped
    line.split(" ") -> line.split()[:2]  # a third field
    require.that(token not in ranks, "the token is there twice") -> pass  # the last one
    not missing,\n        f"text must have the ranks
        True,\n        f"text must have the ranks  # gaps
    not missing, f"text must have all
        True, f"text must have all  # bytes without a token
    enumerate(text.splitlines(), 1) -> enumerate(text.splitlines())  # the line before
gpt2_tokenizer
    {END_OF_TEXT: len(ranks)} -> {}  # no end of text
    GPT2["sha256"] -> GPT2.get("sha")  # another checksum
"""
