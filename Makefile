# Everything starts from nothing: the first command makes the environment in .venv.
VENV   := .venv
PYTHON ?= python3
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
JOBS   ?= 2

.DEFAULT_GOAL := help
.PHONY: help run test test-slow test-faults test-fuzz test-cluster check format pages bench audit audit-numeric audit-small explore explore-ml1m scale reproduce-all reproduce-small \
	reproduce-friedman reproduce-mcsherry reproduce-zhang reproduce-neera reproduce-wang reproduce-combined reproduce-frontier leaders \
	clean distclean

help: ## list what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml
	@echo "installing dpmf and what it needs into $(VENV)/: a few minutes"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	@touch $@

run: $(STAMP) ## set up, run the quickstart on embedded synthetic ratings, print its crossing table
	$(BIN)/dpmf run configs/quickstart.yaml

test: $(STAMP) ## set up and run the tests, but for the slow ones, in JOBS processes
	$(BIN)/python -m pytest -m "not slow" -n $(JOBS) --dist loadfile

test-slow: $(STAMP) ## the other tests: papers on real data, runs killed over and over, commands of all pages, a Dask cluster
	$(BIN)/python -m pytest -m slow

test-faults: $(STAMP) ## kill, interrupt, fill and damage runs some 2,900 times, and compare the bytes after each (docs/surviving.md)
	DPMF_FAULTS=full $(BIN)/python -m pytest tests/faults

test-fuzz: $(STAMP) ## every loader under some 155,500 broken files (docs/surviving.md)
	DPMF_FAULTS=full $(BIN)/python -m pytest tests/fuzz

test-cluster: $(STAMP) ## a Dask cluster whose workers and scheduler are killed, over and over, against a local run
	$(BIN)/python -m tests.cluster_suite

