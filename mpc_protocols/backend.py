"""What a backend is, and how one is found: a file mpc_protocols/backends/NAME/backend.py (or NAME_backend.py) that holds BACKEND.

A backend answers a synthesizer's questions (`functionality.MarginalOracle`). Two kinds:

    DistributedBackend   parties compute together over a `Wire`: one leads (it runs the synthesizer), the others follow, and
                         custodians that do not compute contribute
    ClearBackend         one process holds everybody's data in the clear and protects nothing: for tests and baselines

Everybody else asks the descriptor: the study's reader which parties may compute, the run for its parts, `plan` for costs, the
report for words. Nobody compares names. Descriptors import the standard library only; methods import what they need.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import Guard, MarginalOracle, Observe
from mpc_protocols.in_memory.presumed import DryRun, PresumedRun
from mpc_protocols.options import Options
from mpc_protocols.process.later import Later
from mpc_protocols.public.history import NO_HISTORY, History
from mpc_protocols.registry import Registry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mpc_protocols.backends.bundles.collected import CollectedCounts
    from mpc_protocols.engine.oracle import Roles
    from mpc_protocols.engine.step import ComputingParty
    from mpc_protocols.functionality import (
        Answered,
        Cohorts,
        CohortsDryRun,
        LocalCounts,
        LocalVector,
        StudyFacts,
    )
    from mpc_protocols.in_memory import engine_dry_run
    from mpc_protocols.in_memory.engine_dry_run import BlankParts
    from mpc_protocols.public.cohorts.steps import StepGuard
    from mpc_protocols.vertical.partition import Partition, VerticalData
    from mpc_protocols.wire import Wire

    OracleData = LocalCounts | CollectedCounts | VerticalData
else:
    engine_dry_run = Later("mpc_protocols.in_memory.engine_dry_run")

MANY: Final = 1 << 10
"""More parties than any study has."""


SEMI_HONEST: Final = (
    "Semi-honest parties: everybody follows the protocol, and may study at leisure whatever it receives."
)
DISHONEST_CUSTODIAN: Final = (
    "Not covered: a computing party that departs from the protocol, a custodian that lies about its own data (it can spoil the "
    "table; with impossible counts it can also make a choice of marginal depend on somebody else's record by more than is "
    "charged), and what a party's own computer gives away."
)
DISHONEST_OWNER: Final = (
    "Not covered: a computing party that departs from the protocol, an owner that lies about its own data (it can spoil the "
    "table; with impossible values it can also make a choice of marginal depend on somebody else's record by more than is "
    "charged; with identifiers of others it can put their records into the table), and what a party's own computer gives away."
)


def semi_honest(vertical: bool, corrupted: str, *further: str) -> tuple[str, ...]:
    """The `threat` of a backend whose parties follow the protocol.

    corrupted: how many parties may be, and who could reconstruct `{pooled}`: everybody's counts, or owners' columns. further:
    sentences about owners, assumptions and noise.
    """
    pooled = "every owner's columns, record by record" if vertical else "everybody's counts"
    uncovered = DISHONEST_OWNER if vertical else DISHONEST_CUSTODIAN
    return (SEMI_HONEST, corrupted.format(pooled=pooled), *further, uncovered)


class Backend(ABC):
    """One backend, in words and in code.

    name: in the study file. rank: place in lists. summary: who answers the questions, for the template's comment. options: its
    own table of the study. computing: fewest and most parties that compute; by_default: how many do if the study does not say
    who (None: all). partitions: of the data, that it runs on. alignments: methods that can join records for it; None: any.
    two_owners: whether split columns must belong to two of the computing parties.
    securities: values of `[study] security`. malicious: whether its claim holds against a computing party that deviates as it
    likes (`secured`). extra, requires: an optional part of the installation and its modules.
    bundles: whether contributors may leave sealed bundles (`mpc_protocols.backends.bundles`). unchecked: why it does not find
    out, on shares, which contributors' counts are those of no table (`docs/design/inputs.md`), part of a sentence; "" if it does.
    cohorts: whether it serves clients that choose by themselves what they answer (`functionality.Cohorts`).
    ideal: one process sees everything. resumes: whether a run can go on after a crash, from the history that its parts keep.
    """

    name: ClassVar[str]
    rank: ClassVar[int] = 100
    summary: ClassVar[str]
    options: ClassVar[type[Options]] = Options
    computing: ClassVar[tuple[int, int]]
    by_default: ClassVar[int | None]
    partitions: ClassVar[tuple[str, ...]] = ("horizontal", "vertical")
    alignments: ClassVar[tuple[str, ...] | None] = None
    two_owners: ClassVar[bool] = False
    securities: ClassVar[tuple[str, ...]] = ("semi-honest",)
    malicious: ClassVar[bool] = False
    extra: ClassVar[str] = ""
    requires: ClassVar[tuple[str, ...]] = ()
    bundles: ClassVar[bool] = False
    unchecked: ClassVar[str] = "that backend has no check of them"
    cohorts: ClassVar[bool] = False
    ideal: ClassVar[bool]
    resumes: ClassVar[bool] = False

    @property
    @abstractmethod
    def claim(self) -> str:
        """Towards whom, as long as what, and resting on what inputs stay hidden: a part of run.json's `claim`, without a full
        stop."""

    @abstractmethod
    def threat(self, vertical: bool) -> tuple[str, ...]:
        """Whom it protects against, and what it does not cover: sentences for the report."""

    @abstractmethod
    def dry_run(self, run: PresumedRun) -> DryRun:
        """The backend's cost model: every message of a run on a presumed table."""

    def lg_chance(self, proofs: int) -> float:
        """Where `malicious`: lg of a bound on the chance that a deviation passes so many batches of proofs."""
        return float("-inf")

    def configured(self, options: Options, partition: str = "horizontal") -> Backend:
        """The backend as its own table of the study says. options: of the class that `options` names. partition: of the study's
        data, on which may depend what the options come to."""
        return self

    def secured(self, security: str) -> Backend:
        """The descriptor that stands for the backend with a value of `[study] security`, one of `securities`."""
        return self

    def leader(self, computing: int) -> int:
        """Wire number of the party that runs the synthesizer, of so many that compute."""
        return min(1, computing - 1)

    def roles(self, flags: Sequence[bool | None]) -> list[bool]:
        """Which parties compute, by what each says about it: those that say so, else the first that do not decline."""
        if any(flags):
            return [flag is True for flag in flags]
        willing = [number for number, flag in enumerate(flags) if flag is not False][: self.by_default]
        return [number in willing for number in range(len(flags))]

    def misfit_of_owners(self, owners: Sequence[str], computing: Sequence[str]) -> str | None:
        """Why it cannot join the columns of these owners, and of further ones if there are any; a sentence less its full stop."""
        if not self.two_owners:
            return None
        joins = f'backend = "{self.name}" joins the columns of two parties that compute'
        if len(owners) > 2:
            return f"{joins}, and {len(owners)} own columns ({', '.join(owners)})"
        outside = [name for name in owners if name not in computing]
        if outside:
            return f"{joins}, and {' and '.join(outside)} do{'es' * (len(outside) == 1)} not; let the owners compute"
        return None

    def check_tables(
        self, split: Partition, sizes: Mapping[str, int], tables: Iterable[Sequence[str]]
    ) -> None:
        """Raise `StudyInvalid` if it cannot compute one of these tables of split columns. sizes: of every column."""
        return None

    def misfit(self, computing: Sequence[str], partition: str = "horizontal") -> str | None:
        """The rest of a sentence about a study in which these parties compute; None if they may. Names the alternative.

        partition: of the study's data; backends that do not run on it are no alternative.
        """
        least, most = self.computing
        if least <= len(computing) <= most:
            return None
        names = f" ({', '.join(computing)})" if computing else ""
        takes = _range(least, most) if least < most else f"exactly {_spelled(least)}"
        others = [
            f'backend = "{other.name}"'
            for other in BACKENDS
            if not other.ideal
            and partition in other.partitions
            and other.computing[0] <= len(computing) <= other.computing[1]
        ]
        instead = f", or use {' or '.join(others)}" if others else ""
        if len(computing) > most:
            return (
                f'has {len(computing)} computing parties{names}, and backend = "{self.name}" takes {takes}; '
                f"let no more than {_spelled(most)} of them compute (compute = true at those alone){instead}"
            )
        number = "no" if not computing else _spelled(len(computing))
        return (
            f"has {number} computing part{'y' if len(computing) == 1 else 'ies'} only{names}, and backend = "
            f'"{self.name}" needs {takes}; add a [[party]], which needs no data of its own, or let another one compute'
            f"{instead}"
        )


