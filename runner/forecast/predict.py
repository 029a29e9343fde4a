"""Rounds, bytes, memory, time and privacy of a run, predicted by a dry run of it (the backend's cost model).

Exact given the public sizes: which messages each step takes. Guessed: the number of rows, and how uneven the data is
(`presumed_tables`). The number of rows is private; the forecast takes --rows, else the study's synthetic_rows, else a rounded
count of the tables that lie on this machine (told to whoever runs `plan` there, and to nobody else), else max_rows. Times
assume three networks.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_protocols.backend import AllowAll
from mpc_protocols.partition import OwnRows
from mpc_protocols.reports.cost import ReportCost, cost
from runner.forecast.alignment import Joining, joining
from runner.forecast.cohorts import Cohorts
from runner.forecast.training import MEMORY_MB, Training
from runner.party.record.run_json import alignment_facts
from runner.party.synthesis import exchange_of, facts_of, plan_of, row_limit, sample, synthesize
from runner.study import Study, VerticalStudy
from runner.study.claim import claim_of
from runner.study.cohorts import cohorts_of
from runner.study.trained import trained, training_of
from synth.algorithm import ALGORITHMS

if TYPE_CHECKING:
    from mpc_protocols.functionality import Event, Reports
    from synth.algorithm import CohortRounds, TrainedAlgorithm
    from synth.plan import Plan

LOOPBACK = "this machine"
NETWORKS = {LOOPBACK: (0.0004, 4e8), "LAN": (0.001, 1e8), "WAN": (0.04, 1.2e7)}
"""Seconds of one round, bytes per second."""
START_S = 2.0
REPORTED_ROWS, DRAWN_ROWS = 1000, 4096
"""Most rows of the tables that are really made."""
PROCESS_MB, CELL_BYTES, ROW_BYTES, IDENTIFIER_BYTES = 190, 64, 40, 250
COUNTERS_BYTES, COUNTERS_ROUNDS = 1200, 5
"""At the start all parties assemble; at the end the leader hands out the release and everybody's counters."""

CLOSING_BYTES, LISTED_BYTES, CLOSING_ROUNDS = 96, 32, 3
"""Of a study with bundles: a hash, the list, a signature of the result to each other computing party."""


@dataclass(frozen=True)
class PartyForecast:
    """Traffic of one party."""

    name: str
    role: str
    bytes_sent: int


@dataclass(frozen=True)
class Forecast:
    """What `plan` tells. bytes_sent: payload of all parties together. range: fewest and most, where the data decides.

    cpu_s: of a computing party for the secure part, by the backend's cost model. inputs: whose counts are checked on shares, what
    becomes of a bad one, rounds and bytes of it; None if there is nobody else than computing parties, else why nothing is.

    questions: rounds (fewest, most), candidates of the plan, of how many of them a round chooses one (offered: fewest, most, for
    these rows; None where the algorithm has no rounds), whether for these rows single columns would get the whole budget
    (`synth.fallback`; then with a few more rows there is more to send), shared cells, the standard deviation of the noise.
    """

    study: str
    algorithm: str
    backend: str
    rows: int
    rows_from: str
    privacy: dict[str, Any]
    questions: dict[str, Any]
    rounds: int
    bytes_sent: int
    range: dict[str, list[int]]
    parties: tuple[PartyForecast, ...]
    memory_mb: int
    time_s: dict[str, float]
    oversized: tuple[tuple[str, ...], ...]
    joining: dict[str, Any] | None = None
    bundle: dict[str, Any] | None = None
    claim: str = ""
    cpu_s: float = 0.0
    inputs: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """JSON-able form."""
        return asdict(self)


