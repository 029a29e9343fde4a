"""What owners of columns talk by where no oracle answers them: three kinds of protocol, and how each is
found.

    report     each owner sends the leader one report               `synth.algorithm.Reporting`
    star       owners train with a server                           `synth.algorithm.TrainedAlgorithm`
    split      two owners train the halves of one network           `synth.training.Training`

An algorithm names its protocol; a run, its forecast and its audit ask the descriptor. What each protocol
hides and what it costs stands in the file that does the work. Standard library only at import.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from mpc_protocols.registry import Registry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Guard, LocalCounts, Reporter, Reports, StudyFacts
    from mpc_protocols.vertical.partition import OwnRows, Partition, VerticalData
    from mpc_protocols.wire import Wire

    Vector = NDArray[np.float32]

# -- reports
# --------------------------------------------------------------------------------------------------------------


class Exchange(Protocol):
    """How reports travel: its parts stand where a backend's stand
    (`mpc_protocols.backend.DistributedBackend`).

    Raises `BudgetRefused`, `DataRefused`, `StudyInvalid`, `PeerLost`, `ProtocolAborted`.
    """

    def lead(
        self, wire: Wire, facts: StudyFacts, data: LocalCounts | VerticalData | None, guard: Guard
    ) -> AbstractContextManager[Reports]:
        """The leader's part: all reports."""

    def follow(
        self, wire: Wire, facts: StudyFacts, data: LocalCounts | VerticalData | None, guard: Guard
    ) -> list[NDArray[np.int64]]:
        """Every other computing party's: what it opens."""

    def contribute(self, wire: Wire, facts: StudyFacts, data: LocalCounts | VerticalData | None) -> None:
        """An owner's that does not compute; its ledger holds the run's whole reservation."""

    def clear(
        self, facts: StudyFacts, partition: Partition, tables: Mapping[int, OwnRows], guard: Guard
    ) -> Reports:
        """All owners' reports in one process, which sees all tables: it protects nothing."""


@dataclass(frozen=True)
class ReportCost:
    """Of an exchange. sent: bytes by wire number."""

    sent: Mapping[int, int]
    rounds: int


class ReportProtocol(ABC):
    """By which owners report once."""

    name: ClassVar[str]
    rank: ClassVar[int] = 100

    @abstractmethod
    def exchange(self, reporter: Reporter) -> Exchange:
        """Every party's part of it, for these reports."""

    @abstractmethod
    def cost(self, reporter: Reporter, partition: Partition, leader: int) -> ReportCost:
        """Of an exchange about this common table. leader: number of the party that receives the reports."""


# -- trainings with a server
# ----------------------------------------------------------------------------------------------


class Trainer(Protocol):
    """An owner's private side."""

    def count(self) -> int:
        """Noisily."""

    def gradient(self, parameters: Vector, seed: bytes) -> Vector:
        """From noisy values alone."""


class Trainers(Protocol):
    """All owners as the server sees them, by name."""

    def counts(self) -> Mapping[str, int]:
        """How many rows each has, noisily. Raises `ProtocolAborted`, `PeerLost`."""

    def gradients(self, parameters: Mapping[str, Vector], seed: bytes) -> Mapping[str, Vector]:
        """Every owner's, of the size of what it was sent. Raises `ProtocolAborted`, `PeerLost`."""


class StarProtocol(ABC):
    """By which owners train with a server in so many rounds."""

    name: ClassVar[str]
    rank: ClassVar[int] = 100

    @abstractmethod
    def server(
        self, wire: Wire, numbers: Mapping[str, int], sizes: Mapping[str, int], own: Trainer | None
    ) -> Trainers:
        """The server's view of all owners. wire: a stream of the training's own. numbers: of the owners on
        it. sizes: parameters of each. own: the server's own side where it owns columns itself."""

    @abstractmethod
    def take_part(self, wire: Wire, server: int, own: Trainer, size: int, rounds: int) -> None:
        """An owner's part, all rounds of it. Raises `ProtocolAborted`, `PeerLost`. Blocks."""

    @abstractmethod
    def rounds_on_wire(self, rounds: int) -> int:
        """Messages on the longest chain of a training of so many rounds."""

    @abstractmethod
    def traffic(self, size: int, rounds: int) -> tuple[int, int]:
        """Bytes that an owner of a model of so many parameters sends, and receives."""


# -- trainings of two owners
# ----------------------------------------------------------------------------------------------


class Link(Protocol):
    """The other owner of a training."""

    def send(self, tensor: Vector) -> None:
        """Send a tensor, (rows, cut)."""

    def receive(self, rows: int) -> Vector:
        """The other's next tensor, (rows, cut), finite. Raises `ProtocolAborted`."""

    def announce(self, length: int) -> int:
        """Tell the length of this owner's list, as the alignment has shown it; the other's. Raises
        `ProtocolAborted`."""

    def common_seed(self) -> bytes:
        """32 bytes that neither owner could choose. Raises `ProtocolAborted`."""


class Batches(Protocol):
    """The common order of work on the rows of a common table."""

    @property
    def held_out(self) -> NDArray[np.int64]:
        """Rows that are not trained on."""

    def epoch(self, number: int) -> Iterator[NDArray[np.int64]]:
        """The rows of every step of an epoch."""

    def blocks(self, rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """Rows in their order, a batch at a time."""


class SplitProtocol(ABC):
    """By which two owners train the halves of one network."""

    name: ClassVar[str]
    rank: ClassVar[int] = 100

    @abstractmethod
    def link(self, wire: Wire, peer: int, name: str, cut: int) -> Link:
        """wire: a stream of the training's own. peer: the other owner's number on it; name: its name. cut:
        numbers in what is made of a row."""

    @abstractmethod
    def batches(self, rows: int, session: bytes, seed: bytes, batch: int, held_out: int) -> Batches:
        """Of so many rows. session: 32 public bytes of the run. seed: 32 bytes of both owners. held_out: one
        row in so many."""


REPORT_PROTOCOLS: Registry[ReportProtocol] = Registry(
    "mpc_protocols.backends", "report_protocol", ReportProtocol, research="mpc_protocols.research"
)
STAR_PROTOCOLS: Registry[StarProtocol] = Registry(
    "mpc_protocols.backends", "star_protocol", StarProtocol, research="mpc_protocols.research"
)
SPLIT_PROTOCOLS: Registry[SplitProtocol] = Registry(
    "mpc_protocols.backends", "split_protocol", SplitProtocol, research="mpc_protocols.research"
)
"""All of each kind, by name."""
