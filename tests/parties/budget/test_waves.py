"""Nobody is in two waves of a table: what a ledger refuses, whatever the study names, and under whatever name
of the rows."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from mpc_protocols.errors import BudgetRefused
from mpc_protocols.functionality import Event
from parties.budget.ledger import Ledger
from parties.budget.notion import Notion, ProtectedUnit
from parties.budget.spending import Reservation

FIRST, SECOND, THIRD, OTHER = (letter * 64 for letter in "abcd")
RHO = Fraction(1, 10)


def wave(
    *digests: str, dataset: str = "clinic", run: str = "", digest: str = "", computes: bool = False
) -> Reservation:
    """A wave whose own digest is the first, after the others. digest: as the session has it, with its CA."""
    return Reservation(
        dataset,
        run or f"run-{digests[0][0]}",
        f"study-{digests[0][0]}",
        digest or digests[0],
        1.0,
        1e-9,
        Notion(ProtectedUnit(), "add-remove"),
        RHO,
        Fraction(0),
        ("north",),
        computes,
        waves=digests,
    )


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.db")


def left(ledger: Ledger, reservation: Reservation) -> None:
    """Reserved, and not settled, as after a visit."""
    ledger.reserve(reservation).close()


def charged(ledger: Ledger, reservation: Reservation, *events: Event) -> None:
    run = ledger.reserve(reservation)
    for event in events:
        run.begin(event)
    run.settle()


EVENT = Event("measure", RHO, Fraction(0), {})


@pytest.mark.parametrize("dataset", ["clinic", "/somewhere/else.csv"])
@pytest.mark.parametrize(
    ("before", "words"),
    [
        (wave(FIRST), "an earlier wave of this table, study study-a"),
        (wave(THIRD, FIRST), "another wave, which this study does not name, of this table, study study-c"),
        (wave(FIRST, digest=OTHER, computes=True), "an earlier wave of this table, study study-a"),
    ],
)
def test_rows_that_are_charged_for_one_wave_are_refused_for_another(
    ledger: Ledger, before: Reservation, words: str, dataset: str
) -> None:
    """The second wave names the first only; the rows were in the first, or in a third that names the first,
    too; or they are those of a party that computed, under another digest with a CA."""
    charged(ledger, before, EVENT)
    with pytest.raises(BudgetRefused, match=words) as caught:
        ledger.reserve(wave(SECOND, FIRST, dataset=dataset, run="new"))
    assert "data set clinic" in caught.value.sentence
    assert ("ledger of their own" in caught.value.sentence) == (dataset != "clinic")
    assert len(ledger.entries()) == 1


def test_a_bundle_that_is_not_settled_may_be_in_the_other_wave(ledger: Ledger) -> None:
    left(ledger, wave(THIRD, FIRST))
    with pytest.raises(BudgetRefused, match="has not settled yet"):
        ledger.reserve(wave(SECOND, FIRST))
    charged(ledger, wave(THIRD, FIRST))  # it came too late
    left(ledger, wave(SECOND, FIRST))
    left(ledger, wave(SECOND, FIRST))  # made again
    with pytest.raises(BudgetRefused, match="does not name"):
        ledger.reserve(wave(THIRD, FIRST))
    with pytest.raises(BudgetRefused, match="does not name"):
        ledger.reserve(wave(FIRST))


def test_other_tables_and_the_same_wave_are_no_matter(ledger: Ledger) -> None:
    charged(ledger, wave(OTHER), EVENT)
    charged(ledger, replace(wave(FIRST), waves=(), digest=THIRD, run="without bundles"), EVENT)
    charged(ledger, wave(SECOND, FIRST), EVENT)
    charged(ledger, wave(SECOND, FIRST, dataset="other people", run="theirs"), EVENT)
    assert [entry.reservation.waves for entry in ledger.entries()] == [
        (OTHER,),
        (),
        (SECOND, FIRST),
        (SECOND, FIRST),
    ]


def test_rows_are_in_a_wave_once(ledger: Ledger) -> None:
    """Whoever brings them: another contributor, or a party that computes; not one whose bundle came too late."""
    charged(ledger, wave(FIRST, run="too late"))
    left(ledger, wave(FIRST))
    left(ledger, wave(FIRST))
    for again in (wave(FIRST, run="another"), wave(FIRST, run="party", digest=OTHER, computes=True)):
        with pytest.raises(BudgetRefused, match="under another name"):
            ledger.reserve(again)
    charged(ledger, wave(FIRST), EVENT)
    with pytest.raises(BudgetRefused, match="under another name"):
        ledger.reserve(wave(FIRST, run="another"))
    left(ledger, wave(FIRST, run="another", dataset="other people"))


def test_a_study_that_is_settled_reserves_nothing_again(ledger: Ledger) -> None:
    """Its one run has taken place without the bundle, or never will: no other bundle could be in one, whoever
    asks for it."""
    charged(ledger, wave(FIRST))
    with pytest.raises(BudgetRefused, match="has ended"):
        ledger.reserve(wave(FIRST))
    assert [entry.state for entry in ledger.entries()] == ["settled"]
    charged(ledger, replace(wave(OTHER), waves=()))  # of a session that did not come about
    left(ledger, replace(wave(OTHER), waves=()))


def test_a_ledger_without_waves_is_taken_over(ledger: Ledger) -> None:
    """What it knows is the digest of the study itself."""
    charged(ledger, replace(wave(FIRST), waves=()), EVENT)
    database = sqlite3.connect(ledger.path)
    database.execute("ALTER TABLE runs DROP COLUMN waves")
    database.execute("ALTER TABLE runs DROP COLUMN apart")
    database.execute("PRAGMA user_version = 4")
    database.commit()
    database.close()
    with pytest.raises(BudgetRefused, match="an earlier wave"):
        ledger.reserve(wave(SECOND, FIRST))
