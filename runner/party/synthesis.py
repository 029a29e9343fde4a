"""From a study to its synthesizer: the plan that every party derives alike, and what is made of the run's
result.

Public and deterministic: check, plan, the leader and every follower call this with the same study and get the
same numbers.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import InputRule, Reports, StudyFacts
from mpc_protocols.vertical.owners import REPORT_PROTOCOLS, Exchange
from runner.results.release import Release
from runner.study import VerticalStudy
from runner.study.cohorts import cohorts_of
from runner.study.method import algorithm_of
from runner.study.sections.waves import together
from synth.algorithm import ALGORITHMS, WhileArriving
from synth.budget.reserved import Reserved
from synth.mrf import Measurement
from synth.mrf.model import SWEEPS, Model
from synth.mrf.raking import rake

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Clique, Event, MarginalOracle, Observe
    from runner.study import Study
    from runner.study.sections.registered import Registered
    from synth.plan import Plan
    from synth.synthesis import Synthesis


def plan_of(study: Study) -> Plan:
    """The plan of the study's algorithm: budget, noise, rounds, candidates. Raises `StudyInvalid`."""
    privacy = study.privacy
    asked = study.inference
    reserved = (
        {"reserved": Reserved(asked.cliques, asked.share)} if asked is not None and asked.cliques else {}
    )
    plan: Plan = algorithm_of(study).plan(
        study.domain,
        study.workload,
        study.config,
        epsilon=float(privacy.epsilon),
        delta=float(privacy.delta),
        adjacency=privacy.adjacency,
        unit_rows=privacy.unit.rows,
        **reserved,
    )
    if study.prior is not None:
        plan = replace(plan, prior=study.prior.content)
    if (rounds := cohorts_of(study)) is not None:
        plan = rounds.fitted(plan, len(study.parties), privacy.max_rows)
    return plan if study.contributors is None else _offered(plan, study.contributors.expected_rows)


def _offered(plan: Plan, rows: int) -> Plan:
    """The plan of a study with bundles: these are made before a noisy total is known, so what may be offered
    is decided by the rows that the study expects; a marginal outside is never a candidate
    (`docs/design/federated.md` 3)."""
    likely = set(plan.likely(rows))
    if plan.candidates and not likely:
        raise StudyInvalid(
            f"[contributors] expected_rows = {rows:,} is too few for any marginal to be worth its noise; expect more rows, or a "
            "larger epsilon."
        )
    return replace(
        plan, candidates={clique: cells for clique, cells in plan.candidates.items() if clique in likely}
    )


def facts_of(study: Study, custodians: int, session: bytes, plan: Plan | None = None) -> StudyFacts:
    """The mechanisms' public facts, once it is known how many parties have data.

    plan: of a run, in which nobody may ask custodians for what they have not counted; owners of columns keep
    their rows.
    """
    privacy = study.privacy
    rule = InputRule(privacy.max_rows, study.session.bad_input == "exclude") if study.checks_inputs else None
    if study.descriptor.malicious:  # a party that says it has no data may share some
        custodians = len(study.parties)
    return StudyFacts(
        study.domain.sizes,
        privacy.adjacency,
        privacy.unit.rows,
        most_rows(study, custodians),
        session,
        inputs=rule,
        counted=None
        if plan is None or isinstance(study, VerticalStudy)
        else frozenset(map(frozenset, counted(plan))),
    )


def most_rows(study: Study, custodians: int) -> int:
    """The most rows that all together can have: every custodian refuses to bring more than max_rows.

    Horizontal tables add up, and so may the people of a union; an intersection has no more rows than any
    owner.
    """
    alone = isinstance(study, VerticalStudy) and study.alignment.population == "intersection"
    return study.privacy.max_rows * (1 if alone else custodians)


def counted(plan: Plan) -> list[Clique]:
    """The cliques a custodian counts in its one pass: all that any step of the run may ask for."""
    return list(dict.fromkeys([*plan.one_way, *plan.candidates, *plan.reserved.cliques]))


