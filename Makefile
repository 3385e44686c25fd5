# Everything starts from nothing: the first command makes the environment in .venv.
VENV   := .venv
PYTHON ?= python3
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
JOBS   ?= 2

.DEFAULT_GOAL := help
.PHONY: help run test check format bench reproduce-all reproduce-friedman \
	reproduce-mcsherry reproduce-zhang reproduce-neera search-friedman scale clean distclean

help: ## list what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	@touch $@

run: $(STAMP) ## set up, run the quickstart on embedded synthetic ratings, print its crossing table
	$(BIN)/dpmf run configs/quickstart.yaml

test: $(STAMP) ## set up and run the tests
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

bench: $(STAMP) ## speed against Cornac, Surprise, cmfrec and LensKit, in one run
	$(BIN)/python -m pip install --quiet -e '.[bench]'
	$(BIN)/python -m tests.benchmarks.peers

SCALE := ml100k ml1m ml10m netflix

scale: $(STAMP) ## time and memory from 10^5 to 10^8 ratings (docs/scale.md); 4 GiB free and half an hour
	$(BIN)/python -m tests.benchmarks.scale $(SCALE:%=configs/scale_%.yaml)

reproduce-all: reproduce-friedman reproduce-mcsherry reproduce-zhang reproduce-neera ## every paper that can be reproduced so far, on the data at hand

FRIEDMAN := ml100k_bounded ml1m_bounded ml100k_unbounded ml1m_unbounded \
	ml100k_bounded_corrected ml1m_bounded_corrected ml100k_unbounded_corrected ml1m_unbounded_corrected \
	netflix_sample_bounded netflix_sample_unbounded \
	friedman_fig3a friedman_fig3b friedman_fig5a friedman_fig5b friedman_fig6
FRIEDMAN_TWIN := synthetic_ml10m_bounded friedman_fig3b_synthetic_ml10m synthetic_ml10m_unbounded

reproduce-friedman: $(STAMP) ## Friedman et al. 2016: tables 2-5 and figures 2-6, on the data at hand
	@for config in $(FRIEDMAN) $(FRIEDMAN_TWIN); do $(BIN)/dpmf run configs/$$config.yaml -j $(JOBS) > /dev/null || exit 1; done
	@for set in ml-100k ml-1m ml-10m netflix netflix-sample; do $(BIN)/dpmf datasets info $$set; echo; done > results/table2.txt
	$(BIN)/dpmf baselines --format md > results/table3.md
	$(BIN)/dpmf crossings --printed --format md > results/tables4and5.md
	$(BIN)/dpmf crossings --printed

MCSHERRY := mcsherry_fig1_ml1m mcsherry_fig1_ml1m_corrected mcsherry_laplace_ml1m mcsherry_user_ml1m mcsherry_refitted_ml1m \
	mcsherry_fig2_ml1m mcsherry_fig1_netflix_sample mcsherry_fig1_netflix_sample_corrected mcsherry_fig2_netflix_sample
MCSHERRY_SIZE := mcsherry_synthetic_ml10m mcsherry_synthetic_netflix

reproduce-mcsherry: $(STAMP) ## McSherry and Mironov 2009: figures 1 and 2, on the data at hand
	@for config in $(MCSHERRY); do $(BIN)/dpmf run configs/$$config.yaml -j $(JOBS) > /dev/null || exit 1; done
	@for config in $(MCSHERRY_SIZE); do $(BIN)/dpmf run configs/$$config.yaml -j 1 > /dev/null || exit 1; done
	$(BIN)/dpmf crossings $(MCSHERRY:%=configs/%.yaml) --format md > results/mcsherry.md
	$(BIN)/dpmf crossings $(MCSHERRY:%=configs/%.yaml)

ZHANG := $(foreach figure,fig2 fig3 fig4,$(foreach set,ml100k ml1m netflix_sample,zhang_$(figure)_$(set))) \
	zhang_fig5_ml100k zhang_beyond_ml100k zhang_beyond_ml1m zhang_corrected_ml1m zhang_open_ml1m

reproduce-zhang: $(STAMP) ## Zhang et al. 2018: figures 2-5, and other mechanisms personalised, on the data at hand
	@for config in $(ZHANG); do $(BIN)/dpmf run configs/$$config.yaml -j $(JOBS) > /dev/null || exit 1; done
	$(BIN)/dpmf baselines $(ZHANG:%=configs/%.yaml)

NEERA := neera_fig3_ml100k neera_fig4_ml100k neera_fig4_jester neera_fig4_jester_half

reproduce-neera: $(STAMP) ## Neera et al. 2020: figures 2-4, table 1 and the improvements over ISGD
	@for config in $(NEERA); do $(BIN)/dpmf run configs/$$config.yaml -j $(JOBS) > /dev/null || exit 1; done
	$(BIN)/dpmf local noise results/neera_fig2.png
	$(BIN)/dpmf local traffic configs/neera_fig3_ml100k.yaml --format md > results/neera_table1.md
	$(BIN)/dpmf local improvements $(NEERA:%=configs/%.yaml) --format md > results/neera_improvements.md
	$(BIN)/dpmf local improvements $(NEERA:%=configs/%.yaml)

search-friedman: $(STAMP) ## the search for what Friedman et al. 2016 leave unstated (docs/papers/friedman2016.md)
	@for config in configs/search_*.yaml; do $(BIN)/dpmf run $$config -j $(JOBS) || exit 1; done

clean: ## remove results and caches of tools, keep the environment and data
	find results -mindepth 1 ! -name README.md -delete
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean ## remove the environment too
	rm -rf $(VENV)
