# `make install` once, then `make demo`, `make check` while working, `make test` for everything.
# All of it lives in .venv; a second run starts at once, until pyproject.toml changes.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?= -n auto

.DEFAULT_GOAL := help
.PHONY: help install demo test check format bench clean

help:
	@echo "make install   the library and the command, in $(VENV)"
	@echo "make demo      a guided tour of the command"
	@echo "make check     style, types, import rules and the fast tests: under two minutes"
	@echo "make test      everything, part of it without the compiler too"
	@echo "make format    let ruff rewrite what it can"
	@echo "make bench     the benchmarks; SLACKWATER_DATA names the folder of the real data sets"
	@echo "make clean     remove what these commands have made"

# The pip that comes with Python 3.11 knows no dependency groups (PEP 735): renew it first.
$(VENV)/.pip:
	@$(PYTHON) -c 'import sys; sys.exit("Slackwater needs Python 3.11 or later" if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@touch $@

$(VENV)/.install: pyproject.toml $(VENV)/.pip
	$(BIN)/python -m pip install --quiet --editable ".[cli]"
	@touch $@

$(VENV)/.dev: $(VENV)/.install
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@

install: $(VENV)/.install

demo: $(VENV)/.install
	@$(BIN)/slackwater demo

test: $(VENV)/.dev
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -m interpreted $(PYTEST_ARGS)
	$(BIN)/python -m pytest $(PYTEST_ARGS)

check: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -m "not slow" $(PYTEST_ARGS)

format: $(VENV)/.dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(VENV)/.install
	@for script in $$(grep -l __main__ benchmarks/*.py); do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