def row_limit(study: Study, custodians: int) -> int:
    """The most rows a synthetic table of this study may have; what a peer sends above it is refused."""
    if study.config.synthetic_rows:
        return study.config.synthetic_rows
    most = 2 * most_rows(study, custodians)
    if study.contributors is not None and study.contributors.after:
        most += 2 * max(0, round(together(study.contributors.after).total))
    return most


def exchange_of(study: Study, plan: Plan) -> Exchange | None:
    """How the owners report, in a study whose algorithm asks no oracle; None for any other."""
    reporting = ALGORITHMS[study.algorithm].reporting(study.config)
    if reporting is None:
        return None
    return REPORT_PROTOCOLS[reporting.protocol].exchange(reporting.reporter(plan))


def synthesize(
    study: Study, plan: Plan, answers: MarginalOracle | Reports | Iterator[MarginalOracle], observe: Observe
) -> Synthesis:
    """Run the study's algorithm on an oracle, on those of rounds of arrivals, or on owners' reports. Raises
    what these raise."""
    algorithm = algorithm_of(study)
    synthesis: Synthesis
    if isinstance(answers, Reports):
        reporting = algorithm.reporting(study.config)
        assert reporting is not None  # somebody has reported
        synthesis = reporting.conclude(answers, plan, observe)
    elif isinstance(algorithm, WhileArriving):
        assert isinstance(answers, Iterator)
        synthesis = algorithm.run_on(answers, plan, observe)
    else:
        assert not isinstance(answers, Iterator)
        synthesis = algorithm.run(answers, plan, observe)
    if study.contributors is not None and study.contributors.registered is not None:
        synthesis = _raked(synthesis, study.contributors.registered, plan, observe)
    return synthesis


def _raked(synthesis: Synthesis, registered: Registered, plan: Plan, observe: Observe) -> Synthesis:
    """The model brought to the single columns of everybody who is enrolled; about as many rows as these have."""
    columns = [
        Measurement((name,), np.array(values, dtype=np.float64), float(sigma2))
        for name, (values, sigma2) in registered.columns.items()
    ]
    observe("fit", "raked", rows=registered.rows)
    rows = plan.config.synthetic_rows or registered.rows
    return replace(synthesis, model=rake(synthesis.model, columns, plan.domain.impossible), rows=rows)


def sample(
    synthesis: Synthesis,
    plan: Plan,
    observe: Observe,
    most_rows: int,
    events: Sequence[Event],
    sweeps: int = SWEEPS,
) -> Release:
    """What is released: the model and what was measured, and a table of at most `most_rows` rows sampled from
    the model.

    Sampling from the released model is post-processing: its seed is no secret and costs nothing. events: what
    was charged. sweeps: as of `Model.sample`.
    """
    rows, unsampled = min(synthesis.rows, most_rows), draft(synthesis, plan, events)
    codes: NDArray[np.int64] = (
        Model.from_bytes(unsampled.model).sample(  # its verdict and its report go on from what that computes
            rows, np.random.default_rng(secrets.randbits(128)), targets=plan.workload.cliques, sweeps=sweeps
        )
        if synthesis.table is None
        else synthesis.table[:rows]
    )
    observe("sample", "sampled", rows=rows)
    return replace(unsampled, codes=codes, decode_seed=secrets.randbits(64))


def draft(synthesis: Synthesis, plan: Plan, events: Sequence[Event]) -> Release:
    """What is released, without rows and without a seed for their decoding."""
    return Release(
        np.empty((0, len(plan.domain.names)), np.int64),
        synthesis.model.to_bytes(),
        synthesis.measurements,
        synthesis.selections,
        synthesis.noisy_total,
        0,
        tuple(events),
        synthesis.noise_share,
        synthesis.levels,
        prior=synthesis.prior,
    )
