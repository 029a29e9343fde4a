"""What another distribution adds is found where it is installed, by every process, and is part of what
parties agree on."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.process.plug_ins import GROUPS, plug_ins
from mpc_protocols.registry import Registry
from runner.commands.cli import main
from synth.algorithm import ALGORITHMS, Algorithm
from tests.runner import small
from tests.worlds.site import distribution

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "plug_in"
KWAY = [
    ('algorithm = "aim"', 'algorithm = "kway"'),
    ("[aim]\nrounds = 3", '[kway]\ncolumns = ["age", "sick"]'),
]


def install(site: Path, version: str = "0.1", name: str = "cosynth-kway", points: str = "") -> Path:
    """What pip leaves of the example in a folder of packages: the package, and what pyproject.toml says of
    it."""
    if not (site / "cosynth_kway").exists():
        shutil.copytree(EXAMPLE / "cosynth_kway", site / "cosynth_kway")
    groups = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"]
    entries = "".join(
        f"[{group}]\n" + "".join(f"{word} = {place}\n" for word, place in named.items())
        for group, named in groups.items()
    )
    return distribution(site, name, version, points or entries)


def runner(site: Path, tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command in a process that has the folder among its packages."""
    environment = os.environ | {
        "PYTHONPATH": f"{site}{os.pathsep}{ROOT}",
        "COSYNTH_LEDGER": str(tmp_path / "ledger.db"),
    }
    return subprocess.run(
        [sys.executable, "-m", "runner", *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_the_example_runs_between_three_processes_and_is_verified(tmp_path: Path) -> None:
    site = install(tmp_path / "site")
    trial = small.write(tmp_path, changes=KWAY)
    for command in (["check"], ["plan"], ["run", "--out", str(tmp_path / "out")]):
        done = runner(site, tmp_path, command[0], str(trial.path), *command[1:])
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        if command == ["plan"]:
            assert "every column and every marginal of the workload, once" in done.stdout
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["backend"] == "replicated" and run["algorithm"] == "kway"
    assert run["agreed"]["plug_ins"] == {"algorithm": "cosynth-kway 0.1"}
    measured = json.loads((tmp_path / "out" / "measurements.json").read_text())["measurements"]
    joint = [of["clique"] for of in measured if len(of["clique"]) > 1]
    assert joint == [["age", "sick"]]
    done = runner(site, tmp_path, "verify", str(tmp_path / "out"))
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "empty").mkdir()
    done = runner(tmp_path / "empty", tmp_path, "verify", str(tmp_path / "out"))
    assert done.returncode == 2 and "(cosynth-kway 0.1); install them here" in done.stdout + done.stderr


def test_a_suite_is_run_from_outside_and_finds_who_looks_behind_the_answers(tmp_path: Path) -> None:
    site = install(tmp_path / "site")
    done = runner(site, tmp_path, "conformance", "algorithm", "kway")
    assert done.returncode == 0 and "checks hold" in done.stdout, done.stdout + done.stderr
    assert 'algorithm "kway": ' in done.stdout and "FAILS" not in done.stdout
    points = "[cosynth.algorithms]\nuniform = reading:ALGORITHM\n"
    distribution(tmp_path / "reading", "reading", "1", points)
    toy = "from tests.toys.reading_algorithms import ReadsRows\n\nALGORITHM = ReadsRows()\n"
    (tmp_path / "reading" / "reading.py").write_text(toy)
    done = runner(tmp_path / "reading", tmp_path, "conformance", "algorithm", "uniform")
    assert done.returncode == 1 and "FAILS" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["algorithm", "kwey"], "There is no algorithm 'kwey'; there are aim, "),
        (["algorithm", "vertigan"], "The algorithm vertigan asks no oracle, and there is no suite for it."),
        (["alignment", "dh2", "--only", "no such"], "--only 'no such' names no check; --list shows them."),
    ],
)
def test_what_has_no_suite_is_one_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["conformance", *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_checks_are_listed_without_being_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "backend", "ideal", "--list"]) == 0
    assert "noise is there, and fresh" in capsys.readouterr().out.splitlines()