check: $(STAMP) ## lint, types, formatting, imports, the committed schema, reference and tables of docs/papers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/dpmf schema | cmp - configs/schema.json
	$(BIN)/dpmf docs | cmp - docs/reference.md
	@for page in docs/papers/*.md; do $(BIN)/dpmf docs $$page | cmp - $$page || exit 1; done

format: $(STAMP) ## format the code, write schema, reference and tables of docs/papers anew
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	$(BIN)/dpmf schema $(call into,configs/schema.json)
	$(BIN)/dpmf docs $(call into,docs/reference.md)
	@for page in docs/papers/*.md; do $(BIN)/dpmf docs $$page $(call into,$$page); done

pages: $(STAMP) ## write docs/papers anew, with what its commands say of the results at hand
	@for page in docs/papers/*.md; do $(BIN)/dpmf docs $$page --results results $(call into,$$page); done

bench: $(STAMP) ## speed against Cornac, Surprise, cmfrec and LensKit, in one run
	$(BIN)/python -m pip install --quiet -e '.[bench]'
	$(BIN)/python -m tests.benchmarks.peers

audit: $(STAMP) ## hold every ε against what runs: all algorithms; results/audit.md and results/audit.csv
	$(BIN)/dpmf audit --all --bits -j $(JOBS)

audit-numeric: $(STAMP) ## the same with rows of up to 95,000 ratings whose sums hover at powers of two; an hour
	$(BIN)/dpmf audit --all --numeric -j $(JOBS)

audit-small: $(STAMP) ## the same on one small pair of each kind, in minutes; results/small/audit.md
	$(BIN)/dpmf audit --all --pairs 7 --results results/small -j $(JOBS) > /dev/null

explore: $(STAMP) ## try what the papers leave open on ML-100K and judge their claims (docs/exploring.md); under an hour
	$(BIN)/dpmf explore --all --record docs/papers/explored -j $(JOBS)

explore-ml1m: $(STAMP) ## the same on ML-1M, with fewer settings
	$(BIN)/dpmf explore --all --dataset ml-1m --record docs/papers/explored -j $(JOBS)

SCALE := ml100k ml1m ml10m netflix

scale: $(STAMP) ## time and memory from 10^5 to 10^8 ratings (docs/scale.md); 4 GiB free and three quarters of an hour
	$(BIN)/python -m tests.benchmarks.scale $(SCALE:%=configs/scale_%.yaml)

# Each part is timed; the report comes last, whatever a part's data lacked.
PARTS := friedman mcsherry zhang neera wang combined

reproduce-all: $(STAMP) ## every paper on the data at hand, resumed where it was left; ends with results/report.html
	@$(call timed,$(PARTS:%=reproduce-%),results)

reproduce-small: $(STAMP) ## the same on MovieLens 100K with one fold and run, in minutes; ends with results/small/report.html
	@$(call timed,$(PARTS:%=small-%),results/small)

# Makes the targets one after the other, writes the report of a results folder and says how long each took.
timed = mkdir -p $(2); begin=$$(date +%s); lines=""; \
	for part in $(1); do \
		start=$$(date +%s); $(MAKE) --no-print-directory $$part || exit 1; \
		lines="$$lines$$(printf '%-24s %6d s' $$part $$(($$(date +%s) - start)))\n"; \
	done; \
	start=$$(date +%s); $(BIN)/dpmf report --all --results $(2) || exit 1; \
	printf "$$lines"; printf '%-24s %6d s\n' report $$(($$(date +%s) - start)) all $$(($$(date +%s) - begin))

# Runs configs by name, $(1), with more options, $(2); one whose data are not here says how to get them.
run_each = for config in $(1); do \
	$(BIN)/dpmf run configs/$$config.yaml --if-present $(2) > /dev/null || exit 1; done

# The end of a command: what it prints becomes the file $(1), or where it fails nothing does.
into = > $(1).part && mv $(1).part $(1) || { rm -f $(1).part; exit 1; }

# Runs the configs of a paper, $(1), with more options, $(2). The papers' files have the lists: dpmf_cli/papers/.
run_paper = configs=$$($(BIN)/dpmf configs $(1)) || exit 1; $(call run_each,$$configs,$(2))

# What dpmf says, $(1), of those of the configs $(2) that were run, into the file $(3) or else printed. Without any it would
# speak of every result there is.
of_run = found=$$(for config in $(2); do ls -d results/$$config; done 2> /dev/null | sort); \
	if [ -n "$$found" ]; then $(BIN)/dpmf $(1) $$found $(if $(3),$(call into,$(3))); \
	else echo "$@: none of its experiments was run: no $(or $(3),$(1))"; fi

# The same of the configs of a paper, $(2).
of_paper = configs=$$($(BIN)/dpmf configs $(2)) || exit 1; $(call of_run,$(1),$$configs,$(3))

reproduce-friedman: $(STAMP) ## Friedman et al. 2016: tables 2-5 and figures 2-6, on the data at hand
	@$(call run_paper,friedman2016,-j $(JOBS))
	@for set in ml-100k ml-1m ml-10m netflix netflix-sample; do $(BIN)/dpmf datasets info $$set; echo; done \
		$(call into,results/table2.txt)
	@$(call of_paper,baselines --format md,friedman2016,results/table3.md)
	@$(call of_paper,crossings --printed --format md,friedman2016,results/tables4and5.md)
	@$(call of_paper,crossings --printed,friedman2016)

reproduce-mcsherry: $(STAMP) ## McSherry and Mironov 2009: figures 1 and 2, on the data at hand
	@$(call run_paper,mcsherry2009 --no-large,-j $(JOBS))
	@$(call run_paper,mcsherry2009 --large,-j 1)
	@$(call of_paper,crossings --format md,mcsherry2009 --no-large,results/mcsherry.md)
	@$(call of_paper,crossings,mcsherry2009 --no-large)

reproduce-zhang: $(STAMP) ## Zhang et al. 2018: figures 2-5, and other mechanisms personalised, on the data at hand
	@$(call run_paper,zhang2018,-j $(JOBS))
	@$(call of_paper,baselines,zhang2018 --no-large)

reproduce-neera: $(STAMP) ## Neera et al. 2020: figures 2-4, table 1 and the improvements over ISGD
	@$(call run_paper,neera2020,-j $(JOBS))
	$(BIN)/dpmf local noise results/neera_fig2.png
	@$(call traffic,results/neera_fig3_ml100k,results/neera_table1.csv)
	@$(call of_paper,local improvements --format md,neera2020,results/neera_improvements.md)
	@$(call of_paper,local improvements,neera2020)

# Table 1 counts the bytes on the ratings themselves: where the experiment $(1) was run, they are here.
traffic = if ls -d $(1)* > /dev/null 2>&1; then \
	$(BIN)/dpmf local traffic configs/neera_fig3_ml100k.yaml --format csv $(call into,$(2)); \
	else echo "$@: its experiment was not run: no $(2)"; fi

reproduce-wang: $(STAMP) ## Wang and Tang 2017: figures 1-3 and DPPS-MF, as published and with every ε provable
	@$(call run_paper,wang2017,-j $(JOBS))
	@$(call wang_fig3,ml100k)
	@$(call wang_fig3,ml1m)
	@$(call of_paper,crossings --format md,wang2017,results/wang.md)
	@$(call of_paper,crossings,wang2017)

# Figure 3 on the data set $(1) is figures 1 and 2 in one.
wang_fig3 = $(call of_run,combined --figure results/wang_fig3_$(1).png,wang_fig1_$(1) wang_fig2_$(1),results/wang_fig3_$(1).txt)

COMBINED := combined_ml100k combined_ml1m

reproduce-combined: $(STAMP) ## every private algorithm in one crossing table, by what its ε protects from whom
	@$(call run_each,$(COMBINED),-j $(JOBS))
	@$(call of_run,combined --format md --figure results/combined.png,$(COMBINED),results/combined.md)
	@$(call of_run,combined,$(COMBINED))

# Every experiment of all private methods: the combined ones, and those of methods that came after the five papers.
FRONTIER := $(COMBINED) $(patsubst configs/%.yaml,%,$(wildcard configs/frontier_*.yaml))

reproduce-frontier: $(STAMP) ## at each ε the best of all methods; writes docs/frontier.md's tables
	@$(call run_each,$(FRONTIER),-j $(JOBS))
	@$(call of_run,frontier --format md --figure results/frontier.png,$(FRONTIER),results/frontier.md)
	@$(BIN)/dpmf docs docs/frontier.md --results results $(call into,docs/frontier.md)
	@$(call of_run,frontier,$(FRONTIER))

leaders: $(STAMP) ## what leads in those results becomes what `dpmf recommend` goes by
	@$(call of_run,frontier --leaders dpmf_cli/report/leaders.yaml,$(FRONTIER)) > /dev/null

# One fold and run of most experiments, on MovieLens 100K: the ways of computing, not the figures of the papers.
SMALL := --results results/small --dataset ml-100k --held-out 1 --runs 1 -j $(JOBS)

.PHONY: $(PARTS:%=small-%)
small-friedman:
	@$(call run_paper,friedman2016 --small,$(SMALL))
small-mcsherry:
	@$(call run_paper,mcsherry2009 --small,$(SMALL))
small-zhang:
	@$(call run_paper,zhang2018 --small,$(SMALL))
small-neera:
	@$(call run_paper,neera2020 --small,$(SMALL))
	@$(call traffic,results/small/neera_fig3_ml100k,results/small/neera_table1.csv)
small-wang:
	@$(call run_paper,wang2017 --small,$(SMALL))
small-combined:
	@$(call run_each,combined_ml100k,$(SMALL))

clean: ## remove results and caches of tools, keep the environment and data
	find results -mindepth 1 ! -name README.md -delete
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean ## remove the environment too
	rm -rf $(VENV)
