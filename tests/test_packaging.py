"""What packages of other kinds say of the project is what setup.py says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
CONDA_NAMES = {"duckdb": "python-duckdb"}
"""Packages that conda-forge calls otherwise than PyPI."""


ARGUMENTS = """
import json, runpy, setuptools
given = {}
setuptools.setup = lambda **arguments: given.update(arguments)
runpy.run_path("setup.py")
print(json.dumps(given))
"""


@pytest.fixture
def project() -> dict[str, Any]:
    """The arguments of `setup`; in a process of its own, for setuptools must come before any distutils."""
    said = subprocess.run(
        [sys.executable, "-c", ARGUMENTS], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    given: dict[str, Any] = json.loads(said.stdout)
    return given


def test_the_conda_recipe_is_that_of_this_version(project: dict[str, Any]) -> None:
    recipe = yaml.safe_load((ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["context"]["version"] == project["version"]
    assert recipe["about"]["summary"] == project["description"]
    assert recipe["about"]["license"] == project["license"]
    (script,) = project["entry_points"]["console_scripts"]
    assert recipe["build"]["python"]["entry_points"] == [script.replace("=", " = ")]
    (source,) = recipe["source"]
    assert source == {"path": "../.."}  # all that git knows: a filter of exclusions alone would leave nothing
    needs = [f"python {project['python_requires']}"]
    for line in project["install_requires"]:
        name, bounds = re.fullmatch(r"([a-z0-9-]+)(.*)", line).groups()  # type: ignore[union-attr]
        needs.append(f"{CONDA_NAMES.get(name, name)} {bounds}")
    assert recipe["requirements"]["run"] == needs
