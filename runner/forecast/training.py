"""What a training will take: every message has a size known beforehand, so rounds and bytes are exact but for
the table.

CPU is a guess from one machine: 2 ms a step of a critic and 0.2 us for each one-hot cell that it looks at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpc_protocols.vertical.owners import STAR_PROTOCOLS
from runner.forecast.alignment import owners
from runner.forecast.presumed.presumed_rows import presumed_rows
from runner.forecast.result import COUNTERS_BYTES, COUNTERS_ROUNDS, PROCESS_MB, Forecast, forecast_of
from runner.party.collective import MEETING_ROUNDS
from runner.party.synthesis import plan_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner.study import VerticalStudy
    from synth.algorithm import TrainedAlgorithm

STEP_S, CELL_S = 0.002, 2e-7
MEMORY_MB = 260
"""Of PyTorch."""


class Training:
    """rounds; sent: bytes by wire number; seconds: of the busiest party; rows: of the table."""

    def __init__(
        self, algorithm: TrainedAlgorithm[Any, Any], plan: Any, study: VerticalStudy, rows: int
    ) -> None:
        """rows: presumed at each owner. Raises `StudyInvalid`: these owners cannot run the study."""
        owned, self.presumed = owners(study)
        self.plan = plan = plan.knowing(owned.columns)
        rounds, sizes = plan.config.rounds, algorithm.message_sizes(plan)
        protocol = STAR_PROTOCOLS[algorithm.protocol]
        self.rows = study.config.synthetic_rows or rows
        self.rounds = MEETING_ROUNDS + protocol.rounds_on_wire(rounds)
        self.sent = [0] * len(study.numbered)
        for number, party in enumerate(study.numbered):
            if party.name in sizes and number != study.leader_number:
                from_owner, to_owner = protocol.traffic(sizes[party.name], rounds)
                self.sent[number] += from_owner
                self.sent[study.leader_number] += to_owner
        widest = max(plan.cells_of(name) for name in owned.owners)
        self.seconds = plan.steps * (STEP_S + CELL_S * float(plan.rate) * rows * widest)


def forecast_trained(
    algorithm: TrainedAlgorithm[Any, Any],
    study: VerticalStudy,
    rows: int | None,
    networks: Mapping[str, tuple[float, float]],
) -> Forecast:
    """Of a study whose owners train: nothing is joined, and no marginal asked for. Raises `StudyInvalid`."""
    presumed = presumed_rows(study, rows)
    work, ideal = Training(algorithm, plan_of(study), study, presumed[0]), study.descriptor.ideal
    sent = [own + COUNTERS_BYTES for own in work.sent]
    sent[study.leader_number] += (len(sent) - 1) * (work.rows * len(study.domain) + COUNTERS_BYTES)
    return forecast_of(
        study,
        work.plan,
        presumed,
        networks,
        rounds=0 if ideal else work.rounds + COUNTERS_ROUNDS,
        sent=[0] * len(sent) if ideal else sent,
        work_s=work.seconds,
        cpu_s=work.seconds,
        memory_mb=PROCESS_MB + MEMORY_MB + 8 * len(study.domain) * presumed[0] / 2**20,
        questions={"asked": algorithm.asks(work.plan)},
    )
