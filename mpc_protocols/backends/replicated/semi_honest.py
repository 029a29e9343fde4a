"""`replicated` with parties that follow the protocol: three of them on replicated secret shares (Araki et al. 2016)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpc_protocols.backend import KEYED, CohortParts, EngineBackend, OracleParts, semi_honest
from mpc_protocols.process.later import Later

if TYPE_CHECKING:
    from mpc_protocols.backends.replicated import blank, cohort_costs, cohorts, oracle
    from mpc_protocols.in_memory.engine_dry_run import BlankParts
else:
    blank = Later("mpc_protocols.backends.replicated.blank")
    cohort_costs = Later("mpc_protocols.backends.replicated.cohort_costs")
    cohorts = Later("mpc_protocols.backends.replicated.cohorts")
    oracle = Later("mpc_protocols.backends.replicated.oracle")


_ONE_OF_THREE = (
    "At most one of the three computing parties is corrupted, together with any number of recipients and "
    "contributors. Two computing parties that pool what they hold can reconstruct {pooled}."
)

_NOISE = "The noise is drawn inside the protocol: no party knows any part of it, so nobody can subtract it."


class Replicated(EngineBackend):
    """Three parties on replicated secret shares (Araki et al. 2016)."""

    name = "replicated"
    rank = 0
    summary = "three parties on secret shares"
    computing = (3, 3)
    by_default = 3
    bundles = True
    cohorts = True
    together = "no two of them work together"
    assumption = KEYED
    known_traffic = (85320, 115)
    unchecked = ""
    compares_openings = True
    shows = "random-looking shares"
    how = "The parties computed these statistics on secret shares: nobody gathered the data, and only noisy results were opened."

    def threat(self, vertical: bool) -> tuple[str, ...]:
        return semi_honest(vertical, _ONE_OF_THREE, _NOISE)

    def parts(self) -> OracleParts:
        return OracleParts(oracle.ReplicatedOracle, oracle.follow, oracle.contribute, oracle.computing_party)

    def cohort_parts(self) -> CohortParts:
        return CohortParts(
            cohorts.ReplicatedCohorts, cohorts.follow, cohorts.answer, cohort_costs.ReplicatedCohortsDryRun
        )

    def blank_parts(self, computing: int, contributing: int) -> BlankParts:
        return blank.blank_parts()
