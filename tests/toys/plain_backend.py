"""A toy backend: everybody sends its counts to the leader in the clear. IT PROTECTS NOTHING; it shows what a
backend does.

    leader -> followers      a step; what it opened           follower -> leader    32 bytes: its transcript, once it authorised
    leader -> all others     cliques to be counted            other -> leader       8 bytes a cell

A message of the leader is a letter and its content. Followers keep the public state, so that they refuse a
step that the study does not allow, authorise its events before anything is opened, and notice a leader that
told another party something else.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backend import DistributedBackend
from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.errors import DataRefused, ProtocolAborted, StudyInvalid
from mpc_protocols.functionality import (
    Clique,
    Guard,
    Handle,
    LocalCounts,
    MarginalOracle,
    Observe,
    StudyFacts,
)
from mpc_protocols.in_memory.presumed import AllowAll, DryRun, PresumedRun
from mpc_protocols.public.begun import (
    Begun,
    BegunDistances,
    BegunEnd,
    BegunMeasure,
    BegunPrepare,
    BegunSelect,
)
from mpc_protocols.public.history import NO_HISTORY, History
from mpc_protocols.public.rounded_answers import RoundedAnswers
from mpc_protocols.public.state import PublicState
from mpc_protocols.public.steps import PrepareStep, parse

if TYPE_CHECKING:
    from mpc_protocols.vertical.partition import VerticalData
    from mpc_protocols.wire import Wire

LIMIT = 1 << 24
STEP, COUNT, OPENED = b"s", b"c", b"o"


class Leading(IdealOracle):
    """The leader's part, whether its messages travel or are merely counted."""

    def __init__(
        self, facts: StudyFacts, own: LocalCounts | None, guard: Guard, me: int, computing: int, others: int
    ) -> None:
        """others: how many contribute; their numbers follow those of the computing parties."""
        self._own = own
        self._followers = [number for number in range(computing) if number != me]
        self._others = [*self._followers, *range(computing, computing + others)]
        super().__init__(facts, self._counted, guard, dealers=1, watch=self._announce)

    @abstractmethod
    def _send(self, peer: int, payload: bytes) -> None: ...

    @abstractmethod
    def _receive(self, peer: int, size: int) -> bytes: ...

    @abstractmethod
    def _check_agreement(self, peer: int, theirs: bytes, inputs: bytes) -> None: ...

    def select(
        self,
        handles: Sequence[Handle],
        answers: Sequence[NDArray[np.float64]],
        weights: Sequence[Fraction],
        penalties: Sequence[Fraction],
        epsilon: Fraction,
        picks: int = 1,
        conflicts: Sequence[tuple[int, int]] = (),
    ) -> list[int]:
        picked = super().select(handles, answers, weights, penalties, epsilon, picks, conflicts)
        self._tell_opened(picked)
        return picked

    def measure(
        self, handles: Sequence[Handle], sigma2: Fraction | Sequence[Fraction]
    ) -> list[NDArray[np.int64]]:
        noisy = super().measure(handles, sigma2)
        self._tell_opened(np.concatenate(noisy))
        return noisy

    def distances(
        self, handles: Sequence[Handle], answers: Sequence[NDArray[np.float64]], sigma2: Fraction
    ) -> NDArray[np.int64]:
        noisy = super().distances(handles, answers, sigma2)
        self._tell_opened(noisy)
        return noisy

    def total(self, sigma2: Fraction) -> int:
        value = super().total(sigma2)
        self._tell_opened([value])
        return value

    def close(self) -> None:
        """Tell everybody that nothing follows."""
        begun = self.state.begin_end()
        for peer in self._others:
            self._send(peer, STEP + begun.step.to_bytes())
        self._agree(begun.inputs)

    def _announce(self, begun: Begun, rounded: RoundedAnswers | None) -> None:
        for peer in self._followers:
            self._send(peer, STEP + begun.step.to_bytes())
        self._agree(begun.inputs)

    def _agree(self, inputs: bytes) -> None:
        for peer in self._followers:
            self._check_agreement(peer, self._receive(peer, len(inputs)), inputs)

    def _counted(self, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        for peer in self._others:
            self._send(peer, COUNT + PrepareStep(tuple(cliques)).to_bytes())
        totals = flat_counts(self._own, cliques, self.facts)
        for peer in self._others:
            totals = totals + np.frombuffer(self._receive(peer, totals.nbytes), np.int64)
        return np.split(totals, np.cumsum([self.facts.cells(clique) for clique in cliques])[:-1])

    def _tell_opened(self, values: Sequence[int] | NDArray[np.int64]) -> None:
        for peer in self._followers:
            self._send(peer, OPENED + np.asarray(values, np.int64).tobytes())


class PlainOracle(Leading):
    """The leader's oracle over a wire."""

    def __init__(self, wire: Wire, facts: StudyFacts, own: LocalCounts | None, guard: Guard) -> None:
        super().__init__(facts, own, guard, wire.me, wire.computing, len(wire.contributors))
        self._wire = wire

    def _send(self, peer: int, payload: bytes) -> None:
        self._wire.send(peer, payload)

    def _receive(self, peer: int, size: int) -> bytes:
        return bytes(self._wire.receive(peer, size))

    def _check_agreement(self, peer: int, theirs: bytes, inputs: bytes) -> None:
        if theirs != inputs:
            raise ProtocolAborted(f"Party {peer} has seen other public inputs than this party.")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()


class PlainDryRun(Leading, DryRun):
    """The leader's part on a presumed table: every message is counted, and the others hold nothing."""

    def __init__(self, run: PresumedRun) -> None:
        super().__init__(run.facts, run.counts, AllowAll(), run.facts.leader, run.computing, run.contributing)
        self._sent, self._clocks = ([0] * (run.computing + run.contributing) for _ in range(2))
        self._marks: list[tuple[int, int]] = []
        self._cells = 0

    @property
    def rounds(self) -> int:
        return max(self._clocks)

    @property
    def sent(self) -> Sequence[int]:
        return self._sent

    @property
    def marks(self) -> Sequence[tuple[int, int]]:
        return self._marks

    @property
    def shared_cells(self) -> int:
        return self._cells

    @property
    def seconds(self) -> float:
        return 0.0

    def measure(
        self, handles: Sequence[Handle], sigma2: Fraction | Sequence[Fraction]
    ) -> list[NDArray[np.int64]]:
        noisy = super().measure(handles, sigma2)
        self._marks.append((self.rounds, sum(self._sent)))
        return noisy

    def _counted(self, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        self._cells += sum(map(self.facts.cells, cliques))
        return super()._counted(cliques)

    def _send(self, peer: int, payload: bytes) -> None:
        self._sent[self.facts.leader] += len(payload)
        self._clocks[peer] = max(self._clocks[peer], self._clocks[self.facts.leader] + 1)

    def _receive(self, peer: int, size: int) -> bytes:
        leader = self.facts.leader
        self._sent[peer] += size
        self._clocks[leader] = max(self._clocks[leader], self._clocks[peer] + 1)
        return bytes(size)

    def _check_agreement(self, peer: int, theirs: bytes, inputs: bytes) -> None:
        """Nobody is there who could have seen something else."""


class Following:
    """The part of everybody else. state, guard: of a follower; a contributor keeps no public state and is
    told no event."""

    def __init__(self, wire: Wire, facts: StudyFacts, own: LocalCounts | None) -> None:
        self._wire, self._facts, self._own = wire, facts, own
        self._begun: Begun | None = None
        self.opened: list[NDArray[np.int64]] = []

    def run(self, state: PublicState | None, guard: Guard) -> None:
        """Until the leader ends the run."""
        while not isinstance(self._begun, BegunEnd):
            message = bytes(self._wire.receive_up_to(self._facts.leader, LIMIT))
            kind, content = message[:1], message[1:]
            try:
                if kind == COUNT:
                    self._count(content)
                elif kind == OPENED and state is not None:
                    self._learn(state, content)
                elif kind == STEP:
                    self._begin(state or PublicState(self._facts, 1), guard, content, state is not None)
                else:
                    raise ProtocolAborted("The leading party sent a message of no known kind.")
            except (StudyInvalid, ValueError) as error:
                raise ProtocolAborted(
                    f"The leading party asked for what the study does not allow: {error}"
                ) from None

    def _count(self, content: bytes) -> None:
        step = parse(content)
        if not isinstance(step, PrepareStep) or step.levels:
            raise ProtocolAborted("The leading party asked for counts by a step that names none.")
        PublicState(self._facts, 1).begin(step)
        self._wire.send(self._facts.leader, flat_counts(self._own, step.cliques, self._facts).tobytes())

    def _begin(self, state: PublicState, guard: Guard, content: bytes, computes: bool) -> None:
        begun = state.begin(parse(content))
        if isinstance(begun, BegunSelect):
            for event, inputs in begun.authorisations():
                guard.authorise(event, inputs)
        elif not isinstance(begun, BegunPrepare | BegunEnd):
            guard.authorise(begun.plan.event, begun.inputs)
        if computes:
            self._wire.send(self._facts.leader, begun.inputs)
        elif not isinstance(begun, BegunEnd):
            raise ProtocolAborted("The leading party told a contributor a step.")
        self._begun = begun

    def _learn(self, state: PublicState, content: bytes) -> None:
        values, begun = np.frombuffer(content, np.int64), self._begun
        if begun is None or isinstance(begun, BegunPrepare | BegunEnd):
            raise ProtocolAborted("The leading party opened values of a step that opens none.")
        if isinstance(begun, BegunSelect):
            state.learn_selection(begun, values.tolist())
        elif isinstance(begun, BegunMeasure):
            noisy = np.split(values, np.cumsum(begun.cells)[:-1])
            state.learn_counts(begun, noisy)
            self.opened += noisy
        elif isinstance(begun, BegunDistances):
            state.learn_distances(begun, values)
        else:
            [value] = values.tolist()
            state.learn_total(begun, value)


def flat_counts(own: LocalCounts | None, cliques: Sequence[Clique], facts: StudyFacts) -> NDArray[np.int64]:
    """A party's own counts of these cliques, one after the other; zeros without data. Raises `DataRefused`
    beyond the cap."""
    tables = [np.zeros(facts.cells(clique), np.int64) for clique in cliques] if own is None else own(cliques)
    if any(int(cells.sum()) > facts.row_cap for cells in tables):
        raise DataRefused("A party has more rows than the study allows; raise max_rows.")
    return np.concatenate(tables)


class Plain(DistributedBackend):
    """Two or three parties that trust one another."""

    name = "plain"
    summary = "parties that tell the leader their counts, to show what a backend does"
    computing = (2, 3)
    by_default = 2
    partitions = ("horizontal",)
    together = "everybody trusts the leader"
    assumption = "nothing else"
    shows = "counts in the clear"
    how = "The leader added up everybody's counts."

    @property
    def claim(self) -> str:
        return "no privacy claim towards the leader"

    def coalition(self, computing: int) -> int:
        return 1

    def threat(self, vertical: bool) -> tuple[str, ...]:
        return ("The leader sees everybody's counts.",)

    def lead(
        self,
        wire: Wire,
        facts: StudyFacts,
        data: LocalCounts | VerticalData | None,
        guard: Guard,
        observe: Observe,
        history: History = NO_HISTORY,
    ) -> AbstractContextManager[MarginalOracle]:
        return PlainOracle(wire, facts, _counts(data), guard)

    def follow(
        self,
        wire: Wire,
        facts: StudyFacts,
        data: LocalCounts | VerticalData | None,
        guard: Guard,
        observe: Observe,
        history: History = NO_HISTORY,
    ) -> list[NDArray[np.int64]]:
        following = Following(wire, facts, _counts(data))
        following.run(PublicState(facts, 1), guard)
        return following.opened

    def contribute(self, wire: Wire, facts: StudyFacts, data: LocalCounts | VerticalData) -> None:
        Following(wire, facts, _counts(data)).run(None, AllowAll())

    def dry_run(self, run: PresumedRun) -> DryRun:
        return PlainDryRun(run)


def _counts(data: LocalCounts | VerticalData | None) -> LocalCounts | None:
    """Horizontal data; `partitions` keeps vertical data away."""
    assert data is None or callable(data)
    return data


BACKEND = Plain()