KEYED: Final = "AES and keyed BLAKE2b as pseudo-random functions"
"""What everybody's streams rest on (`engine.prg`)."""


class DistributedBackend(Backend):
    """A backend of parties that compute together.

    together: of the computing parties, what must not happen, e.g. "no two of them work together". assumption: what the
    protection rests on besides, KEYED or more. compares_openings: whether a party that is sent a false part of what is opened
    notices it before it does anything with it. known_traffic: bytes of all parties together, and rounds, that all kinds of
    questions about the audit's reference table take (`audit.groups.traffic`), None if nobody has pinned them; whoever
    changes a protocol on purpose changes these. shows: what a computing party sees of the others' data, e.g. "random-looking
    shares". how: how the statistics came about, a sentence.
    """

    ideal = False
    together: ClassVar[str]
    compares_openings: ClassVar[bool] = False
    known_traffic: ClassVar[tuple[int, int] | None] = None
    assumption: ClassVar[str]
    shows: ClassVar[str]
    how: ClassVar[str]

    def coalition(self, computing: int) -> int:
        """The fewest of so many computing parties that together can reconstruct everybody's data."""
        return 2

    def colluding(self, computing: int) -> str:
        """Who must not work together, as a noun: "any 2 of the 3", "both"."""
        fewest = self.coalition(computing)
        return "both" if fewest == computing == 2 else f"any {fewest} of the {computing}"

    @property
    def claim(self) -> str:
        return (
            "nothing else is revealed to a party, as long as all follow the protocol and among the computing parties "
            f"{self.together} (this rests on {self.assumption})"
        )

    @abstractmethod
    def lead(
        self,
        wire: Wire,
        facts: StudyFacts,
        data: LocalCounts | VerticalData | None,
        guard: Guard,
        observe: Observe,
        history: History = NO_HISTORY,
    ) -> AbstractContextManager[MarginalOracle]:
        """The leader's oracle; at the end of the block the others may end. data: its own, None if it only computes. history: as
        `engine.step` uses it.

        Raises `StudyInvalid`, `DataRefused`, and while questions are asked what `MarginalOracle` says.
        """

    @abstractmethod
    def follow(
        self,
        wire: Wire,
        facts: StudyFacts,
        data: LocalCounts | VerticalData | None,
        guard: Guard,
        observe: Observe,
        history: History = NO_HISTORY,
    ) -> list[NDArray[np.int64]]:
        """Every other computing party's part, until the leader ends the run; the noisy counts opened, in order. Blocks."""

    @abstractmethod
    def contribute(self, wire: Wire, facts: StudyFacts, data: LocalCounts | VerticalData) -> None:
        """The part of a custodian that does not compute, until the leader ends the run. Blocks."""

    def coin(self, wire: Wire, public: bytes) -> bytes:
        """32 random bytes, alike at all computing parties, that none of them knows before all have said `public` alike.

        wire: a fork that is used for nothing else. Raises `ProtocolAborted`, and `StudyInvalid` unless it is `malicious`.
        """
        raise StudyInvalid(f"The parties of the {self.name} backend trust their leader's random numbers.")

    def cohort_parts(self) -> CohortParts:
        """The parts of a backend that serves cohorts. Raises `StudyInvalid` for any other."""
        raise StudyInvalid(f"The {self.name} backend serves no cohorts of clients.")


