# Nothing but Python 3.11+ and make is assumed; `make demo` and `make test` do all set-up.
#   make PYTHON=/path/to/python3.12 test    to choose the interpreter

# the first Python on this machine that is new enough
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN  := $(VENV)/bin
PIP  := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# the oldest versions of all libraries that are claimed to do, in an environment of their own; with
# the oldest Python, for which alone these have been built
OLDEST := .venv-oldest
OLDEST_PYTHON ?= python3.11

.PHONY: demo check test oldest lint bench docs wheel clean

demo: $(VENV)/ready
	$(BIN)/softcount demo

# the fast lane: lint, types, laws, written-down results, and one of each estimator and command
FAST := tests/test_smoke.py tests/golden tests/examples tests/core/test_checks.py tests/core/test_import.py

check: lint
	$(BIN)/python -m pytest -q -n 2 $(FAST)

test: lint
	$(BIN)/python -m pytest -q -n 2

# code that one version of numba has compiled is of no use to another: it is kept apart
oldest: $(OLDEST)/ready
	NUMBA_CACHE_DIR=$(CURDIR)/$(OLDEST)/kernels \
	  $(OLDEST)/bin/python -m pytest -q -p no:cacheprovider tests/test_smoke.py

lint: $(VENV)/ready-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/ready-test
	$(BIN)/python -m pytest -q tests/test_docs.py src

bench: $(VENV)/ready-bench
	for script in benchmarks/[!_]*.py; do $(BIN)/python $$script || exit 1; done

# what users install, into dist/: a wheel for every platform, and where there is a baseline one with
# compiled kernels for this Python (docs/decisions/kernels.md)
wheel: $(VENV)/ready
	$(BIN)/python tools/build_kernels.py build/kernels
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	test ! -d build/kernels || SOFTCOUNT_KERNELS=$(CURDIR)/build/kernels \
	  $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

$(VENV)/created:
	@test -n "$(PYTHON)" || { echo "softcount needs Python 3.11 or newer: make PYTHON=… $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/ready: pyproject.toml $(VENV)/created
	$(PIP) -e .
	touch $@

$(VENV)/ready-test: pyproject.toml $(VENV)/created
	$(PIP) -e '.[test]'
	touch $@ $(VENV)/ready

$(VENV)/ready-bench: pyproject.toml $(VENV)/created
	$(PIP) -e '.[bench]'
	touch $@ $(VENV)/ready

$(OLDEST)/ready: pyproject.toml tests/oldest.py
	$(OLDEST_PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python tests/oldest.py > $(OLDEST)/oldest.txt
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check \
	  -r $(OLDEST)/oldest.txt -e . pytest hypothesis
	touch $@

clean:
	rm -rf $(VENV) $(OLDEST) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
