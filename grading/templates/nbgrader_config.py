# Settings of an nbgrader course: `make assignment` copies this file into the course.
# nbgrader finds the plugins of `grading` with PYTHONPATH set to the repository.
from pathlib import Path

c = get_config()  # noqa: F821
course = Path(__file__).resolve().parent

c.CourseDirectory.root = str(course)
c.CourseDirectory.course_id = course.name
# the course's own, not that of whoever once used nbgrader on this machine
c.CourseDirectory.db_url = f"sqlite:///{course / 'gradebook.db'}"

# What the student notebooks of the book hold, too (tools/exercises.py).
c.ClearSolutions.code_stub = {"python": "# your code here\nraise NotImplementedError()"}
c.ClearSolutions.text_stub = "*Your answer here.*"

# No kernel: answers run in processes of their own, their results are judged outside.
c.Autograde.autograde_preprocessors = [
    "grading.plugins.JudgeAnswers",
    "nbconvert.preprocessors.ClearMetadataPreprocessor",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.JudgeAnswers.course = str(course)
c.JudgeAnswers.seconds = 8.0  # for one exercise, all its tests together
# "bubblewrap", "nobody" or "none"; empty takes the first of them that works
c.JudgeAnswers.sandbox = ""

# Whatever stands in a student's text, no script of it runs in a reader's browser.
c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.GetGrades",
    "nbconvert.preprocessors.sanitize.SanitizeHTML",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]
c.SanitizeHTML.enabled = True
