"""Runs that go on after a crash: what was found out about contributors' inputs holds in every attempt.

The bound on rows comes from what was opened first, and counts are shared anew: without a memory of the
numbers of rows a contributor could send few at first and many then, and break the bound on which signs rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backend import DistributedBackend
from mpc_protocols.errors import BadInput, ProtocolAborted
from mpc_protocols.functionality import InputRule, MarginalOracle
from parties.budget.run_state import RunState
from tests.extras import skip_unless_installed
from tests.mpc_protocols.engine.inputs.lying_run import ROWS, Lie, Run, run
from tests.mpc_protocols.engine.inputs.test_protocol import (
    HONEST,
    TRIED,
    WIDE,
    expected,
    later,
    negative,
    questions,
)
from tests.worlds.tables import ONE_WAY, PARTS, SMALL, table

STUDY, RUN = b"d" * 32, b"s" * 32
EACH = pytest.mark.parametrize(("backend", "computing"), TRIED, ids=[f"{b.name}-{n}" for b, n in TRIED])
FEW, MANY = table(2, 31), table(ROWS, 32)


class CrashError(Exception):
    """The leader is gone."""


@dataclass
class Attempts:
    """Attempts at one run; the states of its computing parties lie in a folder."""

    folder: Path
    backend: DistributedBackend
    computing: int
    exclude: bool = False
    states: list[RunState] = field(default_factory=list)

    def go(
        self,
        contributors: Sequence[NDArray[np.int64]],
        body: Callable[[MarginalOracle], Any],
        lies: Mapping[int, Lie] | None = None,
        finish_held: bool = False,
    ) -> Run:
        """The next one, with `CrashError` or another error as it comes. lies: by the contributor's place."""
        for state in self.states:
            state.close()
        self.states = [self._state(party) for party in range(self.computing)]
        most = max((state.results for state in self.states), key=len)
        for state in self.states:
            state.attempt(bytes([state.attempts]) * 32, finish_held)
            if len(state.results) < len(most):
                state.learn(len(state.results), most[-1].inputs, most[-1].values)
        return run(
            self.backend,
            self.computing,
            [*self.own, *contributors],
            body,
            {self.computing + place: lie for place, lie in (lies or {}).items()},
            InputRule(ROWS, exclude=self.exclude),
            histories=self.states,
        )

    @property
    def own(self) -> list[NDArray[np.int64]]:
        """The computing parties' tables."""
        return [*PARTS, table(50, 11)][: self.computing]

    def _state(self, party: int) -> RunState:
        folder = self.folder / str(party)
        folder.mkdir(exist_ok=True)
        kept = list(folder.glob("state-*"))
        name = str(party)
        return (
            RunState.reopen(kept[0], STUDY, name) if kept else RunState.create(folder, STUDY, RUN, name, "1")
        )


def singles(oracle: MarginalOracle) -> Any:
    """The first release: it fixes the bound on rows."""
    return [list(cells) for cells in oracle.measure(oracle.prepare(ONE_WAY), SMALL)]


def total(oracle: MarginalOracle) -> Any:
    """The first release, for which a column is shared that nobody has asked for."""
    return oracle.total(SMALL)


def crashing(body: Callable[[MarginalOracle], Any]) -> Callable[[MarginalOracle], Any]:
    """Dies when it has the answer."""

    def asked(oracle: MarginalOracle) -> None:
        body(oracle)
        raise CrashError

    return asked


def crash(attempts: Attempts, *arguments: Any) -> None:
    """An attempt that ends after its questions."""
    contributors, body, *more = arguments
    with pytest.raises(CrashError):
        attempts.go(contributors, crashing(body), *more)


