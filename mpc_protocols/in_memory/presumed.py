"""What stands for a run that is not carried out: who takes part, a guard that allows all, and what the run would cost."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from mpc_protocols.functionality import Guard, MarginalOracle

if TYPE_CHECKING:
    from mpc_protocols.functionality import (
        Event,
        LocalCounts,
        StudyFacts,
    )
    from mpc_protocols.vertical.partition import Partition


class AllowAll(Guard):
    """A guard that keeps no account, for oracles on presumed or invented tables: nobody's budget is spent on those."""

    def authorise(self, event: Event, inputs: bytes) -> None:
        """Allow the event."""


class PresumedRun(NamedTuple):
    """What a run is presumed to be. counts: marginals of its table. computing, contributing: numbers of parties. split: of a
    vertical study's common table. delay_us: one way, between parties that compute: far ones choose other forms of the same
    protocols (`engine.latency`)."""

    facts: StudyFacts
    counts: LocalCounts
    computing: int
    contributing: int
    split: Partition | None = None
    delay_us: int = 0


class DryRun(MarginalOracle):
    """An oracle on a presumed table that counts what a run would cost. No private data; nothing released, nothing charged."""

    presumed = True

    @property
    @abstractmethod
    def rounds(self) -> int:
        """Messages on the longest chain so far."""

    @property
    @abstractmethod
    def sent(self) -> Sequence[int]:
        """Bytes of each party so far, by wire number."""

    @property
    @abstractmethod
    def marks(self) -> Sequence[tuple[int, int]]:
        """(rounds, bytes of all parties) after each measurement."""

    @property
    def input_checks(self) -> tuple[int, int]:
        """Rounds, and bytes of all parties, for checking what contributors sent; part of the above."""
        return 0, 0

    @property
    def proofs(self) -> int:
        """Batches that the computing parties have proved to each other so far."""
        return 0

    @property
    @abstractmethod
    def shared_cells(self) -> int:
        """Cells made available so far."""

    @property
    def beside_bytes(self) -> int:
        """The most memory that a computing party takes at once beside the cells that it holds."""
        return 0

    @property
    @abstractmethod
    def seconds(self) -> float:
        """CPU seconds of a computing party so far, beyond the synthesizer's."""

    @property
    def counting_s(self) -> float:
        """CPU seconds that counting has taken here, which no run takes."""
        return 0.0

    @abstractmethod
    def close(self) -> None:
        """The end of the run, which costs messages too."""
