# make quickstart   raw text to verified MindRecord shards, on this machine
# make test         every check: format, lint, types, tests
# Both need only Python 3.10 to 3.12 and make: they install into .venv first.

# Which Python makes .venv; by default the first of these that is 3.10 to 3.12 and can make one.
PYTHON_CHOICES = python3 python3.12 python3.11 python3.10
PYTHON =
# Tests start processes of their own, so two at a time keep two cores busy; raise it on a larger machine.
TEST_WORKERS = 2
TESTS =
BENCH_ARGS =

BIN = .venv/bin
# Written last and removed first: an install that was interrupted leaves no stamp and is begun anew.
STAMP = .venv/.installed
SHARDS = shards/quickstart

SUITABLE = import sys, ensurepip, venv; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))
STDLIB = import sysconfig; print(sysconfig.get_path("stdlib"))

.DELETE_ON_ERROR:
.PHONY: help install quickstart test bench format clean

help:
	@echo 'make quickstart   raw text to verified MindRecord shards in $(SHARDS)'
	@echo 'make test         ruff, mypy and pytest (TESTS=path or -k word, TEST_WORKERS=4)'
	@echo 'make bench        speed and memory of every stage (BENCH_ARGS=...)'
	@echo 'make format       lay out the code and mend what ruff can'
	@echo 'make clean        remove what the above made, but not .venv'

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@fresh=; test -e $@ || fresh=yes; \
	python=; for candidate in $(or $(PYTHON),$(PYTHON_CHOICES)); do \
	  if "$$candidate" -c '$(SUITABLE)' 2>/dev/null; then python=$$candidate; break; fi; \
	done; \
	if test -z "$$python"; then \
	  echo 'error: $(if $(PYTHON),$(PYTHON) is not,found no) Python 3.10, 3.11 or 3.12 with its venv module;' \
	    'install one (Debian, Ubuntu: python3-venv) or name one: make PYTHON=/path/to/python3.11' >&2; exit 1; \
	fi; \
	echo "Installing into .venv with $$("$$python" -V): about 1 GB to download the first time, some minutes"; \
	rm -f $@; if test -n "$$fresh"; then "$$python" -m venv --clear .venv; fi && \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

quickstart: $(STAMP)
	@DATAPREP_STDLIB="$$($(BIN)/python -c '$(STDLIB)')" $(BIN)/dataprep run pipelines/quickstart.yaml
	@$(BIN)/dataprep stats $(SHARDS)
	@$(BIN)/dataprep verify $(SHARDS)
	@$(BIN)/dataprep inspect $(SHARDS) --row 0

# One file's tests stay in one process (loadfile), so that what its fixtures built is built once.
# The ci profile of hypothesis draws the same examples every time and sets no deadline.
test: $(STAMP)
	@$(BIN)/ruff format --check --quiet . || { echo 'error: some files are not laid out; run make format' >&2; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/pytest -n $(TEST_WORKERS) --dist loadfile --hypothesis-profile=ci $(TESTS)

bench: $(STAMP)
	@$(BIN)/python -m tests.bench $(BENCH_ARGS)

format: $(STAMP)
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format --quiet .

clean:
	rm -rf $(SHARDS) work/quickstart build dist *.egg-info bench.json .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
