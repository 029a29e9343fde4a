"""From a study to its synthesizer: the plan that every party derives alike, and the run of it on an oracle.

Public and deterministic: check, plan, the leader and every follower call this with the same study and get the same numbers.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

from runner.study import ADAPTIVE, Study

if TYPE_CHECKING:
    from mpc_protocols.functionality import Clique, Event, MarginalOracle, Setting
    from runner.release import Release
    from synth.aim import AimPlan, Observe


def plan_of(study: Study) -> AimPlan:
    """The study's AIM plan: budget, noise, rounds, candidates. Raises `StudyInvalid`."""
    from synth.aim import AimConfig, plan

    own = study.settings
    config = AimConfig(rounds=None if own.rounds == ADAPTIVE else own.rounds, max_model_mb=own.max_model_mb,
                       select_share=own.select_share, prune=own.prune, synthetic_rows=own.synthetic_rows)
    return plan(study.domain, study.workload, config, epsilon=float(study.privacy.epsilon), delta=float(study.privacy.delta),
                adjacency=study.privacy.adjacency, unit_rows=study.privacy.unit.rows)


def setting_of(study: Study, custodians: int, session: bytes) -> Setting:
    """The mechanisms' public facts, once it is known how many parties have data."""
    from mpc_protocols.functionality import Setting

    privacy = study.privacy
    return Setting(study.domain.sizes, privacy.adjacency, privacy.unit.rows, custodians * privacy.max_rows, session)


def counted(plan: AimPlan) -> list[Clique]:
    """The cliques a custodian counts in its one pass: all that any step of the run may ask for."""
    return [*plan.singles, *plan.candidates]


def row_limit(study: Study, custodians: int) -> int:
    """The most rows a synthetic table of this study may have; what a peer sends above it is refused."""
    return study.settings.synthetic_rows or 2 * custodians * study.privacy.max_rows


def synthesize(oracle: MarginalOracle, plan: AimPlan, observe: Observe, most_rows: int, events: Sequence[Event]) -> Release:
    """Run the plan on an oracle and sample the table.

    events: the list that this party's accountant appends to.
    """
    import numpy as np

    from runner.release import Release
    from synth.aim import run

    synthesis = run(oracle, plan, observe)
    rows = min(synthesis.rows, most_rows)
    # sampling from the released model is post-processing: its seed is no secret and costs nothing
    codes = synthesis.model.sample(rows, np.random.default_rng(secrets.randbits(128)))
    observe("sample", "sampled", rows=rows)
    return Release(codes, synthesis.model.to_bytes(), synthesis.measurements, synthesis.selected, synthesis.noisy_total,
                   secrets.randbits(64), tuple(events))
