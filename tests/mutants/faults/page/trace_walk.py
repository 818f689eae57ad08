"""Faults of annotated/page/trace_walk.py: (text, replacement, what is wrong then)."""

# fmt: off
FAULTS = {
    "mathml": [
        ("[::-1]", "", "backwards"),
        ('tokens.count("{") == tokens.count("}")', "True", "brackets left open"),
    ],
    "_row": [
        ('"sup" * bool(over)', '"sub" * bool(over)', "powers are indices"),
        ('"under" if base', '"sub" if base', "sums without what they run over"),
        ("{under}{over}", "{over}{under}", "power and index change places"),
        ("        tokens.pop()\n    return", "        pass\n    return", "open"),
    ],
    "_atom": [
        ("require.that(tokens, ", "print(", "IndexError"),
        ("escape(token)", "token", "a < begins an element"),
        ("{escape(found[1])", "{(found[1])", "a text begins an element"),
        ('if command == "hat"', 'if command != "hat"', "hats are lines"),
        ("require.choice([*SIGNS, *NAMES], command=command)", "pass", "KeyError"),
    ],
    "trace_walk": [
        ("names[-1]))", "names[0]))", "logits in the source's words"),
        ("len(names) == len(inputs)", "names", "too many names"),
        ("len(tokens) == 1", "True", "several sequences"),
        ("size <= MOST_BYTES", "True", "a page that is too heavy"),
        ('state = {"position": longest', 'state = {"position": 1', "the first"),
        ("first if start is None else start", "first", "begins elsewhere"),
        ('s.operation == "weights"), 1)', 's.operation == "scores"), 1)',
         "begins with scores"),
        ("unlike.index(card)", "0", "every card is the first"),
        ("card not in cards[:i]", "True", "cards twice"),
        ("heads + 1), head)", "heads + 1))", "the first head"),
        ("caption=caption,", "", "no caption"),
        ("question=question,", "", "no question"),
    ],
    "values_of": [
        ("min(position, len(tokens[item[\"rows\"]]))", "position", "beyond the end"),
        ("min(head, len(value))", "head", "beyond the last head"),
        (":SHOWN]", ":1]", "one number"),
    ],
    "_items": [
        ("columns = sides[step.reads[1]][0]", "pass", "columns are the target's"),
        ("inputs += step", "inputs -= step", "the target is the source"),
    ],
    "_card": [
        (".partition(step.source.part)", ".partition(' ')", "another part"),
    ],
    "_shape": [
        ("shape[1:]", "shape", "with the batch"),
        ("',' * (len(shape) == 2)", "''", "a number in brackets"),
    ],
    "_picture": [
        ("value.softmax(-1)", "value", "logits for chances"),
        ("hidden.any(0)", "(~hidden).any(0)", "visible are hidden"),
        ("value.transpose(0, 1).flatten(1)", "value.flatten(0, 1)", "heads below"),
        ("-(-value.shape[-1] // MOST_COLUMNS)", "1", "every column"),
        (".quantile(0.98)", ".quantile(0.5)", "half of all is darkest"),
        ("groups = len(value)", "groups = 1", "no heads"),
    ],
    "words_of": [
        ("one.place == step.place", "one.place < step.place", "heads of elsewhere"),
        ("queries[0] // count", "queries[0]", "a head as wide as all"),
        ("count // (before // width)", "1", "shared by one"),
        ('.get(step.operation, "")', "[step.operation]", "KeyError"),
    ],
}
