"""Files under the names that learning platforms give them, and what is in them."""

import json
import os
import time
import zipfile

import pytest

from grading.collect import collect, identify, limited
from grading.normalise import (
    MOST_BYTES,
    MOST_CELLS,
    cells_for,
    inert,
    normalise,
    read_cells,
    suspicions,
)
from tests.exercises.submissions import Maker
from tools.exercises import (
    exercises,
    read_exercises,
    solution,
    source_of,
    sources,
    student_notebook,
)
from tools.source import setup_cell

NAMES = {
    "lovelaceada_4711_88001_02_self_attention.ipynb": ("lovelaceada", "4711"),
    "lovelaceada_LATE_4711_88001_02_self_attention-2.ipynb": ("lovelaceada", "4711"),
    "Ada Lovelace_4711_assignsubmission_file_02_self_attention.ipynb": (
        "ada_lovelace",
        "4711",
    ),
    "Ada Lovelace_4711_assignsubmission_file_/Copy of 02_x (1).ipynb": (
        "ada_lovelace",
        "4711",
    ),
    "Ada Lovelace_4711_assignsubmission_file/02_x.ipynb": ("ada_lovelace", "4711"),
    "all/Ada Lovelace_4711_assignsubmission_file/hw/x.ipynb": ("ada_lovelace", "4711"),
    "ada/ch02/02_self_attention.ipynb": ("ada", ""),
    "ch02-ada/notebooks/exercises/02_self_attention.ipynb": ("ada", ""),
    "ada.ipynb": ("ada", ""),
    "ada@school.org - Copy of 02_self_attention (3).ipynb": ("ada@school.org", ""),
    "ada_02_self_attention.ipynb": ("ada", ""),
    "../../=cmd()_100_90002_x.ipynb": ("cmd", "100"),
    # what lies below a platform's name is called as its student likes
    "Eve_9_assignsubmission_file_/Bob Ray_7_assignsubmission_file_x.ipynb": (
        "eve",
        "9",
    ),
    "Eve_9_assignsubmission_file_/work/bob_700_90088_x.ipynb": ("eve", "9"),
    "ch02-eve/ch02-bob/x.ipynb": ("eve", ""),
    "all/eve_900_90088_bob_7_assignsubmission_file_x.ipynb": ("eve", "900"),
    "rene\u0301e/x.ipynb": ("ren\u00e9e", ""),
    # what is no chapter's name belongs to the student's
    "hw_02_ada.ipynb": ("hw_02_ada", ""),
    "exercise_02_lovelace (1).ipynb": ("exercise_02_lovelace", ""),
    "2026_11_22_ada.ipynb": ("2026_11_22_ada", ""),
    "hw2_11_22_ada.ipynb": ("hw2_11_22_ada", ""),
    "ex_02_4711001_ada.ipynb": ("ex_02_4711001_ada", ""),
    "quiz_100_2026_ada.ipynb": ("quiz_100_2026_ada", ""),
    "02_self_attention_ada (2).ipynb": ("ada", ""),
    "Copy of 02_self_attention - Ada Lovelace.ipynb": ("ada_lovelace", ""),
    "Ada.IPYNB": ("ada", ""),
    "group-2.ipynb": ("group-2", ""),
    "ada - 02_self_attention-2.ipynb": ("ada", ""),
}


@pytest.mark.parametrize("path", NAMES)
def test_who_handed_a_file_in(path):
    who = identify(path)
    assert (who["student"], who.get("lms", "")) == NAMES[path]


@pytest.mark.parametrize(
    "path",
    [
        "02_self_attention.ipynb",
        "Copy of 02_self_attention.ipynb",
        "02_self_attention-Copy1.ipynb",
        "02_self_attention (2).ipynb",
        "-.ipynb",
    ],
)
def test_nobody_is_invented(path):
    assert identify(path) is None


def test_a_pattern_of_ones_own():
    pattern = r"group\d-(?P<student>\w+)-.*"
    assert identify("group7-ada-final.ipynb", pattern)["student"] == "ada"
    assert identify("ada.ipynb", pattern) is None


def notebook(*sources):
    cells = [{"cell_type": "code", "metadata": {}, "source": s} for s in sources]
    return json.dumps({"cells": cells})


TEXT = "# exercise: ch02-x"


def put(inbox, *names, when=100):
    for name in names:
        path = inbox / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(notebook(TEXT, name))
        os.utime(path, (when, when))


