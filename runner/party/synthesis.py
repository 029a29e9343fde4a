"""From a study to its synthesizer: the plan that every party derives alike, and the run of it on an oracle.

Public and deterministic: check, plan, the leader and every follower call this with the same study and get the same numbers.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from runner.study import ADAPTIVE, Study

if TYPE_CHECKING:
    from mpc_protocols.functionality import Clique, Event, MarginalOracle, Setting
    from runner.results.release import Release
    from synth.plan import Config, Observe, Plan
    from synth.run import Synthesis


def plan_of(study: Study) -> Plan:
    """The plan of the study's algorithm: budget, noise, rounds, candidates. Raises `StudyInvalid`."""
    from synth import aim, mst, mwem

    own, privacy = study.settings, study.privacy

    def fixed(plan: Callable[..., Plan], config: Config) -> Plan:
        return plan(
            study.domain,
            study.workload,
            config,
            epsilon=float(privacy.epsilon),
            delta=float(privacy.delta),
            adjacency=privacy.adjacency,
            unit_rows=privacy.unit.rows,
        )

    if study.algorithm == "mst":
        return fixed(mst.plan, mst.MstConfig(own.max_model_mb, own.synthetic_rows))
    if study.algorithm == "mwem":  # its rounds are a number: the study's reader lets AIM's alone be adaptive
        return fixed(
            mwem.plan, mwem.MwemConfig(cast(int, own.rounds), own.max_model_mb, own.prune, own.synthetic_rows)
        )
    return fixed(
        aim.plan,
        aim.AimConfig(
            None if own.rounds == ADAPTIVE else own.rounds,
            own.max_model_mb,
            own.select_share,
            own.prune,
            own.synthetic_rows,
        ),
    )


def setting_of(study: Study, custodians: int, session: bytes) -> Setting:
    """The mechanisms' public facts, once it is known how many parties have data."""
    from mpc_protocols.functionality import Setting

    privacy = study.privacy
    return Setting(
        study.domain.sizes, privacy.adjacency, privacy.unit.rows, most_rows(study, custodians), session
    )


def most_rows(study: Study, custodians: int) -> int:
    """The most rows that all together can have: every custodian refuses to bring more than max_rows.

    Horizontal tables add up, and so may the people of a union; an intersection has no more rows than any owner.
    """
    alone = study.alignment is not None and study.alignment.population == "intersection"
    return study.privacy.max_rows * (1 if alone else custodians)


def counted(plan: Plan) -> list[Clique]:
    """The cliques a custodian counts in its one pass: all that any step of the run may ask for."""
    return [*plan.singles, *plan.candidates]


def row_limit(study: Study, custodians: int) -> int:
    """The most rows a synthetic table of this study may have; what a peer sends above it is refused."""
    return study.settings.synthetic_rows or 2 * most_rows(study, custodians)


def synthesize(
    oracle: MarginalOracle,
    plan: Plan,
    observe: Observe,
    most_rows: int,
    events: Sequence[Event],
    asked: Callable[[], None] = lambda: None,
) -> Release:
    """Run the plan on an oracle and sample the table.

    events: the list that this party's accountant appends to. asked: called when the oracle has had its last question.
    """
    import numpy as np

    from runner.results.release import Release

    synthesis = _run(oracle, plan, observe)
    asked()
    rows = min(synthesis.rows, most_rows)
    # sampling from the released model is post-processing: its seed is no secret and costs nothing
    codes = synthesis.model.sample(
        rows, np.random.default_rng(secrets.randbits(128)), targets=plan.workload.cliques
    )
    observe("sample", "sampled", rows=rows)
    return Release(
        codes,
        synthesis.model.to_bytes(),
        synthesis.measurements,
        synthesis.selected,
        synthesis.noisy_total,
        secrets.randbits(64),
        tuple(events),
    )


def _run(oracle: MarginalOracle, plan: Plan, observe: Observe) -> Synthesis:
    """The algorithm that made the plan."""
    from synth import aim, mst, mwem

    if isinstance(plan, mst.MstPlan):
        return mst.run(oracle, plan, observe)
    if isinstance(plan, mwem.MwemPlan):
        return mwem.run(oracle, plan, observe)
    if isinstance(plan, aim.AimPlan):
        return aim.run(oracle, plan, observe)
    raise TypeError(f"no synthesizer runs a {type(plan).__name__}")