def test_parties_with_other_versions_of_a_plug_in_do_not_agree(tmp_path: Path) -> None:
    trial = small.write(tmp_path, changes=KWAY)
    code = "import sys; from runner.study import digest, load; print(digest(load(sys.argv[1]), '').hex())"
    digests = []
    for version in ("0.1", "0.2"):
        site = install(tmp_path / version, version)
        done = subprocess.run(
            [sys.executable, "-c", code, str(trial.path)],
            env=os.environ | {"PYTHONPATH": f"{site}{os.pathsep}{ROOT}"},
            capture_output=True,
            text=True,
            check=True,
        )
        digests.append(done.stdout)
    assert digests[0] != digests[1]


def test_what_is_not_installed_is_no_word_of_the_study_file(tmp_path: Path) -> None:
    trial = small.write(tmp_path, changes=KWAY)
    (tmp_path / "empty").mkdir()
    done = runner(tmp_path / "empty", tmp_path, "check", str(trial.path))
    assert done.returncode == 10 and re.search(r'algorithm must be .* or "florist", got "kway"', done.stdout)


def test_what_no_run_could_do_is_refused_by_check(tmp_path: Path) -> None:
    site = install(tmp_path / "site")
    for value, sentence in (
        ('["age", "age"]', "columns must be a list of different non-empty texts"),
        ('"age"', "columns must be a list of different non-empty texts"),
        ('["height"]', 'columns names "height", which is no column of the study'),
        # every pair fits, with 36 cells at most, and all of them together do not
        ('["age", "work", "income", "sick"]\nmax_model_mb = 0.0003', "have a model larger than max_model_mb"),
    ):
        trial = small.write(tmp_path, changes=[KWAY[0], (KWAY[1][0], f"[kway]\ncolumns = {value}")])
        done = runner(site, tmp_path, "check", str(trial.path))
        assert done.returncode == 10 and sentence in done.stdout, done.stdout


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry[Algorithm]:  # type: ignore[type-arg]
    """Algorithms anew, with a folder of packages of its own."""
    (tmp_path / "site").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return Registry(
        "synth.algorithms", "algorithm", Algorithm, "cosynth.algorithms", research="synth.research"
    )


def test_a_plug_in_that_cannot_be_loaded_is_named_when_it_is_asked_for_and_harms_no_other(
    tmp_path: Path,
    registry: Registry[Algorithm],  # type: ignore[type-arg]
) -> None:
    points = "[cosynth.algorithms]\nbroken = no_such_module:ALGORITHM\nmisnamed = synth.algorithms.aim.algorithm:ALGORITHM\n"
    install(tmp_path / "site", points=points)
    assert "broken" in registry and registry.names == ALGORITHMS.names
    with pytest.raises(
        StudyInvalid, match=r"The plug-in broken of cosynth-kway 0\.1 cannot be loaded \(ModuleNotFoundError"
    ):
        registry["broken"]
    with pytest.raises(
        StudyInvalid, match=r"The plug-in misnamed of cosynth-kway 0\.1 is no Algorithm of that name"
    ):
        registry.get("misnamed")


def test_a_plug_in_takes_no_name_of_our_own(
    tmp_path: Path,
    registry: Registry[Algorithm],  # type: ignore[type-arg]
) -> None:
    install(tmp_path / "site", points="[cosynth.algorithms]\naim = cosynth_kway.algorithm:ALGORITHM\n")
    assert registry["aim"] is ALGORITHMS["aim"] and registry.origin("aim") is None


def test_two_distributions_with_one_name_are_refused(
    tmp_path: Path,
    registry: Registry[Algorithm],  # type: ignore[type-arg]
) -> None:
    install(tmp_path / "site")
    install(tmp_path / "site", name="other")
    with pytest.raises(StudyInvalid, match="both have a plug-in kway; remove one of them"):
        _ = registry.names


def test_every_group_is_read_by_its_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Benchmarks and checks are loaded as a list: what is no such thing is refused by its distribution's
    name."""
    from mpc_protocols.errors import UsageError
    from runner.bench import registry as benches
    from runner.review.audit import check

    (tmp_path / "site").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    points = "".join(f"[{group}]\nkway = cosynth_kway.algorithm:ALGORITHM\n" for group in GROUPS)
    install(tmp_path / "site", points=points)
    assert all(plug_ins(group)["kway"].distribution == "cosynth-kway 0.1" for group in GROUPS)
    with pytest.raises(UsageError, match=r"The plug-in kway of cosynth-kway 0\.1 is no benchmark"):
        benches.load()
    with pytest.raises(ValueError, match=r"The plug-in kway of cosynth-kway 0\.1 is no group of checks"):
        check.load()
