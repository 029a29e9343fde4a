"""The marginal oracle on secret shares, over any backend: who leads, who follows, who contributes.

The leader runs the synthesizer: each question to `LeadingOracle` becomes a step whose public inputs travel as
canonical bytes (`public.steps`) to the other computing parties, which run `follow`; all then execute
`step.ComputingParty`'s method of that step. Custodians that do not compute run `contribute`: they are told
only which marginals to share, and when it is over.

    leader -> followers    every step          leader -> contributors    PrepareStep of the marginals to share; EndStep

A follower refuses (`ProtocolAborted`) whatever is not the canonical encoding of a valid step or breaks the
order of the public state; its own guard decides whether the step's event is still within the budget. Any
exception ends the run at that party, the wire then fails at the others, and nothing more is opened.

Who learns what: `step`. `follow` returns what was opened, `contribute` nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import TracebackType
from typing import Any, Final, Generic, Self

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.argmax import check_size
from mpc_protocols.engine.bitwise.bits import B
from mpc_protocols.engine.interface import Engine, N
from mpc_protocols.engine.step import ComputingParty
from mpc_protocols.errors import ProtocolAborted, StudyInvalid
from mpc_protocols.functionality import (
    MAX_CELLS,
    Clique,
    Guard,
    Handle,
    Level,
    MarginalOracle,
    Observe,
    StudyFacts,
)
from mpc_protocols.process.threads import Aside
from mpc_protocols.public.begun import BegunEnd, BegunSelect
from mpc_protocols.public.cliques import MAX_SHARED_CELLS, CliqueRegister
from mpc_protocols.public.history import NO_HISTORY, History
from mpc_protocols.public.state import PublicState
from mpc_protocols.public.steps import MAX_BYTES, MAX_COUNTS, MAX_KEYS, EndStep, PrepareStep, Step, parse
from mpc_protocols.wire import Wire

MAX_CONTRIBUTED: Final = MAX_SHARED_CELLS + MAX_CELLS
"""Cells that a custodian sends in a run: all that may be shared, and the marginal of which the number of rows
is the sum."""
Contribute = Callable[[Sequence[Clique], Sequence[Level]], None]
"""How a custodian that does not compute shares its counts of these cliques, which may name these levels.
Blocks."""


def check_leads(wire: Wire, facts: StudyFacts) -> None:
    """Raise `StudyInvalid` unless this party leads the study."""
    if wire.me != facts.leader:
        raise StudyInvalid(f"Party {wire.me} cannot lead: party {facts.leader} of the study does.")


class LeadingOracle(MarginalOracle):
    """The oracle at the leader. Use it as a context manager, or call `close` when the synthesizer is done."""

    def __init__(self, party: ComputingParty[Any, Any]) -> None:
        check_leads(party.wire, party.facts)
        self.facts = party.facts
        self._party = party
        self._open = True
        self._expected: tuple[Fraction | None, bool] = None, False
        self._keys = 0
        self._counts_ahead: list[tuple[Fraction, int]] = []
        self._aside: Aside[None] | None = None

    @property
    def state(self) -> PublicState:
        """Transcript, handles and bounds: all that is public."""
        return self._party.state

    @property
    def latency_bytes(self) -> int:
        """What a round is worth in this run (`latency`): with it a backend's costs predict every step."""
        return self._party.latency_bytes

    @property
    def row_bound(self) -> int:
        return self._party.state.row_bound

    @property
    def noisy_total(self) -> float | None:
        return self._party.state.noisy_total

    def prepare(self, cliques: Sequence[Clique], levels: Sequence[Level] = ()) -> list[Handle]:
        """See `MarginalOracle`. Raises `StudyInvalid` (`PublicState.begin`), `DataRefused` (own counts)."""
        if not cliques:
            return []
        begun = self._next().begin_prepare(cliques, levels)
        self._announce(begun.step, begun.fresh, begun.levels)
        self._party.prepare(begun)
        return list(begun.handles)

    def expect(self, sigma2: Fraction, promised: bool = False) -> None:
        self._expected = sigma2, promised

    def expect_counts(self, sigma2: Fraction, number: int) -> None:
        self._counts_ahead.append((sigma2, min(max(number, 0), MAX_COUNTS)))

    def expect_keys(self, number: int) -> None:
        self._keys = min(max(number, 0), MAX_KEYS)

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
        """See `MarginalOracle`; errors as `PublicState.begin_select`, and of `argmax.check_size`."""
        expected, self._expected = self._expected, (None, False)
        begun, rounded = self._next().begin_select(
            handles, answers, weights, penalties, epsilon, picks, conflicts, *expected
        )
        check_size(begun.plan, self._party.engine.picks_in_groups)
        self._announce(begun.step)
        return self._party.select(begun, rounded)

    def measure(
        self, handles: Sequence[Handle], sigma2: Fraction | Sequence[Fraction]
    ) -> list[NDArray[np.int64]]:
        """See `MarginalOracle`; errors as `PublicState.begin_measure`. The counts are opened to the followers
        too."""
        begun = self._next().begin_measure(handles, sigma2, self._keys, self._counts_ahead)
        self._keys, self._counts_ahead = 0, []
        if not begun.promised:
            self._announce(begun.step)
        opened = self._party.measure(begun)
        if self._party.noise.is_due:
            # on streams of its own, while this party sends nothing else; the others' runs then, or before they go on
            self._aside = Aside(lambda: self._party.noise.make_due(begun))
        return opened

    def distances(
        self, handles: Sequence[Handle], answers: Sequence[NDArray[np.float64]], sigma2: Fraction
    ) -> NDArray[np.int64]:
        """See `MarginalOracle`; errors as `PublicState.begin_distances`. The values are opened to the
        followers too."""
        begun, rounded = self._next().begin_distances(handles, answers, sigma2)
        self._announce(begun.step)
        return self._party.distances(begun, rounded)

    def total(self, sigma2: Fraction) -> int:
        """See `MarginalOracle`; errors as `PublicState.begin_total`."""
        begun = self._next().begin_total(sigma2, self._keys)
        self._keys = 0
        self._announce(begun.step, [self._party.smallest()] if self._party.shares_rows_first(begun) else [])
        return self._party.total(begun)

    def close(self) -> None:
        """Let followers and contributors end; does nothing the second time or after a failure."""
        if self._open:
            begun = self._next().begin_end()
            self._open = False
            self._send(begun.step, [*self._followers(), *self._party.wire.contributors])
            self._party.end(begun)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        self._open = False

    def _next(self) -> PublicState:
        """The public state, for the next step; what has been made ahead meanwhile is finished before."""
        if not self._open:
            raise ProtocolAborted("A question was asked after the oracle had been closed; start a new run.")
        if self._aside is not None:
            aside, self._aside = self._aside, None
            aside.join()
        return self.state

    def _announce(self, step: Step, fresh: Sequence[Clique] = (), levels: Sequence[Level] = ()) -> None:
        """Send a step to the followers, and to the contributors what they must share for it."""
        self._send(step, self._followers())
        if fresh:
            self._send(PrepareStep(tuple(fresh), tuple(levels)), self._party.wire.contributors)

    def _followers(self) -> list[int]:
        wire = self._party.wire
        return [peer for peer in range(wire.computing) if peer != wire.me]

    def _send(self, step: Step, peers: Sequence[int]) -> None:
        encoded = step.to_bytes()
        for peer in peers:
            self._party.wire.send(peer, encoded)


