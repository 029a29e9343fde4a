"""What an algorithm is, and how one is found: a file synth/algorithms/NAME/algorithm.py that holds ALGORITHM.

Everybody else asks this object: the study's reader for its table, `check`, `plan` and the run for what
happens, the report for words. Nobody compares names. A descriptor imports the standard library only; `plan`
and `run` import what they need.

    class Aim(Algorithm["AimConfig", "AimPlan"]):              synth/algorithms/aim/algorithm.py
        name, title, rank, config = "aim", "AIM", 0, AimConfig
        ...
    ALGORITHM = Aim()

Most ask a marginal oracle (`run`). A `TrainedAlgorithm` asks none: owners of columns train with a server, and
what leaves an owner is noisy by its own hand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Generic,
    NotRequired,
    Protocol,
    TypedDict,
    TypeVar,
    Unpack,
)

from mpc_protocols.functionality import Adjacency, Guard, Reporter, Reports
from mpc_protocols.registry import Registry
from synth.budget.reserved import Reserved
from synth.config import AlgorithmConfig

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mpc_protocols.functionality import (
        Answered,
        Asking,
        Clique,
        Cohorts,
        Event,
        LocalCounts,
        LocalVector,
        MarginalOracle,
        Observe,
    )
    from synth.domain import Domain
    from synth.plan import Plan
    from synth.synthesis import Measured, Synthesis
    from synth.workload import Workload

NO_CLAIM: Final = "no privacy claim"
"""Of an algorithm whose releases are known to reveal records."""
SOUND: Final = "everything that was released is together (epsilon, delta)-differentially private"
"""The claim of an algorithm whose every question is charged before it is answered."""
OWN_MODEL: Final = "own model"
"""What the event is called of noisy marginals that an owner takes of its own columns and reports."""
CHOICES: Final = "choices"
"""What the event is called of choices that clients make by themselves."""
C = TypeVar("C", bound=AlgorithmConfig)
P = TypeVar("P", bound="Plan")


class Promise(TypedDict):
    """The study's promise. unit_rows (1): the most rows of one privacy unit over all custodians."""

    epsilon: float
    delta: float
    adjacency: Adjacency
    unit_rows: NotRequired[int]


class PromiseWithReserved(Promise):
    """Of an algorithm that `reserves`. reserved (nothing): what is measured whatever is selected."""

    reserved: NotRequired[Reserved]


class Reporting(ABC, Generic[P]):
    """How owners of columns report once: each sends a message with noise of its own, and the rest is public
    post-processing.

    protocol: by which messages travel, a name of `mpc_protocols.vertical.owners.REPORT_PROTOCOLS`.
    """

    protocol: ClassVar[str]

    @abstractmethod
    def reporter(self, plan: P) -> Reporter:
        """What each owner reports, once the owners of all columns are known."""

    @abstractmethod
    def conclude(self, reports: Reports, plan: P, observe: Observe) -> Synthesis:
        """What is made of all reports. Raises `ProtocolAborted` for one that does not fit the study."""


class CohortGuard(Guard, Protocol):
    """The accounts of clients, each with a budget of its own. events: what was authorised, in order."""

    events: list[Event]

    def admit(self, step: Asking) -> None:
        """Compare what the leader asks with what the study has for that question. Raises `ProtocolAborted`."""


class OpenedOfCohorts(Protocol):
    """What questions to cohorts have opened, as a release tells it."""

    @property
    def measurements(self) -> Sequence[Measured]:
        """In the order they were opened."""

    @property
    def selections(self) -> Sequence[Clique]:
        """What enough clients chose, in order."""


class CohortRounds(ABC, Generic[P]):
    """How clients are asked in rounds that choose by themselves what they answer (`Cohorts`); each custodian
    is a client."""

    @abstractmethod
    def fitted(self, plan: P, clients: int, max_rows: int) -> P:
        """The plan for so many clients of at most so many rows each. Raises `StudyInvalid` if it cannot be
        carried out."""

    @abstractmethod
    def client(self, plan: P, counts: LocalCounts, session: bytes) -> LocalVector:
        """A client's own side. session: public id of the run."""

    @abstractmethod
    def accounts(
        self, plan: P, clients: Sequence[int], record: Callable[[Event, bytes], None]
    ) -> CohortGuard:
        """The accounts of these clients. record: puts an event on disk before anything of it is opened."""

    @abstractmethod
    def conduct(self, cohorts: Cohorts, plan: P, session: bytes, observe: Observe) -> Synthesis:
        """Ask all cohorts. Raises what `Cohorts` raises."""

    @abstractmethod
    def opened(self, plan: P, answered: Sequence[Answered]) -> OpenedOfCohorts:
        """What was opened of all questions, in order; the leader's release tells the same."""