def test_the_newest_of_several_counts_and_the_others_are_named(tmp_path):
    """By time, then by Canvas's number of the attempt; a browser's says nothing."""
    put(
        tmp_path,
        "ada_100_90007_02_x.ipynb",
        "ada_100_90008_02_x-2.ipynb",
        "ada_100_90009_02_x-1.ipynb",
    )
    put(tmp_path, "bob_200_90007_02_x (3).ipynb")
    put(tmp_path, "bob_200_90008_02_x.ipynb", when=200)
    taken, odd = collect(tmp_path, ["ch02"])
    names = {"ada_100_90008_02_x-2.ipynb", "bob_200_90008_02_x.ipynb"}
    assert {s.source for s in taken} == names
    assert all("is taken instead" in note for _, note in odd)
    assert len(odd) == 3


def archive(path, members):
    with zipfile.ZipFile(path, "w") as made:
        for number, name in enumerate(members):
            info = zipfile.ZipInfo(name, (2026, 1, 30 - number, 0, 0, 0))
            made.writestr(info, notebook(TEXT, name, str(number)))


def test_archives_are_opened_and_their_paths_not_trusted(tmp_path):
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    names = [
        "../../eve_100_90002_02_x.ipynb",
        "fay_300_90004_02_x.ipynb",
        "fay_300_90005_02_x.ipynb",
    ]
    archive(inbox / "all.zip", [*names, "more.zip"])
    (inbox / "broken.zip").write_bytes(b"PK no archive")
    taken, odd = collect(inbox, ["ch02"])
    assert {s.student for s in taken} == {"eve", "fay"}
    assert not list(tmp_path.rglob("eve*"))
    # the newer one by the archive's own times, not the last one in it
    [fay] = [s for s in taken if s.student == "fay"]
    assert fay.source.endswith("fay_300_90004_02_x.ipynb")
    notes = dict(odd)
    assert notes["broken.zip"] == "no archive, or a damaged one: NOT GRADED"
    assert "archive in an archive" in notes["all.zip/more.zip"]


@pytest.mark.parametrize(
    ("method", "place", "damage"),
    [
        (zipfile.ZIP_DEFLATED, 50, b"\xff\xff\xff"),
        (zipfile.ZIP_LZMA, 70, bytes(20)),
        (zipfile.ZIP_BZIP2, 70, bytes(20)),
    ],
)
def test_one_damaged_or_undated_member_costs_nobody_else_the_archive(
    tmp_path, method, place, damage
):
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w", method) as made:
        for name in ("ada_100_90002_x.ipynb", "bob_300_90004_x.ipynb"):
            made.writestr(name, notebook(TEXT, name))
    data = bytearray(path.read_bytes())
    data[place : place + len(damage)] = damage  # in the first one's text
    entry = data.rfind(b"PK\1\2")
    data[entry + 14 : entry + 16] = b"\0\0"  # month 0, day 0
    path.write_bytes(data)
    (tmp_path / "folder.zip").mkdir()
    taken, odd = collect(tmp_path, ["ch02"])
    assert [s.student for s in taken] == ["bob"]
    assert odd == [("all.zip/ada_100_90002_x.ipynb", "damaged: NOT GRADED")]


def test_a_files_name_can_be_printed_and_written(tmp_path):
    """Nor do two become one."""
    names = (b"ren\xe9e.ipynb", b"ren\xe8e.ipynb", b"a\n\x1b[31mb_300_90004_x.ipynb")
    for name in names:
        with open(os.path.join(os.fsencode(tmp_path), name), "w") as stream:
            stream.write(notebook(TEXT))
    taken, odd = collect(tmp_path, ["ch02"])
    assert (len({s.student for s in taken}), odd) == (3, [])
    assert all(s.source.isprintable() and s.source.encode() for s in taken)


