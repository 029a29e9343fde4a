"""Aborted alignments in a row: what counts as one, and when the next is refused."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from mpc_protocols.errors import BudgetRefused
from mpc_protocols.functionality import Event
from parties.budget.aborted import ABORTED, MAX_ABORTED, aborted_in_a_row, check_retries
from parties.budget.ledger import Ledger
from parties.budget.notion import Notion, ProtectedUnit
from parties.budget.spending import SIZE, STARTED, Reservation

ROWS = Notion(ProtectedUnit(), "add-remove")
EVENTS = {
    "s": Event(STARTED, Fraction(0), Fraction(0), {"owners": ["north", "south"]}),
    "w": Event(STARTED, Fraction(0), Fraction(0), {"owners": ["north", "west"]}),
    "z": Event(SIZE, Fraction(1, 1000), Fraction(0), {}),
    "a": Event(ABORTED, Fraction(0), Fraction(0), {"code": 40}),
    "m": Event("measure", Fraction(1, 1000), Fraction(0), {}),
}


def after(tmp_path: Path, *runs: str) -> Ledger:
    """A ledger with these runs, each a string of events; one that ends with "!" was not settled, as if its
    process had died."""
    ledger = Ledger(tmp_path / "ledger.db")
    for number, events in enumerate(runs):
        run = ledger.reserve(
            Reservation(
                "patients",
                f"run-{number}",
                "joint",
                "ab" * 32,
                1.0,
                1e-9,
                ROWS,
                Fraction(1, 10),
                Fraction(0),
                ("south", "west"),
                aligns=True,
                size_rho=Fraction(1, 100),
            )
        )
        for letter in events.rstrip("!"):
            run.begin(EVENTS[letter])
        run.close() if events.endswith("!") else run.settle()
    return ledger


@pytest.mark.parametrize(
    ("runs", "south", "west"),
    [
        ((), 0, 0),
        (("szm",), 0, 0),
        (("sa",), 1, 0),
        (("sza", "sz!", "s"), 3, 0),  # also those that could not say how they ended
        (("sa", "sa", "szmm", "sa"), 1, 0),  # one that came to something begins the row anew
        (("sa", "wm", "sa", "wa"), 2, 1),  # others do not
        (("sasa",), 2, 0),  # a run that was resumed has two attempts
        (("sasm",), 0, 0),
        (("",), 0, 0),  # refused before anything was begun
    ],
)
def test_attempts_in_a_row(tmp_path: Path, runs: tuple[str, ...], south: int, west: int) -> None:
    entries = after(tmp_path, *runs).entries("patients")
    assert (aborted_in_a_row(entries, "south"), aborted_in_a_row(entries, "west")) == (south, west)


def test_the_row_must_not_become_longer(tmp_path: Path) -> None:
    entries = after(tmp_path, *["sa"] * MAX_ABORTED).entries("patients")
    check_retries("patients", entries[:-1], ["south", "west"])
    check_retries("patients", entries, ["west"])
    with pytest.raises(
        BudgetRefused, match=r"last 3 alignments of dataset patients with south .* --allow-retry"
    ):
        check_retries("patients", entries, ["west", "south"])