class Algorithm(ABC, Generic[C, P]):
    """One algorithm, in words and in code.

    name: in the study file, also of its table. title: in the report. rank: place in lists. summary: what it
    does, for the template's comment. proposed: whether `init` starts a study with it; one algorithm is.
    left_out: what becomes of a marginal that no model of max_model_mb holds, for `check` and `plan`.
    partitions: of the data, that it runs on. extra, requires: an optional part of the installation and its
    modules. workload: whether a study has a table of marginals for it. constrained: whether its table keeps
    the domain's constraints (`synth/domain/constraints.py`). chooses_bins: whether it counts large marginals
    over fewer bins than their columns have, by what the budget can pay for. arrives: whether it can select
    while contributors arrive (`while_arriving`). reserves: whether its `plan` takes marginals that are
    measured whatever is selected (`synth.budget.reserved`). inherits: whether its run follows a plan's
    `prior` (`synth.prior`).
    """

    name: ClassVar[str]
    title: ClassVar[str]
    rank: ClassVar[int] = 100
    summary: ClassVar[str]
    proposed: ClassVar[bool] = False
    config: type[C]
    left_out: ClassVar[str] = "it is not measured"
    partitions: ClassVar[tuple[str, ...]] = ("horizontal", "vertical")
    extra: ClassVar[str] = ""
    requires: ClassVar[tuple[str, ...]] = ()
    workload: ClassVar[bool] = True
    chooses_bins: ClassVar[bool] = False
    reserves: ClassVar[bool] = False
    inherits: ClassVar[bool] = False
    constrained: ClassVar[bool] = False
    arrives: ClassVar[bool] = False

    @abstractmethod
    def claim(self, config: C) -> str:
        """What recipients of the results are promised, a sentence without its full stop: the first part of
        run.json's `claim`."""

    def alternative(self, config: C) -> str | None:
        """What to use instead of a system without a sound claim or utility; None for any other.

        Such a system needs `[study] research = true`, else the study is refused with this at the end of the
        sentence.
        """
        return None

    def sound(self, config: C) -> bool:
        """Whether there is a privacy claim at all; if not, report, ledger and the table's name say so."""
        return True

    def misfit(self, config: C, adjacency: Adjacency, aligned: bool) -> str | None:
        """Why it cannot run as configured: the rest of a sentence that begins with its name and names the
        alternative, or None.

        aligned: whether the owners' tables are, row by row. Asked about vertical studies only."""
        return None

    def views(self, config: C) -> tuple[tuple[str, str, str], ...]:
        """(who, what that party can learn, what it cannot), for `plan` and the report, where the backend's
        words do not hold."""
        return ()

    def expects(self, plan: P, rows: int) -> str | None:
        """What is to be expected of so many rows that `plan` should say first: a sentence, for instance what
        can be read off."""
        return None

    def reporting(self, config: C) -> Reporting[P] | None:
        """How the owners report once in place of answering an oracle's questions; None where they answer."""
        return None

    def cohorts(self, config: C) -> CohortRounds[P] | None:
        """How clients are asked that choose by themselves what they answer; None where an oracle answers.
        `run` is then not called."""
        return None

    def while_arriving(self, config: C, rounds: int, again: bool) -> WhileArriving[Any, Any]:
        """How it runs in so many rounds of arrivals, if it does (`arrives`), each on the rows that are there
        by then.

        again: whether single columns are measured once more at the end. Raises `StudyInvalid` for a
        configuration that does not go with it.
        """
        raise TypeError(f"The algorithm {self.name} does not run while contributors arrive.")

    def adaptive(self, config: C) -> bool:
        """Whether the released values decide how many rounds there are and how much noise each has."""
        return False

    @abstractmethod
    def plan(self, domain: Domain, workload: Workload, config: C, **promise: Unpack[Promise]) -> P:
        """Fix budget, noise and candidates of a study. Deterministic and public: every party derives the
        same.

        Raises `StudyInvalid`.
        """

    def small_share(self, plan: P, measurements: Sequence[Measured], noisy_total: float) -> float | None:
        """The noise of a typical question as a share of the rows where the table is so small that a run which
        buys no joint marginal says so by `synth.run.Run.fall_back`, and 0 where it is not; None if an auditor
        cannot tell. measurements: of the whole run, in order."""
        return None

    def completed(self, plan: P, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """An event as run.json has it, and what the plan says of its noise that the event does not: for an
        accountant that knows no plans."""
        return event

    @abstractmethod
    def asks(self, plan: P) -> str:
        """What the parties will ask of the data, in words."""

    @abstractmethod
    def run(self, oracle: MarginalOracle, plan: P, observe: Observe) -> Synthesis:
        """Run the plan. `observe` is told public values only.

        Raises what the oracle raises: `BudgetRefused` by a guard, `PeerLost`, `ProtocolAborted`; nothing is
        released after that.
        """


class MarginalAlgorithm(Algorithm[C, P]):
    """An algorithm whose plan and loop stand beside its descriptor: `plan.plan`, `loop.run`, `loop.small_share`.

    home: their package; they are imported when they are needed.
    """

    home: ClassVar[str]
    constrained = True
    reserves = True

    def claim(self, config: C) -> str:
        return SOUND

    def plan(
        self, domain: Domain, workload: Workload, config: C, **promise: Unpack[PromiseWithReserved]
    ) -> P:
        planned: P = import_module(f"{self.home}.plan").plan(domain, workload, config, **promise)
        return planned

    def small_share(self, plan: P, measurements: Sequence[Measured], noisy_total: float) -> float:
        share: float = import_module(f"{self.home}.loop").small_share(plan, noisy_total)
        return share

    def run(self, oracle: MarginalOracle, plan: P, observe: Observe) -> Synthesis:
        done: Synthesis = import_module(f"{self.home}.loop").run(oracle, plan, observe)
        return done


class WhileArriving(Algorithm[C, P]):
    """An algorithm that asks an oracle in each round of arrivals, about the rows that are there by then."""

    @abstractmethod
    def run_on(self, oracles: Iterable[MarginalOracle], plan: P, observe: Observe) -> Synthesis:
        """Run the plan. oracles: one for each round; it is closed when the next one is asked for, which waits
        for the arrivals.

        Raises as `run`.
        """

    def run(self, oracle: MarginalOracle, plan: P, observe: Observe) -> Synthesis:
        """Raises TypeError."""
        raise TypeError(f"The algorithm {self.name} asks an oracle for each round of arrivals.")


class OwnTraining(Protocol):
    """One owner's side of a training; private, and it tells nothing but by these two."""

    def count(self) -> int:
        """How many rows it has, noisily; asked once, and first."""

    def gradient(self, parameters: NDArray[np.float32], seed: bytes) -> NDArray[np.float32]:
        """Its gradient of a model in the parameters it is given, of the same size; asked once in each round.

        Raises `ProtocolAborted` for more rounds than were planned.
        """


class OwnersTraining(Protocol):
    """All owners of a training, as its server sees them: by name, in the study's order."""

    def counts(self) -> Mapping[str, int]:
        """How many rows each has, noisily. Raises `ProtocolAborted`, `PeerLost`."""

    def gradients(
        self, parameters: Mapping[str, NDArray[np.float32]], seed: bytes
    ) -> Mapping[str, NDArray[np.float32]]:
        """Every owner's, finite and of the size of what it was sent. Raises `ProtocolAborted`, `PeerLost`."""


class TrainedPlan(Protocol):
    """What the run asks of a training's plan, once the owners are known."""

    def events(self) -> tuple[Event, ...]:
        """Everything that will be charged, fixed beforehand: on record before the first message leaves an
        owner."""


class TrainedAlgorithm(Algorithm[C, P]):
    """An algorithm of owners of columns who train a model with a server, which is the leader; no backend's
    oracle is asked.

    protocol: by which they talk, a name of `mpc_protocols.vertical.owners.STAR_PROTOCOLS`. how, threat: as a
    backend's (`mpc_protocols.backend`), for the report. limits: what it cannot learn, whatever the data: a
    sentence or two that a run, its plan and its report begin with.
    """

    protocol: ClassVar[str]
    how: ClassVar[str]
    limits: ClassVar[str]
    threat: ClassVar[tuple[str, ...]]

    def prepare(self) -> None:
        """Load what takes its time, while parties connect."""

    @abstractmethod
    def presumed(self, plan: P, owners: Sequence[str]) -> TrainedPlan:
        """The plan of these owners, whose columns are not told: for an auditor. It differs from theirs by
        what their columns decide, noise and costs by less than a hundredth. Raises `StudyInvalid`, or
        `ValueError` for what are no owners."""

    @abstractmethod
    def owner(self, plan: P, name: str, codes: Mapping[str, NDArray[Any]], rows: int) -> OwnTraining:
        """One owner's side. codes: of each of its columns, (rows,) unsigned integers."""

    @abstractmethod
    def message_sizes(self, plan: P) -> Mapping[str, int]:
        """Float32 numbers of each owner's model: what travels both ways in each round."""

    @abstractmethod
    def train(self, owners: OwnersTraining, plan: P, observe: Observe) -> Synthesis:
        """The server's side. Raises what the owners raise."""

    def run(self, oracle: MarginalOracle, plan: P, observe: Observe) -> Synthesis:
        """Raises TypeError."""
        raise TypeError(f"The algorithm {self.name} trains with owners and asks no oracle.")


ALGORITHMS: Registry[Algorithm[Any, Any]] = Registry(
    "synth.algorithms", "algorithm", Algorithm, "cosynth.algorithms", research="synth.research"
)
"""All algorithms, by name."""


def proposed() -> Algorithm[Any, Any]:
    """The algorithm that a new study starts with."""
    return next(algorithm for algorithm in ALGORITHMS if algorithm.proposed)
