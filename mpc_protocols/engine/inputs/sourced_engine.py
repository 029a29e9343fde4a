"""What every semi-honest engine does alike: it hands on what its `Marginals` say, and draws a seed (`interface.Engine`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from mpc_protocols.engine.inputs.check.seed import exchanged_seed
from mpc_protocols.engine.inputs.marginals import Marginals, S
from mpc_protocols.functionality import Clique, Level
from mpc_protocols.wire import Wire

R = TypeVar("R")
"""What a step computes with."""


class SourcedEngine(ABC, Generic[S, R]):
    """An engine's part about its inputs."""

    wire: Wire
    gates: Any
    """The backend's (`engine.interface.Gates`), over a link (`engine.link.LinkedGates`)."""
    beside: Any
    proves = False
    _marginals: Marginals[S]

    def settle(self) -> None:
        """See `Engine`."""
        assert not self.proves  # what has something to prove says how

    def set_latency(self, latency_bytes: int) -> None:
        """See `Engine`."""
        self.gates.link.latency_bytes = self.beside.link.latency_bytes = latency_bytes

    def differing(self, value: bytes) -> int | None:
        """See `Engine`."""
        other: int | None = self.gates.link.differing(value)
        return other

    @abstractmethod
    def numbers(self, shares: S) -> R:
        """See `Engine`."""

    def rows(self) -> R | None:
        """See `Engine`."""
        rows = self._marginals.rows()
        return None if rows is None else self.numbers(rows)

    def seed(self, held: bytes) -> bytes:
        """See `Engine`."""
        return exchanged_seed(self.wire, self.differing, held)

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
