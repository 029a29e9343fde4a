"""`cosynth.protocols`: its page and examples run, in one process, as three processes with TLS, and beside
MPyC."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cosynth import protocols
from mpc_protocols.errors import BudgetRefused, CosynthError, ProtocolAborted, StudyInvalid, UsageError
from parties import certificates
from parties.session import mpyc_wire
from tests.patience import PATIENCE_S
from tests.runner.processes import ROOT
from tests.worlds.ports import free_ports

PAGE = (ROOT / "docs" / "howto" / "protocols.md").read_text(encoding="utf-8")
NAMES = ("north", "south", "west")


def test_the_page_s_programs_run_one_after_the_other() -> None:
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        exec(compile(block, "protocols.md", "exec"), names)
    assert np.abs(names["north"].values - [125, 14]).max() < 50 and names["north"].rho * 100 == 1
    assert len(set(names["chosen"])) == 1 and names["chosen"][0] == 0
    assert {size for size, _ in names["joined"]} == {3}
    assert names["joined"][2][1].shape == (2, 2)


def test_the_page_names_every_method_of_a_party_and_every_public_name() -> None:
    methods = [name for name in vars(protocols.ThreeParties) if not name.startswith("_")]
    assert set(methods) - {"number", "traffic"} == set(
        re.findall(r"^\| `(\w+)\(.*?\)` \|", PAGE, re.MULTILINE)
    ) - {"in_one_process", "as_party"}
    for name in protocols.__all__:
        assert getattr(protocols, name).__doc__


def start(arguments: Sequence[object], cwd: Path, example: str = "protocols.py") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, ROOT / "examples" / example, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(processes: Sequence[subprocess.Popen[str]]) -> list[tuple[int, str, str]]:
    try:
        return [(process.wait(PATIENCE_S), *process.communicate()) for process in processes]
    finally:
        for process in processes:
            process.kill()


def test_the_example_runs_in_one_process(tmp_path: Path) -> None:
    [(code, output, complaint)] = ended([start([], tmp_path)])
    assert code == 0, complaint
    assert "'people': 4" in output and "'commonest': 0" in output


def test_the_example_runs_as_three_processes_with_tls(tmp_path: Path) -> None:
    certificates.make_all(tmp_path, list(NAMES))
    addresses = ",".join(f"127.0.0.1:{port}" for port in free_ports(3))
    results = ended([start([name, addresses, tmp_path], tmp_path) for name in NAMES])
    assert [code for code, _, _ in results] == [0, 0, 0], results
    assert len({output for _, output, _ in results}) == 1 and "'people': 4" in results[0][1]


def test_a_program_of_mpyc_s_calls_the_protocols_among_its_own(tmp_path: Path) -> None:
    port = min(free_ports(3))
    [(code, output, complaint)] = ended(
        [start(["-M3", "-B", port, "--no-log"], tmp_path, "protocols_beside_mpyc.py")]
    )
    assert code == 0, complaint
    assert re.search(r"MPyC 33 0; chosen 0; noisy \[\d+, -?\d+, -?\d+\]", output)


@pytest.mark.slow
@pytest.mark.parametrize("named", [True, False])
def test_beside_mpyc_the_name_in_a_certificate_is_that_of_the_party(tmp_path: Path, named: bool) -> None:
    """MPyC's listening side takes any certificate of its CA; party 1 listens to party 0."""
    folder = tmp_path / ".config"
    folder.mkdir()
    ca = certificates.make_ca("mpyc")
    (folder / "mpyc_ca.crt").write_bytes(ca.certificate)
    for number in range(3):
        name = f"MPyC party {number}" if named or number else "somebody of this CA"
        made = certificates.issue(ca, name)
        certificates.write_file(folder / f"party_{number}.crt", made.certificate, 0o600)
        certificates.write_file(folder / f"party_{number}.key", made.key, 0o600)
    ports = free_ports(3)
    parties = [argument for port in ports for argument in ("-P", f"127.0.0.1:{port}")]
    program = "protocols_beside_mpyc.py"
    started = [start([*parties, "-I", number, "--ssl", "--no-log"], tmp_path, program) for number in range(3)]
    if named:
        for code, output, complaint in ended(started):
            assert code == 0 and "MPyC 33 0; chosen 0" in output, complaint
        return
    try:
        assert started[1].wait(PATIENCE_S) != 0
        complaint = started[1].communicate()[1]
        assert "Party 0 of the MPyC program showed a certificate that does not name it" in complaint
    finally:
        for process in started:
            process.kill()
            process.communicate()