def follow(party: ComputingParty[Any, Any]) -> list[NDArray[np.int64]]:
    """Execute the leader's steps until it ends the run; the noisy marginals that were opened, in order.
    Blocks.

    Raises `ProtocolAborted` (a step or message that the protocol does not allow, or that asks for what the
    study does not), `BudgetRefused` (the guard), `DataRefused` (own counts), `PeerLost`.
    """
    opened: list[NDArray[np.int64]] = []
    while True:
        try:
            step = party.state.promised or parse(party.wire.receive_up_to(party.facts.leader, MAX_BYTES))
            begun = party.state.begin(step)
            if isinstance(begun, BegunSelect):
                check_size(begun.plan, party.engine.picks_in_groups)
            opened += party.run(begun)
        except StudyInvalid as error:
            # the leader refuses such a step before it tells anybody, so the study is not the reason
            raise ProtocolAborted(
                f"The leading party asked for what the study does not allow ({error.sentence.rstrip('.')}); stop the run."
            ) from None
        if isinstance(begun, BegunEnd):
            return opened


@dataclass(frozen=True)
class Roles(Generic[B, N]):
    """What the computing parties of a backend do over its engine: one leads, the others follow.

    engine: of a party's wire, the study's facts and this party's own data: its counts, None if it only
    computes; where columns are split, what everybody knows of the common table and its own rows. It may wait
    for the others, and raises what it says.
    """

    engine: Callable[[Wire, StudyFacts, Any], Engine[B, N]]

    def computing_party(
        self,
        wire: Wire,
        facts: StudyFacts,
        data: Any,
        guard: Guard,
        observe: Observe | None = None,
        ahead: bool = True,
        history: History = NO_HISTORY,
    ) -> ComputingParty[B, N]:
        """One computing party, for who drives its steps. ahead: whether noise is made ahead, alike at all."""
        return ComputingParty(self.engine(wire, facts, data), facts, guard, observe, ahead, history)

    def lead(
        self,
        wire: Wire,
        facts: StudyFacts,
        data: Any,
        guard: Guard,
        observe: Observe | None = None,
        ahead: bool = True,
        history: History = NO_HISTORY,
    ) -> LeadingOracle:
        """The oracle at the leader. Waits for the others. Raises `StudyInvalid` (`check_leads`), and what the
        engine does."""
        check_leads(wire, facts)
        return LeadingOracle(self.computing_party(wire, facts, data, guard, observe, ahead, history))

    def follow(
        self,
        wire: Wire,
        facts: StudyFacts,
        data: Any,
        guard: Guard,
        observe: Observe | None = None,
        history: History = NO_HISTORY,
    ) -> list[NDArray[np.int64]]:
        """Every other computing party: see `follow`. Blocks."""
        return follow(self.computing_party(wire, facts, data, guard, observe, history=history))


def contribute(wire: Wire, facts: StudyFacts, send: Contribute) -> None:
    """A custodian that does not compute: send what it is asked for, until the leader ends the run. Blocks.

    Raises `ProtocolAborted` (an unexpected message), `DataRefused` (own counts), `PeerLost`.
    """
    sent = 0
    while True:
        step = parse(wire.receive_up_to(facts.leader, MAX_BYTES))
        if isinstance(step, EndStep):
            return
        if not isinstance(step, PrepareStep):
            raise ProtocolAborted(
                "The leading party sent a contributor something else than marginals to share; stop the run."
            )
        try:
            register = CliqueRegister(facts)
            register.declare(step.levels)
            independent = register.to_share(step.cliques) == list(step.cliques)
            sent += sum(map(register.facts.cells, step.cliques))
        except StudyInvalid:
            independent = False
        if not independent or sent > MAX_CONTRIBUTED:
            raise ProtocolAborted(
                "The leading party asked a contributor for marginals that are not to be shared; stop the run."
            )
        send(step.cliques, step.levels)
