# make demo   replays the project's own traces near and far and prints the comparison
# make test   lint, types and every test: what CI runs
# make bench  the figures that the design and the memory must reach, as tables and in build/bench.md
# make netlist  the comparison of clew drive on the board's netlist, which must be that of its RTL (minutes)
# make soak   millions of cycles of random traffic through the memory and two million hostile walks, each promise
#             checked; and the tests that are too long for make test; SEED=N repeats one
# make formal every proof, one line each (minutes); make test runs a selection of them
# make mutants  breaks the RTL on purpose, one way at a time, and writes what caught each (minutes)
# make fpga  a bitstream for a board in build/fpga, its clock and its area by block (BOARD=ulx3s_85f; minutes)
# make docs   the documentation site, in build/docs/index.html; runs the tutorial when it has changed
# make lint   format, lint and types only
# make lock   writes requirements.lock anew from pyproject.toml
# make clean  removes what the other targets made in this folder
#
# Builds of simulations are kept, by content, in $XDG_CACHE_HOME/clew or ~/.cache/clew.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := hdl sim firmware_py tests docs

# The environment is made anew when the lock, this file, the place or the interpreter changes.
KEY := $(firstword $(shell { cat requirements.lock Makefile; echo "$(CURDIR)"; $(PYTHON) -V; } 2>&1 | cksum))
INSTALLED := $(VENV)/installed-$(KEY)

# What `clew` runs: this checkout, whatever the current folder is.
define CLEW
#!/bin/sh
here=$$(dirname "$$(readlink -f "$$0")")
exec "$$here/python" -P -c 'import sys; sys.argv[0] = "clew"; from firmware_py.cli import main; main()' "$$@"
endef
export CLEW

# Real traces of other projects, where they lie beside this one: `make bench` replays them too.
PUBLIC_TRACES := $(wildcard $(addprefix ../shared/traces/,tot_game24/*.json tot_crosswords/infoss_*.json \
  sos/*.jsonl toolbench_dfsdt/*.json))

.PHONY: demo test bench fpga netlist soak mutants docs lint lock clean venv tools

demo: $(INSTALLED)
	@$(BIN)/clew demo

bench: $(INSTALLED)
	@$(BIN)/clew bench all --out build/bench.md $(PUBLIC_TRACES)

BOARD ?= ulx3s_85f

fpga: $(INSTALLED)
	@$(BIN)/clew fpga --board $(BOARD) -o build/fpga/$(BOARD)

netlist: $(INSTALLED)
	@$(BIN)/clew bench fpga --topic netlist

soak: $(INSTALLED)
	@$(BIN)/python -P -m tests.hdl.memory.soak $(if $(SEED),--seed $(SEED))
	@$(BIN)/python -P -m tests.e2e.hostile $(if $(SEED),--seed $(SEED))
	@$(BIN)/python -P -m tests.e2e.bus_end
	@PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 $(BIN)/python -P -m pytest -q -m long

test: lint
	@# Plugins are named, not found: pytest would rewrite the sources of those it finds, and Python 3.11 can fail
	@# to parse Hypothesis' while its garbage collector runs ("AST constructor recursion depth mismatch").
	@# Files in their order, which begins with the longest ones (tests/e2e), so that both processes end together.
	PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 $(BIN)/python -m pytest -p xdist -n 2 --dist loadfile --no-loadscope-reorder \
	  -m "not long"

# NAMES= picks those whose name contains one of its words.
formal: $(INSTALLED)
	@$(BIN)/python -m tests.formal $(NAMES)

mutants: $(INSTALLED)
	@$(BIN)/python -m tests.mutants $(NAMES)

docs: $(INSTALLED)
	@$(BIN)/python -m sphinx -W --keep-going -q -b html -d build/docs/.doctrees docs build/docs
	@echo build/docs/index.html

lint: $(INSTALLED)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/basedpyright

venv: $(INSTALLED)

# One line that names everything that is missing.
tools:
	@missing=; \
	for tool in g++ make perl; do command -v $$tool >/dev/null 2>&1 || missing="$$missing $$tool"; done; \
	if ! $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	  missing="$$missing python>=3.11"; \
	elif ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then missing="$$missing python3-venv"; fi; \
	if [ -n "$$missing" ]; then \
	  echo "clew needs these on PATH, which this machine lacks:$$missing (PYTHON=... picks an interpreter)" >&2; \
	  exit 1; \
	fi

$(INSTALLED): | tools
	@echo "installing the pinned dependencies into $(VENV)"
	@# An installation that was cut short is not built upon.
	@if [ -e $(VENV)/incomplete ]; then rm -rf $(VENV); fi
	@$(PYTHON) -m venv $(VENV)
	@rm -f $(VENV)/installed-*
	@touch $(VENV)/incomplete
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-input --require-hashes -r requirements.lock
	@echo "$(CURDIR)" > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/clew.pth"
	@printf '%s\n' "$$CLEW" > $(BIN)/clew
	@chmod +x $(BIN)/clew
	@rm $(VENV)/incomplete
	@touch $@

# Hashes of every file of every platform, and no index addresses: they are each machine's own.
lock: $(INSTALLED)
	@$(PYTHON) -m venv build/lock
	@build/lock/bin/python -m pip install -qq --disable-pip-version-check uv==0.13.8
	build/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --extra dev --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	  --output-file requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) build sim_build .pytest_cache .ruff_cache .hypothesis
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +
