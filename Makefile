# `make demo` runs the demo, `make serve` shows its leaderboard, `make test` runs the tests. Each installs what it needs.

VENV ?= .venv
BIN := $(VENV)/bin
PYTHON ?= python3
PORT ?= 8000
# On Linux this is the CUDA build. The CPU build: make demo TORCH='torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu'
TORCH ?= torch==2.13.0

.PHONY: demo hub-check push-hub-check serve test test-deep test-long coverage test-matrix test-newest test-sdks release release-version \
	publish-release publish-docs lint-workflows container chaos fuzz mutants lock lint reference pictures docs bench bars browser sandbox clean

$(VENV)/installed: setup.cfg pyproject.toml constraints.txt
	@echo 'Installing into $(VENV). pip prints nothing, and needs about five minutes.'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet $(TORCH)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[report,openai]'
	$(BIN)/helm-longctx confs run_specs > /dev/null
	touch $@

# constraints.txt names all packages of the extra `dev`. Without --no-deps, pip would take minutes to resolve them again.
$(VENV)/installed-dev: $(VENV)/installed
	$(BIN)/pip install --quiet --no-deps --requirement constraints.txt
	$(BIN)/pip install --quiet --no-deps --editable .
	touch $@

demo: $(VENV)/installed
	$(BIN)/helm-longctx demo
	@echo 'In this folder, `make serve` opens the leaderboard.'

serve: $(VENV)/installed
	$(BIN)/helm-longctx serve --suite demo --port $(PORT)

# Three processes keep two cores busy, because tests wait for programs and servers. Each has one thread for PyTorch. Tests start
# hundreds of interpreters, which are quicker if Python may keep compiled modules.
PYTEST := env -u PYTHONDONTWRITEBYTECODE OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses 3 --dist loadscope --no-loadscope-reorder

# What `make test-deep` runs: kills and restarts, mutated input and code, Ray, small real models, a model's code on a hub, an
# installed wheel, NeMo Evaluator, a HELM with a user's own board, HELM's own scenarios, simulated releases of models, and every
# command of the guides.
DEEP := tests/apps/compaction/test_kills.py tests/apps/test_gate_real.py tests/chaos tests/core_evals/test_nemo.py \
	tests/e2e/test_demo_with_a_model.py tests/e2e/test_guest.py tests/e2e/test_other_scenarios.py tests/e2e/test_releases.py \
	tests/e2e/test_wheel.py tests/evaluation/test_code_of_the_hub.py tests/extending tests/fuzz tests/guides \
	tests/helm/test_other_scenarios.py tests/models/test_real_model.py tests/mutants tests/runner/batches/test_kills.py \
	tests/runner/machines/test_ray.py tests/runner/test_real_methods.py

test: $(VENV)/installed-dev browser sandbox lint
	$(PYTEST) $(addprefix --ignore=,$(DEEP))

# Runs the tests that need minutes together and seldom fail alone. CI runs them as a job of their own.
test-deep: $(VENV)/installed-dev browser sandbox
	$(PYTEST) $(DEEP)

# Runs the tests that take minutes each, on Python 3.11 or later.
test-long: $(VENV)/installed-dev browser sandbox
	$(BIN)/pip install --quiet --no-deps --requirement .ci/judged-tasks.txt
	$(PYTEST) -m long

# Runs the tests and prints the share of lines that they run. This takes a fifth longer than `make test`.
coverage: $(VENV)/installed-dev browser sandbox
	$(PYTEST) --cov --cov-report term

# Attacks each surface and counts what held, then gives commands under random faults, kills and restarts.
# CHAOS_SECONDS= sets the duration (600), CHAOS_SEED= the first seed.
chaos: $(VENV)/installed-dev
	$(BIN)/python -m tests.attacks
	$(BIN)/python -m tests.chaos

# Runs a quick part of the tests on the lowest and the newest Python. PYTHONS='python3.11 python3.12' tests others, and
# VERSIONS=newest tests the newest versions of all packages.
test-matrix:
	.ci/test-matrix

# Runs the same tests with the newest version of every package instead of the versions in constraints.txt.
test-newest:
	VERSIONS=newest .ci/test-matrix

# Runs the tests of our clients with the lowest and the newest versions of the packages openai and anthropic.
test-sdks: $(VENV)/installed-dev
	VENV=$(VENV) .ci/test-sdks

# Builds the files of a release twice into dist/, and tries them in fresh environments outside the clone. It uploads nothing.
# With TORCH= on the command line, pip gets that in place of the README's build of torch.
release:
	PYTHON=$(PYTHON) TORCH='$(if $(filter command line,$(origin TORCH)),$(TORCH))' .ci/release