class CohortParts(NamedTuple):
    """What each party of a run with cohorts does.

    lead: (wire, own vector or None, numbers of the clients, guard) -> cohorts, whose end lets the others end. follow: the same
    and the leader's number -> what was opened of each question, in order. answer: (wire, own vector, the leader's number, guard).
    All but `lead` block until the leader ends the run. dry_run: (answers about presumed tables, number of all parties) -> the
    same, counting what it would cost.
    """

    lead: Callable[[Wire, LocalVector | None, Sequence[int], Guard], AbstractContextManager[Cohorts]]
    follow: Callable[[Wire, LocalVector | None, Sequence[int], StepGuard, int], Sequence[Answered]]
    answer: Callable[[Wire, LocalVector, int, StepGuard], None]
    dry_run: Callable[[Cohorts, int], CohortsDryRun]


class OracleParts(NamedTuple):
    """The parts of an engine's oracle module: the leader's oracle, every other computing party's part, a contributor's.

    party: one computing party, for who drives its steps without an oracle, as benchmarks do; None: nobody can.
    """

    lead: Callable[..., AbstractContextManager[MarginalOracle]]
    follow: Callable[..., list[NDArray[np.int64]]]
    contribute: Callable[..., None]
    party: Callable[..., ComputingParty[Any, Any]] | None = None

    @classmethod
    def of(cls, roles: Roles[Any, Any], contribute: Callable[..., None]) -> Self:
        """Those of an engine's computing parties, and a contributor's."""
        return cls(roles.lead, roles.follow, contribute, roles.computing_party)


