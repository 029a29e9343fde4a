"""`replicated` with `security = "malicious"`: one of the three may deviate as it likes
(`docs/design/malicious.md`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from mpc_protocols.backend import Backend, CohortParts, DistributedBackend, OracleParts
from mpc_protocols.backends.replicated.semi_honest import Replicated
from mpc_protocols.in_memory.presumed import DryRun, PresumedRun
from mpc_protocols.process.later import Later

if TYPE_CHECKING:
    from mpc_protocols.backends.replicated.proof import coins, soundness
    from mpc_protocols.backends.replicated.proved import dry_run, oracle
    from mpc_protocols.backends.replicated.proved.vertical import planner
    from mpc_protocols.backends.replicated.sharing import trio
    from mpc_protocols.vertical.partition import Partition
    from mpc_protocols.wire import Wire
else:
    coins = Later("mpc_protocols.backends.replicated.proof.coins")
    dry_run = Later("mpc_protocols.backends.replicated.proved.dry_run")
    oracle = Later("mpc_protocols.backends.replicated.proved.oracle")
    planner = Later("mpc_protocols.backends.replicated.proved.vertical.planner")
    soundness = Later("mpc_protocols.backends.replicated.proof.soundness")
    trio = Later("mpc_protocols.backends.replicated.sharing.trio")

_DEVIATES = (
    "Malicious, with abort: one of the three computing parties may depart from the protocol as it likes, together with any "
    "number of recipients and contributors. The (epsilon, delta) of this report holds against it, but for a chance below 2^-56 "
    "for each batch of proofs that it is not noticed; the two others get right results or stop before they open any."
)
_TOGETHER = "Two computing parties that pool what they hold can reconstruct {}."
_NOISE = "The noise is drawn inside the protocol: no party knows any part of it, none can change it, and nobody can subtract it."
_ABORT = (
    "That a party stops once data are shared tells nothing about the data: a check fails only if somebody has departed from "
    "the protocol, or, of the table's rows, if machines differ in floating point."
)
_UNCOVERED = (
    "Not covered: two computing parties that work together; rows that a custodian makes up; a party that delays or ends the "
    "run, or keeps a result that the others then do not get; the model, which the leading party fits by itself to what was "
    "opened; and what a party's own computer gives away."
)


class ReplicatedWithProofs(Replicated):
    """The same three parties, each of which proves that what it sent is what its shares give."""

    malicious = True
    bundles = False
    cohorts = False
    resumes = False
    assumption = f"{Replicated.assumption}, and BLAKE2b as a random oracle"
    how = (
        "The parties computed these statistics on secret shares and proved to each other that they did it right: nobody gathered "
        "the data, and only noisy results were opened."
    )

    @property
    def claim(self) -> str:
        return (
            "nothing else is revealed to a party, and no party can make the results reveal more than (epsilon, delta) allows, as "
            "long as two of the three computing parties follow the protocol, but for a chance below 2^-56 for each batch of "
            f"proofs (this rests on {self.assumption})"
        )

    def lg_chance(self, proofs: int) -> float:
        return soundness.lg_chance(proofs)

    def threat(self, vertical: bool) -> tuple[str, ...]:
        together = _TOGETHER.format(
            "every owner's columns, record by record" if vertical else "everybody's counts"
        )
        return (_DEVIATES, together, _NOISE, _ABORT, _UNCOVERED)

    def secured(self, security: str) -> Backend:
        return self

    def cohort_parts(self) -> CohortParts:
        return DistributedBackend.cohort_parts(self)  # those of `Replicated` prove nothing

    def parts(self) -> OracleParts:
        return oracle.parts()

    def check_tables(
        self, split: Partition, sizes: Mapping[str, int], tables: Iterable[Sequence[str]]
    ) -> None:
        planner.check_tables(split, sizes, map(tuple, tables))

    def coin(self, wire: Wire, public: bytes) -> bytes:
        return coins.toss(trio.Trio(wire, "coin"), public)

    def dry_run(self, run: PresumedRun) -> DryRun:
        return dry_run.ProvedDryRun(run)
