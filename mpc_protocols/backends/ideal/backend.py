"""Descriptor of `ideal`: a trusted third party in the clear, for tests, simulations and baselines. IT
PROTECTS NOTHING."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mpc_protocols.backend import ClearBackend
from mpc_protocols.in_memory.presumed import DryRun, PresumedRun
from mpc_protocols.process.later import Later
from mpc_protocols.public.history import NO_HISTORY, History

if TYPE_CHECKING:
    from mpc_protocols.backends.ideal import cohorts, dry_run, oracle
    from mpc_protocols.functionality import (
        Cohorts,
        Guard,
        LocalCounts,
        LocalVector,
        MarginalOracle,
        StudyFacts,
    )
else:
    cohorts = Later("mpc_protocols.backends.ideal.cohorts")
    dry_run = Later("mpc_protocols.backends.ideal.dry_run")
    oracle = Later("mpc_protocols.backends.ideal.oracle")


class Ideal(ClearBackend):
    """One process that answers as a trusted curator would."""

    name = "ideal"
    resumes = True
    bundles = True
    cohorts = True
    rank = 1000
    summary = "one process in the clear, for tests"
    by_default = 3

    @property
    def claim(self) -> str:
        return "no privacy claim towards whoever can read the one process that ran everything in the clear"

    def threat(self, vertical: bool) -> tuple[str, ...]:
        return (
            "None that could help: the one process that ran everything saw all the data and all the noise. What is promised here "
            "holds towards those who see only what was released.",
        )

    def roles(self, flags: Sequence[bool | None]) -> list[bool]:
        """Nobody computes; the roles of a study that is run for comparison are the first three that do not
        decline."""
        return super().roles([None if flag else flag for flag in flags])

    def oracle(
        self, facts: StudyFacts, counts: LocalCounts, guard: Guard, history: History = NO_HISTORY
    ) -> MarginalOracle:
        return oracle.IdealOracle(facts, counts, guard, history=history)

    def clear_cohorts(self, vectors: Mapping[int, LocalVector], guard: Guard, session: bytes) -> Cohorts:
        return cohorts.IdealCohorts(vectors, guard, session)

    def dry_run(self, run: PresumedRun) -> DryRun:
        return dry_run.IdealDryRun(run.facts, run.counts, run.computing + run.contributing)


BACKEND = Ideal()
