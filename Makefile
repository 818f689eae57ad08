# The commands of the book; `make` alone lists them.

PYTHON ?= python3
BIN := .venv/bin
PY := $(BIN)/python
INSTALLED := .venv/.installed
PIP := $(PY) -m pip install --disable-pip-version-check $(if $(CI),--quiet)
PYTEST := $(PY) -m pytest -q
# What `make test` leaves to `make test-all`; of large families it also takes a sample
# (tests/sample.py).
TESTS := $(PYTEST) $(if $(ANNOTATED_ALL),,-m "not slow")

# One thread a process: several run side by side, and threads that wait must not spin.
export OMP_NUM_THREADS = 1
export OMP_WAIT_POLICY = PASSIVE
# PyTorch 2.13 that is told to do without AVX-512 still packs as oneDNN would with it.
ifneq ($(filter default avx2,$(ATEN_CPU_CAPABILITY)),)
export ONEDNN_MAX_CPU_ISA ?= AVX2
endif
# Progress appears when it happens, also in a log.
export PYTHONUNBUFFERED = 1

.NOTPARALLEL:
.DEFAULT_GOAL := help

.PHONY: help
help: ## this list
	@echo "make TARGET, where TARGET is one of"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | \
		awk -F'|' '{ printf "%-14s %s\n", $$1, $$2 }'
	@echo "PYTHON=... chooses the Python (3.11 or newer) that .venv is made with."

# ---- installation ----------------------------------------------------------

$(INSTALLED): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "This needs Python 3.11 or newer, and '$(PYTHON)' is:" \
			"$$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12 ..." >&2; exit 1; }
	@test -x $(PY) || $(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
		echo "'$(PYTHON)' cannot make virtual environments. On Debian and Ubuntu:" \
			"apt-get install python3-venv" >&2; exit 1; }
	@echo "Installing into .venv (minutes, the first time) ..."
	@test -x $(PY) || $(PYTHON) -m venv .venv
	@$(PIP) -r requirements.txt
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

# ---- the book --------------------------------------------------------------

# Warnings are errors. Sphinx repeats none about a page that it skips, so it may skip
# pages only after a build without any. (make serve does with warnings, to be quick.)
STRICT = $(if $(CI),--all) -W --keep-going
NO_WARNING := _build/.no-warning

.PHONY: book
book: executed ## build the book: notebooks, their outputs, the HTML; warnings are errors
	@echo "== HTML"
	@test -z "$(STRICT)" -o -e $(NO_WARNING) || rm -rf _build/.doctrees
	@rm -f $(NO_WARNING)
	@$(PY) $(BIN)/jupyter-book build . $(STRICT)
	@test -z "$(STRICT)" || touch $(NO_WARNING)
	@$(PY) -m tools.findings
	@echo "The book: _build/html/index.html (open that file, or run: make serve)"

.PHONY: pdf
pdf: book ## every page as a PDF and the whole book, in _build/pdf: make pdf NAME=04 for one
	@$(PY) -m tools.pdf $(NAME)

ARCHIVE := annotated-transformers

