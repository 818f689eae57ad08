"""Faults of annotated/page/ch16.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "token_text": [
        ('"utf-8")', '"latin-1")', "bytes as letters"),
        ('.replace(" ", "␣")', "", "a space isn't seen"),
        ('.replace("\\n", "⏎")', "", "nor a new line"),
        ("·{byte:x}", "·{byte}", "bytes in tens"),
    ],
    "tokens_row": [
        ("str(ranks[token])", "str(len(token))", "lengths for ranks"),
        ("x, y = 2.0, y + 54", "x = 2.0", "rows on each other"),
        ("if x + width > 348", "if x > 348", "beyond the edge"),
        ('word.startswith("·")', "False", "not dashed"),
        ("Drawing(350, y + 48)", "Drawing(350, 54)", "cut off below"),
        ("if text", "if not text", "what it shows isn't said"),
    ],
    "hero": [
        ("tokenizer.ranks, text", "tokenizer.ranks", "no text named"),
    ],
    "languages_figure": [
        ("len(tokenizer.encode(text))", "len(text)", "characters for tokens"),
        ("max(counts.values()) / counts", "counts['German'] / counts", "another ratio"),
    ],
    "tokenizer_explorer": [
        ("for byte in range(256)", "for byte in range(255)", "a byte is missing"),
        ("tokenizer.special[END_OF_TEXT]", "0", "another special token"),
        ("key=tokenizer.ranks.__getitem__", "key=len", "not in the order of ranks"),
    ],
    "check_tokenizer": [
        ("assert tokenizer.decode(tokenizer.encode(text)) == text, text", "pass",
         "texts may be lost"),
        ("assert tokenizer.encode(text) == theirs.encode(text).ids, text", "pass",
         "other ids"),
        ('if not find_spec("tokenizers")', "if False", "needs the library"),
    ],
    "perplexities_table": [
        ("exp(nats / n)", "exp(n / nats)", "upside down"),
        ("/ log(2)", "", "nats for bits"),
        ("len(text.split())", "len(text)", "letters for words"),
        ("len(text.encode())", "len(text)", "characters for bytes"),
    ],
    "tokens_figure": [
        ('"tokens", "context")', '"tokens")', "both contexts as one"),
    ],
    "tokens_said": [
        ("assert gain > 0.1 and", "assert", "no gain"),
        ("and slower > 0 and", "and", "a longer window helps"),
        (" and best < 4096", "", "4096 the best"),
    ],
    "_short": [
        ("number < 1000", "True", "a long number"),
    ],
    "_mean": [
        ("/ len(rows)", "/ 2", "another mean"),
    ],
    "norm": [
        ("+ 1e-5", "", "no epsilon"),
        ("x - x.mean(dim=-1, keepdim=True)", "x", "not centred"),
    ],
    "random_state": [
        ("(d_ff, d)", "(d, d_ff)", "transposed"),
        ("manual_seed(seed)", "manual_seed(0)", "one seed"),
        (', "ln_f.weight"))', "))", "a last norm around 0"),
    ],
    "small_official": [
        ("load_gpt2(state, TINY).double()", "load_gpt2(state, TINY)", "single"),
        ("x.float().double()", "x", "numbers that are rounded once"),
    ],
    "check_encoder": [
        ("triu(1)", "triu(2)", "the next token is seen"),
        ("norm_first=True", "norm_first=False", "post-norm"),
        (" + model.positions.table[:length]", "", "no positions"),
    ],
    "first_losses": [
        ("model.embedding.weight.mul_(std / 0.02)", "pass", "one deviation"),
        ("== ids[0]", "== targets", "the next token"),
        ("log(config.vocab_size)", "log(1024)", "of another vocabulary"),
    ],
    "embedding_shares": [
        ('"pre", DEPTHS[-1], scaled', '"pre", DEPTHS[-1], True', "one share"),
        ("sizes[0] / sizes[-1]", "sizes[1] / sizes[-1]", "after a block"),
    ],
    "gelu_figure": [
        ("F.gelu(x).min()", "F.relu(x).min()", "the dip of ReLU"),
    ],
    "stream_figure": [
        ("n, scaled)[-1]", "n, True)[-1]", "always with the factor"),
        ("[-1])", "[0])", "what enters"),
    ],
    "check_ends": [
        ("assert grown > wanted, grown", "pass", "no growth"),
        ("assert max(factored) < 1.25 * min(factored), factored", "pass", "growth"),
    ],
    "depth_said": [
        ("assert min(map(min, ahead.values())) > 0 and", "assert", "behind"),
        (" and max(ahead[few]) > max(ahead[many]) / 2", "", "deep models alone"),
        ("if not scaled", "if scaled", "nothing is ahead"),
    ],
    "walk": [
        ("token_text(token)", "str(token)", "tokens by their bytes"),
        ("between “{prompt}”", "here", "the prompt isn't named"),
    ],
    "sizes_table": [
        (".0%}\"", ".1%}\"", "another style"),
    ],
    "continuations": [
        ("top_k=1", "top_k=None", "drawn"),
        ("max_new_tokens=8", "max_new_tokens=7", "shorter"),
        ('.replace("\\n", " ⏎ ")', "", "lines of a prompt"),
        ("if model is None", "if False", "a missing model is asked"),
    ],
}
