"""What a run that trains a model costs: joining, the tensors, and the questions about the finished model.

The tensors' bytes and rounds are exact for the presumed size of the common table; the rest is as in any
forecast.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from mpc_protocols.in_memory.presumed import PresumedRun
from mpc_protocols.vertical.partition import Partition
from runner.forecast.alignment import joined_facts, joining
from runner.forecast.presumed.presumed_rows import presumed_rows
from runner.forecast.presumed.presumed_tables import PresumedTable
from runner.forecast.result import (
    COUNTERS_BYTES,
    COUNTERS_ROUNDS,
    IDENTIFIER_BYTES,
    PROCESS_MB,
    Forecast,
    forecast_of,
)
from runner.party.collective import MEETING_ROUNDS
from runner.party.synthesis import facts_of, plan_of
from runner.study import VerticalStudy
from runner.study.trained import active_owner, check_owners, training_of

if TYPE_CHECKING:
    from mpc_protocols.in_memory.presumed import DryRun
    from runner.forecast.alignment import Joining
    from synth.plan import Plan

TORCH_MB, TORCH_S = 250, 3.0
"""Of importing PyTorch: memory, seconds."""


def forecast_training(
    study: VerticalStudy, rows: int | None, networks: Mapping[str, tuple[float, float]], delay_us: int = 0
) -> Forecast:
    """Carry out the questions in a dry run and count the tensors. delay_us: as of `forecast`. Raises
    `StudyInvalid`."""
    plan, training = plan_of(study), training_of(study)
    assert training is not None
    assumed, source = presumed_rows(study, rows)
    joined = joining(study, assumed)
    check_owners(study, joined.owned)
    plan = plan.knowing(joined.owned.columns)
    active = active_owner(study, joined.owned)
    passive = next(name for name in joined.owned.owners if name != active)
    cost = training.cost(study.config, joined.split.rows, len(joined.owned.of(passive)))
    number = {party.name: place for place, party in enumerate(study.numbered)}
    sent = [COUNTERS_BYTES + joined.cost.sent.get(place, 0) for place in range(len(study.parties))]
    for name, own in zip((passive, active), cost.sent, strict=True):
        sent[number[name]] += own
    # once all have trained; before it, once all have a noisy rate of the label on record
    meetings = 1 if training.rate_event(plan) is None else 2
    rounds = joined.cost.rounds + cost.rounds + meetings * MEETING_ROUNDS + COUNTERS_ROUNDS
    work = max(joined.cost.seconds.values(), default=0.0) + cost.seconds + TORCH_S
    oracle = _questions(study, plan, joined, delay_us)
    if oracle is not None:
        sent = [own + more for own, more in zip(sent, oracle.sent, strict=True)]
        rounds += oracle.rounds
        work += oracle.seconds
    return forecast_of(
        study,
        plan,
        (joined.records, source),
        networks,
        rounds=rounds,
        sent=sent,
        work_s=work,
        cpu_s=cost.seconds,
        memory_mb=PROCESS_MB + TORCH_MB + IDENTIFIER_BYTES * joined.records / 2**20,
        questions={
            "rounds": [0, 0],
            "asked": training.asks(plan),
            "label": None,
            "shared_cells": 0 if oracle is None else oracle.shared_cells,
            "exposes": [list(pair) for pair in training.exposes(study.config)],
            "training_bytes": list(cost.sent),
            "training_rounds": cost.rounds,
        },
        joining=joined_facts(study, plan, joined),
    )


def _questions(study: VerticalStudy, plan: Plan, joined: Joining, delay_us: int) -> DryRun | None:
    """The evaluation on a presumed table, ended."""
    training = training_of(study)
    assert training is not None
    asked = training.evaluation(plan)
    if asked is None:
        return None
    owners = joined.split.owners
    columns = {**dict.fromkeys(asked.clique, owners[0]), asked.held: owners[1]}
    facts = replace(facts_of(study, len(owners), os.urandom(32)), sizes=dict(asked.sizes))
    oracle = study.descriptor.dry_run(
        PresumedRun(
            facts,
            PresumedTable(asked.sizes, joined.population).counts,
            len(study.computing),
            len(study.contributing),
            Partition(owners, columns, "intersection", {}, joined.split.rows),
            delay_us,
        )
    )
    oracle.measure(oracle.prepare([asked.clique]), asked.sigma2)
    oracle.close()
    return oracle
