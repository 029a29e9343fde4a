"""`cosynth`, the face for Python users: typed, light, and not in the way of files called like the packages
behind it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import cosynth
import mpc_protocols.errors
import runner
import runner.api
import runner.study

ROOT = Path(__file__).resolve().parent.parent


def python(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A program as a script in `folder`, which comes first on its path; ours are found as installed packages
    are."""
    (folder / "script.py").write_text(program)
    return subprocess.run(
        [sys.executable, "script.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        check=False,
    )


def test_its_names_are_those_of_the_packages_behind_it() -> None:
    assert cosynth.run_study is runner.run_study and cosynth.Run is runner.Run
    assert cosynth.load is runner.api.load and cosynth.Study is runner.study.Study
    assert cosynth.CosynthError is mpc_protocols.errors.CosynthError
    assert set(dir(cosynth)) == set(cosynth.__all__)


def test_importing_it_loads_nothing_else(tmp_path: Path) -> None:
    done = python(
        "import sys; before = set(sys.modules); import cosynth; print(sorted(set(sys.modules) - before))",
        tmp_path,
    )
    added = set(ast.literal_eval(done.stdout))
    assert "cosynth" in added and not added & {"runner", "synth", "parties", "mpc_protocols", "numpy"}


def test_a_runner_of_the_users_own_is_not_in_its_way(tmp_path: Path) -> None:
    for name in ("runner", "synth", "parties"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong one')\n")
    done = python(
        "from cosynth import CosynthError, Study, load, run_study; print(run_study.__module__)", tmp_path
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "runner.api.running\n", "")


def test_a_runner_that_is_loaded_already_is_named(tmp_path: Path) -> None:
    (tmp_path / "runner.py").write_text("")
    done = python("import runner\nfrom cosynth import run_study", tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: cosynth needs its own package runner, but {tmp_path / 'runner.py'} is loaded under that name: "
        "rename that file, or import cosynth before it."
    )


def test_it_runs_as_a_module(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cosynth", "--version"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        check=False,
    )
    assert done.stdout == f"cosynth {cosynth.__version__}\n"


def test_type_checkers_see_its_names(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(
        "from cosynth import CosynthError, Run, Study, load, run_study\n"
        "study: Study = Study.read('study.toml')\n"
        "run: Run = load('out')\n"
        "reveal_type(run_study('study.toml'))\n"
        "error: CosynthError = 1\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--config-file=",
            f"--cache-dir={tmp_path / 'cache'}",
            str(tmp_path / "user.py"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 'Revealed type is "runner.api.run.Run"' in done.stdout
    assert 'expression has type "int", variable has type "CosynthError"' in done.stdout