def forecast(
    study: Study,
    rows: int | None = None,
    networks: Mapping[str, tuple[float, float]] = NETWORKS,
    tell: Callable[[float], None] = lambda _: None,
) -> Forecast:
    """Carry out the study in a dry run. networks: as `NETWORKS`. tell: is told the share of the budget spent so far.

    Raises `StudyInvalid`.
    """
    from runner.forecast.presumed_tables import PresumedTable
    from synth.plan import RoundPlan

    if (trainer := trained(study)) is not None and isinstance(study, VerticalStudy):
        return _of_training(trainer, study, rows, networks)
    if isinstance(study, VerticalStudy) and training_of(study) is not None:
        from runner.forecast.split_training import forecast_training

        return forecast_training(study, rows, networks)
    if (cohorts := cohorts_of(study)) is not None:
        return _of_cohorts(cohorts, study, rows, networks)
    plan, algorithm = plan_of(study), ALGORITHMS[study.algorithm]
    custodians = [party for party in study.parties if party.data is not None] or list(study.parties)
    assumed, source = presumed_rows(study, rows)
    joined = joining(study, assumed) if isinstance(study, VerticalStudy) else None
    tables = len(custodians)
    if study.contributors is not None:
        tables = sum(party.data is not None for party in study.parties) + len(study.contributors.keys)
    limit = min(assumed, tables * study.privacy.max_rows)
    if joined is not None:
        plan = plan.knowing(joined.owned.columns)
        custodians = [party for party in study.parties if party.name in joined.owned.owners]
        tables, assumed, limit = len(custodians), joined.records, joined.population
    backend = study.descriptor
    oracle = backend.dry_run(
        facts_of(study, tables, os.urandom(32)),
        PresumedTable(study.domain.sizes, limit).counts,
        len(study.computing),
        len(study.contributing),
        joined.split if joined is not None else None,
    )
    fits: list[float] = []
    offered: list[int] = []
    falls_back = False
    began = time.process_time()

    def observe(phase: str, event: str, **fields: object) -> None:
        nonlocal falls_back
        if isinstance(spent := fields.get("rho_spent"), float):
            tell(spent / float(plan.budget.rho_cap))
        falls_back |= event == "fallback"
        seconds = fields.get("seconds")
        if phase == "fit" and isinstance(seconds, float):
            fits.append(seconds)
        if event == "selected" and isinstance(count := fields["candidates"], int):
            offered.append(count)

    events: list[Event] = []
    reported = ReportCost({}, 0)
    if (reporting := algorithm.reporting(study.config)) is not None:
        assert joined is not None  # only owners of columns report
        reporter = reporting.reporter(plan)
        reported = cost(reporter, joined.split, study.leader_number)
        synthesis = replace(
            synthesize(study, plan, _presumed_reports(study, plan, joined), observe), rows=assumed
        )
        events = list(reporter.events)
    else:
        synthesis = synthesize(study, plan, oracle, observe)
    oracle.close()
    rows_out = min(synthesis.rows, row_limit(study, tables))
    chosen = time.process_time()
    release = sample(synthesis, plan, observe, min(rows_out, DRAWN_ROWS), events)
    # A table's codes take as many bytes as it has rows; of larger ones a smaller part is rearranged.
    part = max(1.0, rows_out / DRAWN_ROWS)
    drawing = (time.process_time() - chosen) * part**0.5
    work = chosen - began + drawing + oracle.seconds
    rounds, sent = (
        (oracle.rounds, list(oracle.sent)) if not reported.rounds else (0, [0] * len(study.parties))
    )
    if not backend.ideal:
        handed = len(release.to_bytes(study.domain))
        handed += round((part - 1) * release.code_bytes(study.domain))
        for number in range(len(sent)):
            sent[number] += COUNTERS_BYTES
        sent[study.leader_number] += (len(sent) - 1) * (handed + COUNTERS_BYTES)
        rounds += COUNTERS_ROUNDS + reported.rounds
        sent = [own + reported.sent.get(number, 0) for number, own in enumerate(sent)]
        if study.contributors is not None:
            rounds += CLOSING_ROUNDS
            own = CLOSING_BYTES + LISTED_BYTES * len(study.contributors.keys)
            sent = [each + (len(sent) - 1) * own for each in sent]
    held = (
        len(study.domain)
        if joined is None
        else max(len(joined.owned.of(name)) for name in joined.owned.owners)
    )
    memory = PROCESS_MB + (CELL_BYTES * oracle.shared_cells + ROW_BYTES * held * assumed) / 2**20
    if joined is not None and not backend.ideal:
        sent = [own + joined.cost.sent.get(number, 0) for number, own in enumerate(sent)]
        rounds += joined.cost.rounds
        work += max(joined.cost.seconds.values(), default=0.0)
        memory += IDENTIFIER_BYTES * assumed / 2**20
    total = sum(sent)
    return Forecast(
        study.name,
        study.algorithm,
        study.backend,
        assumed,
        source,
        privacy={
            "epsilon": float(study.privacy.epsilon),
            "delta": float(study.privacy.delta),
            "rho": float(plan.budget.rho_cap),
            "adjacency": study.privacy.adjacency,
            "unit": study.privacy.unit.words,
        },
        questions={
            "rounds": list(plan.rounds),
            "candidates": len(plan.candidates),
            "offered": [min(offered), max(offered)] if offered and isinstance(plan, RoundPlan) else None,
            "asked": algorithm.asks(plan),
            "expected": algorithm.expects(plan, assumed) if joined is not None else None,
            "label": plan.workload.label,
            "falls_back": falls_back,
            "shared_cells": oracle.shared_cells,
            "noise_sd": float(plan.sigma2) ** 0.5,
        },
        rounds=rounds,
        bytes_sent=total,
        range={} if backend.ideal else _range(study, plan.batches, oracle.marks, rounds, total),
        parties=tuple(
            PartyForecast(party.name, "compute" if party.compute else "contribute", sent[number])
            for number, party in enumerate(study.numbered)
        ),
        memory_mb=round(memory + 8 * study.config.model_mb),
        time_s={
            name: round(START_S + work + rounds * latency + total / bandwidth, 1)
            for name, (latency, bandwidth) in networks.items()
            if not backend.ideal or name == LOOPBACK
        },
        oversized=plan.oversized,
        claim=claim_of(study),
        cpu_s=round(oracle.seconds, 6),
        inputs=_input_checks(study, oracle.input_checks),
        bundle=None if study.contributors is None else _bundle(study, plan),
        joining=joined_facts(study, plan, joined)
        if joined is not None and isinstance(study, VerticalStudy)
        else None,
    )


