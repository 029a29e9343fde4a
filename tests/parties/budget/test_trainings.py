"""A training's curve in a custodian's ledger: reserved, taken over by its event, added to rho, capped."""

from __future__ import annotations

import math
import sqlite3
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from mpc_protocols.errors import BudgetRefused
from mpc_protocols.functionality import Event
from parties.budget.account import Account, Cap
from parties.budget.ledger import Ledger
from parties.budget.notion import Notion, ProtectedUnit
from parties.budget.spending import Charge
from synth.budget.accounting import epsilon_beside, epsilon_of_curves
from synth.budget.sampled_gaussian import TRAIN, SampledGaussian
from tests.parties.budget.test_ledger import BETA, EVENT, RHO, RUN

CURVE = SampledGaussian(Fraction(3, 2) ** 2, Fraction(1, 40), 6_000)
TRAINED = replace(RUN, run="trained", curve=CURVE)
TRAINING = Event(TRAIN, Fraction(0), Fraction(1, 10**18), CURVE.facts())


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.db")


def total(ledger: Ledger) -> float:
    return Account.of(ledger.entries(), Cap()).epsilon(1e-6)


def test_a_curve_is_charged_from_the_reservation_on_and_then_by_its_event(ledger: Ledger) -> None:
    run = ledger.reserve(TRAINED)
    assert total(ledger) == epsilon_beside(RHO, 1e-6, BETA, [CURVE])
    run.begin(replace(EVENT, rho=RHO / 2))
    run.begin(TRAINING)
    run.settle()
    (entry,) = Ledger(ledger.path).entries()
    assert entry.reservation == TRAINED and entry.spent.curves == (CURVE,)
    assert total(ledger) == epsilon_beside(RHO / 2, 1e-6, EVENT.beta + TRAINING.beta, [CURVE])


def test_a_run_that_never_trained_is_not_charged_a_curve(ledger: Ledger) -> None:
    run = ledger.reserve(TRAINED)
    run.begin(EVENT)
    run.settle()
    assert ledger.entries()[0].spent.curves == ()


def test_runs_add_up_order_by_order(ledger: Ledger) -> None:
    for number in range(2):
        ledger.reserve(replace(TRAINED, run=f"trained {number}", rho=Fraction(0), beta=Fraction(0)))
    ledger.reserve(replace(RUN, beta=Fraction(0)))
    twice = replace(CURVE, steps=2 * CURVE.steps)
    assert total(ledger) == pytest.approx(epsilon_of_curves(RHO, [twice], 1e-6))


def test_a_cap_holds_for_curves(ledger: Ledger) -> None:
    both = epsilon_beside(2 * RHO, 1e-6, 2 * BETA, [CURVE])
    cap = Cap(both, 1e-6)
    ledger.reserve(RUN, cap)
    with pytest.raises(BudgetRefused, match="the cap is"):
        ledger.reserve(TRAINED, replace(cap, epsilon=both * (1 - 1e-9)))
    ledger.reserve(TRAINED, cap)
    with pytest.raises(BudgetRefused, match="the cap is"):
        ledger.reserve(replace(TRAINED, run="again"), cap)


def test_only_the_reserved_training_is_begun_and_once(ledger: Ledger) -> None:
    other = replace(CURVE, steps=CURVE.steps + 1)
    run = ledger.reserve(TRAINED)
    with pytest.raises(BudgetRefused, match="nothing is trained"):
        run.begin(replace(TRAINING, detail=other.facts()))
    run.begin(TRAINING)
    with pytest.raises(BudgetRefused, match="nothing is trained"):
        run.begin(TRAINING)
    with pytest.raises(BudgetRefused, match="nothing is trained"):
        ledger.reserve(RUN).begin(TRAINING)


def test_a_curve_says_nothing_about_neighbours_farther_apart(ledger: Ledger) -> None:
    person = ProtectedUnit(("person",), 3, 1)
    rows = replace(TRAINED, notion=Notion(ProtectedUnit(), "add-remove"))
    with pytest.raises(BudgetRefused, match="says nothing"):
        ledger.reserve(rows, Cap(1e6, 1e-6, unit=person, adjacency="add-remove"))
    with pytest.raises(BudgetRefused, match="says nothing"):
        ledger.reserve(rows, Cap(1e6, 1e-6, unit=ProtectedUnit(), adjacency="replace"))
    ledger.reserve(rows)
    account = Account.of(ledger.entries(), Cap(1e6, 1e-6, unit=person, adjacency="add-remove"))
    assert len(account.uncounted) == 1 and account.epsilon(1e-6) == math.inf
    assert account.spent == Charge()


def test_a_ledger_without_curves_is_taken_over(ledger: Ledger) -> None:
    ledger.reserve(RUN).settle()
    database = sqlite3.connect(ledger.path)
    database.execute("ALTER TABLE runs DROP COLUMN curve")
    database.execute("ALTER TABLE runs DROP COLUMN waves")
    database.execute("ALTER TABLE runs DROP COLUMN apart")
    database.execute("DROP TABLE collections")
    database.execute("PRAGMA user_version = 3")
    database.commit()
    database.close()
    assert [entry.reservation for entry in ledger.entries()] == [RUN]
    ledger.reserve(TRAINED)
    assert ledger.entries()[1].reservation == TRAINED
