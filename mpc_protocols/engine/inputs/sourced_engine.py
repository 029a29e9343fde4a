"""What every semi-honest engine does alike: it hands on what its `Marginals` say, and draws a seed
(`interface.Engine`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Generic

from mpc_protocols.engine.agreement import Confirm, announce
from mpc_protocols.engine.bitwise.bitslice import UInt
from mpc_protocols.engine.by_shape import by_shape
from mpc_protocols.engine.inputs.answer_exchange import AnswerExchange
from mpc_protocols.engine.inputs.check.seed import exchanged_seed
from mpc_protocols.engine.inputs.grouped_sums import CellsOf, GroupedL1Sums, R
from mpc_protocols.engine.inputs.marginals import Marginals, S
from mpc_protocols.functionality import Clique, Handle, Level
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.public.answers import CellRange
from mpc_protocols.public.rounded_answers import AnnouncedAnswers, RoundedAnswers
from mpc_protocols.public.state import PublicState
from mpc_protocols.wire import Wire


class SourcedEngine(ABC, Generic[S, R]):
    """An engine's part about its inputs."""

    wire: Wire
    gates: Any
    """The backend's (`engine.interface.Gates`), over a link (`engine.link.LinkedGates`)."""
    beside: Any
    proves = picks_in_groups = False
    noise_bytes: tuple[int, int] = (50, 35)
    exchange: ClassVar[type[AnswerExchange]] = AnswerExchange
    """How the model's answers travel."""
    _leader: int
    _marginals: Marginals[S]
    _session: bytes
    _agreements: Wire | None = None

    def settle(self) -> None:
        """See `Engine`."""
        assert not self.proves  # what has something to prove says how

    def for_counts(self, gates: Any, noise: R) -> R:
        """See `Engine`."""
        return noise

    def set_latency(self, latency_bytes: int) -> None:
        """See `Engine`."""
        self.gates.link.latency_bytes = self.beside.link.latency_bytes = latency_bytes

    def announce(self, value: bytes) -> Confirm:
        """See `Engine`."""
        if self._agreements is None:
            self._agreements = self.wire.fork(f"agree {self._session.hex()}")
        return announce(self._agreements, value)

    @abstractmethod
    def numbers(self, shares: S) -> R:
        """See `Engine`."""

    @abstractmethod
    def _l1_sums(
        self, cells: CellsOf[S], exchange: AnswerExchange, planes: int, ring: UInt
    ) -> GroupedL1Sums[Any, S, R]:
        """As `l1_sums`, of this party's shares of cells and the answers on their way."""

    def l1_sums(
        self,
        state: PublicState,
        announced: AnnouncedAnswers,
        planes: int,
        ring: UInt,
        rounded: RoundedAnswers | None,
    ) -> GroupedL1Sums[Any, S, R]:
        """See `Engine`."""

        @by_shape(lambda gates, of: of.cells)
        def cells(gates: Any, of: CellRange) -> S:
            whole: Any = self._marginals.marginal(state, of.handle)
            share: S = whole if of.cells == len(whole) else whole[of.start : of.stop]
            return share

        exchange = self.exchange(self.wire, self.gates, self._leader, announced, rounded)
        return self._l1_sums(partial(cells, self.gates), exchange, planes, ring)

    def expect_picks(self, plan: SelectionPlan) -> None:
        """See `Engine`; an engine whose masks take no message has nothing to make ready."""

    def marginals(self, state: PublicState, handles: Sequence[Handle]) -> R:
        """See `Engine`."""
        shares = [self.numbers(self._marginals.marginal(state, handle)) for handle in handles]
        together: R = self.gates.concatenate(shares)
        return together

    def rows(self) -> R | None:
        """See `Engine`."""
        rows = self._marginals.rows()
        return None if rows is None else self.numbers(rows)

    def seed(self, held: bytes) -> bytes:
        """See `Engine`."""
        return exchanged_seed(self.wire, self.announce, held)

    @property
    def public(self) -> bytes:
        """See `Engine`."""
        return self._marginals.public

    @property
    def source(self) -> Marginals[S]:
        """See `Engine`."""
        return self._marginals

    @property
    def sharing(self) -> bytes:
        """See `Engine`."""
        return self._marginals.sharing

    def leave_out(self, contributor: int) -> None:
        """See `Engine`."""
        self._marginals.leave_out(contributor)

    def share(self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes) -> int:
        """See `Engine`."""
        return self._marginals.share(cliques, levels, inputs)
