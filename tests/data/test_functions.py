"""data/functions.py: labels read from the tree, splits that share no text."""

import keyword

import pytest

from annotated.data.functions import (
    LABELS,
    LENGTHS,
    disguised,
    functions_of,
    library_functions,
    module_split,
    tokens_of,
)

SPLITS = ("train", "validation", "test")
EXAMPLES = {
    "def f(a):\n    for x in a:\n        x": {"loops"},
    "def f(a):\n    while a:\n        pass": {"loops"},
    "def f(a):\n    return [x for x in a]": {"returns a value"},
    "def f(a):\n    if a:\n        return": set(),
    "def f(a):\n    raise a": {"raises"},
    "def f(a):\n    try:\n        a\n    except E:\n        pass": {"catches"},
    "def f(a):\n    try:\n        a\n    finally:\n        pass": set(),
    "def f(a):\n    print(a)": {"reads or writes"},
    "def f(a):\n    a.read()": {"reads or writes"},
    "def f(a):\n    a.read": set(),
    "def f(a):\n    f(a)": {"calls its own name"},
    "def f(self):\n    self.x.f()": {"calls its own name"},
    "def f(a):\n    a = a + 1": {"rebinds a parameter"},
    "def f(a):\n    a += 1": {"rebinds a parameter"},
    "def f(a):\n    a.b = 1": set(),
    "def f(a, b):\n    b": {"ignores a parameter"},
    "def f(a, *, b):\n    a": {"ignores a parameter"},
    "def f(self):\n    pass": set(),
}


@pytest.mark.parametrize("source, labels", EXAMPLES.items())
def test_labels(source, labels):
    (function,) = functions_of(source)
    assert function.labels == labels <= set(LABELS)


def test_every_label_has_an_example():
    assert set().union(*EXAMPLES.values()) == set(LABELS)


def test_what_says_in_words_what_a_function_does_is_left_out():
    source = '''
class C:
    @cached
    def size(self, of: Path = 3) -> int:
        """Return the size."""
        def inner():
            """Nothing but a text."""
        return f"{of} bytes" + "a" + self.x[2.5]
'''
    outer, inner = functions_of(source, "m")
    assert (outer.module, outer.name, inner.name) == ("m", "size", "inner")
    text = " ".join(outer.tokens)
    assert text == (
        "def size ( self , of = 0 ) : ⏎ ⇥ def inner ( ) : ⏎ ⇥ pass ⏎ ⇤ "
        'return "…" + "…" + self . x [ 0 ] ⏎ ⇤'
    )


@pytest.mark.slow
def test_the_library_by_its_splits():
    functions = {split: library_functions(split) for split in SPLITS}
    assert all(len(functions[split]) > 500 for split in SPLITS)
    met = {}
    for split, found in functions.items():
        for function in found:
            assert len(function.tokens) in LENGTHS
            assert module_split(function.module) == split
            shape = disguised(function.tokens, 0)
            assert met.setdefault(shape, function) is function, "no text twice"
        holds = {label for function in found for label in function.labels}
        assert holds == set(LABELS)


def test_a_package_is_in_one_split():
    assert {module_split(f"json.{m}") for m in ("decoder", "tool")} == {
        module_split("json")
    }
    assert {
        module_split(m) for m in ("argparse", "urllib.request", "typing", "ast")
    } > {"test"}


def test_splits_have_a_name():
    with pytest.raises(ValueError, match="split must be one of"):
        library_functions("dev")


def test_a_disguise_keeps_what_is_equal_and_hides_the_rest():
    tokens = tokens_of("def f(a, b):\n    for x in a:\n        b = f(x) + x[0]\n")
    hidden = disguised(tokens, 3)
    kept = [token for token in tokens if not keyword.iskeyword(token)]
    assert len(hidden) == len(kept)
    names = {}
    for before, after in zip(kept, hidden, strict=True):
        if before.isidentifier():
            assert names.setdefault(before, after) == after, "one name, one disguise"
            assert after[0] == "n" and int(after[1:]) < 100
        else:
            assert before == after, "signs stay"
    assert len(set(names.values())) == len(names) == 4, "two names, two disguises"
    assert disguised(tokens, 3) == hidden != disguised(tokens, 4)


def test_more_names_than_disguises_share_them():
    hidden = disguised(tuple("abcde"), 0, names=2)
    assert len(set(hidden)) == 2 and hidden[0] == hidden[2] == hidden[4]
