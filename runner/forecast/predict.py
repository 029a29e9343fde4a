"""Rounds, bytes, memory, time and privacy of a run, predicted by a dry run of it (the backend's cost model).

Exact given the public sizes: which messages each step takes. Guessed: the number of rows (`presumed_rows`),
and how uneven the data is (`presumed_tables`).
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_protocols.backends.bundles.bundle import part_bytes
from mpc_protocols.functionality import Reports
from mpc_protocols.in_memory.presumed import AllowAll, DryRun, PresumedRun
from mpc_protocols.process.later import Later
from mpc_protocols.vertical.owners import REPORT_PROTOCOLS, ReportCost
from mpc_protocols.vertical.partition import OwnRows
from parties.data.counting.counters import unjoined_bytes
from runner.contributors.collection import contributors_of, layout_of
from runner.forecast.alignment import Joining, joined_facts, joining
from runner.forecast.arrivals import DryRounds, arrives
from runner.forecast.cohorts import forecast_cohorts
from runner.forecast.presumed.presumed_rows import presumed_rows
from runner.forecast.result import (
    COUNTERS_BYTES,
    COUNTERS_ROUNDS,
    FIT_MODELS,
    IDENTIFIER_BYTES,
    NETWORKS,
    PROCESS_MB,
    ROW_BYTES,
    Forecast,
    forecast_of,
)
from runner.forecast.shared_course import Conclusion, Key, SharedCourse
from runner.forecast.training import forecast_trained
from runner.party.alignment import check_tables
from runner.party.course import agreed_table
from runner.party.synthesis import counted, exchange_of, facts_of, plan_of, row_limit, sample, synthesize
from runner.study import Study, VerticalStudy
from runner.study.cohorts import cohorts_of
from runner.study.method import algorithm_of
from runner.study.trained import trained, training_of
from synth.mrf.model import SWEEPS
from synth.plan import RoundPlan

if TYPE_CHECKING:
    from mpc_protocols.functionality import Event
    from runner.forecast import split_training
    from runner.forecast.presumed import presumed_tables
    from runner.results.release import Release
    from synth.plan import Plan
else:
    presumed_tables = Later("runner.forecast.presumed.presumed_tables")
    split_training = Later("runner.forecast.split_training")

REPORTED_ROWS, DRAWN_ROWS = 1000, 1024
"""Most rows of the tables that are really made."""
CELL_BYTES = 64
CLOSING_BYTES, LISTED_BYTES, CLOSING_ROUNDS = 96, 32, 3
"""Of a study with bundles: a hash, the list, a signature of the result to each other computing party."""


def forecast(
    study: Study,
    rows: int | None = None,
    networks: Mapping[str, tuple[float, float]] = NETWORKS,
    tell: Callable[[float], None] = lambda _: None,
    shared: SharedCourse | None = None,
    delay_us: int = 0,
) -> Forecast:
    """Carry out the study in a dry run. networks: as `NETWORKS`. tell: is told the share of the budget spent
    so far. shared: what the dry run of the same study with another backend was asked. delay_us: how far apart
    the computing parties are, one way.

    Raises `StudyInvalid`.
    """
    if (trainer := trained(study)) is not None and isinstance(study, VerticalStudy):
        return forecast_trained(trainer, study, rows, networks)
    if isinstance(study, VerticalStudy) and training_of(study) is not None:
        return split_training.forecast_training(study, rows, networks, delay_us)
    if (cohorts := cohorts_of(study)) is not None:
        return forecast_cohorts(cohorts, study, rows, networks)
    plan, algorithm = plan_of(study), algorithm_of(study)
    custodians = [party for party in study.parties if party.data is not None] or list(study.parties)
    assumed, source = presumed_rows(study, rows)
    joined = joining(study, assumed) if isinstance(study, VerticalStudy) else None
    tables = len(custodians)
    if study.contributors is not None:
        tables = sum(party.data is not None for party in study.parties) + len(study.contributors.keys)
    limit = min(assumed, tables * study.privacy.max_rows)
    if joined is not None and isinstance(study, VerticalStudy):
        check_tables(study, plan, joined.owned)
        plan = plan.knowing(joined.owned.columns)
        custodians = [party for party in study.parties if party.name in joined.owned.owners]
        tables, assumed, limit = len(custodians), joined.records, joined.population
    backend = study.descriptor

    facts = facts_of(study, tables, bytes(32))  # the same study is told the same each time

    def dry_run(share: float = 1.0) -> DryRun:
        return backend.dry_run(
            PresumedRun(
                facts,
                presumed_tables.PresumedTable(study.domain.sizes, max(1, round(share * limit))).counts,
                len(study.computing),
                len(study.contributing),
                joined.split if joined is not None else None,
                delay_us,
            )
        )

    oracle: DryRun | DryRounds = DryRounds(study, dry_run) if arrives(study) else dry_run()
    seen = _Seen(oracle, plan, len(study.parties), tell)
    key, known = Key.of(facts, plan, (limit, row_limit(study, tables))), None
    if shared is not None and isinstance(oracle, DryRun) and shared.knows(key):
        known = shared.played(oracle, seen.observe)
        if known is None:  # it answers otherwise, and has been asked in part
            oracle = dry_run()
            seen = _Seen(oracle, plan, len(study.parties), tell)
    began, counted = time.process_time(), oracle.counting_s
    events: list[Event] = []
    reported = ReportCost({}, 0)
    reporting = algorithm.reporting(study.config)
    records = shared is not None and shared.is_empty and study.contributors is None
    records &= known is None and reporting is None and not arrives(study)
    if known is not None:
        synthesis = known.synthesis
    elif reporting is not None:
        assert joined is not None  # only owners of columns report
        reporter = reporting.reporter(plan)
        protocol = REPORT_PROTOCOLS[reporting.protocol]
        reported = protocol.cost(reporter, joined.split, study.leader_number)
        synthesis = replace(
            synthesize(study, plan, _presumed_reports(study, plan, joined), seen.observe), rows=assumed
        )
        events = list(reporter.events)
    elif isinstance(oracle, DryRounds):
        synthesis = synthesize(study, plan, oracle.oracles(), seen.observe)
    elif records and shared is not None:
        asked, observe = shared.recorded(oracle, seen.observe)
        synthesis = synthesize(study, plan, asked, observe)
    else:
        synthesis = synthesize(study, plan, oracle, seen.observe)
    oracle.close()
    rows_out = min(synthesis.rows, row_limit(study, tables))
    chosen = time.process_time()
    if known is None:
        # Rearranging keeps each column's values, and codes are packed column by column: one sweep stands for all.
        release = sample(synthesis, plan, seen.observe, min(rows_out, DRAWN_ROWS), events, sweeps=1)
        choosing_s = chosen - began - (oracle.counting_s - counted)
        known = Conclusion(synthesis, release, choosing_s, SWEEPS * (time.process_time() - chosen))
        if records and shared is not None:
            shared.keep(key, known)
    # A table's codes take as many bytes as it has rows; of larger ones a smaller part is rearranged.
    part = max(1.0, rows_out / DRAWN_ROWS)
    drawing = known.drawing_s * part**0.5
    rounds, sent = (
        (oracle.rounds, list(oracle.sent)) if not reported.rounds else (0, [0] * len(study.parties))
    )
    rounds, sent = rounds + seen.rest[-1], [own + more for own, more in zip(sent, seen.rest, strict=False)]
    secure = oracle.seconds * (whole := 1 + seen.rest[-1] / max(1, oracle.rounds))
    work = known.choosing_s * whole + drawing + secure
    if not backend.ideal:
        rounds, sent = _handed_out(study, known.release, part, reported, rounds, sent)
        if joined is not None:
            sent = [own + joined.cost.sent.get(number, 0) for number, own in enumerate(sent)]
            rounds += joined.cost.rounds
            work += max(joined.cost.seconds.values(), default=0.0)
    return forecast_of(
        study,
        plan,
        (assumed, source),
        networks,
        rounds=rounds,
        sent=sent,
        work_s=work,
        cpu_s=secure,
        memory_mb=_memory_mb(study, plan, oracle, joined, assumed),
        questions={
            "candidates": len(plan.candidates),
            "offered": seen.offered_range if isinstance(plan, RoundPlan) else None,
            "asked": algorithm.asks(plan),
            "expected": algorithm.expects(plan, assumed) if joined is not None else None,
            "falls_back": seen.falls_back,
            "shared_cells": oracle.shared_cells,
        },
        bounds=_range(
            study, plan.batches, oracle.marks, (rounds, sum(sent)), (seen.rest[-1], sum(seen.rest[:-1]))
        ),
        oversized=plan.oversized,
        inputs=_input_checks(study, oracle.input_checks),
        soundness=_soundness(
            study, ceil(oracle.proofs * whole) + (0 if joined is None else joined.cost.proofs)
        ),
        bundle=None if study.contributors is None else _bundle(study, plan),
        joining=joined_facts(study, plan, joined)
        if joined is not None and isinstance(study, VerticalStudy)
        else None,
    )


class _Seen:
    """What a dry run tells on its way. offered: how many candidates each selection had. rest: what each party
    sends, and rounds, in batches that are foreseen and were not made."""

    def __init__(
        self, oracle: DryRun | DryRounds, plan: Plan, parties: int, tell: Callable[[float], None]
    ) -> None:
        """tell: is told the share of the budget spent so far."""
        self._oracle, self._rho_cap, self._tell = oracle, float(plan.budget.rho_cap), tell
        self._after_batch: list[list[int]] = []  # what each party has sent, and rounds
        self.rest = [0] * (parties + 1)
        self.offered: list[int] = []
        self.falls_back = False

    @property
    def offered_range(self) -> list[int] | None:
        """Fewest and most candidates of a selection."""
        return [min(self.offered), max(self.offered)] if self.offered else None

    def observe(self, phase: str, event: str, **fields: object) -> None:
        """See `functionality.Observe`."""
        if isinstance(spent := fields.get("rho_spent"), float):
            self._tell(spent / self._rho_cap)
        self.falls_back |= event == "fallback"
        if event == "selected" and isinstance(count := fields["candidates"], int):
            self.offered.append(count)
        if event == "measured" and [*self._oracle.sent, self._oracle.rounds] not in self._after_batch[-1:]:
            self._after_batch.append([*self._oracle.sent, self._oracle.rounds])
        if event == "foreseen":
            batches, like = int(str(fields["batches"])), int(str(fields["like"]))
            steps = zip(self._after_batch[-1], self._after_batch[-1 - like], strict=True)
            self.rest = [batches * (now - then) // like for now, then in steps]


def _handed_out(
    study: Study, release: Release, part: float, reported: ReportCost, rounds: int, sent: list[int]
) -> tuple[int, list[int]]:
    """Rounds, and bytes of each party, with what follows the release: it is handed out, its table is agreed
    on, a collection is closed. part: of how many times as many rows the table is. reported: what owners'
    reports cost."""
    codes = release.code_bytes(study.domain)
    handed = len(release.to_bytes(study.domain)) + round((part - 1) * codes)
    sent = [own + COUNTERS_BYTES for own in sent]
    sent[study.leader_number] += (len(sent) - 1) * (handed + COUNTERS_BYTES)
    rounds += COUNTERS_ROUNDS + reported.rounds
    if study.descriptor.malicious:
        rounds += agreed_table.ROUNDS
        agreed = agreed_table.sent(handed - codes, study)
        sent = [each + more for each, more in zip(sent, agreed, strict=True)]
    sent = [own + reported.sent.get(number, 0) for number, own in enumerate(sent)]
    if study.contributors is not None:
        rounds += CLOSING_ROUNDS
        own = CLOSING_BYTES + LISTED_BYTES * len(study.contributors.keys)
        sent = [each + (len(sent) - 1) * own for each in sent]
    return rounds, sent


def _memory_mb(
    study: Study, plan: Plan, oracle: DryRun | DryRounds, joined: Joining | None, rows: int
) -> float:
    """Of the party that takes most. rows: of the presumed table."""
    held, to_join, identifiers = len(study.domain), 0, 0
    if joined is not None:
        held = max(len(joined.owned.of(name)) for name in joined.owned.owners)
        to_join = joined.cost.beside_bytes
        identifiers = 0 if study.descriptor.ideal else IDENTIFIER_BYTES * rows
    beside = max(oracle.beside_bytes, to_join)
    cells = CELL_BYTES * oracle.shared_cells + ROW_BYTES * held * rows
    if joined is None:
        cells += unjoined_bytes(map(study.domain.cells, counted(plan)))
    return PROCESS_MB + (beside + cells + identifiers) / 2**20 + FIT_MODELS * study.config.model_mb


def _soundness(study: Study, proofs: int) -> dict[str, Any] | None:
    """What run.json says of it, with the number foreseen."""
    if not proofs:
        return None
    return {"proofs": proofs, "lg_chance": round(study.descriptor.lg_chance(proofs), 2)}


def _input_checks(study: Study, cost: tuple[int, int]) -> dict[str, Any] | None:
    if study.descriptor.ideal or not (study.to_check or study.contributors):
        return None
    if study.descriptor.malicious and isinstance(study, VerticalStudy):
        return {"columns": True}
    if study.inputs_unchecked:
        return {"unchecked": study.inputs_unchecked}
    return {
        "checked": [party.name for party in study.to_check],
        "bad_input": study.session.bad_input,
        "rounds": cost[0],
        "bytes_sent": cost[1],
    }


def _presumed_reports(study: Study, plan: Plan, joined: Joining) -> Reports:
    """Reports of owners of a small table of nobody's rows: what is made of them hardly depends on the number
    of rows."""
    rows, sizes = min(REPORTED_ROWS, joined.split.rows), study.domain.sizes
    split = replace(joined.split, rows=rows)
    tables = {
        owner: OwnRows(
            np.arange(rows, dtype=np.int64),
            {column: (np.arange(rows) % sizes[column]).astype(np.uint32) for column in split.of(owner)},
        )
        for owner in split.owners
    }
    facts = facts_of(study, len(split.owners), os.urandom(32))
    exchange = exchange_of(study, plan)
    assert exchange is not None
    return exchange.clear(facts, split, tables, AllowAll())


def _bundle(study: Study, plan: Plan) -> dict[str, Any]:
    """What each contributor leaves, and when a run can be. Public."""
    own, layout = contributors_of(study), layout_of(study, plan)
    return {
        "contributors": len(own.keys),
        "min": own.minimum,
        "close": own.public()["close"],
        "earlier": len(own.earlier),
        "after": [{"took_part": len(wave.names), "rows": round(wave.wave.total)} for wave in own.after],
        "marginals": len(layout.cliques),
        "cells": layout.cells,
        "bytes": sum(part_bytes(layout.cells).values()),
    }


def _range(
    study: Study,
    rounds: tuple[int, int],
    marks: Sequence[tuple[int, int]],
    found: tuple[int, int],
    foreseen: tuple[int, int],
) -> dict[str, list[int]]:
    """Fewest and most, if the data decides how many steps select; else what one dry run found: rounds, bytes.
    foreseen: part of that, by steps which were not made."""
    if not algorithm_of(study).adaptive(study.config) or len(marks) < 3:
        return {"rounds": [found[0]] * 2, "bytes_sent": [found[1]] * 2}
    steps = [(later[0] - earlier[0], later[1] - earlier[1]) for earlier, later in itertools.pairwise(marks)]
    base = [found[i] - foreseen[i] - sum(step[i] for step in steps) for i in (0, 1)]
    return {
        name: [
            base[i] + rounds[0] * min(step[i] for step in steps),
            base[i] + rounds[1] * max(step[i] for step in steps),
        ]
        for i, name in enumerate(("rounds", "bytes_sent"))
    }