def _input_checks(study: Study, cost: tuple[int, int]) -> dict[str, Any] | None:
    if study.descriptor.ideal or not (study.contributing or study.contributors):
        return None
    if study.inputs_unchecked:
        return {"unchecked": study.inputs_unchecked}
    return {
        "checked": [party.name for party in study.contributing],
        "bad_input": study.session.bad_input,
        "rounds": cost[0],
        "bytes_sent": cost[1],
    }


def _presumed_reports(study: Study, plan: Plan, joined: Joining) -> Reports:
    """Reports of owners of a small table of nobody's rows: what is made of them hardly depends on the number of rows."""
    import numpy as np

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


def _of_training(
    algorithm: TrainedAlgorithm[Any, Any],
    study: VerticalStudy,
    rows: int | None,
    networks: Mapping[str, tuple[float, float]],
) -> Forecast:
    """Of a study whose owners train: nothing is joined, and no marginal asked for."""
    assumed, source = presumed_rows(study, rows)
    work, ideal = Training(algorithm, plan_of(study), study, assumed), study.descriptor.ideal
    plan, sent = work.plan, list(work.sent)
    for number in range(len(sent)):
        sent[number] += COUNTERS_BYTES
    sent[study.leader_number] += (len(sent) - 1) * (work.rows * len(study.domain) + COUNTERS_BYTES)
    sent = [0] * len(sent) if ideal else sent
    rounds, total = (0 if ideal else work.rounds + COUNTERS_ROUNDS), sum(sent)
    return Forecast(
        study.name,
        study.algorithm,
        study.backend,
        assumed,
        source,
        privacy={
            "epsilon": float(study.privacy.epsilon),
            "delta": float(study.privacy.delta),
            "rho": float(plan.budget.rho_cap),
            "adjacency": study.privacy.adjacency,
            "unit": study.privacy.unit.words,
        },
        questions={
            "rounds": list(plan.rounds),
            "candidates": 0,
            "offered": None,
            "asked": algorithm.asks(plan),
            "label": plan.workload.label,
            "expected": None,
            "falls_back": False,
            "shared_cells": 0,
            "noise_sd": float(plan.sigma2) ** 0.5,
        },
        rounds=rounds,
        bytes_sent=total,
        range={} if ideal else {"rounds": [rounds, rounds], "bytes_sent": [total, total]},
        parties=tuple(
            PartyForecast(party.name, "compute" if party.compute else "contribute", sent[number])
            for number, party in enumerate(study.numbered)
        ),
        memory_mb=round(PROCESS_MB + MEMORY_MB + 8 * len(study.domain) * assumed / 2**20),
        time_s={
            name: round(START_S + work.seconds + rounds * latency + total / bandwidth, 1)
            for name, (latency, bandwidth) in networks.items()
            if not ideal or name == LOOPBACK
        },
        oversized=(),
        claim=claim_of(study),
        cpu_s=round(work.seconds, 6),
    )


