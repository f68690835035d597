# One entry for every task; `.venv` is made on first use from the lock file.
# PYTHON=/path/to/python chooses the interpreter (3.11 to 3.13).

PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
  $$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
  && { echo $$python; break; }; done)
BIN := .venv/bin
STAMP := .venv/installed.stamp
TEST := $(BIN)/python -m pytest -m "not slow" --durations=15

.DEFAULT_GOAL := help
.PHONY: help demo test test-all check bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(STAMP) ## real images through tile kernels, then a table of the kernels
	$(BIN)/python -m demo.run

# Two processes side by side: one for the rooms, one for the compiler as a whole, which is shown last.
test: $(STAMP) ## the tests that fit a coffee break, slowest listed
	@mkdir -p build
	@$(TEST) --ignore=tests/unit > build/test-whole.txt 2>&1 & whole=$$!; \
	  trap 'kill $$whole' INT TERM; \
	  $(TEST) tests/unit; rooms=$$?; \
	  wait $$whole; status=$$?; cat build/test-whole.txt; \
	  test $$rooms -eq 0 && test $$status -eq 0

test-all: $(STAMP) ## every test
	$(BIN)/python -m pytest --durations=25

check: $(STAMP) ## lint, format, types, import order, structure
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest tests/structure -q

bench: $(STAMP) ## paired measurements against NumPy and torch
	$(BIN)/python -m benchmarks.run

clean: ## remove builds and caches, keep .venv
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -path ./.venv -prune -o \( -name __pycache__ -o -name '*.egg-info' \) -type d \
	  -prune -exec rm -rf {} +

# A system Python without ensurepip still has its own pip, which can fill another environment.
$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "tilenest needs Python 3.11, 3.12 or 3.13" >&2; exit 1; }
	$(PYTHON) -m venv .venv || { $(PYTHON) -m venv --clear --without-pip .venv \
	  && $(PYTHON) -m pip --python $(BIN)/python install pip; }

$(STAMP): pyproject.toml requirements-dev.lock | $(BIN)/python
	$(BIN)/python -m pip install --disable-pip-version-check -r requirements-dev.lock
	$(BIN)/python -m pip install --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