class FakeMPyC:
    """What the adapter looks at before it starts."""

    def __init__(
        self, parties: int = 3, threshold: int = 1, no_prss: bool = False, started: bool = True
    ) -> None:
        class Transport:
            def is_closing(self) -> bool:
                return False

            def get_extra_info(self, name: str) -> object:
                return ("192.0.2.7", 7101) if name == "peername" else None

        class Link:
            transport = Transport() if started else None

        self.pid, self.threshold = 0, threshold
        self.options = type("Options", (), {"no_prss": no_prss})
        self.parties = [type("Party", (), {"protocol": Link()})() for _ in range(parties)]


@pytest.mark.parametrize(
    ("mpc", "sentence"),
    [
        (FakeMPyC(parties=5, threshold=2), "three parties"),
        (FakeMPyC(threshold=0), "threshold 1"),
        (FakeMPyC(no_prss=True), "without --no-prss"),
        (FakeMPyC(started=False), "not connected"),
        (FakeMPyC(), "start MPyC with --ssl"),
    ],
)
def test_an_mpyc_that_cannot_carry_the_protocols_is_refused(mpc: Any, sentence: str) -> None:
    with pytest.raises(CosynthError, match=sentence):
        asyncio.run(mpyc_wire.run_beside(mpc, lambda wire: None))


MPYC_FAILURE = """
import sys
sys.argv += ["--no-log"]
from mpyc.runtime import mpc
from cosynth import protocols

def program(party):
    if party.number == 1:
        party.shared_sum([5], high=1)
    return party.open(party.shared_sum([1], high=1))

async def main():
    await mpc.start()
    try:
        await protocols.beside_mpyc(mpc, program)
    except Exception as error:
        print("ENDED", mpc.pid, error)
    print("AGAIN", await protocols.beside_mpyc(mpc, lambda party: party.open(party.shared_sum([2], high=9))[0]))
    await mpc.shutdown()

mpc.run(main())
"""


def test_a_party_that_stops_beside_mpyc_ends_the_protocol_at_the_others_and_not_the_program(
    tmp_path: Path,
) -> None:
    file = tmp_path / "failing.py"
    file.write_text(MPYC_FAILURE, encoding="utf-8")
    port = min(free_ports(3))
    [(code, output, complaint)] = ended([start(["-M3", "-B", port], tmp_path, str(file))])
    assert code == 0, complaint
    assert "ENDED 0 Party 1 stopped" in output and "AGAIN 6" in output


def test_a_budget_is_kept_by_every_party_and_ends_the_program() -> None:
    def program(party: protocols.ThreeParties) -> None:
        x = party.shared_sum([1, 2], high=5)
        for _ in range(3):
            party.noisy(x, sigma2=25, sensitivity2=1)

    with pytest.raises(BudgetRefused, match="would spend"):
        protocols.in_one_process(program, epsilon=1.0, delta=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(1.0, None), (None, 1e-9), (0, 1e-9), (1e9, 1e-9), (1.0, 1.0), ("1", 1e-9), (True, 1e-9)],
)
def test_a_budget_that_is_none_is_refused(epsilon: Any, delta: Any) -> None:
    with pytest.raises(UsageError, match="budget"):
        protocols.in_one_process(lambda party: None, epsilon=epsilon, delta=delta)


@pytest.mark.parametrize("epsilon", [14.0, 200.0])
def test_samplers_leave_most_of_a_large_epsilon(epsilon: float) -> None:
    """What they may take of delta shrinks with e^epsilon."""

    def program(party: protocols.ThreeParties) -> int:
        return party.arg_max(party.shared_sum([0, 300], high=300), sensitivity=1, epsilon=3.9).position

    assert protocols.in_one_process(program, epsilon=epsilon, delta=1e-9) == [1, 1, 1]


