"""Every release of every algorithm on every backend is on all books, alike, within the study's budget, before
it is known.

The books: the leader's record in run.json, each computing party's journal, each custodian's ledger. That a
guard is asked before anything is opened, and that nothing is if it refuses, is proved for each backend by
`runner/review/conformance/oracle`; here, that what the guards allow has reached the disk of all computing
parties when the first of them learns an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from mpc_protocols.backend import BACKENDS, ClearBackend
from mpc_protocols.functionality import Event
from mpc_protocols.public.begun import BegunSelect
from mpc_protocols.public.cohorts.public import CohortState
from mpc_protocols.public.state import PublicState
from parties.budget.journal import read
from parties.budget.ledger import Ledger
from parties.budget.spending import SIZE
from runner.party.synthesis import plan_of
from runner.results.outdir import JOURNALS
from runner.study import load
from synth.algorithm import ALGORITHMS
from synth.budget.accounting import rho_of
from tests.runner import in_memory, small, split

HORIZONTAL = [backend.name for backend in BACKENDS if "horizontal" in backend.partitions]
LEARN = ("learn_selection", "learn_counts", "learn_distances", "learn_total")


class Books:
    """Looks at the books on disk whenever a party learns an answer. looked: how often."""

    def __init__(
        self, out: Path, computing: list[str], custodians: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._out, self._computing, self._custodians = out, computing, custodians
        self._released: dict[PublicState | CohortState, int] = {}
        self.looked = 0
        monkeypatch.setattr(CohortState, "_begin", self._counted(CohortState._begin))
        monkeypatch.setattr(CohortState, "opened", self._watched_cohorts(CohortState.opened))
        for name in LEARN:
            monkeypatch.setattr(PublicState, name, self._watched(getattr(PublicState, name)))

    def _watched(
        self, learn: Callable[[PublicState, Any, Any], None]
    ) -> Callable[[PublicState, Any, Any], None]:
        def learn_and_look(state: PublicState, begun: Any, answer: Any) -> None:
            events = len(begun.plan.events) if isinstance(begun, BegunSelect) else 1
            self._released[state] = self._released.get(state, 0) + events
            self._look(self._released[state])
            learn(state, begun, answer)

        return learn_and_look

    def _counted(self, begin: Callable[..., None]) -> Callable[..., None]:
        def begin_and_count(state: CohortState, *arguments: Any) -> None:
            begin(state, *arguments)
            self._released[state] = self._released.get(state, 0) + 1

        return begin_and_count

    def _watched_cohorts(self, opened: Callable[[CohortState, Any], None]) -> Callable[..., None]:
        def look_and_open(state: CohortState, values: Any) -> None:
            self._look(self._released[state])
            opened(state, values)

        return look_and_open

    def _look(self, released: int) -> None:
        for name in self._computing:
            assert len(read(journal_of(self._out / name)).releases) >= released, name
        entries = Ledger().entries()
        written = [entry for entry in entries if len(entry.events) >= released]
        assert len(written) >= self._custodians, f"{len(written)} ledgers hold release {released}"
        self.looked += 1


def journal_of(folder: Path) -> Path:
    [journal] = folder.glob(JOURNALS)
    return journal


def added(numbers: Iterable[Fraction]) -> Fraction:
    return sum(numbers, Fraction(0))


def whole(event: Event) -> tuple[str, Fraction, Fraction, dict[str, object]]:
    return event.what, event.rho, event.beta, dict(event.detail)


@pytest.mark.parametrize(
    ("algorithm", "backend"),
    [
        (algorithm.name, backend)
        for backend in HORIZONTAL
        for algorithm in ALGORITHMS
        if "horizontal" in algorithm.partitions
        and (BACKENDS[backend].cohorts or algorithm.cohorts(algorithm.config()) is None)
    ],
)
def test_every_release_is_on_all_books_before_it_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: str, backend: str
) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    clear, keys = isinstance(BACKENDS[backend], ClearBackend), ALGORITHMS[algorithm].config.options()
    table, rounds = "[aim]\nrounds = 3", "rounds = 4" if "rounds" in keys else ""
    if "group" in keys:  # one cohort of all, so that everybody is charged the same
        rounds = "rounds = 1\ngroup = 1"
    trial = small.write(
        tmp_path / "study",
        parties=3 if clear else max(BACKENDS[backend].computing[0], 2) + 1,
        changes=[
            ('algorithm = "aim"', f'algorithm = "{algorithm}"'),
            ('backend = "replicated"', f'backend = "{backend}"'),
            (table, f"[{algorithm}]\nsynthetic_rows = 20\n{rounds}"),
            ("[session]\n", '[session]\ntls = "insecure-loopback"\n'),
        ],
        party={} if clear else {small.NAMES[max(BACKENDS[backend].computing[0], 2)]: "compute = false"},
    )
    study, out = load(trial.path), tmp_path / "out"
    plan = plan_of(study)
    computing = [] if clear else [party.name for party in study.computing]
    books = Books(out, computing, len(computing) or len(study.parties), monkeypatch)
    runs = in_memory.run(trial.path, out, monkeypatch)

    ledgers = {entry.reservation.dataset: entry for entry in Ledger().entries()}
    assert set(ledgers) == {f"trial/{party.name}" for party in study.parties}
    [*others, first] = ledgers.values()
    events = [begun.event for begun in first.events]
    assert books.looked and len(events) > 3
    assert sum(event.rho for event in events) <= plan.budget.rho_cap <= rho_of(4, Fraction(1, 10**6))
    assert sum(event.beta for event in events) <= plan.budget.beta_cap
    for entry in (*others, first):
        assert [whole(begun.event) for begun in entry.events] == [whole(event) for event in events]
        assert (entry.state, entry.spent.rho) == ("settled", sum(event.rho for event in events))
    for name in computing:
        record = read(journal_of(out / name))
        assert [whole(release.event) for release in record.releases] == [whole(event) for event in events]
        assert record.code == 0 and all(release.opened for release in record.releases)
    assert len(runs) == (1 if clear else len(study.parties))
    for told in runs.values():
        shown = told["privacy"]["events"]
        assert [(event["what"], event["rho"]) for event in shown] == [(e.what, float(e.rho)) for e in events]
        for event, booked in zip(shown, events, strict=True):
            assert event.items() >= dict(booked.detail).items()


@pytest.mark.parametrize(("backend", "via"), [("replicated", "merge3"), ("pair", "dh2")])
def test_what_sizes_tell_owners_is_on_their_books_beside_the_releases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str, via: str
) -> None:
    """Two owners under add-remove: the sizes that an owner's list shows, within what it has reserved for
    them."""
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    trial = split.write(
        tmp_path / "study",
        parties=3 if backend == "replicated" else 2,
        count=100,
        changes=[
            ('backend = "replicated"', f'backend = "{backend}"'),
            ('via = "merge3"', f'via = "{via}"'),
            ('adjacency = "replace"', 'adjacency = "add-remove"'),
            ("min_size = 10", "min_size = 10\nsize_epsilon = 2.0"),  # few dummies
            ('algorithm = "aim"', 'algorithm = "mst"'),
            ("[aim]\nrounds = 3", "[mst]\nsynthetic_rows = 20"),
            ("[session]\n", '[session]\ntls = "insecure-loopback"\n'),
        ],
    )
    study, out = load(trial.path), tmp_path / "out"
    computing = [party.name for party in study.computing]
    books = Books(out, computing, 2, monkeypatch)
    runs = in_memory.run(trial.path, out, monkeypatch)
    entries = {entry.reservation.dataset: entry for entry in Ledger().entries()}
    assert books.looked and set(entries) == {"split/north", "split/south"} and len(runs) == len(study.parties)
    told = [(event["what"], event["rho"]) for event in runs["north"]["privacy"]["events"]]
    for name in computing:
        record = read(journal_of(out / name))
        assert [(release.event.what, float(release.event.rho)) for release in record.releases] == told
        if (entry := entries.get(f"split/{name}")) is None:
            assert not added(
                event.rho for event in record.alignment
            )  # it owns nothing that a size could tell
            continue
        mine = [begun.event for begun in entry.events]
        beside = [event for event in mine if event.what.startswith("alignment.")]
        assert [whole(event) for event in record.alignment] == [whole(event) for event in beside]
        assert [whole(event) for event in mine if event not in beside] == [
            whole(release.event) for release in record.releases
        ]
        sizes = [event for event in beside if event.what == SIZE]
        assert sizes and added(event.rho for event in sizes) == entry.reservation.size_rho > 0
        assert added(event.beta for event in sizes) == entry.reservation.size_delta > 0
        assert added(release.event.rho for release in record.releases) <= entry.reservation.rho
        assert entry.reservation.rho == plan_of(study).budget.rho_cap and entry.state == "settled"
