# No setup is needed: the first command makes the environment in .venv.
VENV   := .venv
PYTHON ?= python3
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
JOBS   ?= 2

# Pages with generated tables.
PAGES := README.md $(wildcard docs/generated/*.md)

.DEFAULT_GOAL := help
.PHONY: help lock run test test-times test-slow test-faults test-fuzz check format pages docs paper bench audit audit-numeric audit-small \
	explore explore-again explore-ml1m scale waits dependencies reproduce-all reproduce-small reproduce-frontier leaders clean distclean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# LOCKED=1 installs the versions of a lock, each held to its hash. A lock is of one version of Python.
version := $(PYTHON) -c 'import sys; print("\# Python {}.{}".format(*sys.version_info))'
fitting = [ "$$($(version))" = "$$(head -1 requirements-dev.lock)" ] || { \
	echo "requirements-dev.lock is of another Python: leave out LOCKED, or name it by PYTHON=python3.11" >&2; exit 2; }
install := $(BIN)/python -m pip install --quiet
locked  := $(install) --require-hashes -r requirements-dev.lock && $(install) --no-deps --no-build-isolation -e .

$(STAMP): pyproject.toml
	@$(if $(LOCKED),$(fitting),true)
	@echo "installing dpmf and what it needs into $(VENV)/: a few minutes"
	$(PYTHON) -m venv $(VENV)
	$(if $(LOCKED),$(locked),$(install) -e '.[dev,excel,fetch,parquet,zstd]')
	@touch $@

# What stands in a lock stays at its version, unless UPGRADE=1.
compile = { $(version); $(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-header --no-annotate \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options --all-build-deps $(if $(UPGRADE),--upgrade) \
	--output-file $(1).new $(2) pyproject.toml && cat $(1).new; } $(call into,$(1)) && rm $(1).new

lock: $(STAMP) ## write both locks, of users and of developers: versions and hashes; UPGRADE=1 takes the newest
	@for lock in requirements requirements-dev; do [ ! -f $$lock.lock ] || tail -n +2 $$lock.lock > $$lock.lock.new; done
	@$(call compile,requirements.lock,--extra excel --extra fetch --extra zstd)
	@$(call compile,requirements-dev.lock,--extra dev --extra docs --extra excel --extra fetch --extra parquet --extra zstd)

run: $(STAMP) ## set up, run the quickstart on embedded synthetic ratings, print its crossing table
	$(BIN)/dpmf run configs/quickstart.yaml

test: $(STAMP) ## set up and run all but the slow tests, in JOBS processes
	$(BIN)/python -m pytest -m "not slow" -n $(JOBS) --dist loadfile

test-times: $(STAMP) ## run the same tests, and print the slowest 20 and the time by folder
	$(BIN)/python -m pytest -m "not slow" -n $(JOBS) --dist loadfile --durations=20

test-slow: $(STAMP) ## run the slow tests: papers on real data, runs killed over and over, commands of all pages
	$(BIN)/python -m pytest -m slow -n $(JOBS) --dist loadfile

test-faults: $(STAMP) ## kill, interrupt, fill and damage runs some 2,900 times, and compare the bytes after each (docs/operations.md)
	DPMF_FAULTS=full $(BIN)/python -m pytest tests/faults

test-fuzz: $(STAMP) ## give all loaders some 155,000 broken files (docs/operations.md)
	DPMF_FAULTS=full $(BIN)/python -m pytest tests/fuzz

check: $(STAMP) ## check lint, types, formatting, imports, and the committed schema, reference and tables of pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/dpmf schema | cmp - configs/schema.json
	$(BIN)/python -m docs.makers.reference | cmp - docs/reference.md
	$(BIN)/python -m docs.makers.croissant datasets/croissant --check
	@for page in $(PAGES); do $(BIN)/python -m docs.makers.pages $$page | cmp - $$page || exit 1; done

format: $(STAMP) ## format the code, and update schema, reference, pictures and tables of pages
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	$(BIN)/dpmf schema $(call into,configs/schema.json)
	$(BIN)/python -m docs.makers.reference $(call into,docs/reference.md)
	$(BIN)/python -m docs.makers.pictures docs/figures
	$(BIN)/python -m docs.makers.croissant datasets/croissant
	@for page in $(PAGES); do $(BIN)/python -m docs.makers.pages $$page $(call into,$$page); done

pages: $(STAMP) ## update the tables of pages, and the output of their commands from the results at hand
	@for page in $(PAGES); do $(BIN)/python -m docs.makers.pages $$page --results results $(call into,$$page); done

docs: $(STAMP) ## build the documentation as a site: site/index.html; a broken link is an error
	$(if $(LOCKED),true,$(install) -e '.[docs]')
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "to read and search it: $(BIN)/python -m http.server --directory site"

paper: $(STAMP) ## write docs/paper.md as LaTeX, and as PDF where there is a TeX; into build/paper
	$(BIN)/python -m docs.makers.latex build/paper

bench: $(STAMP) ## measure speed against Cornac, LIBMF and cmfrec, and LensKit with LENSKIT=1, beside aims and limits; writes docs/generated/performance.md
	@$(BIN)/python -m pip install -qq -e '.[bench]' || echo "peers could not be installed: their rows say so" >&2
	$(BIN)/python -m tests.benchmarks.peers $(if $(LENSKIT),--lenskit)
	$(PERFORMANCE)

audit: $(STAMP) ## check every ε of all algorithms against the code that runs; writes results/audit.md and results/audit.csv
	$(BIN)/dpmf audit --all --bits -j $(JOBS)

audit-numeric: $(STAMP) ## audit with rows of up to 95,000 ratings whose sums hover at powers of two; takes an hour
	$(BIN)/dpmf audit --all --numeric -j $(JOBS)

audit-small: $(STAMP) ## audit on one small pair of each kind, in minutes; writes results/small/audit.md
	$(BIN)/dpmf audit --all --pairs 7 --results results/small -j $(JOBS) > /dev/null

explore: $(STAMP) ## try what the papers leave open on ML-100K and judge their claims (docs/exploring.md); takes 20 to 45 minutes
	$(BIN)/dpmf explore all --record docs/papers/explored -j $(JOBS)

explore-again: $(STAMP) ## explore on ML-100K with other folds, noise and settings, to see which verdicts turn
	$(BIN)/dpmf explore all --seed 1 --record docs/papers/explored/again -j $(JOBS)

explore-ml1m: $(STAMP) ## explore on ML-1M; takes two to four hours
	$(BIN)/dpmf explore all --dataset ml-1m --record docs/papers/explored -j $(JOBS)

SCALE := ml100k ml1m ml10m netflix

scale: $(STAMP) ## measure time and memory from 10^5 to 10^8 ratings (docs/performance.md); needs 4 GiB free and three quarters of an hour
	$(BIN)/python -m tests.benchmarks.scale $(SCALE:%=configs/scale_%.yaml)
	$(PERFORMANCE)

waits: $(STAMP) ## measure how long answers take from empty caches, beside aims (docs/performance.md); LONG=1 adds those of minutes
	$(BIN)/python -m tests.benchmarks.waits $(if $(LONG),--long)
	$(PERFORMANCE)

dependencies: $(STAMP) ## list the packages of an installation, their sizes, and what needs them (docs/performance.md)
	$(BIN)/python -m docs.makers.dependencies $(call into,results/dependencies.md)
	$(PERFORMANCE)

reproduce-all: $(STAMP) ## reproduce every paper on the data at hand; continues an interrupted run, ends with report and verdict
	$(BIN)/dpmf reproduce all -j $(JOBS)

reproduce-small: $(STAMP) ## reproduce on MovieLens 100K with one fold and run, in minutes; writes into results/small
	$(BIN)/dpmf reproduce all --small -j $(JOBS)

reproduce-frontier: $(STAMP) ## find the best of all methods at each ε; writes docs/generated/frontier_*.md
	$(BIN)/dpmf reproduce frontier -j $(JOBS)
	@for page in $(wildcard docs/generated/frontier_*.md) docs/generated/tuned_elsewhere.md; do \
		$(BIN)/python -m docs.makers.pages $$page --results results $(call into,$$page); done

leaders: $(STAMP) ## take the methods that lead in the frontier's results as those that `dpmf recommend` chooses from
	@$(BIN)/python -m docs.makers.leaders frontier_ml100k frontier_ml1m frontier_jester frontier_netflix_sample \
		$(call into,dpmf_cli/report/leaders.yaml)

# The end of a command: its output becomes the file $(1), unless the command fails.
into = > $(1).part && mv $(1).part $(1) || { rm -f $(1).part; exit 1; }

# The page of measured times, with the tables that the results at hand have.
PERFORMANCE = @$(BIN)/python -m docs.makers.pages docs/generated/performance.md --results results $(call into,docs/generated/performance.md)

clean: ## remove results and caches of tools, keep the environment and data
	find results -mindepth 1 ! -name README.md -delete
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist site *.egg-info
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean ## remove the environment too
	rm -rf $(VENV)
