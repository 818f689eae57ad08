"""tools/repository.py: the repository's address changes everywhere, in one command."""

import pytest

from tools import notebooks, repository

OLD = "https://github.com/annotated-transformers/annotated-transformers"
NEW = "https://github.com/some-school/attention.book"
PROSE = """\
[code]({url}), [source]({url}/blob/main/annotated/masks.py),
<https://colab.research.google.com/github/annotated-transformers/\
annotated-transformers/blob/main/notebooks/01_tiny.ipynb>,
<https://annotated-transformers.github.io/annotated-transformers/book/intro.html>,
<https://codespaces.new/annotated-transformers/annotated-transformers>,
<https://mybinder.org/v2/gh/annotated-transformers/annotated-transformers/main?urlpath=lab>,
`git clone {url}.git`. Not ours: {url}-2, https://github.com/harvardnlp/annotated-transformer
"""


@pytest.fixture
def linked(book):
    book.write("README.md", PROSE.format(url=OLD))
    book.write("book/setup.md", PROSE.format(url=OLD))
    book.replace("_config.yml", f"url: {OLD}", f"url: {OLD} # ours")
    assert notebooks.main([], book.root) == 0
    return book


def texts(book):
    return {path: path.read_bytes() for path in book.root.rglob("*") if path.is_file()}


def test_every_link_follows_and_nothing_else_does(linked):
    assert repository.main([NEW, "--branch", "next"], linked.root) == 0
    for name in ("README.md", "book/setup.md"):
        text = linked.read(name)
        assert f"[source]({NEW}/blob/next/annotated/masks.py)" in text
        assert "com/github/some-school/attention.book/blob/next/notebooks/01" in text
        assert "<https://codespaces.new/some-school/attention.book>" in text
        assert "<https://mybinder.org/v2/gh/some-school/attention.book/next?url" in text
        assert "<https://some-school.github.io/attention.book/book/intro" in text
        assert f"git clone {NEW}.git" in text
        assert f"Not ours: {OLD}-2, https://github.com/harvardnlp/" in text
    config = linked.read("_config.yml")
    assert f"  url: {NEW} # ours\n  branch: next\n" in config
    assert "# The one place of the repository's address" in config
    notebook = linked.read("notebooks/01_tiny.ipynb")
    assert f"git+{NEW}@next" in notebook
    assert OLD not in notebook
    assert notebooks.main(["--check"], linked.root) == 0


def test_there_and_back_again(linked):
    before = texts(linked)
    assert repository.main([OLD], linked.root) == 0
    assert texts(linked) == before
    assert repository.main([NEW, "--branch", "next"], linked.root) == 0
    assert texts(linked) != before
    assert repository.main([OLD + "/"], linked.root) == 0
    assert texts(linked) == before


ADDRESS = "expected https://github.com/OWNER/NAME"
OF_A_BRANCH = "expected the name of a branch"


@pytest.mark.parametrize(
    ("url", "branch", "said"),
    [
        ("", "main", f"url is '', {ADDRESS}"),
        ("some-school/book", "main", ADDRESS),
        ("http://github.com/some-school/book", "main", ADDRESS),
        ("https://gitlab.com/some-school/book", "main", ADDRESS),
        ("https://github.com/some-school", "main", ADDRESS),
        ("https://github.com/some-school/book/tree/main", "main", ADDRESS),
        ("https://github.com/some-school/book.git", "main", ADDRESS),
        ("https://github.com/-school/book", "main", ADDRESS),
        ("https://github.com/some-school/..", "main", ADDRESS),
        ('https://github.com/some-school/book" --pre "', "main", ADDRESS),
        (NEW, "", f"branch is '', {OF_A_BRANCH}"),
        (NEW, "two words", OF_A_BRANCH),
        (NEW, '"quoted"', OF_A_BRANCH),
    ],
)
def test_what_is_no_address_is_refused_and_changes_nothing(
    linked, capsys, url, branch, said
):
    before = texts(linked)
    assert repository.main([url, "--branch", branch], linked.root) == 1
    assert said in capsys.readouterr().err
    assert texts(linked) == before
