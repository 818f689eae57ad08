"""tools/cache.py: the key notices what notebooks depend on, the folder is usable."""

import os

import pytest

from tools import cache


@pytest.mark.parametrize(
    "name",
    [
        "annotated/answer.py",
        "annotated/static/explorer.js",
        "book/results/run.json",
        "requirements.txt",
    ],
)
def test_an_edit_changes_the_key_and_taking_it_back_restores_it(book, name):
    before, text = cache.cache_key(book.root), book.read(name)
    book.write(name, text + " ")
    assert cache.cache_key(book.root) != before
    book.write(name, text)
    assert cache.cache_key(book.root) == before


def test_a_new_or_renamed_file_changes_the_key(book):
    before = cache.cache_key(book.root)
    book.write("annotated/more/deep.py", "")
    with_file = cache.cache_key(book.root)
    (book.root / "annotated/more/deep.py").rename(book.root / "annotated/deep.py")
    assert len({before, with_file, cache.cache_key(book.root)}) == 3


def test_what_notebooks_do_not_depend_on_leaves_the_key_alone(book):
    before = cache.cache_key(book.root)
    book.write("annotated/__pycache__/answer.cpython-311.pyc", "x")
    book.write("notebooks/src/01_tiny.py", "# %%\n")  # jupyter-cache compares this
    book.write("book/intro.md", "# Title\n")
    book.write("tools/cache.py", "")
    assert cache.cache_key(book.root) == before


def test_the_device_is_part_of_the_key(book, monkeypatch):
    monkeypatch.setenv("ANNOTATED_DEVICE", "cpu")
    on_cpu = cache.cache_key(book.root)
    monkeypatch.setenv("ANNOTATED_DEVICE", "cuda")
    assert cache.cache_key(book.root) != on_cpu


def test_the_path_is_below_the_build_folder_or_where_one_says(
    book, monkeypatch, tmp_path
):
    monkeypatch.delenv("ANNOTATED_CACHE", raising=False)
    key = cache.cache_key(book.root)
    assert cache.cache_path(book.root) == book.root / "_build/.jupyter_cache" / key
    monkeypatch.setenv("ANNOTATED_CACHE", str(tmp_path / "elsewhere"))
    assert cache.cache_path(book.root) == tmp_path / "elsewhere" / key
    assert (tmp_path / "elsewhere" / key).is_dir()


def test_a_folder_that_cannot_be_written_is_named(book, monkeypatch, tmp_path):
    # a file in the way stops root too, whom no permission stops
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("ANNOTATED_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(cache.CacheError) as caught:
        cache.cache_path(book.root)
    assert str(tmp_path / "file" / "cache") in str(caught.value)
    assert "ANNOTATED_CACHE" in str(caught.value)


def test_a_read_only_folder_is_named(book, monkeypatch, tmp_path):
    def refuse(dir):
        raise PermissionError(13, "Permission denied", str(dir))

    monkeypatch.setenv("ANNOTATED_CACHE", str(tmp_path))
    monkeypatch.setattr(cache.tempfile, "TemporaryFile", refuse)
    with pytest.raises(cache.CacheError, match=r"Permission denied.*ANNOTATED_CACHE"):
        cache.cache_path(book.root)


def test_prune_keeps_the_newest_and_what_is_no_cache(tmp_path):
    for age, name in enumerate("abcde"):
        folder = tmp_path / (name * 16)
        folder.mkdir()
        (folder / "global.db").touch()
        os.utime(folder, (1000 - age, 1000 - age))
    (tmp_path / "holiday pictures").mkdir()
    (tmp_path / ("f" * 16)).mkdir()  # named like a cache, and holds none
    os.utime(tmp_path / ("f" * 16), (1, 1))
    removed = cache.prune(tmp_path, keep=3)
    assert [path.name for path in removed] == ["d" * 16, "e" * 16]
    left = sorted(path.name[:2] for path in tmp_path.iterdir())
    assert left == ["aa", "bb", "cc", "ff", "ho"]
