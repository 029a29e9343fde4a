"""What the processes of a run load: three parties share a laptop's two cores, and an import nobody needs
costs all of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runner import small
from tests.runner.processes import ROOT

OURS = {"runner", "synth", "mpc_protocols", "parties"}
PARTY = {"numpy", "mpyc", "gmpy2", "duckdb", "pyarrow", "jinja2", "markupsafe"}
"""A custodian of a CSV or Parquet file: pandas, scipy, networkx, ibis and drivers of databases are not among
them."""
ELSEWHERE = (
    "mpc_protocols.backends.replicated.vertical.source",
    "mpc_protocols.psu.align",
    "mpc_protocols.backends.replicated.merge3",
    "mpc_protocols.psu.dh2",
    "parties.data.records",
    "runner.bench",
    "runner.starting.demo",
    "runner.check.run",
    "runner.forecast",
    "runner.party.ideal",
    "synth.judgement.metrics",
)
"""Parts of the project that a horizontal run does without."""

RECORD = """\
import os, sys
end = os._exit
def record(code):
    name = "launcher" if "run" in sys.argv else "fork server"  # which loads what parties need, and ends after the launcher
    if "--party" in sys.argv:
        name = sys.argv[sys.argv.index("--party") + 1]
    with open(os.path.join(os.path.dirname(__file__), name), "w") as file:
        file.write("\\n".join(sys.modules))
    end(code)
os._exit = record
"""


def foreign(modules: set[str], allowed: set[str]) -> set[str]:
    """Packages beyond the standard library that are not allowed, without private ones and what the
    interpreter starts with."""
    packages = {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names) - allowed
    return {name for name in packages - {"sitecustomize", "cython_runtime"} if not name.startswith("_")}


def test_the_launcher_and_the_parties_of_a_horizontal_run_load_no_more_than_they_need(tmp_path: Path) -> None:
    study = small.write(tmp_path).path
    hook = tmp_path / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(RECORD)
    subprocess.run(
        [sys.executable, "-m", "runner", "run", str(study), "--out", str(tmp_path / "out")],
        check=True,
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        env=os.environ
        | {"PYTHONPATH": f"{hook}{os.pathsep}{ROOT}", "COSYNTH_LEDGER": str(tmp_path / "ledger.db")},
    )
    loaded = {name: set((hook / name).read_text().splitlines()) for name in ("launcher", *small.NAMES[:3])}
    assert not foreign(loaded.pop("launcher"), OURS | {"cryptography"})
    for name, modules in loaded.items():
        assert {"numpy", "duckdb", "runner.party.process"} <= modules, name  # the hook saw a whole run
        assert not foreign(modules, OURS | {"cryptography"} | PARTY), name
        assert not {module for module in modules if module.startswith(ELSEWHERE)}, name


@pytest.mark.parametrize("command", ["plan", "sample"])
def test_a_command_that_does_all_the_work_says_so_before_numpy_is_loaded(
    command: str, tmp_path: Path
) -> None:
    # OpenBLAS reads how many threads it may have when it is loaded, and idle ones spin.
    program = (
        "import os, sys, runner.commands as commands\n"
        "def one_thread():\n"
        "    told()\n"
        "    print('numpy' in sys.modules, os.environ['OPENBLAS_NUM_THREADS'])\n"
        "    raise KeyboardInterrupt\n"
        "told, commands.one_thread = commands.one_thread, one_thread\n"
        "from runner.commands.cli import main\n"
        "main(sys.argv[1:])\n"
    )
    arguments = {"plan": ["study.toml"], "sample": ["out", "--rows", "1"]}[command]
    plain = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", program, command, *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        env=plain | {"PYTHONPATH": str(ROOT)},
    )
    assert done.stdout.split() == ["False", "1"]


@pytest.mark.parametrize("given", ["--help", "--version"])
def test_the_help_of_the_whole_loads_no_command(given: str) -> None:
    program = (
        "import sys\n"
        "from runner.commands.cli import main\n"
        f"assert main([{given!r}]) == 0\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "runner.commands.cli" in loaded and not foreign(loaded, OURS)
    commands = {name for name in loaded if name.startswith("runner.commands.")}
    assert commands == {"runner.commands.cli", "runner.commands.listing"} and "synth" not in loaded
