# One verb for each habit. Every target makes the environment it needs.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: env demo test test-long test-pythons check format bench clean
.DEFAULT_GOAL := help

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

env: $(READY)  ## the environment, in .venv

# Built beside and stamped last, so that an interrupted build is repaired by the next run.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "tacit needs Python 3.11 or newer; try: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing tacit into .venv (about a minute the first time) ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(READY)

demo: env  ## the main job, one machine, no configuration
	@$(BIN)/tacit demo

# The hundreds of processes that the tests start compile the source once, not each for itself.
test test-long: export PYTHONDONTWRITEBYTECODE =

test: env  ## all tests but the long ones, on all cores
	@$(BIN)/python -m pytest -n auto --dist worksteal

test-long: env  ## the tests that take long: many random cases
	@$(BIN)/python -m pytest -n auto --dist worksteal -m long

test-pythons: env  ## the distribution's Python and the newest one: what depends on Python itself
	@.ci/pythons

check: env  ## lint, types, import arrows
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -p no:xdist tests/test_architecture.py

format: env  ## rewrite the source in the house style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: env  ## side-by-side measurements, printed as ratios
	@$(BIN)/tacit bench

clean:  ## remove the environment and everything generated
	rm -rf .venv demo .mypy_cache .pytest_cache .ruff_cache .hypothesis
