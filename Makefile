# Every target that needs the environment makes it first: `make demo` works in a fresh clone.

PYTHON ?= python3
JOBS ?= 3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
WARM := $(VENV)/.warm

# The stamp holds the folder it was made in: an environment that was copied or moved is rebuilt.
ifneq ($(shell cat $(STAMP) 2>/dev/null),$(CURDIR))
STALE := FORCE
endif

# Bytecode is kept: tests start many processes, and none shall compile its imports again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test slow check bench chaos soak attack cluster fuzz fuzz-night simulate lab lock clean FORCE

help: ## Show this table
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

setup: $(STAMP) $(WARM) ## Make .venv with the package, every extra and the tools
	@echo "setup: $(VENV) is ready"

demo: $(WARM) ## See it work
	@$(BIN)/palio demo

test: $(WARM) ## Run the tests (a few minutes)
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -q

slow: $(WARM) ## Run the tests that take minutes
	@$(BIN)/python -m pytest -q -m slow

check: $(STAMP) ## Check format, lint, types and layers
	@echo "ruff format" && $(BIN)/ruff format --check --quiet .
	@echo "ruff check" && $(BIN)/ruff check --quiet .
	@echo "mypy" && $(BIN)/mypy
	@echo "lint-imports" && $(BIN)/lint-imports

bench: $(WARM) ## Measure
	@$(BIN)/python -m palio.lab.bench.model
	@$(BIN)/palio bench forward --filters 100000 --engine pivot --engine counting
	@$(BIN)/palio bench forward --filters 100000 --interfaces 20 --engine pivot --engine counting
	@$(BIN)/palio bench where
	@$(BIN)/palio bench spark

# Other faults: make chaos CHAOS=clock, stop, config, disk, takeover, failover, or all of them; another
# plan: CHAOS_SEED=7. What it did is printed as it goes.
CHAOS ?= storm
CHAOS_TESTS = $(if $(filter all,$(CHAOS)),long or kills,$(if $(filter storm,$(CHAOS)),storm or kills,long_plan and $(CHAOS)))
chaos: $(WARM) ## Kill, freeze and cut off brokers under load; nothing may be lost (some minutes)
	@$(BIN)/python -m pytest -q -s -m chaos tests/net -k "$(CHAOS_TESTS)"

SOAK_MINUTES ?= 60
soak: $(WARM) ## Keep two brokers at half of their load for an hour; memory and latency must stay flat
	@$(BIN)/python -m palio.lab.soak --minutes $(SOAK_MINUTES) --out build/soak --picture build/soak/soak.png

# One of them: make attack ATTACK=quench_storm; ATTACK_LOG=1 shows the warnings of the brokers.
ATTACK ?=
attack: $(WARM) ## Attack real brokers from outside, and print how long each held the event loop (ten minutes)
	@$(BIN)/python -m pytest -q -s -m attack -k "$(ATTACK)" tests/attack

cluster: $(WARM) ## Test on a Spark cluster of a master and two workers here, and on Spark Connect
	@$(BIN)/python -m pytest -q -m cluster tests/spark

fuzz: $(STAMP) ## Search for failures at random, for longer
	@$(BIN)/python -m pytest -m fuzz tests
	@$(BIN)/python -m pytest -q --all-examples -m "hypothesis and not slow and not fuzz and not spark" tests

# It goes on where it stopped (build/fuzz/state.json) until each target has its goal, 170,000,000 cases in all. FUZZ_CASES,
# FUZZ_MINUTES and FUZZ_TARGETS bound a run. A case that fails is printed with its seed.
fuzz-night: $(WARM) ## Search every reader of foreign bytes for a night, or for FUZZ_MINUTES
	@$(BIN)/python -m tests.fuzz.night

