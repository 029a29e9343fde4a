"""What an algorithm is that trains a model of two owners over their session, and writes no table.

It is found like any other (`synth.algorithm`), and has a plan and a budget like any other: for what it asks
the oracle about the finished model. The training itself asks no oracle. Each owner has a part of its own: the
active one holds the column that the model predicts, the passive one all others. What the parts need from
outside (the link, the common order of the rows, coins) is an argument, so that they run in one process as
between two.

Standard library only at import.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import Event
from synth.algorithm import Algorithm
from synth.config import AlgorithmConfig

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Clique, MarginalOracle, Observe
    from synth.domain import Domain
    from synth.plan import Plan
    from synth.synthesis import Synthesis

C = TypeVar("C", bound=AlgorithmConfig)
P = TypeVar("P", bound="Plan")
OWNERS = 2


@dataclass(frozen=True)
class Cost:
    """Of one training. sent: bytes of (passive, active) owner; rounds; seconds: CPU of the slower of both."""

    sent: tuple[int, int]
    rounds: int
    seconds: float


@dataclass(frozen=True)
class OwnTable:
    """An owner's own part of the common table of `union` rows: private. rows: (n,); codes: (n, columns), its
    columns' codes."""

    union: int
    rows: NDArray[np.int64] = field(repr=False)
    codes: NDArray[Any] = field(repr=False)


@dataclass(frozen=True)
class Lists:
    """Lengths of both owners' lists, as the other one has seen them."""

    own: int
    other: int


@dataclass(frozen=True)
class Outside:
    """What an owner's part needs from outside. coins: n -> n uniform secret bytes. draw: a secret
    pseudo-random function of rows.

    link, batches: as `mpc_protocols.vertical.owners.SplitProtocol` has them. run: the run's public id, in
    hex, which both halves name.
    """

    link: Any
    batches: Any
    coins: Callable[[int], bytes]
    draw: Callable[[int, int], NDArray[np.uint64]]
    observe: Observe
    run: str


@dataclass(frozen=True)
class Half:
    """What an owner has afterwards. files: its own, by name, for nobody else.

    scores: of the active owner, for its rows that were held out: (rows, labels, bins of the score), each
    (n,).
    """

    files: Mapping[str, bytes]
    scores: tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint8]] | None = None


@dataclass(frozen=True)
class Evaluation:
    """What is asked of the oracle about the finished model: a marginal of people that both owners hold.

    sizes: of the columns of a table made for it. clique: the columns of the marginal, label and bin of the
    score, which the active owner brings. held: the passive one's column, which has one value.
    """

    sizes: Mapping[str, int]
    clique: Clique
    held: str
    sigma2: Fraction


class PassiveModel(Protocol):
    """The half of a finished model whose owner lacks the label."""

    @property
    def run(self) -> str:
        """The public id of the run that has left it, in hex."""

    @property
    def columns(self) -> Mapping[str, int]:
        """Its columns in the order of codes, and how many values each has."""

    @property
    def cut(self) -> int:
        """Numbers in what it makes of a row."""

    def embed(self, codes: NDArray[Any]) -> NDArray[np.float32]:
        """(n, columns) codes to (n, cut)."""


class ActiveModel(Protocol):
    """The half of the label's owner."""

    @property
    def run(self) -> str:
        """As of `PassiveModel`."""

    @property
    def cut(self) -> int:
        """Numbers of a row that it takes."""

    def probabilities(self, embeddings: NDArray[np.float32]) -> NDArray[np.float64]:
        """(n, cut) to (n,): of label 1."""


class Training(Algorithm[C, P]):
    """An algorithm of two owners over their session.

    protocol: by which they talk, a name of `mpc_protocols.vertical.owners.SPLIT_PROTOCOLS`.
    """

    protocol: ClassVar[str]

    workload: ClassVar[bool] = False
    partitions: ClassVar[tuple[str, ...]] = ("vertical",)

    def run(self, oracle: MarginalOracle, plan: P, observe: Observe) -> Synthesis:
        """It makes no table. Raises `StudyInvalid`."""
        raise StudyInvalid(f'The algorithm "{self.name}" trains a model and makes no table.')

    @abstractmethod
    def predicted(self, config: C) -> str:
        """The column whose owner is the active one."""

    @abstractmethod
    def exposes(self, config: C) -> Sequence[tuple[str, str]]:
        """Who can read off what, beyond (epsilon, delta): pairs of a role and the rest of a sentence without
        full stop."""

    @abstractmethod
    def cost(self, config: C, rows: int, columns: int) -> Cost:
        """Of a training on a common table of so many rows."""

    @abstractmethod
    def rate_event(self, plan: P) -> Event | None:
        """The release from which the active owner's part takes the rate of the label; None if the study
        states it."""

    @abstractmethod
    def own_events(self, plan: P, active: bool) -> Sequence[Event]:
        """What goes on record of an owner's data beside the study's budget before the first tensor leaves it."""

    @abstractmethod
    def own_model(self, plan: P, domain: Domain) -> tuple[Algorithm[Any, Any], Plan] | None:
        """A model that the passive owner makes of its own columns before the training, charged beside the
        study's budget."""

    @abstractmethod
    def passive(
        self, plan: P, domain: Domain, table: OwnTable, invented: NDArray[Any] | None, outside: Outside
    ) -> Half:
        """The passive owner's part. domain: its own columns. invented: rows of `own_model`, one for each that
        it lacks."""

    @abstractmethod
    def active(self, plan: P, table: OwnTable, lists: Lists, outside: Outside) -> Half:
        """The active owner's part. table: of the predicted column alone."""

    @abstractmethod
    def passive_model(self, read: Callable[[str], bytes]) -> PassiveModel:
        """An owner's half from its own files (`Half.files`). read: their content, by name. Raises
        `DataRefused`."""

    @abstractmethod
    def active_model(self, read: Callable[[str], bytes]) -> ActiveModel:
        """As `passive_model`, of the label's owner."""

    @abstractmethod
    def evaluation(self, plan: P) -> Evaluation | None:
        """What is asked about the finished model; None if nothing is."""

    @abstractmethod
    def assessed(self, plan: P, counts: NDArray[np.int64]) -> Mapping[str, float]:
        """The figures that follow from the evaluation's noisy counts, by name."""

    @abstractmethod
    def described(self, config: C, domain: Domain, passive: Sequence[str]) -> Mapping[str, Any]:
        """The public facts of the model, for run.json: its shape, never its weights."""
