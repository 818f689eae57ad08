"""What builds the book; here, where its notebooks are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

CHAPTERS = "notebooks"
STUDENT = "notebooks/exercises"  # for students: without solutions
PAGES = "book/exercises"  # of the book, made by the build
SOURCES = {CHAPTERS: "notebooks/src", STUDENT: "notebooks/src/exercises"}