.PHONY: archive
archive: book ## the site, which opens from a disk, and the notebooks: two files in _build
	@rm -f _build/$(ARCHIVE)-*.zip
	@cd _build/html && $(abspath $(PY)) -m zipfile -c ../$(ARCHIVE)-html.zip .
	@$(PY) -m zipfile -c _build/$(ARCHIVE)-notebooks.zip notebooks/*.ipynb notebooks/exercises
	@ls -lh _build/$(ARCHIVE)-*.zip

# A hedge: Jupyter Book 1 stays with Sphinx 7. The newer packages come first on the path.
SPHINX9 := .sphinx9

$(SPHINX9)/.installed: tools/sphinx9/requirements.txt
	@$(PIP) --quiet --target $(SPHINX9) --upgrade -r $<
	@touch $@

.PHONY: sphinx9
sphinx9: executed $(SPHINX9)/.installed ## the book on plain Sphinx 9, without Jupyter Book: _build/sphinx9
	@PYTHONPATH=$(SPHINX9):. $(PY) -m sphinx -b html -c tools/sphinx9 --keep-going -W \
		. _build/sphinx9

.PHONY: page
page: notebooks ## execute and build one page alone, quickly: make page NAME=13b
	@$(PY) -m tools.page "$(NAME)"

.PHONY: serve
serve: book ## show the book on localhost and keep it up to date
	@$(PY) -m tools.serve

.PHONY: lab
lab: notebooks ## JupyterLab, to work in the notebooks
	@$(BIN)/jupyter lab --allow-root notebooks

.PHONY: notebooks
notebooks: $(INSTALLED) ## generate notebooks/*.ipynb from notebooks/src/*.py
	@echo "== notebooks from their sources"
	@$(PY) -m tools.notebooks

.PHONY: executed
executed: notebooks
	@echo "== every notebook, executed by nbval if the cache lacks it"
	@$(PY) -m tools.execute

# ---- tests -----------------------------------------------------------------

STAGES := test-lint test-in-step test-notebooks test-unit test-mutants test-exercises test-site

.PHONY: test
test: $(INSTALLED) ## 15 minutes: every notebook, unit tests, exercises, pages in a browser
	@failed=; for stage in $(STAGES); do \
		$(MAKE) --no-print-directory $$stage || failed="$$failed $$stage"; done; \
	test -z "$$failed" || { echo "Failed:$$failed" >&2; exit 1; }
	@echo "All tests passed."

.PHONY: test-all
test-all: ## everything, weekly and before a release: slow tests, every fault, every sample
	@$(MAKE) --no-print-directory test ANNOTATED_ALL=1

.PHONY: $(STAGES)
test-lint: $(INSTALLED)
	@echo "== lint"
	@$(PY) -m ruff check
	@$(PY) -m ruff format --check
	@$(PY) -m check_jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@$(BIN)/zizmor --offline --quiet .github/workflows
	@$(PY) -m check_jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

test-in-step: $(INSTALLED)
	@echo "== generated files in step with their sources"
	@$(PY) -m tools.notebooks --check
	@$(PY) -m tools.vendor --check

test-unit: $(INSTALLED)
	@echo "== unit tests, shapes and types checked"
	@$(TESTS) tests --ignore=tests/site --ignore=tests/exercises -n 2 --dist loadscope

test-mutants: $(INSTALLED)
	@echo "== mutants: do the tests find the faults that are put into what changed?"
	@$(PY) -m tests.mutants $(if $(ANNOTATED_ALL),--all)

test-exercises: $(INSTALLED)
	@echo "== exercises, and a class graded"
	@$(TESTS) tests/exercises -n 2 --dist loadfile

test-notebooks: executed
	@$(PY) -m tools.findings --strict
	@$(PY) -m tools.numbers

test-site: book
	@echo "== the built pages in a browser"
	@$(TESTS) tests/site -n 2 --dist worksteal

.PHONY: look
look: book ## every page at five widths, light and dark, touched: what is cut, too small, or moves
	@$(PY) -m tests.site.look

.PHONY: gpu
gpu: ## ten minutes on a CUDA card, and again what is missing: book/results/gpu (NAME=... for some)
	@$(if $(wildcard $(PY)),$(PY),$(PYTHON)) -m tools.gpu $(NAME)

.PHONY: test-gpu
test-gpu: $(INSTALLED) ## every notebook with its GPU configuration (says so without a GPU)
	@if $(PY) -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then \
		ANNOTATED_DEVICE=cuda $(PYTEST) --nbval-lax --nbval-cell-timeout=1800 \
			notebooks/*.ipynb; \
	else echo "No CUDA GPU here: nothing to test."; fi

.PHONY: laboratory
laboratory: $(INSTALLED) ## run every experiment of the laboratory in a browser, three seeds each
	@LABORATORY=all $(PYTEST) tests/site/test_laboratory_runs.py

.PHONY: colab
colab: $(INSTALLED) ## run notebooks as Colab would, alone and with its versions (NOTEBOOKS=... for some)
	@$(PY) -m tools.colab $(NOTEBOOKS)

.PHONY: assignment
assignment: $(INSTALLED) ## an nbgrader course of a chapter's exercises: make assignment CHAPTER=02 COURSE=../autumn
	@$(PY) -m grading assignment "$(CHAPTER)" "$(or $(COURSE),course)"

.PHONY: grade
grade: $(INSTALLED) ## grade what is in a course's inbox: make grade COURSE=../autumn (STUDENT=ada CHAPTER=02: anew)
	@$(PY) -m grading grade "$(or $(COURSE),course)" \
		$(if $(STUDENT),--student "$(STUDENT)") $(if $(CHAPTER),--chapter "$(CHAPTER)")

.PHONY: export
export: $(INSTALLED) ## take over marks given by hand, without grading again: make export COURSE=../autumn
	@$(PY) -m grading export "$(or $(COURSE),course)"

# ---- upkeep ----------------------------------------------------------------

# The peers that the benchmarks compare with have needs of their own.
BENCH := .venv-bench

$(BENCH)/.installed: requirements.txt pyproject.toml
	@echo "Installing into $(BENCH) (minutes, the first time) ..."
	@$(PYTHON) -m venv $(BENCH)
	@$(BENCH)/bin/python -m pip install --disable-pip-version-check --quiet \
		--constraint requirements.txt --editable ".[notebooks,bench]"
	@touch $@

.PHONY: bench
bench: $(BENCH)/.installed ## repeat the recorded runs in book/results (long), or some: NAME=lsh_cost
	@$(BENCH)/bin/python -m benchmarks $(NAME)

.PHONY: official
official: $(BENCH)/.installed ## what the published GPT-2 and BERT give: book/results/official (FOLDER=... holds their files)
	@$(BENCH)/bin/python -m tools.official $(if $(FOLDER),"$(FOLDER)")

.PHONY: machines
machines: $(INSTALLED) ## what notebooks find on thirty other machines, simulated (hours; NOTEBOOKS=... for some)
	@$(PY) -m tools.machines $(NOTEBOOKS)

.PHONY: repository
repository: $(INSTALLED) ## change the repository's address: make repository URL=https://github.com/OWNER/NAME
	@$(PY) -m tools.repository "$(URL)" $(if $(BRANCH),--branch "$(BRANCH)")

.PHONY: vendor
vendor: $(INSTALLED) ## fetch the browser code in book/vendor anew
	@$(PY) -m tools.vendor

.PHONY: clean
clean: ## remove all that is built, the cache in _build too (.venv stays)
	rm -rf _build build *.egg-info .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