# Mostly the path that is shipped: 2,000 seeds of brokers over all routing policies and faults. A
# failure stops it and prints its scenario.
simulate: $(STAMP) ## Simulate 4,400 seeds of brokers and routers with all faults (an hour and a half at most)
	@$(BIN)/palio sim-brokers --seeds 400 --brief --routing forwarding
	@$(BIN)/palio sim-brokers --first 1000 --seeds 400 --brief --routing PSF
	@$(BIN)/palio sim-brokers --first 2000 --seeds 400 --brief --routing iPS
	@$(BIN)/palio sim-brokers --first 3000 --seeds 400 --brief --routing PIF
	@$(BIN)/palio sim-brokers --first 4000 --seeds 400 --brief --routing DRP
	@$(BIN)/palio sim-brokers --seeds 200 --brief --topology ring --faults crash
	@$(BIN)/palio sim-brokers --seeds 200 --brief --operations 400 --faults crash,silence,freeze
	@$(BIN)/palio sim --seeds 400 --brief --no-compare --topology tree
	@$(BIN)/palio sim --seeds 400 --brief --no-compare --topology tree --advertisements
	@$(BIN)/palio sim --seeds 300 --brief --no-compare --topology line
	@$(BIN)/palio sim --seeds 300 --brief --no-compare --topology star --advertisements
	@$(BIN)/palio sim --seeds 300 --brief --no-compare --topology hierarchy
	@$(BIN)/palio sim --seeds 100 --brief --routers 9 --topology ring
	@$(BIN)/palio sim --seeds 100 --brief --routers 9 --topology random --advertisements
	@$(BIN)/palio sim --seeds 100 --brief --routers 6 --topology mesh
	@$(BIN)/palio sim --seeds 150 --brief --no-compare --patterns
	@$(BIN)/palio sim --seeds 150 --brief --patterns --faults none

# A run that was stopped goes on. LAB_SCALE=full has the papers' sizes, 8 million filters among them: it
# takes 5 GB and about two hours on two quiet cores, in LAB_OUT of its own. docs/lab is from it, and has
# the finished points (LAB_RESULTS), from which a new LAB_OUT goes on.
LAB_SCALE ?= 0.3
LAB_OUT ?= build/lab-$(LAB_SCALE)
LAB_RESULTS := docs/lab/results.zip
IS_FULL := $(filter full,$(LAB_SCALE))
lab: $(WARM) ## Run the papers' evaluations again (a quarter of an hour; LAB_SCALE=full: hours, and docs/lab)
	@$(if $(IS_FULL),test -e $(LAB_OUT) || ! test -e $(LAB_RESULTS) || $(BIN)/python -m zipfile -e $(LAB_RESULTS) $(LAB_OUT))
	@$(BIN)/palio lab run --all --scale $(LAB_SCALE) --out $(LAB_OUT)
	@$(BIN)/palio lab report $(LAB_OUT) $(if $(IS_FULL),--to docs/lab)
	@$(if $(IS_FULL),cd $(LAB_OUT) && $(CURDIR)/$(BIN)/python -m zipfile -c $(CURDIR)/$(LAB_RESULTS) .)

lock: $(BIN)/uv ## Pin the dependencies anew (UPGRADE=--upgrade takes newer versions)
	@$(BIN)/uv pip compile pyproject.toml --quiet --output-file requirements.txt \
	    --all-extras --universal --generate-hashes --python-version 3.11 \
	    --no-emit-index-url --no-emit-find-links \
	    --custom-compile-command "make lock" $(UPGRADE)

clean: ## Remove the environment, builds and caches
	@rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp is written last, so a set-up that was interrupted is done again.
$(STAMP): $(BIN)/uv requirements.txt pyproject.toml
	@rm -f $(STAMP)
	@echo "setup: installing the pinned packages (the first time pyspark is built here: a minute or two)"
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.txt
	@echo "setup: installing palio itself (editable)"
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@command -v java >/dev/null || echo "setup: note: no java found; the Spark parts need Java 17 or newer"
	@printf '%s\n' "$(CURDIR)" > $(STAMP)

# Kernels are compiled into each other: a change in any of these files makes all anew.
$(WARM): $(STAMP) $(wildcard src/palio/matching/*.py src/palio/matching/*/*.py src/palio/protocol/wire/kernels.py)
	@$(BIN)/palio warm
	@touch $(WARM)

# uv comes with the version and the hashes that requirements.txt pins.
$(BIN)/uv: requirements.txt $(STALE)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "setup: Palio needs Python 3.11 or newer, and '$(PYTHON)' is not that." \
	         "Name one with: make setup PYTHON=/path/to/python3.11" >&2; exit 1; }
	@if [ "$$(cat $(STAMP) 2>/dev/null)" != "$(CURDIR)" ] || ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	    echo "setup: making $(VENV) with $$($(PYTHON) --version)"; \
	    $(PYTHON) -m venv --clear $(VENV); \
	fi
	@echo "setup: installing uv"
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.txt > $(VENV)/uv.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(VENV)/uv.txt
	@touch $(BIN)/uv
