# Each verb is one plain line of well-known tools. `make` alone lists them.
PYTHON ?= python3

# `!python` in a cell and `python` in JupyterLab's terminal mean the course's Python.
IN_VENV = PATH="$(CURDIR)/.venv/bin:$$PATH"

# tests/tiers.py says which tests are whose, tests/spent.py at the end which are dear, and with
# tests/kernels.py notebooks start soon. WHOLE is all there is, for whichever tier.
TESTS = $(IN_VENV) .venv/bin/python -m pytest -p tests.tiers -p tests.spent -p tests.kernels
WHOLE = -n logical --maxprocesses=4 --dist loadfile --no-loadscope-reorder --max-worker-restart=0 \
        --nbval-lax --nbval-cell-timeout=600 tests course chapters

.PHONY: help lab hub update answers check chapter format tables test test-engines nightly mutants faults slides site book doctor record race address lock sbom release-check install clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s%s\n", $$1, $$2}' Makefile

lab: install ## open your copy of the course in JupyterLab (the first time it installs everything)
	-@.venv/bin/python -m course.copies
	exec .venv/bin/python -m utils.setup.lab $(FLAGS)

hub: readable install ## a JupyterHub for a class on this machine, with a board for whoever teaches: sudo make hub (course/instructors.md)
	exec .venv/bin/python -m course.hub $(FLAGS)

.PHONY: readable
readable: # by learners: the course and this Python, looked at before anything is installed
	@$(PYTHON) -E -s course/hub/settings.py

update: install ## fetch the newest course; what you wrote stays (plain git pull and make lab do, too)
	.venv/bin/python -m course.copies --update
	@$(PYTHON) -E -s utils/setup/install.py
	.venv/bin/python -m course.copies

answers: install ## all cells that you changed into my/answers.json; FROM=FILE takes them from there; DIR=FOLDER checks a class's (ROSTER=its list)
	.venv/bin/python -m $(if $(DIR),course.answers "$(DIR)" $(if $(ROSTER),--roster "$(ROSTER)") $(if $(ONLY),--only $(ONLY)),course.copies $(if $(FROM),--restore "$(FROM)",--export my/answers.json))

check: install ## before a push, in three minutes: formats, lint, layers, types, what is fast of the tests
	.venv/bin/python -m ruff check .
	.venv/bin/python -m tests.formatting --check
	.venv/bin/lint-imports --no-logo
	.venv/bin/python -m mypy
	$(TESTS) --tier=check -q $(WHOLE)

chapter: install ## put right in one chapter what a machine can, run it where it is new, then all tests that concern it: make chapter NAME=reductions
	$(IN_VENV) .venv/bin/python -m course.authoring.mend "$(NAME)"
	$(IN_VENV) .venv/bin/python -m tests.chapter "$(NAME)" --tidy
	$(IN_VENV) .venv/bin/python -m course.authoring.outputs "$(NAME)"
	$(IN_VENV) .venv/bin/python -m tests.chapter "$(NAME)" -q -n logical --maxprocesses=4 --dist loadfile

format: install ## write all code as ruff and clang-format have it, notebooks included
	$(IN_VENV) .venv/bin/python -m tests.formatting

tables: install ## write the tables in README.md and course/instructors.md and the start page's map from the list of chapters
	$(IN_VENV) .venv/bin/python -m course.publish.tables
	$(IN_VENV) .venv/bin/python -m course.publish.cells

forget:
	@$(if $(AGAIN),,rm -rf .pytest_cache/v/course)

test: forget install ## lint, unit tests, and every notebook; AGAIN=--again: what has not passed yet; SHARD=2/4: a part
	.venv/bin/python -m ruff check .
	.venv/bin/python -m tests.formatting --check
	.venv/bin/lint-imports --no-logo
	.venv/bin/python -m mypy
	$(TESTS) --tier=test -p tests.again $(AGAIN) $(if $(SHARD),--shard=$(SHARD)) $(WHOLE)

test-engines: install ## the tests of the engines in utils/cpu, of the tracer, and of both as a package of their own
	$(TESTS) --tier=test -n logical --maxprocesses=4 --dist loadfile tests/utils/cpu tests/utils/cuda_c tests/utils/tracer

nightly: install ## everything: what make test leaves out, too, on new inputs; then faults and mutants by the day
	$(TESTS) --tier=nightly $(if $(SEED),--seed=$(SEED)) $(if $(SHARD),--shard=$(SHARD)) $(WHOLE)
	$(if $(SHARD),,$(MAKE) faults mutants DAYS=7)

mutants: install ## small changes in every exercise's solution: which of them do the checks not notice? (an hour; DAYS=7: a part a day)
	$(IN_VENV) .venv/bin/python -m tests.mutants $(if $(DAYS),--days $(DAYS)) $(if $(DRAW),--draw $(DRAW))

faults: install ## a hundred kills, full disks and jumps of the clock of each kind: nothing may be lost
	CUDA_COURSE_FAULTS=100 $(IN_VENV) .venv/bin/python -m pytest -n 0 --timeout=3600 tests/faults tests/course/copies

slides: install ## every chapter as a deck that opens without a network, in build/slides
	.venv/bin/python -m course.publish.slides

site: install ## the course as a website to read, in build/site
	.venv/bin/python -m course.publish.site

book: install ## the whole course as one PDF with an outline, in build/book.pdf (needs Chromium or Chrome)
	.venv/bin/python -m course.publish.book

doctor: install ## find what is wrong with this machine's set-up, and the cure; CLEAR=1 empties the caches
	@$(IN_VENV) .venv/bin/python -m utils.setup.doctor $(if $(CLEAR),--clear)

record: install ## on a GPU machine: run all notebooks, keep this GPU's numbers
	$(IN_VENV) .venv/bin/python -m course.record

address: install ## set the public address everywhere: make address URL=https://github.com/you/cuda-course
	$(IN_VENV) .venv/bin/python -m course.publish.address $(URL)

race: install ## on a GPU machine: our training step against PyTorch's, all of the finale's numbers
	$(IN_VENV) .venv/bin/python -m course.kernels.mnist_cnn.race

install: ## make .venv and install the pinned packages (lab and test do it for you)
	@$(PYTHON) -E -s utils/setup/install.py

lock: install ## list the files of all pinned packages, with their SHA-256, in locks (needs uv)
	.venv/bin/python -m utils.setup.lock

sbom: install ## a bill of materials of everything installed, with licences, in build/sbom.json (CycloneDX)
	.venv/bin/python -m utils.setup.bom

release-check: install ## may this be published? address, versions, tag, recorded results, links
	.venv/bin/python -m course.publish.release

clean: ## remove what the other verbs made: .venv, caches, build (not what you made: my, chapters/build)
	rm -rf .venv *.egg-info .pytest_cache .ruff_cache .import_linter_cache .mypy_cache build