def test_a_students_own_archive_holds_only_that_students_work(tmp_path):
    put(tmp_path, "Bob Ray_7_assignsubmission_file_02_x.ipynb")
    for name in ("Eve_9_assignsubmission_file_work.zip", "eve/ch02/work.zip"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        archive(tmp_path / name, ["bob_ray/ch02/02_x.ipynb"])
    taken, _ = collect(tmp_path, ["ch02"])
    assert sorted(s.student for s in taken) == ["bob_ray", "eve"]
    [bob] = [s for s in taken if s.student == "bob_ray"]
    assert bob.source.startswith("Bob Ray_7")


def test_no_plain_file_takes_the_place_of_anothers(tmp_path):
    sure = "Ada Lovelace_4711_assignsubmission_file_02_x.ipynb"
    put(tmp_path, sure, "bob.ipynb", "Cy .ipynb", "dan.ipynb")
    doubtful = "ada_lovelace.ipynb", "Bob.ipynb", "cy.ipynb"
    put(tmp_path, *doubtful, "dan (2).ipynb", when=200)
    taken, odd = collect(tmp_path, ["ch02"])
    assert {s.source for s in taken} == {sure, "dan (2).ipynb"}
    named = {file for file, note in odd if "can't be told" in note}
    assert named == {*doubtful, "bob.ipynb", "Cy .ipynb"}


def test_numbered_names_are_not_taken_for_one_students(tmp_path):
    put(tmp_path, "student (1).ipynb", "student (2).ipynb", "anon-17.ipynb")
    put(tmp_path, "anon-18.ipynb", "eve (1).ipynb", when=200)
    taken, odd = collect(tmp_path, ["ch02"])
    assert {s.student for s in taken} == {"anon-17", "anon-18", "eve"}
    assert {file for file, _ in odd} == {"student (1).ipynb", "student (2).ipynb"}
    assert all("NOT COLLECTED" in note for _, note in odd)


def test_no_name_in_a_students_folder_takes_the_place_of_anothers(tmp_path):
    moodle = "Ada Lovelace_4711_assignsubmission_file_02_x.ipynb"
    put(tmp_path, "bob/02_x.ipynb", moodle)
    put(tmp_path, "eve/ch02-bob/02_x.ipynb", f"eve/{moodle}", when=200)
    taken, odd = collect(tmp_path, ["ch02"])
    assert {s.source for s in taken} == {"bob/02_x.ipynb", moodle}
    assert all("NOT COLLECTED" in note for _, note in odd)


def test_names_that_only_look_like_canvas_merge_nobody(tmp_path):
    """Canvas gives each file a number of its own."""
    day = "hw_101_20261122"
    put(tmp_path, f"{day}_ada.ipynb", f"{day}_bert.ipynb")
    cy = "cy_100_90007_x"
    put(tmp_path, f"{cy}.ipynb", f"{cy} (2).ipynb", "cy_100_90008_y.ipynb", when=200)
    put(tmp_path, "di_300_90009_work/a.ipynb", "di_300_90009_work/b.ipynb")
    put(tmp_path, "hw2_11_22_eve.ipynb", "hw2_11_23_fay.ipynb")
    taken, odd = collect(tmp_path, ["ch02"])
    assert {s.student for s in taken} == {"cy", "di", "hw2_11_22_eve", "hw2_11_23_fay"}
    named = {file for file, note in odd if "can't be told" in note}
    assert named == {f"{day}_ada.ipynb", f"{day}_bert.ipynb"}


def test_what_is_no_notebook_is_named_where_a_student_has_no_other(tmp_path):
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as made:
        for name in (
            "ada_100_90002_x.ipynb", "ada_100_90003_plot.png", "bob_400_90005_x.pdf",
            "cyd_600_90007_x.py", "cyd_600_90008_y.py",
            "__MACOSX/._ada_100_90002_x.ipynb",
        ):  # fmt: skip
            made.writestr(name, notebook(TEXT, name))
        made.mkdir("Di Ef_9_assignsubmission_onlinetext")
        made.writestr("Di Ef_9_assignsubmission_onlinetext_/onlinetext.html", "words")
    put(tmp_path, "eve/ch02/x.ipynb", "eve/plot.png", "fay/solution.py")
    zipfile.ZipFile(tmp_path / "gus_300_90004_x.zip", "w").close()
    taken, odd = collect(tmp_path, ["ch02"])
    assert {s.student for s in taken} == {"ada", "eve"}
    assert dict(odd) == {
        "all.zip/bob_400_90005_x.pdf": "no notebook: NOT COLLECTED",
        "all.zip/cyd_600_90007_x.py": "no notebook: NOT COLLECTED (and 1 more)",
        "all.zip/Di Ef_9_assignsubmission_onlinetext_/onlinetext.html": (
            "no notebook: NOT COLLECTED"
        ),
        "fay/solution.py": "no notebook: NOT COLLECTED",
        "gus_300_90004_x.zip": "no notebook: NOT COLLECTED",
    }


def test_an_archive_that_would_fill_the_machine_is_refused_unread(
    tmp_path, monkeypatch
):
    path = tmp_path / "Eve_9_assignsubmission_file_work.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for number in range(6):
            made.writestr(f"{number}.ipynb", b" " * MOST_BYTES)
    many = tmp_path / "Flo_8_assignsubmission_file_work.zip"
    with zipfile.ZipFile(many, "w") as made:
        for number in range(101):
            made.writestr(f"{number}.ipynb", "")
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as made:
        made.writestr("_" * 9999 + ".ipynb", "")  # a pattern would try it for minutes
    monkeypatch.setattr(zipfile.ZipFile, "open", None)
    taken, odd = collect(tmp_path, ["ch02"])
    assert taken == []
    assert {note for _, note in odd} == {
        "notebooks of more than 100 MB in all: NOT COLLECTED",
        "more than 100 notebooks: NOT COLLECTED",
        "a long name: NOT COLLECTED",
    }


def test_namesakes_are_told_apart_by_number_in_every_later_run(tmp_path):
    known = {}
    name = "Sam Lee_{}_assignsubmission_file_02_x.ipynb"
    put(tmp_path, name.format(1))
    [only], _ = collect(tmp_path, ["ch02"], known=known)
    assert only.student == "sam_lee"
    put(tmp_path, name.format(2))
    taken, odd = collect(tmp_path, ["ch02"], known=known)
    assert {s.student: s.lms for s in taken} == {"sam_lee": "1", "sam_lee_2": "2"}
    assert "told apart" in dict(odd)[name.format(2)]
    (tmp_path / name.format(1)).unlink()
    [only], odd = collect(tmp_path, ["ch02"], known=known)
    assert only.student == "sam_lee_2"
    assert "told apart by their numbers" in odd[0][1]


def test_namesakes_of_one_assignment_are_nobodys_in_the_next_by_moodles_numbers(
    tmp_path,
):
    known = {}
    name = "Sam Lee_{}_assignsubmission_file_02_x.ipynb"
    put(tmp_path, name.format(1), name.format(2))
    collect(tmp_path, ["ch02"], known=known)
    later = tmp_path / "Sam Lee_7_assignsubmission_file_12_x.ipynb"
    later.write_text(notebook("# exercise: ch12-x"))
    taken, odd = collect(tmp_path, ["ch02", "ch12"], known=known)
    students = {s.student for s in taken}
    assert students == {"sam_lee_1", "sam_lee_2", "sam_lee_7"}
    assert "others in each assignment" in dict(odd)[later.name]


def test_canvas_numbers_tell_namesakes_apart_in_every_assignment(tmp_path):
    """Sam's marks in one assignment are never the other Sam's in the next."""
    known = {}
    put(tmp_path, "leesam_100_90008_02_x.ipynb")
    collect(tmp_path, ["ch02"], known=known)
    for number in (100, 200):
        later = tmp_path / f"leesam_{number}_90009_12_x.ipynb"
        later.write_text(notebook("# exercise: ch12-x"))
    taken, _ = collect(tmp_path, ["ch02", "ch12"], known=known)
    students = {(s.student, s.chapter): s.lms for s in taken}
    assert students == {
        ("leesam", "ch02"): "100",
        ("leesam", "ch12"): "100",
        ("leesam_200", "ch12"): "200",
    }


def test_what_a_platform_gives_again_is_not_worth_a_line(tmp_path):
    put(
        tmp_path,
        "ada_100_90007_02_x.ipynb",
        "again/ada_100_90007_02_x.ipynb",
        "Thumbs.db",
    )
    same = tmp_path / "again" / "ada_100_90007_02_x.ipynb"
    same.write_bytes((tmp_path / "ada_100_90007_02_x.ipynb").read_bytes())
    taken, odd = collect(tmp_path, ["ch02"])
    assert (len(taken), odd) == (1, [])


def test_what_cannot_be_read_takes_the_place_of_nothing(tmp_path):
    put(tmp_path, "ada_100_90007_02_x.ipynb")
    (tmp_path / "ada_100_90008_02_x-1.ipynb").write_text("{half a fi")
    many = notebook(*["1"] * (MOST_CELLS + 1))
    (tmp_path / "dan_500_90006_x.ipynb").write_text(many)
    (tmp_path / "bob_23_long.ipynb").write_bytes(b" " * (MOST_BYTES + 1))
    dense = notebook(*["a = b.c\n" * 20_000] * 8)  # once minutes of looking at it
    (tmp_path / "fay_800_90009_x.ipynb").write_text(dense)
    wide = notebook(TEXT).encode("utf-16")
    (tmp_path / "cyd_300_90004_02_x.ipynb").write_bytes(wide)
    (tmp_path / "eva_700_90008_02_x.pdf").write_bytes(b"%PDF")
    (tmp_path / ".DS_Store").write_bytes(b"")
    taken, odd = collect(tmp_path, ["ch02"])
    assert {s.student: s.chapter for s in taken} == {"ada": "ch02", "cyd": "ch02"}
    assert dict(odd)["eva_700_90008_02_x.pdf"] == "no notebook: NOT COLLECTED"
    assert sum("NOT GRADED" in note for _, note in odd) == 4
    assert len(odd) == 5


def test_a_step_may_wait_as_long_as_the_machine_is_busy():
    """Its limit once counted the time that other programs took."""
    with limited(0.2):
        time.sleep(0.5)
    with pytest.raises(TimeoutError), limited(0.2):
        while True:
            pass


def test_the_chapter_is_that_of_the_exercises_not_of_the_name(tmp_path):
    (tmp_path / "ada_01_seq2seq_attention.ipynb").write_text(notebook(TEXT))
    (tmp_path / "bob_01_seq2seq_attention.ipynb").write_text(notebook())
    (tmp_path / "dan_23_other.ipynb").write_text(notebook())
    taken, odd = collect(tmp_path, ["ch01", "ch02"])
    assert {s.student: s.chapter for s in taken} == {"ada": "ch02", "bob": "ch01"}
    assert dict(odd)["dan_23_other.ipynb"].startswith("of ch23, which is no assignment")


SOLVED = read_exercises(source_of("02"), setup_cell())


@pytest.fixture(scope="module")
def release():
    return student_notebook(SOLVED)


@pytest.fixture(scope="module")
def maker(release):
    return Maker(release, SOLVED)


def cells_of(notebook):
    return read_cells(json.dumps(notebook).encode())


def answer_of(made, position):
    exercise = [e for e in exercises(made) if not e.in_words][position]
    return made.cells[exercise.answer].source


def test_a_right_notebook_comes_through_unchanged_with_nothing_odd(maker, release):
    made, odd = normalise(release, cells_of(maker.right()))
    assert odd == []
    for exercise in maker.exercises:
        assert made.cells[exercise.answer].source == maker.solutions[exercise.id]


@pytest.mark.parametrize("cells", [[], [{}], [{"cell_type": "code"}] * 3])
def test_nothing_gives_the_release(release, cells):
    from grading.normalise import _plain_cell

    made, odd = normalise(release, [_plain_cell(cell) for cell in cells])
    assert [c.source for c in made.cells] == [c.source for c in release.cells]
    assert sum("no answer cell found" in note for note in odd) == len(
        exercises(release)
    )


def test_of_several_answers_the_one_that_was_checked_last_counts(maker, release):
    right = maker.right()
    first = maker.code[0]
    again = {"cell_type": "code", "metadata": {}}
    again["source"] = right["cells"][first.answer]["source"] + "\n# again"
    right["cells"].insert(first.answer + 1, again)
    cells = cells_of(right)
    for ran, n in enumerate((first.answer, first.test + 1), start=1):
        cells[n]["ran"] = ran
    made, odd = normalise(release, cells)
    assert answer_of(made, 0) == maker.solutions[first.id]
    note = "2 answer cells: the one checked last counts, or the lowest"
    assert f"{first.id}: {note}" in odd


def test_an_answer_without_its_tag_is_found_by_metadata_or_function(maker, release):
    right = maker.right()
    for exercise in maker.code:
        cell = right["cells"][exercise.answer]
        cell["source"] = cell["source"].split("\n", 1)[1]
    made, odd = normalise(release, cells_of(right))
    assert answer_of(made, 0) == maker.solutions[maker.code[0].id]
    assert odd == []
    for cell in right["cells"]:
        cell["metadata"] = {}
    made, odd = normalise(release, cells_of(right))
    assert answer_of(made, 0) == maker.solutions[maker.code[0].id]
    assert any("found by its name" in note for note in odd)


def coded(source):
    return {"cell_type": "code", "source": source, "grade_id": None, "ran": 0}


def run_for(made, position):
    exercise = [e for e in exercises(made) if not e.in_words][position]
    above, answer, below = cells_for(made, exercise)
    return [*above, answer, *below]


def test_own_cells_keep_their_order(maker, release):
    """Helpers may stand before an answer, or between it and its test."""
    first = maker.code[0]
    cells = cells_of(maker.right())
    cells.append(coded("behind = 1"))
    cells.insert(first.test, coded("between = 1"))
    cells.insert(first.answer, coded("before = 2"))
    cells.insert(first.answer, coded("before = 1"))
    made, odd = normalise(release, cells)
    own = ["before = 1", "before = 2", "between = 1"]
    answer = maker.solutions[first.id]
    for position in (0, 1):
        kept = [s for s in run_for(made, position) if s in (*own, answer)]
        assert kept == [*own[:2], answer, own[2]]
    assert "4 code cell(s) of the student's own" in odd
    assert "1 of them behind the last test: not run" in odd


def test_all_that_stands_above_is_run(maker, release):
    """Other answers, their first tries too, as a notebook runs them."""
    first, second = maker.code[:2]
    cells = cells_of(maker.right())
    early = maker.body(first, "    return 1")
    cells.insert(first.answer, coded(early))
    made, _ = normalise(release, cells)
    sources = run_for(made, 1)
    kept = [early, maker.solutions[first.id]]
    assert [source for source in sources if source in kept] == kept
    assert maker.solutions[maker.code[2].id] not in sources
    assert sources[-1] == maker.solutions[second.id]


def test_an_answer_below_an_untouched_stub_counts(maker, release):
    first = maker.code[0]
    text = maker.solutions[first.id].split("\n", 1)[1]
    cells = cells_of(maker.right())
    cells[first.answer]["source"] = maker.blank["cells"][first.answer]["source"]
    cells.insert(first.answer + 1, coded(text))
    made, odd = normalise(release, cells)
    assert answer_of(made, 0).endswith(text)
    assert any("found by its name" in note for note in odd)


@pytest.mark.parametrize(
    ("ran", "expected"), [((0, 0, 0), "RIGHT = 2"), ((5, 3, 6), "RIGHT = 1")]
)
def test_the_answer_is_what_the_check_has_called(maker, release, ran, expected):
    """The lower of two, or the one that was run last before the check."""
    first = maker.code[0]
    tag, text = maker.solutions[first.id].split("\n", 1)
    cells = cells_of(maker.with_answers(_0=f"{tag}\nRIGHT = 1\n{text}"))
    cells.insert(first.answer + 1, coded(f"RIGHT = 2\n{text}"))
    for cell, count in zip(cells[first.answer :], ran, strict=False):
        cell["ran"] = count
    made, _ = normalise(release, cells)
    assert expected in answer_of(made, 0)


@pytest.mark.parametrize("colab", [False, True])
def test_what_was_added_to_setup_and_tests_is_kept(maker, release, colab):
    cells = cells_of(maker.right())
    [setup] = [c for c in cells if "notebook import setup" in c["source"]]
    # lines of its own, some of which stand in the set-up, too
    setup["source"] += (
        "\ntry:\n    import a_library\nexcept ModuleNotFoundError:\n    0"
    )
    test = cells[maker.code[0].test]
    test["source"] = f"A = 1\n{test['source']}\nB = 2"
    for cell in cells if colab else []:
        cell["grade_id"] = None
    made, _ = normalise(release, cells)
    own = [setup["source"], test["source"]]
    assert [source for source in run_for(made, 1) if source in own] == own


def test_an_answer_may_stand_in_two_cells(maker, release):
    first = maker.code[0]
    tag, text = maker.solutions[first.id].split("\n", 1)
    helper = f"{tag}\nFACTOR = 1"
    cells = cells_of(maker.with_answers(_0=helper))
    cells.insert(first.answer + 1, coded(text))
    made, _ = normalise(release, cells)
    assert helper in run_for(made, 0)
    assert answer_of(made, 0) == maker.solutions[first.id]


def test_nothing_runs_where_words_are_read():
    script = r"<script> [a](javascript:x) $\href{javascript:x}{y}$"
    made = inert(f"{script}\n\n[r]: javascript:x")
    assert "<s" not in made
    assert "](" not in made
    assert "]:" not in made
    assert "href" not in made
    assert inert("$a < b$, *E*[x] (as in 2.1)") == "$a < b$, *E*[x] (as in 2.1)"


def words_of(maker, release, change):
    notebook = maker.right()
    words = notebook["cells"][maker.words.answer]
    words["source"] = maker.blank["cells"][maker.words.answer]["source"]
    change(notebook["cells"], words)
    made, odd = normalise(release, cells_of(notebook))
    return made.cells[maker.words.answer].source, odd


SAID = {"cell_type": "markdown", "metadata": {}, "source": "Two of them do."}


@pytest.mark.parametrize(
    "change",
    [
        lambda cells, words: cells.append(SAID),
        lambda cells, words: cells.append(SAID | {"cell_type": "code"}),
        lambda cells, words: cells.insert(cells.index(words), SAID),
        lambda cells, words: words.update(SAID),
        lambda cells, words: words.update(
            source=f"{words['source'].split(chr(10))[0]} {SAID['source']}", metadata={}
        ),
    ],
    ids=["below", "as code", "above", "without its tag", "in the tag's line"],
)
def test_words_count_wherever_they_are_written(maker, release, change):
    """Below the cell for them, they once got no points, and nobody saw them."""
    words, odd = words_of(maker, release, change)
    tag = f"<!-- exercise: {maker.words.id} -->"
    assert words == f"{tag}\n{SAID['source']}"
    assert not [note for note in odd if "no answer cell" in note]


def test_words_go_on_in_another_cell_and_end_at_the_next_question(maker, release):
    def change(cells, words):
        words["source"] = words["source"].replace("*Your answer here.*", "First.")
        place = cells.index(words) + 1
        cells[place:] = [SAID, dict(cells[0]), SAID | {"source": "Of something else."}]

    words, odd = words_of(maker, release, change)
    assert words.endswith("\nFirst.\n\nTwo of them do.")
    assert f"{maker.words.id}: 1 cell(s) of the student's own are part of it" in odd


def test_words_are_cut_where_a_page_would_take_minutes(maker, release):
    picture = f"![a](data:image/png;base64,{PNG * 9999})"
    said = SAID | {"source": f"{'[' * 99_999} {picture}"}
    words, odd = words_of(maker, release, lambda cells, words: cells.append(said))
    assert words.count("[") < 30_002
    assert words.endswith(picture)
    assert f"{maker.words.id}: is cut after 30000 letters" in odd


def test_nothing_is_kept_of_a_notebook_but_what_answers_need():
    """Metadata once took half a gigabyte for each file, and, nested deeply, stopped the
    grading of a class; a type of a cell stood in the report."""
    deep = {}
    for _ in range(900):
        deep = {"a": deep}
    cell = {"cell_type": "NOT GRADED", "metadata": {"nbgrader": deep, "b": [deep]}}
    [read] = read_cells(json.dumps({"cells": [cell]}).encode())
    assert read == {"cell_type": "raw", "source": "", "grade_id": None, "ran": 0}


PNG = "iVBORw0KGgo="


def test_pictures_pasted_into_words_stay():
    """Colab writes them into the text, Jupyter beside it."""
    picture = f"![a.png](data:image/png;base64,{PNG})"
    assert inert(f"{picture} [a](b)") == f"{picture} [a] (b)"
    assert inert(r"$\mmlToken{mi}[href='a']{b}$") == r"$\text{mi}[href='a']{b}$"
    script = "![a](data:text/html;base64,AA==)"
    assert inert(script) == "![a] (data:text/html;base64,AA==)"
    attached = {"a.png": {"image/png": PNG}}
    cell = {"source": "![a.png](attachment:a.png)", "attachments": attached}
    [read] = read_cells(json.dumps({"cells": [cell]}).encode())
    assert read["source"] == picture


def test_tests_and_setup_never_come_from_the_student(maker, release):
    changed = cells_of(maker.right())
    for cell in changed:
        if cell["source"].startswith(("check(", "try:", "import torch")):
            cell["source"] = "EVIL = 1"
    made, odd = normalise(release, changed)
    tests = [e.test for e in exercises(made) if not e.in_words]
    assert not [i for i in tests if "EVIL" in made.cells[i].source]
    assert not [c for c in run_for(made, 0) if "install" in c]
    assert sum("test cell is gone" in note for note in odd) == len(maker.code)


@pytest.mark.parametrize(
    ("source", "note"),
    [
        (
            "from annotated.attention import MultiHeadAttention as M",
            "takes annotated.attention.MultiHeadAttention from the book's module",
        ),
        ("import annotated.masks", "takes annotated.masks from the book's module"),
        (
            "torch.nn.functional.scaled_dot_product_attention(q, k, v)",
            "calls PyTorch's own scaled_dot_product_attention",
        ),
        ("torch.allclose = print", "assigns torch.allclose"),
        ("def check(*a): pass", "defines its own check"),
        ("__import__('os')", "contains __import__"),
        ("nn.MultiheadAttention(4, 1)", "calls PyTorch's own MultiheadAttention"),
        (
            "from torch.nn import MultiheadAttention as M",
            "calls PyTorch's own Multihead",
        ),
        ("from keras.layers import Attention", "imports keras"),
        ("import torch._inductor as i", "imports torch._inductor"),
        ("from sys import modules", "imports sys"),
        ("import os as o\no.write(4, reply)", "imports os"),
        (
            "import annotated as a\na.checks.material.tied = f",
            "takes annotated.checks.material.tied from the book's module",
        ),
        ("import math as m\nm.sqrt = f", "assigns m.sqrt"),
        (
            "from torch.nn import functional as G\n"
            "G.scaled_dot_product_attention(q, k, v)",
            "calls PyTorch's own scaled_dot_product_attention",
        ),
        ("getattr(f, 'express' 'ion')", "contains getattr"),
        ("from operator import attrgetter", "imports operator.attrgetter"),
        ("match f:\n case object(__closure__=c): ...", "contains __closure__"),
        ("vars(f)['express' 'ion']", "contains vars"),
        ("torch.equal, n = 1, 2", "assigns torch.equal"),
        ("_ = %pwd\nimport keras  #?", "imports keras"),
        ("import keras; _ = %pwd", "imports keras"),
        ("%time import keras", "imports keras"),
        ("f.expression in KNOWN", "contains .expression"),
        ("annotated" + ".a" * 900, "takes annotated.a.a.a"),
        ("-" * 5000 + "1", "is nested too deeply to be looked at"),
        (
            "_ = %pwd\nsdpa?\nfrom annotated import attention",
            "takes annotated.attention from the book's module",
        ),
        ("def f(:\nfrom annotated import attention", "is no Python that could be"),
        (
            "import annotated.checks as c",
            "takes annotated.checks from the book's module",
        ),
        (
            "from torch.nn.functional import scaled_dot_product_attention as s",
            "calls PyTorch's own scaled_dot_product_attention",
        ),
        # each of these once earned points without a word
        ("import asyncio\nasyncio.run(asyncio.to_thread(f))", "imports asyncio"),
        ("@torch.jit.script\ndef f(x): return x", "contains .jit"),
        ("t = torch\nt.fx.symbolic_trace(f).code", "contains .fx"),
        ("torch.overrides._pop_mode_temporarily()", "contains ._pop_mode_temporarily"),
        ("from torch.overrides import _pop_mode as p", "imports torch.overrides._pop"),
        ("torch.importlib.import_module(name)", "contains .importlib"),
        (
            "import operator as o\no.methodcaller('Multihead' 'Attention', 4, 1)(m)",
            "contains .methodcaller",
        ),
        ("look = getattr\nlook(f, 'express' 'ion')", "contains getattr"),
        ("json.dumps(f, default=vars)", "contains vars"),
        ("import string\nstring.Formatter().get_field('0.a', f, {})", "imports string"),
        ("'{0.express' 'ion}'.format(f)", "contains .format"),
        ("text.format(f)", "contains .format"),
        ("f.__reduce_ex__(2)", "contains .__reduce_ex__"),
        ("import typing\ntyping.get_type_hints(A)", "contains .get_type_hints"),
        ("enum.bltns.exec(text)", "contains .bltns"),
        ("@f.register\ndef g(x: 'exec(text)'): ...", "contains .register"),
        ("torch.utils.benchmark.Timer(stmt=text).timeit(1)", "contains .Timer"),
        ("np.savetxt('m.py', [text], fmt='%s')", "contains .savetxt"),
        ("%run m.py", "contains %run"),
        ("import code\ncode.InteractiveInterpreter()", "imports code"),
        ("import timeit\ntimeit.timeit(text)", "imports timeit"),
        ("f(x.requires_grad_()).grad_fn", "contains .grad_fn"),
        (
            "class Spy(torch.Tensor):\n def __torch_function__(*a): ...",
            "defines its own __torch_function__",
        ),
    ],
)
def test_what_a_person_should_look_at(source, note):
    assert [found for found in suspicions(source) if found.startswith(note)]


def test_a_flood_of_what_is_odd_ends(maker, release):
    cells = cells_of(maker.right())
    cells.insert(2, coded("\n".join(f"f._{number}" for number in range(9999))))
    _, odd = normalise(release, cells)
    assert len(odd) < 50
    assert "more of this kind" in odd[-1]


def test_where_a_rule_could_not_be_watched_the_report_says_so():
    solved = read_exercises(source_of("17"), setup_cell())
    release, maker = student_notebook(solved), Maker(student_notebook(solved), solved)
    assert "not judged" not in str(normalise(release, cells_of(maker.right())))
    made = maker.right()
    for cell in made["cells"]:
        if cell["cell_type"] == "code" and "def " in cell["source"]:
            cell["source"] += "\n    return x.numpy()"
    _, odd = normalise(release, cells_of(made))
    said = {note.split(":")[0] for note in odd if "not judged (uses NumPy" in note}
    assert said == {f"ch17-{n}" for n in ("count", "online", "backward", "chunks")}


def test_nobody_is_accused_of_what_the_book_has_done():
    source = "import annotated.attention as m\nm.scaled_dot_product_attention(q, k, v)"
    assert suspicions(source) == ["takes annotated.attention from the book's module"]


@pytest.mark.parametrize("source", sources(), ids=lambda path: path.stem)
def test_ordinary_answers_raise_no_suspicion(source):
    notebook = read_exercises(source, setup_cell())
    for exercise in exercises(notebook):
        if not exercise.in_words:
            assert suspicions(solution(notebook.cells[exercise.answer])) == []


def test_a_check_may_stand_in_a_loop(maker, release):
    changed = cells_of(maker.right())
    calls = [f"({e.id!r}, {e.function})" for e in maker.code]
    for cell in changed:
        if cell["source"].startswith("check("):
            cell["source"] = f"for pair in [{', '.join(calls)}]:\n    check(*pair)"
    _, odd = normalise(release, changed)
    assert not [note for note in odd if "is gone" in note]


@pytest.mark.parametrize(
    "source",
    [
        "from annotated.checks import check",
        "from annotated.checks.material import in_a_ring",
        "class A:\n def __init__(self):\n  super().__init__()\n  self._a = 1",
        "model.eval()\nprint('{:.3f} of {n}'.format(1, n=2))",
        "import time, math, numpy as np\nprint(np.__version__, math.pi, __name__)",
    ],
)
def test_ordinary_cells_raise_no_suspicion(source):
    assert suspicions(source) == []
