# Everything starts from nothing: the first command makes the environment in .venv.
VENV   := .venv
PYTHON ?= python3
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
JOBS   ?= 2

.DEFAULT_GOAL := help
.PHONY: help run test test-all check format bench reproduce-all reproduce-friedman docs-check clean distclean

help: ## list what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	@touch $@

run: $(STAMP) ## set up, run the quickstart on embedded synthetic ratings, print its crossing table
	$(BIN)/dpmf run configs/quickstart.yaml

test: $(STAMP) ## set up and run the fast tests
	$(BIN)/python -m pytest -m "not slow"

test-all: $(STAMP) ## all tests, the slow ones too
	$(BIN)/python -m pytest

check: $(STAMP) ## lint, types, formatting, the committed schema
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/dpmf schema | cmp - configs/schema.json

format: $(STAMP) ## format the code and write the schema anew
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	$(BIN)/dpmf schema > configs/schema.json

bench: $(STAMP) ## speed against Cornac and Surprise, in one run
	$(BIN)/python -m pip install --quiet -e '.[bench]'
	$(BIN)/python -m tests.benchmarks.peers

reproduce-all: reproduce-friedman ## every paper that can be reproduced so far, on the data at hand

reproduce-friedman: $(STAMP) ## Friedman et al. 2016: table 4's PGE and ISGD on ML-100K and ML-1M
	$(BIN)/dpmf run configs/ml100k_bounded.yaml -j $(JOBS)
	$(BIN)/dpmf run configs/ml1m_bounded.yaml -j $(JOBS)
	$(BIN)/dpmf crossings

clean: ## remove results and caches of tools, keep the environment and data
	find results -mindepth 1 ! -name README.md -delete
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean ## remove the environment too
	rm -rf $(VENV)
