# Every target sets up .venv by itself; nothing else has to be installed first but Python 3.11 or newer.
#
#   make demo         the whole thing on this machine: no GPU, no remote host
#   make test         the tests; those that need root, sshd and LXC say why they are skipped
#   make check        ruff, mypy, import-linter
#   make bench        measures the budgets
#   make soak         75 minutes of everything that happens to a log, in ten: does anything grow once all is full?
#   make screenshots  the pictures of the README, from the running demo

SHELL := /bin/bash
BIN := .venv/bin
READY := .venv/.ready
# Most of a test's time is waiting for real processes, so more workers than cores do no harm.
PYTEST_ARGS ?= -n 3 --dist loadfile

.PHONY: demo test check bench soak screenshots
.DEFAULT_GOAL := test

demo: $(READY)
	@$(BIN)/dflash-console demo

test: $(READY)
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

check: $(READY)
	@failed=; \
	for tool in "ruff check ." "ruff format --check ." mypy lint-imports; do \
	    echo "check: $$tool"; \
	    $(BIN)/$$tool || failed="$$failed, $$tool"; \
	done; \
	[[ -z $$failed ]] || { echo "check: failed: $${failed#, }" >&2; exit 1; }

bench: $(READY)
	@$(BIN)/python -m tests.bench

soak: $(READY)
	@$(BIN)/python -m tests.soak

screenshots: $(READY)
	@$(BIN)/python -m screenshots

$(READY): pyproject.toml scripts/venv
	@scripts/venv .venv
	@touch $@
