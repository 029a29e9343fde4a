"""What an algorithm is, and how one is found: a file synth/algorithms/NAME/algorithm.py that holds ALGORITHM.

Everybody else asks this object: the study's reader for its table, `check`, `plan` and the run for what happens, the report for
words. Nobody compares names. A descriptor imports the standard library only; `plan` and `run` import what they need.

    class Aim(Algorithm["AimConfig", "AimPlan"]):              synth/algorithms/aim/algorithm.py
        name, title, rank, config = "aim", "AIM", 0, AimConfig
        ...
    ALGORITHM = Aim()
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NotRequired, TypedDict, TypeVar, Unpack

from mpc_protocols.functionality import Adjacency
from mpc_protocols.registry import Registry
from synth.config import AlgorithmConfig

if TYPE_CHECKING:
    from mpc_protocols.functionality import MarginalOracle, Observe
    from synth.domain import Domain
    from synth.plan import Plan
    from synth.run import Synthesis
    from synth.workload import Workload

SOUND: Final = "everything that was released is together (epsilon, delta)-differentially private"
"""The claim of an algorithm whose every question is charged before it is answered."""
C = TypeVar("C", bound=AlgorithmConfig)
P = TypeVar("P", bound="Plan")


class Promise(TypedDict):
    """The study's promise. unit_rows (1): the most rows of one privacy unit over all custodians."""

    epsilon: float
    delta: float
    adjacency: Adjacency
    unit_rows: NotRequired[int]


class Algorithm(ABC, Generic[C, P]):
    """One algorithm, in words and in code.

    name: in the study file, also of its table. title: in the report. rank: place in lists. summary: what it does, for the
    template's comment. proposed: whether `init` starts a study with it; one algorithm is. left_out: what becomes of a marginal
    that no model of max_model_mb holds, for `check` and `plan`. partitions: of the data, that it runs on. extra, requires: an
    optional part of the installation and its modules.
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

    @abstractmethod
    def claim(self, config: C) -> str:
        """What recipients of the results are promised, a sentence without its full stop: the first part of run.json's `claim`."""

    def alternative(self, config: C) -> str | None:
        """What to use instead of a system without a sound claim or utility; None for any other.

        Such a system needs `[study] research = true`, else the study is refused with this at the end of the sentence.
        """
        return None

    def adaptive(self, config: C) -> bool:
        """Whether the released values decide how many rounds there are and how much noise each has."""
        return False

    @abstractmethod
    def plan(self, domain: Domain, workload: Workload, config: C, **promise: Unpack[Promise]) -> P:
        """Fix budget, noise and candidates of a study. Deterministic and public: every party derives the same.

        Raises `StudyInvalid`.
        """

    @abstractmethod
    def asks(self, plan: P) -> str:
        """What the parties will ask of the data, in words."""

    @abstractmethod
    def run(self, oracle: MarginalOracle, plan: P, observe: Observe) -> Synthesis:
        """Run the plan. `observe` is told public values only.

        Raises what the oracle raises: `BudgetRefused` by a guard, `PeerLost`, `ProtocolAborted`; nothing is released after that.
        """


ALGORITHMS: Registry[Algorithm[Any, Any]] = Registry("synth.algorithms", "algorithm", Algorithm)
"""All algorithms, by name."""


def proposed() -> Algorithm[Any, Any]:
    """The algorithm that a new study starts with."""
    return next(algorithm for algorithm in ALGORITHMS if algorithm.proposed)
