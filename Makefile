# make demo   runs the main job on data that ships with a dependency
# make test   style, types and the whole test suite
# Both need only Python >= 3.11 and make; both create .venv from a lock file.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lock clean

demo: .venv/demo.stamp
	$(BIN)/python -m runner demo

test: .venv/test.stamp
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest

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

# Resolve the newest versions that setup.py allows, for every supported Python.
lock:
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --extra demo -o requirements.lock setup.py
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --extra demo --extra test -c requirements.lock -o requirements-test.lock setup.py

clean:
	rm -rf .venv build dist *.egg-info