# The steps of the workflow that publishes a release: TAG= is the tag, FILES= the folder with the files.
release-version:
	.ci/check-tag $(TAG)

publish-release:
	.ci/publish-release $(TAG) $(FILES)

# Commits the documentation of a release (TAG=v1.2.3) or of the main branch (TAG=main) to the branch gh-pages.
publish-docs: $(VENV)/installed-dev
	VENV=$(VENV) .ci/publish-docs $(TAG)

# Checks the workflows in .github/workflows. Needs npm.
# Compares the data that publishers serve with the code: hub-check.json has the result, and docs/reference/data.md when a
# check last passed. The status is 1 if a file has vanished or differs.
hub-check: $(VENV)/installed
	$(BIN)/helm-longctx fetch --check --json > hub-check.json; status=$$?; \
	$(BIN)/python docs/record_checks.py hub-check.json && $(BIN)/python docs/make_reference.py && exit $$status

# Commits what `hub-check` recorded.
push-hub-check:
	git config user.name hub-check && git config user.email hub-check@users.noreply.github.com
	git add docs/data-checks.json docs/reference/data.md
	git diff --cached --quiet || (git commit --quiet --message "Data was checked" && git push)

lint-workflows:
	.ci/lint-workflows

# Builds the container from the wheel in dist/. CONTAINER= names another program than docker.
CONTAINER ?= docker
container:
	$(CONTAINER) build --tag helm-longctx --file Containerfile .

# Rewrites constraints.txt from the versions that pip chooses today for every Python that we support.
lock:
	$(PYTHON) .ci/lock.py $(foreach name,$(or $(PYTHONS),python3.10 python3.11 python3.12 python3.13),$(shell .ci/find-python $(name)))

# The linters read only these files: a clone can also have what a user's runs write, in folders of any name.
CODE := .ci bench docs setup.py src tests
PAGES := CHANGELOG.md CONTRIBUTING.md README.md SECURITY.md docs src/helm_longctx/benchmarks

lint: $(VENV)/installed-dev
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE) $(PAGES)
	$(BIN)/mypy
	$(BIN)/codespell $(PAGES) Makefile NOTICE bench pyproject.toml setup.cfg src
	$(BIN)/proselint check --config .ci/proselint.json $(PAGES)

# Generates what follows from the benchmarks' folders and the commands: pages in docs/reference/, the lists of benchmarks in
# README.md, docs/index.md, NOTICE and CITATION.cff, NeMo Evaluator's framework.yml, the files of run entries in run_specs/, and the list of
# public names, from which names vanish only with REMOVE=1 (docs/stability.md).
reference: $(VENV)/installed
	$(BIN)/python docs/make_reference.py
	$(BIN)/python docs/make_interface.py $(if $(REMOVE),--remove)
	$(BIN)/helm-longctx confs run_specs > /dev/null

# Takes the screenshots in docs/images/ from a demo.
pictures: $(VENV)/installed-dev browser
	$(BIN)/python docs/make_pictures.py

docs: $(VENV)/installed-dev
	$(BIN)/mkdocs build --strict

bench: $(VENV)/installed
	$(BIN)/python -m bench.methods.lexical
	$(BIN)/python -m bench.decisions.intervals

bars: $(VENV)/installed-dev browser
	$(BIN)/python -m bench.bars

# Gives mutated input to everything that reads input. `make fuzz SEED=2` generates other cases.
SEED ?= 20260
fuzz: $(VENV)/installed-dev
	$(BIN)/python -m tests.fuzz --seed $(SEED)

# Changes one place at a time in the modules that decide and score, and prints the changes that no test notices. MUTANTS= is the size of the
# random sample (all without it), SEED= draws another one. Results are kept in build/, so an interrupted run can be continued.
mutants: $(VENV)/installed-dev
	$(BIN)/python -m tests.mutants $(if $(MUTANTS),--mutants $(MUTANTS)) --seed $(SEED)

# Installs Chromium, in which the tests open the leaderboard.
browser:
	@command -v chromedriver >/dev/null || (apt-get update -qq && apt-get install -y -qq chromium chromium-driver)

# Installs the sandbox and the compiler for programs of models. Without them, tests are skipped.
sandbox:
	@(command -v bwrap && command -v g++) >/dev/null || (apt-get update -qq && apt-get install -y -qq bubblewrap g++) || true

clean:
	rm -rf $(VENV) .venv-matrix .venv-sdks .venv-actionlint build dist dist-report.tar.gz site benchmark_output prod_env .coverage*