@EACH
@pytest.mark.parametrize("first", [singles, total])
def test_a_contributor_cannot_come_back_with_other_rows(
    tmp_path: Path, backend: DistributedBackend, computing: int, first: Callable[[MarginalOracle], Any]
) -> None:
    """The bound of the first release counts few of its rows; all of it fits `max_rows` each time."""
    skip_unless_installed(backend)
    attempts = Attempts(tmp_path, backend, computing)
    crash(attempts, [FEW, HONEST[0]], first)
    with pytest.raises(BadInput, match="another number of rows") as ended:
        attempts.go([MANY, HONEST[0]], lambda oracle: [first(oracle), singles(oracle)])
    assert ended.value.contributors == (computing,)
    found = attempts.go([FEW, HONEST[0]], lambda oracle: [first(oracle), *questions(oracle)])
    assert found.answer[1:] == expected(*[[*attempts.own, FEW, HONEST[0]]] * 2)


@EACH
def test_or_is_left_out_where_nothing_rests_on_its_rows(
    tmp_path: Path, backend: DistributedBackend, computing: int
) -> None:
    """The total is on record; what is shared next is checked against the rows that it counted. That, too, is
    remembered."""
    skip_unless_installed(backend)
    attempts = Attempts(tmp_path, backend, computing, exclude=True)
    crash(attempts, [FEW, HONEST[0]], total)
    tables = [*attempts.own, HONEST[0]]
    crash(attempts, [MANY, HONEST[0]], lambda oracle: [total(oracle), singles(oracle)])
    found = attempts.go([FEW, HONEST[0]], lambda oracle: [total(oracle), *questions(oracle)])
    assert found.answer == [len(np.concatenate(tables)) + len(FEW), *expected(tables, tables)]
    assert found.left_out == {party: [computing] for party in range(computing)}


@EACH
def test_who_was_left_out_stays_out(tmp_path: Path, backend: DistributedBackend, computing: int) -> None:
    """One before the first total, one later; both come back with sound counts, one of them with other rows."""
    skip_unless_installed(backend)
    attempts, tables = Attempts(tmp_path, backend, computing, exclude=True), [HONEST[0], FEW, FEW]
    kept = [*attempts.own, HONEST[0]]

    def body(oracle: MarginalOracle) -> list[Any]:
        return [total(oracle), *questions(oracle)]

    lies = {1: negative, 2: later(negative)}
    crash(attempts, tables, body, lies)
    before = [state.digests for state in attempts.states]
    found = attempts.go([HONEST[0], FEW, MANY], body)
    assert found.left_out == {party: [computing + 1, computing + 2] for party in range(computing)}
    assert found.answer == [len(np.concatenate(kept)) + len(FEW), *expected([*kept, FEW], kept)]
    assert max(before, key=len) == attempts.states[0].digests


def test_a_sharing_is_checked_anew_if_no_result_rests_on_it(tmp_path: Path) -> None:
    """Nothing was opened: whoever comes back is judged by what it sends now."""
    attempts = Attempts(tmp_path, *TRIED[0], exclude=True)
    crash(attempts, [FEW, HONEST[0]], lambda oracle: oracle.prepare(ONE_WAY), {1: negative})
    found = attempts.go([MANY, HONEST[0]], questions)
    assert found.left_out == {party: [] for party in range(attempts.computing)}
    assert found.answer == expected(*[[*attempts.own, MANY, HONEST[0]]] * 2)


def test_numbers_of_rows_are_those_of_one_attempt(tmp_path: Path) -> None:
    """Shares of different sessions add up to nothing: one party's file was changed, say."""
    attempts = Attempts(tmp_path, *TRIED[0])
    crash(attempts, [FEW, HONEST[0]], singles)
    for state in attempts.states:
        state.close()
    [path] = (tmp_path / "1").glob("state-*")
    with RunState.reopen(path, STUDY, "1") as kept:
        [(inputs, sharing)] = ((of, found) for of, found in kept.sharings().items() if found.rows)
        kept.attempt(b"x" * 32)
        kept.keep_sharing(inputs, (), sharing.rows)
    with pytest.raises(ProtocolAborted, match="contributors' numbers of rows of another attempt"):
        attempts.go([FEW, HONEST[0]], lambda oracle: [singles(oracle), oracle.prepare(WIDE)])
