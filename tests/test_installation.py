"""What sentences tell a user to type works as it stands: as the program was started, as this copy was
installed."""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path

import pytest

from mpc_protocols.process import installation
from mpc_protocols.process.installation import STARTED_AS, as_started, pip_install, program
from runner.launch.children import environment
from tests.source_files import nodes

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def nobody_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(STARTED_AS, raising=False)


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("/venv/bin/cosynth", "cosynth"),
        ("cosynth.exe", "cosynth"),
        ("/clone/runner/__main__.py", "python -m runner"),
        ("/clone/cosynth/__main__.py", "python -m cosynth"),
        ("/elsewhere/pytest/__main__.py", "cosynth"),
        ("notebook.py", "cosynth"),
        ("", "cosynth"),
    ],
)
def test_the_program_is_called_as_it_was_started(
    argument: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [argument, "run"])
    assert program() == said


def test_a_party_that_the_launcher_starts_says_what_the_launchers_user_typed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["/venv/bin/cosynth"])
    told = environment()
    monkeypatch.setattr(sys, "argv", ["/clone/runner/__main__.py"])
    monkeypatch.setenv(STARTED_AS, told[STARTED_AS])
    assert program() == "cosynth"
    monkeypatch.setenv(STARTED_AS, "rm -rf")  # only what it could have been
    assert program() == "python -m runner"


def test_commands_in_a_text_are_named_as_the_program_was_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/clone/runner/__main__.py"])
    text = "  cosynth demo\nsee `cosynth run STUDY`, or cosynth.toml and cosynth demo-like things"
    assert as_started(text) == (
        "  python -m runner demo\nsee `python -m runner run STUDY`, or cosynth.toml and cosynth demo-like things"
    )


def test_optional_packages_are_named_by_their_own_names() -> None:
    assert pip_install(["paillier"]) == "python -m pip install 'gmpy2>=2.2' 'phe>=1.5'"
    both = pip_install(["postgres", "warehouse"])
    assert both == "python -m pip install 'psycopg[binary]>=3.2' 'sqlalchemy>=2.0.30'"
    assert pip_install(["of-a-plug-in"]) is None


def test_a_clone_that_was_not_installed_is_named_by_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", nothing)
    assert pip_install(["torch", "dask"]) in (
        f"python -m pip install {ROOT}[torch,dask]",
        f"python -m pip install '{ROOT}[torch,dask]'",
    )
    monkeypatch.setattr(installation, "__file__", "/nowhere/mpc_protocols/process/installation.py")
    assert pip_install(["torch"]) is None


def test_no_text_asks_to_install_a_public_name_for_this_project() -> None:
    """What an index serves under a name is decided by whoever owns it."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    sources = [
        path
        for package in ("mpc_protocols", "synth", "parties", "runner", "cosynth")
        for path in (ROOT / package).rglob("*.py")
    ]
    wrong = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in (*pages, *sources)
        for match in re.finditer(
            r"pip install [^\n`]*?(?<![-./\w])cosynth(?![-_\w/])[^\n`]{0,20}|cosynth\[",
            path.read_text("utf-8"),
        )
    ]
    assert not wrong, "\n".join(wrong)


def test_no_sentence_has_the_programs_name_written_out() -> None:
    """Help's texts go through `as_started`; whatever else a user reads asks `program`."""
    import ast

    wrong = []
    for package in ("mpc_protocols", "synth", "parties", "runner"):
        for path in sorted((ROOT / package).rglob("*.py")):
            docstrings = {
                id(node.body[0].value)
                for node in nodes(path)
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
                and node.body
                and isinstance(node.body[0], ast.Expr)
            }
            wrong += [
                f"{path.relative_to(ROOT)}:{node.lineno}"
                for node in nodes(path)
                if isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in docstrings
                and re.search(r"python -m runner(?!\.)", node.value)
            ]
    exempt = {"mpc_protocols/process/installation.py", "runner/bench/within.py"}
    assert [place for place in wrong if place.partition(":")[0] not in exempt] == []