def _of_cohorts(
    cohorts: CohortRounds[Any],
    study: Study,
    rows: int | None,
    networks: Mapping[str, tuple[float, float]],
) -> Forecast:
    """Of a study whose custodians choose by themselves: they are asked, each about a presumed table of its own."""
    assumed, source = presumed_rows(study, rows)
    work = Cohorts(cohorts, plan_of(study), study, assumed)
    plan, ideal, sent = work.plan, study.descriptor.ideal, list(work.sent)
    if not ideal:
        for number in range(len(sent)):
            sent[number] += COUNTERS_BYTES
        sent[study.leader_number] += (len(sent) - 1) * (work.handed + COUNTERS_BYTES)
    rounds, total = (0 if ideal else work.rounds + COUNTERS_ROUNDS), sum(sent)
    return Forecast(
        study.name,
        study.algorithm,
        study.backend,
        assumed,
        source,
        privacy={
            "epsilon": float(study.privacy.epsilon),
            "delta": float(study.privacy.delta),
            "rho": float(plan.budget.rho_cap),
            "adjacency": study.privacy.adjacency,
            "unit": study.privacy.unit.words,
        },
        questions={
            "rounds": list(plan.rounds),
            "candidates": len(plan.candidates),
            "offered": None,
            "asked": ALGORITHMS[study.algorithm].asks(plan),
            "label": plan.workload.label,
            "expected": None,
            "falls_back": False,
            "shared_cells": 0,
            "noise_sd": float(plan.sigma2) ** 0.5,
        },
        rounds=rounds,
        bytes_sent=total,
        range={} if ideal else {"rounds": [rounds, rounds], "bytes_sent": [total, total]},
        parties=tuple(
            PartyForecast(party.name, "compute" if party.compute else "contribute", sent[number])
            for number, party in enumerate(study.numbered)
        ),
        memory_mb=round(
            PROCESS_MB + ROW_BYTES * len(study.domain) * assumed / 2**20 + 8 * study.config.model_mb
        ),
        time_s={
            name: round(START_S + work.seconds + rounds * latency + total / bandwidth, 1)
            for name, (latency, bandwidth) in networks.items()
            if not ideal or name == LOOPBACK
        },
        oversized=plan.oversized,
        claim=claim_of(study),
        cpu_s=round(work.secure_seconds, 6),
    )


