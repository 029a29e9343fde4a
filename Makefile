# make demo   runs the main job on a table that comes with it
# make test   style, types and the whole test suite
# make campaigns  the whole test suite with every case that `make test` leaves to others like it: before a release, half an hour
# make quick  a minute of tests while you work: style, types, every backend and alignment in memory, one run of three processes
# make crypten  adds PyTorch and CrypTen to the environment, for what needs them (750 MB)
# make kernel  adds llvmlite to the environment, with which proofs of products, transfers of two parties, and drawing large tables, take less time (60 MB)
# make second-opinion  another implementation of AIM beside ours, on the demo's survey; DATA=DIR TABLES=NAME,.. on other tables
# make benchmark  Cosynth beside MPyC, dpmm, SmartNoise and SDV, build/benchmark.md, in 25 minutes or MINUTES=N; DATA=DIR TABLES=NAME,.. (13 GB)
# make engines  tests the counting of large tables by Dask and, where there is a Java runtime, by Spark (900 MB)
# make fleet  Flower as courier: 20 simulated nodes; NODES=1000 ROUNDS=10 SHARE=0.1, or DEPLOYED=1 for SuperLink and SuperNodes (900 MB)
# make cross-check  a result judged by SDMetrics beside our own judgement; RESULT=DIR REAL=FILE.csv
# make habits  Synthesizer beside SDV's and SmartNoise's: the same six lines, times and quality; scikit-learn's functions on it (2 GB)
# make sbom   writes build/cosynth.cdx.json: what Cosynth is installed with, from the lock file, as CycloneDX
# make dist   writes dist/: wheel and sdist (built twice, byte for byte alike), the SBOM, and SHA256SUMS
# make site   builds docs/ as a site, build/site/index.html
# All need only Python >= 3.11 and make, and create their environments from lock files.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test campaigns quick crypten kernel benchmark second-opinion cross-check habits engines fleet sbom dist site lock clean

demo: .venv/demo.stamp
	$(BIN)/cosynth demo

# Tests are compiled once for all processes that will run them, if one is new. Types are looked at beside, and told in the end.
test campaigns: PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest
campaigns: CASES = --campaigns
test campaigns: .venv/test.stamp
	@$(MAKE) --no-print-directory crypten || echo "PyTorch and CrypTen cannot be installed here: the tests that need them are skipped, and say so."
	@$(MAKE) --no-print-directory kernel || echo "llvmlite cannot be installed here: the tests that need it are skipped, and say so."
	$(BIN)/ruff check .
	@said=$$(mktemp); $(BIN)/mypy >$$said 2>&1 & \
	  test -e .venv/compiled.stamp && test -z "$$(find tests -name '*.py' -newer .venv/compiled.stamp)" || \
	    { touch .venv/compiled.stamp; $(PYTEST) --collect-only >/dev/null 2>&1; }; \
	  $(PYTEST) -n auto --dist worksteal $(CASES); tested=$$?; \
	  wait $$!; typed=$$?; cat $$said; rm $$said; exit $$((tested | typed))

# Types of what changed: mypy keeps what it knew of the rest.
QUICK := tests/transcripts tests/test_architecture.py tests/test_one_home.py tests/mpc_protocols/test_permutation.py tests/mpc_protocols/test_partition.py \
  tests/runner/test_plug_ins.py::test_the_example_runs_between_three_processes_and_is_verified
quick: .venv/test.stamp
	$(BIN)/ruff check .
	$(BIN)/mypy & $(BIN)/python -m pytest -n auto --dist worksteal $(QUICK); tested=$$?; wait $$! && exit $$tested

# Compiled here: where PYTHONDONTWRITEBYTECODE is set, as in many containers, every process of a run would do it again.
.venv/demo.stamp: requirements.lock setup.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Cosynth needs Python 3.11 or later; this is " + sys.version.split()[0] + ". Name another: make demo PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	$(BIN)/python -m compileall -q cosynth mpc_protocols parties runner synth
	touch $@

.venv/test.stamp: requirements-test.lock .venv/demo.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-test.lock
	touch $@

# CrypTen's metadata asks for packages that are gone (sklearn) or not used here (torchvision): it comes without its dependencies.
crypten: .venv/crypten.stamp
.venv/crypten.stamp: requirements-torch.txt requirements-crypten.txt .venv/demo.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-torch.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-crypten.txt
	touch $@

# What proofs of products are computed with faster, and alike.
kernel: .venv/kernel.stamp
.venv/kernel.stamp: requirements-kernel.lock .venv/demo.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-kernel.lock
	touch $@

# In an environment of its own: dpmm's pins clash with ours.
second-opinion: .venv-second-opinion/made.stamp .venv/demo.stamp
	$(BIN)/python -m tests.acceptance.second_opinion --python .venv-second-opinion/bin/python \
	  $(if $(DATA),--data $(DATA)) $(if $(TABLES),--tables $(TABLES))

.venv-second-opinion/made.stamp: requirements-second-opinion.txt
	$(PYTHON) -m venv .venv-second-opinion
	.venv-second-opinion/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-second-opinion.txt
	touch $@

