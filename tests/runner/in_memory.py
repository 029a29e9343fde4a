"""Whole runs of parties as threads of one process: every file a party keeps, no socket and no start-up.

    runs = in_memory.run(trial.path, tmp_path / "out", monkeypatch)
    runs["north"]                  # content of what would be its run.json

Sessions are replaced by the in-memory network; results are handed over instead of written, for the report
takes the longest.

No run may begin a keyed stream twice (`tests.worlds.streams`), be it in two of its rounds, phases or forks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mpc_protocols.backend import BACKENDS, ClearBackend
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.wire import Wire
from parties.session import SessionConfig
from runner.party.ideal import run_ideal
from runner.party.options import PartyOptions
from runner.party.process import run_party
from runner.results.outdir import RESULT
from runner.study import load
from tests.patience import PATIENCE_S
from tests.worlds.streams import Streams


class SessionInMemory:
    """A wire with what a session adds to it."""

    def __init__(self, wire: Wire, announcements: Mapping[str, Mapping[str, object]]) -> None:
        self._wire, self.announcements = wire, announcements

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wire, name)

    def all_assembled(self) -> None:
        """Nobody waits here for what has no deadline."""

    def check_valid(self) -> None:
        """Nobody has a certificate that could expire."""


def run(
    path: Path, out: Path, monkeypatch: pytest.MonkeyPatch, resume: bool = False
) -> dict[str, dict[str, Any]]:
    """A run of the study: by party ("" for a backend of one process), what its run.json says. Raises what a
    party raised.

    out: of each party OUT/NAME. resume: go on with what was interrupted there. The ledger is the
    environment's.
    """
    study, described = load(path), dict[str, dict[str, Any]]()
    monkeypatch.setattr("runner.party.course.course.prepare", lambda: None)
    monkeypatch.setattr("runner.party.course.answers.prepare_end", lambda plan, most_rows: None)

    def written(
        folder: Path,
        release: object,
        domain: object,
        content: dict[str, Any],
        result: bytes | None = None,
        sign: object = None,
        reports: object = None,
    ) -> None:
        described["" if folder == out else folder.name] = content
        if result is not None:
            (folder / RESULT).write_bytes(result)

    for writer in ("runner.party.course.table", "runner.party.ideal"):
        monkeypatch.setattr(f"{writer}.write_outputs", written)
    if isinstance(BACKENDS[study.backend], ClearBackend):
        out.mkdir(parents=True)
        run_ideal(PartyOptions(path, None, out, one_machine=True))
        return described
    numbered = [party.name for party in study.numbered]
    network = MemoryNetwork(len(numbered), len(study.computing))
    streams = Streams()
    facts: dict[str, Mapping[str, object]] = {}
    met = threading.Barrier(len(numbered), timeout=PATIENCE_S)

    def session(
        config: SessionConfig,
        body: Callable[[Any], None],
        observe: object,
        tap: object = None,
        local_work: Callable[[], None] = lambda: None,
    ) -> None:
        local_work()
        facts[config.me] = config.facts
        met.wait()
        body(SessionInMemory(network.wire(numbered.index(config.me)), facts))

    monkeypatch.setattr("runner.party.process.run_session", session)

    def party(wire: Wire) -> None:
        name = numbered[wire.me]
        (out / name).mkdir(parents=True, exist_ok=resume)
        run_party(PartyOptions(path, name, out / name, one_machine=True, resume=resume))

    with streams.watched():
        network.run([party] * len(numbered))
    streams.check()
    return described
