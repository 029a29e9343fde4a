"""The seams: what somebody adds is one file, everybody else asks its descriptor, and nobody compares names."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from mpc_protocols.backend import BACKENDS, Backend, DistributedBackend, EngineBackend, backends_table
from mpc_protocols.backends.ideal.backend import Ideal
from mpc_protocols.backends.replicated.semi_honest import Replicated
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.options import Option
from mpc_protocols.psu.align import align
from mpc_protocols.psu.forecast import forecast
from mpc_protocols.psu.functionality import Alignment, ideal_align
from mpc_protocols.psu.identifiers.normalise import Identifiers
from mpc_protocols.psu.method import METHODS, methods_table
from mpc_protocols.registry import Registry
from mpc_protocols.wire import Wire
from runner.__main__ import main
from runner.review.conformance.guards import Recorder
from runner.study import load, problems
from runner.study.claim import claim_of
from synth.algorithm import ALGORITHMS, Algorithm, proposed
from tests.mpc_protocols.psu.owners import CONTEXT, assert_ideal, ids, spec_of
from tests.runner import small
from tests.runner.processes import ROOT
from tests.runner.studies import write_study
from tests.runner.test_vertical_study import write_vertical
from tests.source_files import nodes
from tests.toys import open_method, plain_backend, uniform_algorithm
from tests.worlds.site import distribution

UNIFORM = ('algorithm = "aim"', 'algorithm = "uniform"')
TABLE = ("[aim]\nrounds = 4", "[uniform]\niterations = 2")
IDEAL = ('backend = "replicated"', 'backend = "ideal"')
PLAIN = "[cosynth.backends]\nplain = tests.toys.plain_backend:BACKEND\n"


# -- registries
# -----------------------------------------------------------------------------------------------------------


def test_versions_are_found_where_they_lie() -> None:
    assert ALGORITHMS.names == (
        "aim",
        "mwem",
        "mst",
        "mosaic",
        "privmrf",
        "vertimrf",
        "flaim",
        "vertigan",
        "florist",
    )
    assert BACKENDS.names == ("replicated", "shamir", "pair", "paillier", "additive", "ideal")
    assert METHODS.names == ("merge3", "helper", "dh2", "florist", "row-order")
    assert [a.name for a in ALGORITHMS if a.proposed] == [proposed().name]
    found: Registry[Algorithm] = Registry("tests.toys", "algorithm", Algorithm)  # type: ignore[type-arg]
    assert found.names == ("uniform",) and found["uniform"] is uniform_algorithm.ALGORITHM
    with pytest.raises(ValueError, match="does not hold BACKEND"):
        _ = Registry("tests.toys", "backend", Algorithm).names


def test_a_version_is_registered_once_and_for_as_long_as_asked() -> None:
    with ALGORITHMS.registered(uniform_algorithm.ALGORITHM):
        assert "uniform" in ALGORITHMS and ALGORITHMS.names[-1] == "uniform"
        with pytest.raises(ValueError, match="name of its own"):
            ALGORITHMS.register(uniform_algorithm.ALGORITHM)
    assert "uniform" not in ALGORITHMS and ALGORITHMS.get("uniform") is None
    with pytest.raises(ValueError, match="is not an Algorithm"):
        ALGORITHMS.register(plain_backend.BACKEND)  # type: ignore[arg-type]


@pytest.mark.parametrize("package", ["mpc_protocols", "synth", "parties", "runner"])
def test_nobody_compares_names(package: str) -> None:
    names = {*ALGORITHMS.names, *BACKENDS.names, *METHODS.names}
    for path in sorted((ROOT / package).rglob("*.py")):
        for node in nodes(path):
            if isinstance(node, ast.Compare):
                sides = [leaf for side in (node.left, *node.comparators) for leaf in ast.walk(side)]
            elif isinstance(node, ast.Dict) and len(node.keys) > 1:  # a table by name
                sides = [leaf for leaf in node.keys if leaf is not None]
            else:
                continue
            for leaf in sides:
                assert not (isinstance(leaf, ast.Constant) and leaf.value in names), f"{path}:{node.lineno}"


def test_descriptors_load_the_standard_library_only() -> None:
    script = (
        "import sys; from mpc_protocols.backend import BACKENDS; from mpc_protocols.psu.method import METHODS; "
        "from synth.algorithm import ALGORITHMS; BACKENDS.names, METHODS.names, ALGORITHMS.names; "
        "print({name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert ast.literal_eval(done.stdout) <= {"__main__", "mpc_protocols", "synth", "sitecustomize"}


# -- what is declared
# -----------------------------------------------------------------------------------------------------


def test_an_option_allows_what_it_says() -> None:
    whole = Option("whole", "", low=2, high=5, words=("auto",))
    assert [whole.allows(value) for value in (2, 5, "auto", 1, 6, 2.0, True, "other", None)] == [
        *[True] * 3,
        *[False] * 6,
    ]
    assert whole.expected == 'a whole number of at least 2 and at most 5 or "auto"'
    number = Option("number", "", above=0.0, below=1.0)
    assert [number.allows(value) for value in (0.5, 0, 1, float("nan"), True)] == [True, *[False] * 4]
    assert Option("flag", "").allows(False) and not Option("flag", "").allows(0)
    assert Option("text", "").allows("x") and not Option("text", "").allows(" ")
    assert Option("word", "", words=("a", "b")).expected == '"a" or "b"'


@pytest.mark.parametrize("name", [algorithm.name for algorithm in ALGORITHMS if algorithm.workload])
def test_every_key_is_read_checked_and_shown(tmp_path: Path, name: str) -> None:
    """Whatever an algorithm declares: its template is valid and means the defaults, and a wrong value of each
    key is named."""
    config = ALGORITHMS[name].config
    research = "" if ALGORITHMS[name].alternative(config()) is None else "\nresearch = true"
    named = ('algorithm = "aim"', f'algorithm = "{name}"{research}')
    table = config.template(31)
    write = write_study if "horizontal" in ALGORITHMS[name].partitions else write_vertical
    study = load(write(tmp_path, named, ("[aim]\nrounds = 4", f"[{name}]\n{table}")))
    assert study.config == config() and study.public()[name] == config().public()
    for key in config.options():
        path = write(tmp_path, named, ("[aim]\nrounds = 4", f"[{name}]\n{key} = []"))
        assert problems(path) == [f"{path}: [{name}] {key} must be {config.options()[key].expected}, got []."]


def test_the_page_on_split_columns_shows_the_methods() -> None:
    assert f"\n{methods_table()}\n" in (ROOT / "docs" / "howto" / "vertical.md").read_text(encoding="utf-8")


def test_the_page_on_backends_shows_the_registry() -> None:
    assert f"\n{backends_table()}\n" in (ROOT / "docs" / "backends.md").read_text(encoding="utf-8")


def test_the_claim_is_the_descriptors(tmp_path: Path) -> None:
    claim = claim_of(load(write_study(tmp_path)))
    assert claim.startswith(
        "Everything that was released is together (epsilon, delta)-differentially private; nothing"
    )
    assert "among the computing parties no two of them work together" in claim
    assert "record" in claim_of(load(write_vertical(tmp_path)))
    ideal = claim_of(load(write_vertical(tmp_path, IDEAL)))
    assert "no privacy claim towards whoever can read the one process" in ideal and "record" not in ideal


# -- gates
# ----------------------------------------------------------------------------------------------------------------


def test_security_and_research(tmp_path: Path) -> None:
    backend = 'backend = "replicated"'
    study = load(write_study(tmp_path, (backend, backend + '\nsecurity = "semi-honest"')))
    assert study.security == "semi-honest" and not study.research
    study = load(write_study(tmp_path, (backend, backend + '\nsecurity = "malicious"')))
    assert study.descriptor.malicious and study.security == "malicious"
    path = write_study(tmp_path, (backend, backend + '\nsecurity = "none"'))
    assert problems(path) == [f'{path}: [study] security must be "semi-honest" or "malicious", got "none".']
    bold = (UNIFORM, (TABLE[0], '[uniform]\nmood = "bold"'))
    with ALGORITHMS.registered(uniform_algorithm.ALGORITHM):
        path = write_study(tmp_path, *bold)
        with pytest.raises(StudyInvalid) as raised:
            load(path)
        assert raised.value.exit_code == 10 and problems(path) == [
            f'{path}: [study] algorithm = "uniform" as configured is for research, without a sound claim or utility; use '
            'mood = "sober", or set research = true.'
        ]
        study = load(write_study(tmp_path, *bold, (backend, backend + "\nresearch = true")))
        assert study.research and study.public()["study"]["research"] is True
        assert claim_of(study).startswith("No privacy claim; ")


def test_who_may_compute_and_what_else_would_do(tmp_path: Path) -> None:
    replicated = Replicated()
    assert replicated.misfit(["a", "b", "c"]) is None
    assert (
        replicated.misfit(["a", "b"])
        == 'has two computing parties only (a, b), and backend = "replicated" needs exactly '
        'three; add a [[party]], which needs no data of its own, or let another one compute, or use backend = "pair" '
        'or backend = "paillier"'
    )
    with BACKENDS.registered(plain_backend.BACKEND):
        assert (replicated.misfit(["a", "b"]) or "").endswith(
            'compute, or use backend = "pair" or backend = "paillier" or backend = "plain"'
        )
        assert (replicated.misfit(["a", "b", "c", "d"]) or "").endswith('or use backend = "shamir"')
        assert "use backend" not in (replicated.misfit([str(number) for number in range(10)]) or "")
        assert "takes two to three" in (plain_backend.BACKEND.misfit(list("abcd")) or "")
        path = write_vertical(tmp_path, ('backend = "replicated"', 'backend = "plain"'))
        # columns that are split: only what can join them is an alternative
        assert 'compute, or use backend = "pair"' in (replicated.misfit(["a", "b"], "vertical") or "")
        assert "plain" not in (BACKENDS["pair"].misfit(["a", "b", "c"], "vertical") or "")
        assert any(
            'backend = "plain" runs with partition = "horizontal" only; use backend = "replicated" or backend = '
            in each
            for each in problems(path)
        )


def test_a_missing_extra_is_named_with_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ideal, "requires", ("sys", "a_module_that_nobody_has"))
    monkeypatch.setattr(Ideal, "extra", "curator")
    path = write_study(tmp_path, IDEAL)
    assert problems(path) == [
        f'{path}: [study] backend = "ideal" needs a_module_that_nobody_has, which this installation lacks; install '
        "what its own pages name at every party."
    ]


def test_a_backend_says_what_it_can_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Replicated, "alignments", ("dh2",))
    assert problems(write_vertical(tmp_path)) == []  # auto
    path = write_vertical(tmp_path, ("min_size = 10", 'min_size = 10\nvia = "merge3"'))
    assert problems(path) == [
        f'{path}: backend = "replicated" cannot work with records joined by merge3; it works with dh2.'
    ]


# -- one file each
# --------------------------------------------------------------------------------------------------------


def test_a_toy_algorithm_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    changes = [UNIFORM, ("[aim]\nrounds = 3", TABLE[1]), IDEAL]
    with ALGORITHMS.registered(uniform_algorithm.ALGORITHM):
        trial = small.write(tmp_path, changes=changes)
        assert main(["check", str(trial.path)]) == 0
        assert main(["plan", str(trial.path)]) == 0
        text = capsys.readouterr().out
        assert "questions  the number of rows, and nothing else" in text and "claim: Everything" in text
        assert main(["run", str(trial.path), "--out", str(tmp_path / "out")]) == 0
        run = json.loads((tmp_path / "out" / "run.json").read_text())
        assert run["algorithm"] == "uniform" and run["claim"] == claim_of(load(trial.path))
        assert [event["what"] for event in run["privacy"]["events"]] == ["total"]
        assert abs(run["rows"] - len(trial.pooled)) < 200
        page = (tmp_path / "out" / "report.html").read_text()
        assert "<dd>Uniform</dd>" in page and run["claim"] in page and "This run is research" not in page
        bold = [(old, new.replace("iterations = 2", 'mood = "bold"')) for old, new in changes]
        trial = small.write(tmp_path, changes=[*bold, ('name = "trial"', 'name = "trial"\nresearch = true')])
        assert main(["run", str(trial.path), "--out", str(tmp_path / "bold")]) == 0
        page = (tmp_path / "bold" / "report.html").read_text()
        assert page.count("This run is research") == 1 and "No privacy claim; " in page


def test_a_toy_backend_runs_as_processes(tmp_path: Path) -> None:
    """Two parties compute, one contributes: every process finds the backend as an entry point."""
    changes = [('backend = "replicated"', 'backend = "plain"')]
    site = distribution(tmp_path / "site", "plain", "1", PLAIN)
    trial = small.write(tmp_path, changes=changes)
    environment = os.environ | {
        "PYTHONPATH": f"{site}{os.pathsep}{ROOT}",
        "COSYNTH_LEDGER": str(tmp_path / "ledger.db"),
    }
    for command in (["check"], ["plan"], ["run", "--out", str(tmp_path / "out")]):
        done = subprocess.run(
            [sys.executable, "-m", "runner", command[0], str(trial.path), *command[1:]],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=110,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        if command == ["plan"]:
            assert "as long as everybody trusts the leader" in done.stdout
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert [party["role"] for party in run["parties"]] == ["compute", "compute", "contribute"]
    assert run["backend"] == "plain" and len(run["selected"]) == 3
    measured = json.loads((tmp_path / "out" / "measurements.json").read_text())
    assert abs(measured["noisy_total"] - len(trial.pooled)) < 200


def test_a_toy_alignment_method_joins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with METHODS.registered(open_method.METHOD):
        path = write_vertical(tmp_path, ("min_size = 10", 'min_size = 10\nvia = "open"'))
        study = load(path)
        assert "each owner learns every identifier of the other" in claim_of(study)
        assert main(["plan", str(path), "--rows", "100"]) == 0
        text = capsys.readouterr().out
        assert "  the owners, from joining: each owner learns every identifier of the other\n" in text
        assert "nobody: another owner's values beside the identifiers; the noise" in text
        assert "which of its own another owner holds" not in text
        lists, spec = [ids(range(12)), ids(range(7, 20))], spec_of("open")

        def body(wire: Wire) -> Alignment:
            side = CONTEXT.side(wire.me)
            own = None if side is None else Identifiers(lists[side], np.arange(len(lists[side])), ("text",))
            return align(wire, own, spec, CONTEXT, Recorder())

        network = MemoryNetwork(2, 2)
        assert_ideal(lists, network.run([body] * 2), ideal_align(lists, spec))
        expected = forecast(spec, CONTEXT, [12, 13])
        assert {number: expected.sent[number] for number in (0, 1)} == {
            i: network.traffic(i).bytes_sent for i in (0, 1)
        }


def test_every_backend_speaks_for_itself() -> None:
    for backend in BACKENDS:
        assert isinstance(backend, Backend) and backend.claim and backend.summary
        if isinstance(backend, DistributedBackend):
            assert backend.assumption and not backend.assumption.endswith(".")
            for mode in backend.securities:
                secured = backend.secured(mode)
                assert isinstance(secured, DistributedBackend) and secured.assumption in secured.claim
                refused = (
                    nullcontext() if secured.cohorts else pytest.raises(StudyInvalid, match="no cohorts")
                )
                with refused:
                    assert secured.cohort_parts()
            for computing in range(backend.computing[0], backend.computing[1] + 1):
                assert 2 <= backend.coalition(computing) <= computing
                assert str(computing) in backend.colluding(computing) or computing == 2
        if isinstance(backend, EngineBackend):
            assert backend.parts().party is not None
        for vertical in (False, True):
            assert all(sentence.endswith(".") for sentence in backend.threat(vertical))
    for method in METHODS:
        assert method.claim and method.trust.endswith(".") and method.matched.endswith(".")
