"""Checks of what is answered: as by ideal for every table, facts and partition, and with exact costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mpc_protocols.backend import Backend
from mpc_protocols.errors import DataRefused, StudyInvalid
from mpc_protocols.functionality import Level, MarginalOracle, StudyFacts
from mpc_protocols.vertical.partition import OwnRows, Partition, Population, VerticalData, ideal_counts
from runner.review.conformance.checks import expect, refusal
from runner.review.conformance.oracle.questions import compare, compare_costs, everything
from runner.review.conformance.oracle.runs import (
    ROWS,
    SIZES,
    Data,
    Parties,
    data_of,
    facts_of,
    parties_of,
    rows_of,
    run_backend,
    together,
)


def usual(plain: StudyFacts, rows: int) -> StudyFacts:
    return plain


def strict(plain: StudyFacts, rows: int) -> StudyFacts:
    return replace(plain, adjacency="replace", unit_rows=3)


def roomy(plain: StudyFacts, rows: int) -> StudyFacts:
    return replace(plain, row_cap=1_000_000_000)


def tight(plain: StudyFacts, rows: int) -> StudyFacts:
    return replace(plain, row_cap=rows)


def equal(
    backend: Backend,
    parties: Parties,
    of: Callable[[StudyFacts, int], StudyFacts] = usual,
    rows: Sequence[int] = ROWS,
) -> None:
    data = data_of(rows, parties)
    facts = of(facts_of(backend, parties), sum(rows_of(rows, parties)))
    compare(run_backend(backend, everything, data, parties, facts), together(data), facts)


def without_data(backend: Backend) -> None:
    parties = parties_of(backend)[-1]
    data: list[Data] = data_of(ROWS[::-1], parties)
    if parties.contributing:
        data[: parties.computing] = [None] * parties.computing
    facts = facts_of(backend, parties)
    compare(run_backend(backend, everything, data, parties, facts), together(data), facts)


def costs(backend: Backend, parties: Parties, delay_us: int) -> None:
    data, facts = data_of(ROWS, parties), facts_of(backend, parties)
    ran = run_backend(backend, everything, data, parties, facts, delay_us=delay_us)
    compare_costs(backend, parties, facts, ran, together(data), None, delay_us)


def refused(backend: Backend, parties: Parties) -> None:
    data, facts = data_of(ROWS, parties), facts_of(backend, parties)

    def body(oracle: MarginalOracle) -> tuple[list[Any], list[list[int]]]:
        before = [("nobody",), ("a", "a"), ("b in two",)]
        for clique in before:
            with refusal(StudyInvalid, f"the marginal {clique}"):
                oracle.prepare([clique])
        with refusal(StudyInvalid, "a level of another size than its column"):
            oracle.prepare([("a",)], [Level("b in two", "b", (0, 1))])
        expect(oracle.prepare([]) == [], "to prepare nothing must give no handle.")
        return everything(oracle)

    compare(run_backend(backend, body, data, parties, facts), together(data), facts)


def too_many_rows(backend: Backend, parties: Parties) -> None:
    for culprit in range(parties.number):
        rows = [10] * parties.number
        rows[culprit] = 1234
        data, facts = data_of(rows, parties), replace(facts_of(backend, parties), row_cap=1000)
        with refusal(DataRefused, f"1234 rows of party {culprit} where 1000 are allowed") as caught:
            run_backend(backend, lambda oracle: oracle.prepare([("a", "b")]), data, parties, facts)
        expect("1234" not in caught[0].sentence, f"an error must hold no private value: {caught[0].sentence}")


def vertical(backend: Backend, population: Population, delay_us: int = 0) -> None:
    computing = max(2, backend.computing[0])
    parties = Parties(computing, 0)
    columns = {"a": 0, "b": 1, "c": 1, "d": 0, "only": 1}
    missing = {name: size - 1 for name, size in SIZES.items()} if population == "union" else {}
    of = Partition((0, 1), columns, population, missing, 300)
    rng = np.random.default_rng(5)
    owned = {}
    for owner in (0, 1):
        rows = rng.permutation(300)[: 200 + 60 * owner].astype(np.int64)
        codes = {name: rng.integers(0, SIZES[name], len(rows)).astype(np.uint8) for name in of.of(owner)}
        owned[owner] = OwnRows(rows, codes)
    data: list[Data] = [VerticalData(of, owned.get(party)) for party in range(computing)]
    facts, counts = facts_of(backend, parties), ideal_counts(of, owned, SIZES)
    ran = run_backend(backend, everything, data, parties, facts, delay_us=delay_us)
    compare(ran, counts, facts)
    compare_costs(backend, parties, facts, ran, counts, of, delay_us)