@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        ({"parties": {"north": "127.0.0.1:1"}}, UsageError, "exactly three"),
        ({"parties": dict.fromkeys(NAMES, "nowhere")}, UsageError, "host:port"),
        (
            {"parties": dict(zip(NAMES, ("h:1", "h:2", "h:" + "9" * 5000), strict=True))},
            UsageError,
            "host:port",
        ),
        ({"parties": dict.fromkeys(NAMES, 7101)}, UsageError, "are texts"),
        ({"parties": list(NAMES)}, UsageError, "exactly three"),
        ({"connect_s": "3"}, UsageError, "connect_s is a number of seconds"),
        ({"patience_s": float("inf")}, UsageError, "patience_s is a number of seconds"),
        ({"me": "east"}, StudyInvalid, "east"),
        ({"insecure_loopback": False}, StudyInvalid, "certificate"),
        (
            {"parties": dict(zip(NAMES, ("a.example:1", "b.example:1", "c.example:1"), strict=True))},
            StudyInvalid,
            "loop",
        ),
    ],
)
def test_parties_that_cannot_meet_are_refused(changes: Any, error: Any, sentence: str) -> None:
    settings: dict[str, Any] = {
        "me": "north",
        "parties": {name: f"127.0.0.1:{port}" for name, port in zip(NAMES, (7101, 7102, 7103), strict=True)},
        "purpose": "none",
        "insecure_loopback": True,
    }
    with pytest.raises(error, match=sentence):
        protocols.as_party(lambda party: None, **settings | changes)


def test_budgets_are_compared_as_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """1 at one party is 1.0 at another."""
    digests: list[bytes] = []
    monkeypatch.setattr(
        "runner.api.protocols.run_session", lambda config, *rest: digests.append(config.study_digest)
    )
    for epsilon in (1, 1.0, np.float64(1), 2.0):
        protocols.as_party(
            lambda party: None,
            me="north",
            parties={name: f"127.0.0.1:{port}" for name, port in zip(NAMES, (7101, 7102, 7103), strict=True)},
            purpose="none",
            insecure_loopback=True,
            epsilon=epsilon,
            delta=1e-9,
        )
    assert len(set(digests[:3])) == 1 and digests[3] != digests[0]


OTHER_PURPOSE = """
import sys
from cosynth import protocols
name, addresses, purpose = sys.argv[1:]
parties = dict(zip(("north", "south", "west"), addresses.split(",")))
try:
    protocols.as_party(lambda party: None, me=name, parties=parties, purpose=purpose, insecure_loopback=True)
except Exception as error:
    print(type(error).__name__)
"""


def test_parties_with_another_purpose_do_not_connect(tmp_path: Path) -> None:
    file = tmp_path / "purpose.py"
    file.write_text(OTHER_PURPOSE, encoding="utf-8")
    addresses = ",".join(f"127.0.0.1:{port}" for port in free_ports(3))
    started = [
        start([name, addresses, "a" if name == "west" else "b"], tmp_path, str(file)) for name in NAMES
    ]
    assert {output.strip() for _, output, _ in ended(started)} == {"StudiesDiffer"}


def test_a_party_runs_in_the_main_thread() -> None:
    refused: list[str] = []

    def elsewhere() -> None:
        try:
            protocols.as_party(lambda party: None, me="north", parties={}, purpose="none")
        except UsageError as error:
            refused.append(error.sentence)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert refused == [
        "A party runs in the main thread of its process, where Ctrl-C arrives; call as_party there."
    ]


@pytest.mark.parametrize("arguments", [[[1], [2]], None, [1, 2, 3], ["north", "south", "west"]])
def test_one_sequence_of_arguments_for_each_party_is_needed(arguments: Any) -> None:
    with pytest.raises(UsageError, match="three parties"):
        protocols.in_one_process(lambda party, *own: None, arguments)


def test_what_is_no_program_and_what_is_no_time_are_refused() -> None:
    with pytest.raises(UsageError, match="A program is a function"):
        protocols.in_one_process(3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="patience_s is a number of seconds"):
        protocols.in_one_process(lambda party: None, patience_s=float("nan"))


def test_a_party_that_fails_ends_the_program_in_one_process() -> None:
    def program(party: protocols.ThreeParties) -> None:
        if party.number == 2:
            raise ProtocolAborted("Party 2 gives up.")
        party.shared_sum([1], high=1)

    with pytest.raises(ProtocolAborted):
        protocols.in_one_process(program)
