# The commands of a checkout. Every target sets up what it needs; `make setup` is quick the second time.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
WORKERS ?= 2

.PHONY: setup demo test test-all lint figures notebook corpus site clean

# The package and its tools, then an nvcc: the one that cccopt finds, or else the one from PyPI (extra `cu13`).
setup: $(VENV)/.setup
	@$(BIN)/python -m cccopt.toolchain.discovery >/dev/null 2>&1 \
	  || { echo "no usable nvcc here: installing one from PyPI"; $(BIN)/python -m pip install -q -e ".[cu13]"; }

$(VENV)/.setup: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo "cccopt needs Python 3.10 or newer: make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -e ".[dev]"
	@touch $@

demo: setup
	$(BIN)/cccopt bench --demo
	@$(BIN)/python bench/figures.py build/demo
	@echo "One warp before and after, drawn from what the emulator ran: build/demo/warp.svg"
	@echo "Next, what became of each annotation: $(BIN)/cccopt explain samples/bfs/bfs.cu --ccc always"

# All but the slow tests that tests/test-all.txt lists.
test: setup lint
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "not slow"

test-all: setup lint
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The pictures of README and docs, from what the emulator does.
figures: setup
	$(BIN)/python bench/figures.py

# What docs/first-look.ipynb shows, from a run of it.
notebook: setup
	$(BIN)/python -m bench.notebook

# PTX of every compiler that is to be had here, made from our own sources, and how it fares (docs/corpus.md).
corpus: setup
	$(BIN)/python -m pip install -q -e ".[corpus]"
	$(BIN)/python -m tests.corpus.build
	$(BIN)/python -m bench.ptx_ladder

# The documentation as a site that any host of static files serves, in build/site. Broken links are errors, and so is
# whatever a page would load from elsewhere.
site: setup
	$(BIN)/python -m pip install -q -e ".[site]"
	$(BIN)/python -m bench.docs_site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict -f docs/mkdocs.yml
	$(BIN)/python -m bench.site_check

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
