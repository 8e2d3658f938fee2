# The two commands a newcomer needs: make demo, make test.

# The first interpreter that is new enough; `make PYTHON=...` chooses another.
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13 python3.14; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

VENV := .venv
BIN := $(VENV)/bin
DEMO := $(VENV)/.demo
TOOLS := $(VENV)/.tools
DOCS := $(VENV)/.docs

# File by file in the order of their names: a file of few and long tests is not left for the end, where one core waits.
ON_ALL_CORES := -n auto --dist loadfile --no-loadscope-reorder

.PHONY: demo test test-more test-long fuzz contract-versions lint bench docs reproduce clean
.DELETE_ON_ERROR:

demo: $(DEMO)
	$(BIN)/python examples/demo.py

test: lint
	$(BIN)/python -m pytest $(ON_ALL_CORES)

# What `make test` leaves out of many cases alike; the build server runs both.
test-more: $(TOOLS)
	$(BIN)/python -m pytest $(ON_ALL_CORES) -m "more and not long"

test-long: lint
	$(BIN)/python -m pytest --cov $(ON_ALL_CORES) -m ""

# Looks for new cases that break a promise; `make fuzz SECONDS=3600 SEED=7` for longer, or again.
SECONDS ?= 600

fuzz: $(TOOLS)
	$(BIN)/python -m tests.adversary.search --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

# The engine contract on the lowest and the highest versions that are admitted; installs both, and takes an hour.
contract-versions: $(TOOLS)
	$(BIN)/python tools/versions.py

lint: $(TOOLS)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# All of them take hours; `make bench ONLY="sampling ledger"` runs some, `BENCH_QUICK=1 make bench` tries all.
bench: $(TOOLS)
	$(BIN)/python -m benchmarks $(ONLY)

docs: $(DOCS)
	$(BIN)/sphinx-build -W --keep-going -b html docs build/docs

reproduce: $(TOOLS)
	$(BIN)/python -m reproduction

clean:
	rm -rf $(VENV) build dist .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "inbounds needs Python 3.11 or newer; none found. Try make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# What a user needs; the tools bring it too, with much that only tests need.
$(DEMO): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[query,plots,cli]"
	@touch $@

$(TOOLS): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	@touch $@

$(DOCS): pyproject.toml $(TOOLS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	@touch $@