# In environments that comparisons have anyway.
benchmark: .venv-second-opinion/made.stamp .venv-habits/made.stamp .venv/demo.stamp
	$(BIN)/python -m tests.acceptance.benchmark build/benchmark.md --peer dpmm=.venv-second-opinion/bin/python \
	  --peer smartnoise-synth=.venv-smartnoise/bin/python --peer sdv=.venv-habits/bin/python $(if $(DATA),--data $(DATA)) $(if $(TABLES),--tables $(TABLES)) \
	  $(if $(MINUTES),--minutes $(MINUTES))

# In an environment of its own: engines that custodians may have, and Cosynth does not need.
engines: .venv-engines/made.stamp
	.venv-engines/bin/python -m pytest -p no:xdist tests/parties/data/tallies

.venv-engines/made.stamp: requirements-engines.txt requirements.lock
	$(PYTHON) -m venv .venv-engines
	.venv-engines/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	.venv-engines/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-engines.txt
	.venv-engines/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

# In an environment of its own: Flower wants older versions than ours of rich and packaging.
fleet: .venv-fleet/made.stamp
	.venv-fleet/bin/python -m tests.acceptance.fleet $(if $(NODES),--nodes $(NODES)) $(if $(ROUNDS),--rounds $(ROUNDS)) \
	  $(if $(SHARE),--share $(SHARE)) $(if $(DEPLOYED),--deployed)

.venv-fleet/made.stamp: requirements-fleet.lock
	$(PYTHON) -m venv .venv-fleet
	.venv-fleet/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-fleet.lock
	touch $@

# In an environment of its own: SDMetrics needs another pandas.
cross-check: .venv-cross-check/made.stamp .venv/demo.stamp
	$(BIN)/python -m tests.acceptance.cross_check --python .venv-cross-check/bin/python "$(RESULT)" "$(REAL)"

.venv-cross-check/made.stamp: requirements-cross-check.txt
	$(PYTHON) -m venv .venv-cross-check
	.venv-cross-check/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-cross-check.txt
	touch $@

# In environments of their own: SDV and SmartNoise agree on no pandas, and neither on ours.
habits: .venv-habits/made.stamp .venv/demo.stamp
	$(BIN)/python -m tests.acceptance.habits --python .venv-habits/bin/python --smartnoise .venv-smartnoise/bin/python

.venv-habits/made.stamp: requirements-habits.txt requirements-smartnoise.txt
	$(PYTHON) -m venv .venv-habits
	.venv-habits/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-habits.txt
	$(PYTHON) -m venv .venv-smartnoise
	.venv-smartnoise/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-smartnoise.txt || \
	  echo "SmartNoise cannot be installed here: it is left out of make habits, and named."
	touch $@

# In an environment of its own: the tool is no part of what it describes.
sbom: .venv-sbom/made.stamp
	@mkdir -p build/sbom
	@printf '[project]\nname = "cosynth"\nversion = "%s"\nlicense = "Apache-2.0"\n' \
	  "$$(sed -n 's/^VERSION = "\(.*\)"$$/\1/p' runner/version.py)" > build/sbom/pyproject.toml
	.venv-sbom/bin/cyclonedx-py requirements requirements.lock --pyproject build/sbom/pyproject.toml \
	  --output-reproducible --output-file build/cosynth.cdx.json

.venv-sbom/made.stamp: requirements-sbom.lock
	$(PYTHON) -m venv .venv-sbom
	.venv-sbom/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-sbom.lock
	touch $@

# In an environment of its own: what builds is pinned, and no part of what is built.
dist: .venv-dist/made.stamp sbom
	.venv-dist/bin/python release/dist.py

.venv-dist/made.stamp: requirements-dist.lock
	$(PYTHON) -m venv .venv-dist
	.venv-dist/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dist.lock
	touch $@

# In an environment of its own: nothing of it is needed to run Cosynth. Strict: a warning is an error.
site: .venv-docs/made.stamp
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict --quiet --config-file website/mkdocs.yml
	@echo "open build/site/index.html"

.venv-docs/made.stamp: requirements-docs.lock
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	touch $@

# Resolve the newest versions that setup.py allows, for every supported Python.
lock:
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --extra inference -o requirements.lock setup.py
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --extra inference --extra test -c requirements.lock -o requirements-test.lock setup.py
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --extra fleet -o requirements-fleet.lock setup.py
	echo 'llvmlite>=0.44,<1' | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -o requirements-kernel.lock -
	echo 'cyclonedx-bom>=7.5,<8' | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -o requirements-sbom.lock -
	printf 'build>=1.2,<2\nsetuptools>=80\n' | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -o requirements-dist.lock -
	printf 'mkdocs>=1.6,<2\nmkdocs-material>=9.8,<10\n' | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -o requirements-docs.lock -

clean:
	rm -rf .venv .venv-sbom .venv-second-opinion .venv-engines .venv-cross-check .venv-habits .venv-smartnoise .venv-fleet .venv-docs .venv-dist build dist *.egg-info
