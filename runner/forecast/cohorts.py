"""What a run will take whose custodians choose by themselves: it is done on presumed tables, and its messages
are counted.

Which marginals enough clients choose depends on the data, and with it how much is sent: presumed tables are
alike, so that clients agree more than real ones do.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from mpc_protocols.backend import BACKENDS, ClearBackend, DistributedBackend
from mpc_protocols.functionality import CohortsDryRun, unobserved
from mpc_protocols.in_memory.presumed import AllowAll
from runner.forecast.presumed.presumed_rows import presumed_rows
from runner.forecast.presumed.presumed_tables import PresumedTable
from runner.forecast.result import (
    COUNTERS_BYTES,
    COUNTERS_ROUNDS,
    FIT_MODELS,
    PROCESS_MB,
    ROW_BYTES,
    Forecast,
    forecast_of,
)
from runner.party.synthesis import plan_of, row_limit, sample
from synth.algorithm import ALGORITHMS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner.study import Study
    from synth.algorithm import CohortRounds


class Cohorts:
    """rounds; sent: bytes by wire number; handed: bytes of what is handed out; seconds: of the leader,
    secure_seconds of them for the protocol."""

    def __init__(self, cohorts: CohortRounds[Any], plan: Any, study: Study, rows: int) -> None:
        """rows: presumed of all custodians together. Raises `StudyInvalid`."""
        holders = [party.name for party in study.parties if party.data is not None]
        clients = [
            number for number, party in enumerate(study.numbered) if not holders or party.name in holders
        ]
        self.plan = plan = cohorts.fitted(plan, len(clients), study.privacy.max_rows)
        each = PresumedTable(study.domain.sizes, min(max(1, rows // len(clients)), study.privacy.max_rows))
        session, began = os.urandom(32), time.process_time()
        (clear,) = (backend for backend in BACKENDS if isinstance(backend, ClearBackend) and backend.cohorts)
        answers = clear.clear_cohorts(
            {number: cohorts.client(plan, each.counts, session) for number in clients}, AllowAll(), session
        )
        backend = study.descriptor
        self.rounds, self.sent, self.secure_seconds = 0, [0] * len(study.parties), 0.0
        if isinstance(backend, DistributedBackend):
            answers = backend.cohort_parts().dry_run(answers, len(study.parties))
        synthesis = cohorts.conduct(answers, plan, session, unobserved)
        release = sample(synthesis, plan, unobserved, row_limit(study, len(clients)), [])
        self.handed = len(release.to_bytes(study.domain))
        if isinstance(answers, CohortsDryRun):
            answers.close()
            self.rounds, self.sent = answers.rounds, list(answers.sent)
            self.secure_seconds = answers.seconds
        self.seconds = time.process_time() - began + self.secure_seconds


def forecast_cohorts(
    cohorts: CohortRounds[Any], study: Study, rows: int | None, networks: Mapping[str, tuple[float, float]]
) -> Forecast:
    """Of a study whose custodians choose by themselves: they are asked, each about a presumed table of its
    own. Raises `StudyInvalid`."""
    presumed = presumed_rows(study, rows)
    work = Cohorts(cohorts, plan_of(study), study, presumed[0])
    plan, ideal, sent = work.plan, study.descriptor.ideal, list(work.sent)
    if not ideal:
        sent = [own + COUNTERS_BYTES for own in sent]
        sent[study.leader_number] += (len(sent) - 1) * (work.handed + COUNTERS_BYTES)
    held = ROW_BYTES * len(study.domain) * presumed[0] / 2**20
    return forecast_of(
        study,
        plan,
        presumed,
        networks,
        rounds=0 if ideal else work.rounds + COUNTERS_ROUNDS,
        sent=sent,
        work_s=work.seconds,
        cpu_s=work.secure_seconds,
        memory_mb=PROCESS_MB + held + FIT_MODELS * study.config.model_mb,
        questions={"candidates": len(plan.candidates), "asked": ALGORITHMS[study.algorithm].asks(plan)},
        oversized=plan.oversized,
    )
