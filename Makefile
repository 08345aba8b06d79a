# `make demo` and `make test` are all a newcomer needs; both install what they use into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FROZEN := pyproject.toml

.PHONY: demo test fuzz lint bench docs clean

demo: $(VENV)/.demo
	$(BIN)/skyfill demo

# Three workers keep two cores busy: some tests wait for clusters, browsers or disks.
test: lint
	$(BIN)/python -m pytest -n 3 --dist worksteal

# One round through all laws with fresh inputs; without SEED, round after round until one fails or
# it is stopped.
FUZZ = $(BIN)/python -m pytest tests -m hypothesis -n 2 --dist worksteal --hypothesis-profile fresh
fuzz: $(VENV)/.dev
ifdef SEED
	$(FUZZ) --hypothesis-seed $(SEED)
else
	while seed=$$(od -An -N4 -tu4 /dev/urandom | tr -d ' '); do \
	  echo "make fuzz SEED=$$seed"; $(FUZZ) --hypothesis-seed $$seed || exit 1; done
endif

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Slow: every table of docs/benchmarks.md, against the rivals.
bench: $(VENV)/.bench
	for study in benchmarks/[a-z]*.py; do $(BIN)/python $$study || exit 1; done

docs: $(VENV)/.docs
	$(BIN)/python -m pytest docs tests/test_readme.py tests/test_docs.py tests/test_pages.py tests/test_mission.py
	$(BIN)/sphinx-build -W --keep-going docs build/docs

$(VENV)/.demo: $(FROZEN)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e .
	touch $@

$(VENV)/.dev: $(VENV)/.demo
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	touch $@

$(VENV)/.docs: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet -e '.[docs]'
	touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet -e '.[compare]'
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
