"""The marginal oracle on secret shares: who leads, who follows, who contributes.

P1 runs the synthesizer and leads: each question to `ReplicatedOracle` becomes a step whose public inputs travel as canonical
bytes (`messages`) to P0 and P2, which run `follow`; all three then execute `party.ComputingParty`'s method of that step.
Custodians that do not compute run `contribute`: they are told only which marginals to share, and when it is over.

    P1 -> P0, P2      every step                        P1 -> contributors     PrepareStep of the marginals to share; EndStep
    contributor -> two computing parties                seed; masked counts (`contribution`)

A follower refuses (`ProtocolAborted`) whatever is not the canonical encoding of a valid step or breaks the order of the public
state (`steps.PublicState`); its own guard decides whether the step's event is still within the budget. Any exception ends the
run at that party, the wire then fails at the others, and nothing more is opened.

Who learns what, threat model and assumption: `party`. `follow` returns what was opened, `contribute` nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import ProtocolAborted, StudyInvalid
from mpc_protocols.functionality import Clique, Guard, Handle, Level, LocalCounts, MarginalOracle, Setting
from mpc_protocols.partition import VerticalData
from mpc_protocols.public.cliques import CliqueRegister
from mpc_protocols.public.state import BegunEnd, PublicState
from mpc_protocols.public.steps import MAX_BYTES, EndStep, PrepareStep, Step, parse
from mpc_protocols.replicated.inputs.contribution import send_contribution
from mpc_protocols.replicated.party import LEADER, ComputingParty, Observe
from mpc_protocols.wire import Wire


class ReplicatedOracle(MarginalOracle):
    """The oracle at P1. Use it as a context manager, or call `close` when the synthesizer is done."""

    def __init__(
        self,
        wire: Wire,
        setting: Setting,
        counts: LocalCounts | VerticalData | None,
        guard: Guard,
        observe: Observe | None = None,
        ahead: bool = True,
    ) -> None:
        """counts: P1's own data, None if it only computes; where columns are split, `VerticalData` at everybody. ahead: whether
        noise is made ahead, as at the followers.

        Waits for the followers, to learn how far away they are (`pace`). Raises `StudyInvalid` (setting, parties).
        """
        if wire.me != LEADER:
            raise StudyInvalid(f"Party {wire.me} cannot lead: the second computing party of the study does.")
        self.setting = setting
        self._party = ComputingParty(wire, setting, counts, guard, observe, ahead)
        self._open = True

    @property
    def state(self) -> PublicState:
        """Transcript, handles and bounds: all that is public."""
        return self._party.state

    @property
    def round_bytes(self) -> int:
        """What a round is worth in this run (`pace`): with it `costs` predicts every step."""
        return self._party.round_bytes

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
        begun = self._state().begin_prepare(cliques, levels)
        self._announce(begun.step, begun.fresh, begun.levels)
        return self._party.prepare(begun)

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
        """See `MarginalOracle`; errors as `PublicState.begin_select`."""
        begun, rounded = self._state().begin_select(
            handles, answers, weights, penalties, epsilon, picks, conflicts
        )
        self._announce(begun.step)
        return self._party.select(begun, rounded)

    def measure(
        self, handles: Sequence[Handle], sigma2: Fraction | Sequence[Fraction]
    ) -> list[NDArray[np.int64]]:
        """See `MarginalOracle`; errors as `PublicState.begin_measure`. The counts are opened to P0 and P2 too."""
        begun = self._state().begin_measure(handles, sigma2)
        self._announce(begun.step)
        return self._party.measure(begun)

    def distances(
        self, handles: Sequence[Handle], answers: Sequence[NDArray[np.float64]], sigma2: Fraction
    ) -> NDArray[np.int64]:
        """See `MarginalOracle`; errors as `PublicState.begin_distances`. The values are opened to P0 and P2 too."""
        begun, rounded = self._state().begin_distances(handles, answers, sigma2)
        self._announce(begun.step)
        return self._party.distances(begun, rounded)

    def total(self, sigma2: Fraction) -> int:
        """See `MarginalOracle`; errors as `PublicState.begin_total`."""
        begun = self._state().begin_total(sigma2)
        self._announce(begun.step, [self._party.smallest()] if self._party.shares_rows_first() else [])
        return self._party.total(begun)

    def close(self) -> None:
        """Let followers and contributors end; does nothing the second time or after a failure."""
        if self._open:
            self._open = False
            begun = self.state.begin_end()
            self._send(begun.step, [*self._followers(), *self._party.wire.contributors])
            self._party.end(begun)

    def __enter__(self) -> ReplicatedOracle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        self._open = False

    def _state(self) -> PublicState:
        """The public state, for the next step."""
        if not self._open:
            raise ProtocolAborted("A question was asked after the oracle had been closed; start a new run.")
        return self.state

    def _announce(self, step: Step, fresh: Sequence[Clique] = (), levels: Sequence[Level] = ()) -> None:
        """Send a step to the followers, and to the contributors what they must share for it."""
        self._send(step, self._followers())
        if fresh:
            self._send(PrepareStep(tuple(fresh), tuple(levels)), self._party.wire.contributors)

    def _followers(self) -> list[int]:
        return [peer for peer in range(self._party.wire.computing) if peer != LEADER]

    def _send(self, step: Step, peers: Sequence[int]) -> None:
        encoded = step.to_bytes()
        for peer in peers:
            self._party.wire.send(peer, encoded)


def follow(
    wire: Wire,
    setting: Setting,
    counts: LocalCounts | VerticalData | None,
    guard: Guard,
    observe: Observe | None = None,
) -> list[NDArray[np.int64]]:
    """P0 and P2: execute the leader's steps until it ends the run; the noisy counts that were opened, in order. Blocks.

    counts: this party's own data, as for `ReplicatedOracle`. Raises `ProtocolAborted` (a step or message that the protocol does
    not allow), `BudgetRefused` (the guard), `DataRefused` (own counts), `StudyInvalid`, `PeerLost`.
    """
    party = ComputingParty(wire, setting, counts, guard, observe)
    opened: list[NDArray[np.int64]] = []
    while True:
        begun = party.state.begin(parse(wire.receive_up_to(LEADER, MAX_BYTES)))
        opened += party.run(begun)
        if isinstance(begun, BegunEnd):
            return opened


def contribute(wire: Wire, setting: Setting, counts: LocalCounts | VerticalData) -> None:
    """A custodian that does not compute: send its masked counts or columns when asked, until the leader ends the run. Blocks.

    Raises `ProtocolAborted` (an unexpected message), `DataRefused` (own counts), `PeerLost`.
    """
    send = _sender(wire, setting, counts)
    while True:
        step = parse(wire.receive_up_to(LEADER, MAX_BYTES))
        if isinstance(step, EndStep):
            return
        if not isinstance(step, PrepareStep):
            raise ProtocolAborted(
                "The leading party sent a contributor something else than marginals to share; stop the run."
            )
        try:
            register = CliqueRegister(setting)
            register.declare(step.levels)
            independent = register.to_share(step.cliques) == list(step.cliques)
        except StudyInvalid:
            independent = False
        if not independent:
            raise ProtocolAborted(
                "The leading party asked a contributor for marginals that are not to be shared; stop the run."
            )
        send(step.cliques, step.levels)


def _sender(
    wire: Wire, setting: Setting, counts: LocalCounts | VerticalData
) -> Callable[[Sequence[Clique], Sequence[Level]], None]:
    """How a contributor shares marginals; as with the parties that compute, vertical data loads what it needs."""
    if isinstance(counts, VerticalData):
        from mpc_protocols.replicated.vertical.contributor import VerticalContributor

        return VerticalContributor(wire, setting, counts).send
    return partial(send_contribution, wire, setting, counts)
