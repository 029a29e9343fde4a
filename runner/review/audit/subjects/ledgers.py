"""What a ledger must admit and refuse, for group H: caps, alignments, runs at the same time, copies."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mpc_protocols.errors import BudgetRefused
from mpc_protocols.functionality import Event
from parties.budget.account import Cap
from parties.budget.ledger import Ledger, OpenRun
from parties.budget.notion import Notion, ProtectedUnit
from parties.budget.spending import Reservation
from runner.review.audit.check import Finding, judged
from runner.review.audit.subjects.subject import Subject
from synth.budget.accounting import Budget

EPSILON, DELTA, BETA = 1.0, 1e-9, Fraction(1, 10**15)
AT_ONCE = 4
"""Runs that ask for the same budget at the same time."""


def asked(number: int, rho: Fraction, **changes: Any) -> Reservation:
    rows = Notion(ProtectedUnit(), "add-remove")
    run = Reservation(
        "audited", f"run-{number}", "audit", "ab" * 32, EPSILON, DELTA, rows, rho, BETA, ("south",)
    )
    return replace(run, **changes)


def _allowed(ledger: Ledger, cap: Cap, runs: Sequence[Reservation]) -> int:
    """How many of these runs, one after the other, the ledger admits."""
    count = 0
    for run in runs:
        try:
            ledger.reserve(run, cap).settle()
        except BudgetRefused:
            continue
        count += 1
    return count


def _whole() -> Fraction:
    """All of epsilon 1."""
    return Budget.of(EPSILON, DELTA, BETA).rho_cap


def cap(subject: Subject) -> Finding:
    """Ask for more than a cap allows: after it is spent, of another unit, and several times at once."""
    problems, whole = [], _whole()
    given = Cap(EPSILON, DELTA)
    with TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.db")
        first = ledger.reserve(asked(0, whole), given)
        if admitted := _allowed(ledger, given, [asked(1, whole / 1000), asked(2, whole)]):
            problems.append(f"{admitted} runs were admitted beside one that has all of the cap.")
        first.close()
        person = Cap(EPSILON, DELTA, unit=ProtectedUnit(("id",), 3), adjacency="add-remove")
        other = Ledger(Path(folder) / "persons.db")
        if _allowed(other, person, [asked(0, whole)]):
            problems.append("A run that counts rows had all of a cap for persons of three rows.")
        shared, together = Ledger(Path(folder) / "shared.db"), threading.Barrier(AT_ONCE)

        def ask(number: int) -> int:
            together.wait()
            try:
                open_runs.append(shared.reserve(asked(number, whole), given))
            except BudgetRefused:
                return 0
            return 1

        open_runs: list[OpenRun] = []
        with ThreadPoolExecutor(AT_ONCE) as pool:
            at_once = sum(pool.map(ask, range(AT_ONCE)))
        for run in open_runs:
            run.close()
        if at_once != 1:
            problems.append(f"Of {AT_ONCE} runs that asked for all of a cap at once {at_once} had it.")
    return judged(problems, f"A cap is spent once: by one run, of its own unit, by one of {AT_ONCE} at once.")


def alignments(subject: Subject) -> Finding:
    """Align once more than max_alignments allows; with another counterparty there is a quota of its own."""
    given, tiny = Cap(max_alignments=2), Fraction(1, 1000)
    with TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.db")
        runs = [asked(number, tiny, aligns=True) for number in range(4)]
        found = _allowed(ledger, given, runs)
        others = _allowed(ledger, given, [asked(9, tiny, aligns=True, counterparties=("west",))])
    problems = (
        [] if (found, others) == (2, 1) else [f"Of 4 alignments where 2 are allowed {found} were admitted."]
    )
    return judged(problems, "Of 4 alignments with one counterparty 2 were admitted, as allowed.")


def copies(subject: Subject) -> Finding:
    """Use a ledger while a run is under way on it: again, under another path, and as a copy made meanwhile."""
    problems, whole, given = [], _whole(), Cap(EPSILON, DELTA)
    quarter, rest = asked(1, whole / 4), asked(2, whole / 4 + whole / 1000)
    with TemporaryDirectory() as folder:
        own = Path(folder) / "own" / "ledger.db"
        living = Ledger(own).reserve(asked(0, whole), given)
        living.begin(Event("measure", whole / 4, Fraction(0)))
        (own.parent / "link.db").symlink_to(own)
        shutil.copytree(own.parent, Path(folder) / "backup")
        shutil.copy(own, Path(folder) / "alone.db")
        copied = [Path(folder) / "backup" / own.name, Path(folder) / "alone.db"]
        for path in (own, own.parent / "link.db", *copied):
            if _allowed(Ledger(path), given, [quarter]):
                problems.append(
                    f"{path.relative_to(folder)}: a run was admitted beside one that has all of the cap."
                )
        living.begin(Event("measure", whole / 2, Fraction(0)))
        living.settle()
        for path in copied:
            if _allowed(Ledger(path), given, [quarter]):
                problems.append(
                    f"{path.relative_to(folder)}: a copy took a run for dead that went on elsewhere."
                )
        if _allowed(Ledger(own), given, [rest, quarter]) != 1:
            problems.append("A ledger does not admit just what a run has left of the cap.")
    return judged(
        problems,
        "While a run is under way its whole budget counts: in its ledger, by another path, and in two kinds of copies.",
    )
