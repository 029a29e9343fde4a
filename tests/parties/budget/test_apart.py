"""Runs that are stated to share nobody: the largest counts, and with anybody in both the sum."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from mpc_protocols.errors import BudgetRefused
from mpc_protocols.functionality import Event
from parties.budget.account import Account, Cap
from parties.budget.ledger import Ledger
from parties.budget.notion import Notion, ProtectedUnit
from parties.budget.spending import Reservation
from synth.budget.accounting import epsilon_of

ROW = Notion(ProtectedUnit(), "add-remove")
MAY = Reservation("clinic", "may", "monthly", "00", 1.0, 1e-6, ROW, Fraction(1, 20), Fraction(0), ("south",))
JUNE = replace(MAY, run="june", rho=Fraction(1, 10), apart=("may",))
JULY = replace(MAY, run="july", rho=Fraction(1, 50), apart=("june", "may"))


def charged(path: Path, *runs: Reservation, cap: Cap | None = None) -> Ledger:
    ledger = Ledger(path)
    for run in runs:
        account = ledger.reserve(run, cap)
        account.begin(Event("measure", run.rho, Fraction(0), {}))
        account.settle()
    return ledger


def spent(ledger: Ledger) -> Fraction:
    return Account.of(ledger.entries(), Cap()).spent.rho


def test_of_runs_that_share_nobody_the_largest_counts(tmp_path: Path) -> None:
    ledger = charged(tmp_path / "ledger.db", MAY, JUNE, JULY)
    assert spent(ledger) == Fraction(1, 10)
    assert Account.of(ledger.entries(), Cap()).epsilon(1e-6) == epsilon_of(Fraction(1, 10), 1e-6)


def test_a_run_that_shares_people_with_one_of_them_is_added(tmp_path: Path) -> None:
    assert spent(charged(tmp_path / "one.db", MAY, JUNE, replace(MAY, run="again"))) == Fraction(3, 20)


def test_each_two_of_a_group_must_be_apart(tmp_path: Path) -> None:
    """July says it of June alone: May and July may share somebody."""
    july = replace(JULY, apart=("june",))
    assert spent(charged(tmp_path / "ledger.db", MAY, JUNE, july)) == Fraction(1, 10) + Fraction(1, 50)


def test_a_cap_allows_what_one_person_can_have_spent(tmp_path: Path) -> None:
    cap = Cap(epsilon_of(Fraction(1, 10), 1e-6) + 1e-9, 1e-6)
    ledger = charged(tmp_path / "ledger.db", MAY, JUNE, cap=cap)
    with pytest.raises(BudgetRefused, match="has spent epsilon"):
        charged(ledger.path, replace(JUNE, run="added", apart=()), cap=cap)
