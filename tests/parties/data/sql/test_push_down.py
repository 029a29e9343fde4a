"""Counts of a table where it is are the counts of its rows, in each database that can be run here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from mpc_protocols.errors import DataRefused
from parties.data.counting.coding import Coder
from parties.data.counting.local_marginals import LocalTable, count, validate
from parties.data.harmony.recipe import fit
from parties.data.harmony.rules import Rules
from parties.data.harmony.values import Change
from parties.data.linked.opening import open_source
from parties.data.location import Location
from parties.data.source import Source
from parties.data.survey import Survey
from parties.data.tallies.workers import count_by_workers
from synth.domain import Domain
from tests.parties.data.sql.databases import DATABASES, Store, open_store, pushed
from tests.parties.data.sql.hard_cases import FORMED, HARD, REFUSED, Hard

ROWS = 80


@pytest.fixture(scope="module", params=DATABASES)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Store:
    return open_store(request.param, tmp_path_factory.mktemp(request.param), request)


def domain_of(columns: Mapping[str, Hard]) -> Domain:
    return Domain(tuple(columns), tuple(hard.column for hard in columns.values()))


def placed(store: Store, columns: Mapping[str, Hard], rows: int = ROWS) -> Location:
    """The columns as a table of the store, read by their private rules."""
    location = store.table({name: (hard.kind, hard.rows(rows)) for name, hard in columns.items()})
    rules = Rules("private.toml", columns={name: hard.rule for name, hard in columns.items()}, stated=True)
    return replace(location, recipe=fit(rules, domain_of(columns), ()))


def counted(location: Location, domain: Domain, cliques: list[tuple[str, ...]]) -> LocalTable:
    with open_source(location) as source:
        return count(source, domain, cliques, max_rows=10**6)


def surveyed(location: Location, domain: Domain) -> Survey:
    with open_source(location) as source:
        return validate(source, domain, max_rows=10**6)


def coded(hard: Hard) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The column's counts by the coder alone, without a database."""
    domain = Domain(("x",), (hard.column,))
    step = fit(Rules("private.toml", columns={"x": hard.rule}, stated=True), domain, ()).step("x")
    codes, misfits = Coder(hard.column).code(Change(step)(pa.array(hard.rows(ROWS))))
    assert not misfits
    return np.bincount(codes, minlength=hard.column.size)


def here(store: Store, columns: Mapping[str, Hard]) -> dict[str, Hard]:
    return {name: hard for name, hard in columns.items() if store.name not in hard.without}


def test_hard_cases_are_counted_as_the_stream_counts_them(store: Store) -> None:
    columns = here(store, HARD)
    names = list(columns)
    location, domain = placed(store, columns), domain_of(columns)
    cliques: list[tuple[str, ...]] = [*((name,) for name in names), *pairwise(names)]
    streamed, asked = counted(location, domain, cliques), counted(pushed(location), domain, cliques)
    for clique, one, two in zip(cliques, streamed.counts(cliques), asked.counts(cliques), strict=True):
        assert one.dtype == two.dtype == np.int64
        assert np.array_equal(one, two), (clique, one, two)
    for name in set(columns) - FORMED:
        assert np.array_equal(streamed.counts([(name,)])[0], coded(columns[name])), name
    assert streamed.rows == asked.rows == ROWS
    assert (streamed.clamped, streamed.absent) == (asked.clamped, asked.absent)
    told, also = surveyed(location, domain), surveyed(pushed(location), domain)
    for mine, other in zip(told.columns, also.columns, strict=True):
        assert vars(mine) == vars(other)
    assert (told.problems, told.rows, told.filtered, told.unnamed, told.broken) == (
        also.problems,
        also.rows,
        also.filtered,
        also.unnamed,
        also.broken,
    )


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_stream_refuses_is_refused_with_the_same_words_but_no_place(store: Store, name: str) -> None:
    columns = here(store, {name: REFUSED[name]})
    if not columns:
        pytest.skip("this database has no such value")
    location, domain = placed(store, columns, len(REFUSED[name].values)), domain_of(columns)
    sentences = []
    for place in (location, pushed(location)):
        with pytest.raises(DataRefused) as refused:
            counted(place, domain, [(name,)])
        sentences.append(refused.value.sentence)
    streamed, asked = sentences
    head, _, rest = streamed.partition(", row ")
    assert asked == head + rest[rest.index(":") :]
    assert surveyed(pushed(location), domain).problems == (asked,)


def test_rows_stay_where_they_are(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = here(store, {"age": HARD["age"], "level": HARD["level"]})
    location, domain = pushed(placed(store, columns)), domain_of(columns)
    with open_source(location) as source, pytest.raises(DataRefused, match="may not leave the database"):
        next(source.batches(["age"]))
    monkeypatch.setattr(Source, "batches", None)
    assert counted(location, domain, [("age", "level")]).rows == ROWS
    with open_source(location) as source:
        assert count_by_workers(source, domain, [("age",)], max_rows=ROWS, workers=2, min_rows=0).rows == ROWS