def network(delay_ms: float, rate_mbit: float | None) -> dict[str, tuple[float, float]]:
    """This machine, and one network of a one-way delay and a rate (None: this machine's), as `NETWORKS`."""
    here, fast = NETWORKS[LOOPBACK]
    name = f"{delay_ms:g} ms" + ("" if rate_mbit is None else f", {rate_mbit:g} Mbit/s")
    return {
        LOOPBACK: (here, fast),
        name: (here + delay_ms / 1e3, fast if rate_mbit is None else min(fast, rate_mbit * 1e6 / 8)),
    }


def joined_facts(study: VerticalStudy, plan: Plan, joined: Joining) -> dict[str, Any]:
    """What is assumed and known about joining the owners' records; what it costs, and what it tells the parties."""
    cost = joined.cost
    return {
        **alignment_facts(study, plan, joined.owned),
        "presumed": list(joined.presumed),
        "records": joined.records,
        "common_table": joined.split.rows,
        "population_rows": joined.population,
        "rounds": cost.rounds,
        "bytes_sent": sum(cost.sent.values()),
        "seconds": round(max(cost.seconds.values(), default=0.0), 2),
        "false_merges": cost.false_merges,
    }


def _bundle(study: Study, plan: Plan) -> dict[str, Any]:
    """What each contributor leaves, and when a run can be. Public."""
    from mpc_protocols.bundles.bundle import part_bytes
    from runner.contributors.collection import contributors_of, layout_of

    own, layout = contributors_of(study), layout_of(study, plan)
    return {
        "contributors": len(own.keys),
        "min": own.minimum,
        "close": own.public()["close"],
        "marginals": len(layout.cliques),
        "cells": layout.cells,
        "bytes": sum(part_bytes(layout.cells).values()),
    }


def _range(
    study: Study,
    rounds: tuple[int, int],
    marks: Sequence[tuple[int, int]],
    all_rounds: int,
    all_bytes: int,
) -> dict[str, list[int]]:
    """Fewest and most, if the data decides how many steps select; else what one dry run found."""
    if not ALGORITHMS[study.algorithm].adaptive(study.config) or len(marks) < 3:
        return {"rounds": [all_rounds, all_rounds], "bytes_sent": [all_bytes, all_bytes]}
    steps = [(later[0] - earlier[0], later[1] - earlier[1]) for earlier, later in itertools.pairwise(marks)]
    base = [all_rounds - sum(step[0] for step in steps), all_bytes - sum(step[1] for step in steps)]
    return {
        name: [
            base[i] + rounds[0] * min(step[i] for step in steps),
            base[i] + rounds[1] * max(step[i] for step in steps),
        ]
        for i, name in enumerate(("rounds", "bytes_sent"))
    }


def presumed_rows(study: Study, given: int | None) -> tuple[int, str]:
    """A guess at the number of rows of all custodians together (vertical: of each owner), and where it is from."""
    if given is not None:
        return given, "--rows"
    if study.contributors is not None:
        return study.contributors.expected_rows, "expected_rows in the study"
    if study.config.synthetic_rows is not None:
        return study.config.synthetic_rows, "synthetic_rows in the study"
    tables = [
        party.data.path for party in study.parties if party.data is not None and party.data.path is not None
    ]
    here = [count for path in tables if path.is_file() and (count := _count(path)) is not None]
    if here and sum(here):
        total = sum(here) * (1 if isinstance(study, VerticalStudy) else len(tables)) / len(here)
        step = 10 ** max(0, len(str(int(total))) - 2)
        return max(1, round(total / step) * step), "the tables on this machine, rounded; for your eyes only"
    return study.privacy.max_rows, "max_rows in the study, an upper bound; --rows gives a better guess"


def _count(path: Path) -> int | None:
    """Rows of a table, roughly: lines of a CSV but its header, what a Parquet file says; None if it cannot be read."""
    if path.suffix.lower() == ".parquet":
        import pyarrow
        from pyarrow import parquet

        try:
            return int(parquet.read_metadata(path).num_rows)
        except (OSError, pyarrow.ArrowInvalid):
            return None
    try:
        return max(0, sum(block.count(b"\n") for block in _blocks(path)) - 1)
    except OSError:
        return None


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            yield block