class EngineBackend(DistributedBackend):
    """A backend over `mpc_protocols.engine`: it names its parts, which are imported when they are called. With `bundles`, data
    may be `CollectedCounts`, and a run may have several engines on forks of one wire, one after the other: the masks of each must
    then depend on the session of its facts, too, like those of `replicated` do, or a later engine would use an earlier one's."""

    resumes = True

    def blank_parts(self, computing: int, contributing: int) -> BlankParts:
        """The parts of a dry run of so many parties: of a backend that has no `dry_run` of its own."""
        raise NotImplementedError(
            f"The backend {self.name} has neither blank_parts nor a dry_run of its own."
        )

    def dry_run(self, run: PresumedRun) -> DryRun:
        return engine_dry_run.EngineDryRun(run, self.blank_parts(run.computing, run.contributing))

    @abstractmethod
    def parts(self) -> OracleParts:
        """The parts; their arguments are those of `lead`, `follow` and `contribute`."""

    def lead(
        self,
        wire: Wire,
        facts: StudyFacts,
        data: OracleData | None,
        guard: Guard,
        observe: Observe,
        history: History = NO_HISTORY,
    ) -> AbstractContextManager[MarginalOracle]:
        return self.parts().lead(wire, facts, data, guard, observe, history=history)

    def follow(
        self,
        wire: Wire,
        facts: StudyFacts,
        data: OracleData | None,
        guard: Guard,
        observe: Observe,
        history: History = NO_HISTORY,
    ) -> list[NDArray[np.int64]]:
        return self.parts().follow(wire, facts, data, guard, observe, history=history)

    def contribute(self, wire: Wire, facts: StudyFacts, data: LocalCounts | VerticalData) -> None:
        self.parts().contribute(wire, facts, data)


class ClearBackend(Backend):
    """A backend of one process that sees everything: it takes no `--party`."""

    ideal = True
    computing = (0, MANY)

    @abstractmethod
    def oracle(
        self, facts: StudyFacts, counts: LocalCounts, guard: Guard, history: History = NO_HISTORY
    ) -> MarginalOracle:
        """counts: the marginals of all custodians together. history: as `ideal` uses it."""

    def clear_cohorts(self, vectors: Mapping[int, LocalVector], guard: Guard, session: bytes) -> Cohorts:
        """Cohorts of these clients, by number, if it serves any. session: public id of the run. Raises `StudyInvalid`."""
        raise StudyInvalid(f"The {self.name} backend serves no cohorts of clients.")


def _range(least: int, most: int) -> str:
    return _spelled(least) if least == most else f"{_spelled(least)} to {_spelled(most)}"


def _spelled(count: int) -> str:
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return words[count] if count < len(words) else str(count)


BACKENDS: Registry[Backend] = Registry(
    "mpc_protocols.backends", "backend", Backend, "cosynth.backends", research="mpc_protocols.research"
)
"""All backends, by name."""


def backends_table() -> str:
    """The table of facts in `docs/backends.md`."""
    rows = [
        "| `backend` | who computes | data | who must not work together | rests on |",
        "|---|---|---|---|---|",
    ]
    for backend in BACKENDS:
        if not isinstance(backend, DistributedBackend):
            rows.append(
                f"| `{backend.name}` | {backend.summary} | {' or '.join(backend.partitions)} | nobody is protected | - |"
            )
            continue
        least, most = backend.computing
        numbers = dict.fromkeys((least, (least + most) // 2, most))
        colluding = "; ".join(backend.colluding(number) for number in numbers)
        rows.append(
            f"| `{backend.name}` | {_range(least, most)} parties | {' or '.join(backend.partitions)} | {colluding} "
            f"| {backend.assumption} |"
        )
    return "\n".join(rows)
