"""What packages of other kinds say of the project is what setup.py says."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
CONDA_NAMES = {"duckdb": "python-duckdb"}
"""Packages that conda-forge calls otherwise than PyPI."""


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The arguments of `setup`."""
    given: dict[str, Any] = {}
    monkeypatch.setattr("setuptools.setup", given.update)
    monkeypatch.chdir(ROOT)
    runpy.run_path("setup.py")
    return given


def test_the_conda_recipe_is_that_of_this_version(project: dict[str, Any]) -> None:
    recipe = yaml.safe_load((ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["context"]["version"] == project["version"]
    assert recipe["about"]["summary"] == project["description"]
    assert recipe["about"]["license"] == project["license"]
    (script,) = project["entry_points"]["console_scripts"]
    assert recipe["build"]["python"]["entry_points"] == [script.replace("=", " = ")]
    needs = [f"python {project['python_requires']}"]
    for line in project["install_requires"]:
        name, bounds = re.fullmatch(r"([a-z0-9-]+)(.*)", line).groups()  # type: ignore[union-attr]
        needs.append(f"{CONDA_NAMES.get(name, name)} {bounds}")
    assert recipe["requirements"]["run"] == needs
