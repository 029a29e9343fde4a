"""Sequences of runs over one data set under a cap, and what they really come to: for
`tests.acceptance.accounts`.

What a run really tells of an account's neighbours is computed here from a table of how many rows differ, and
not by the ledger's `steps`: a release with noise for d rows costs (d' / d)^2 of its rho where d' rows differ,
under replace twice as many as under add-remove. Sums become an epsilon by dp-accounting. No sequence that a
cap admits may come to more than the cap.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import dp_accounting as dp
import numpy as np
from dp_accounting import rdp

from mpc_protocols.errors import BudgetRefused
from mpc_protocols.functionality import Adjacency, Event
from parties.budget.account import Cap
from parties.budget.journal import read
from parties.budget.ledger import Ledger, OpenRun
from parties.budget.notion import Notion, ProtectedUnit
from parties.budget.spending import Reservation
from synth.budget.accounting import Budget
from tests.runner import small
from tests.runner.processes import Program, gone, parties

BETA = Fraction(1, 10**15)
DELTA, CAP = 1e-6, 6.0
UNITS = (
    ProtectedUnit(),
    ProtectedUnit(("person",), 2, 1),
    ProtectedUnit(("person",), 3, 1),
    ProtectedUnit(("person",), 1, 3),
    ProtectedUnit(("person",), 5, 2),
    ProtectedUnit(("person",), whole=True),
    ProtectedUnit(("house",), 2, 1),
)
ADJACENCIES: tuple[Adjacency, Adjacency] = ("add-remove", "replace")


def really(account: Notion, run: Notion) -> float:
    """The least share of its squared sensitivity by which the account's neighbours can be told apart;
    infinite if unbounded.

    A unit of d rows was given noise for L2 distance d (replace: up to d rows there and d rows here, sqrt(2)
    d).
    """
    if account.adjacency == "add-remove" and run.adjacency == "replace":
        return float("inf")
    own, noise = account.unit, run.unit
    if noise.id and noise.id != own.id:
        return float("inf")
    rows = own.rows if not noise.whole else 1
    protected = noise.rows if not noise.whole else 1
    here = max(rows, 1) / protected if rows > protected else 1.0
    doubled = account.adjacency == "replace" and run.adjacency == "add-remove"
    # the worst release: distances and selections move by both tables' rows, so by twice as much
    return (here * (2 if doubled else 1)) ** 2


def epsilon(rho: float) -> float:
    """Of zCDP, at DELTA."""
    if rho == 0:
        return 0.0
    accountant = rdp.RdpAccountant(
        [1 + float(x) for x in np.geomspace(1e-2, 1e4, 4000)], dp.NeighboringRelation.ADD_OR_REMOVE_ONE
    )
    accountant.compose(dp.ZCDpEvent(rho))
    return float(accountant.get_epsilon(DELTA))


def reservation(number: int, notion: Notion, asked: float, dataset: str = "patients") -> Reservation:
    """A run of this epsilon."""
    budget = Budget.of(asked, DELTA, BETA)
    return Reservation(
        dataset, f"run-{number}", "study", "ab" * 32, asked, DELTA, notion, budget.rho_cap, BETA, ("south",)
    )


def drawn(seed: int) -> tuple[float, int, int]:
    """One random sequence: (what it really comes to for the account's notion, runs admitted, runs asked)."""
    rng = random.Random(seed)
    unit, adjacency = rng.choice(UNITS[:5]), rng.choice(ADJACENCIES)
    named = rng.random() < 0.6
    cap = Cap(CAP, DELTA, unit=unit if named else None, adjacency=adjacency if named else None)
    spent: list[tuple[Notion, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        ledger, held, admitted = Ledger(Path(folder) / "ledger.db"), list[OpenRun](), 0
        asked = rng.randrange(4, 12)
        for number in range(asked):
            notion = Notion(rng.choice([unit, rng.choice(UNITS)]), rng.choice([adjacency, *ADJACENCIES]))
            wanted = reservation(number, notion, rng.choice([0.3, 0.7, 1.5, 3.0]))
            try:
                run = ledger.reserve(wanted, cap)
            except BudgetRefused:
                continue
            admitted += 1
            part = rng.choice([Fraction(0), Fraction(1, 3), Fraction(1)])
            kinds = ["measure", "select"] if part == 1 else ["measure"]
            for kind in kinds if part else []:
                charged = wanted.rho * part / len(kinds)
                run.begin(Event(kind, charged, Fraction(0)))
                spent.append((notion, float(charged)))
            match rng.randrange(3):
                case 0:
                    run.settle()
                case 1:
                    run.close()  # it dies
                case 2:
                    held.append(run)
        for run in held:
            run.close()
        if named:
            own = Notion(unit, adjacency)
        else:  # what the ledger says that its account is about
            from parties.budget.account import Account

            found = Account.of(ledger.entries("patients"), cap).notion
            if found is None:
                return 0.0, admitted, asked
            own = found
    rho = sum(charged * really(own, notion) for notion, charged in spent)
    return (epsilon(rho) if rho < float("inf") else float("inf")), admitted, asked


ONE_OF_MANY = """
import sys
from tests.acceptance.accounts_sequences import CAP, DELTA, ROWS, Cap, Ledger, reservation
from mpc_protocols.errors import BudgetRefused
number = int(sys.argv[2])
sys.stdin.readline()
try:
    run = Ledger(sys.argv[1]).reserve(reservation(number, ROWS, 2.0), Cap(CAP, DELTA))
    print("in", flush=True)
    sys.stdin.readline()
    run.close()
except BudgetRefused:
    print("out", flush=True)
"""
ROWS = Notion(ProtectedUnit(), "add-remove")


def together(count: int = 6) -> int:
    """So many processes at once, each with a run of epsilon 2 under a cap of 6 (which holds 6 of them by
    rho): how many are in.

    A cap that held the sum of more would be seen by the last of them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        started = [
            subprocess.Popen(
                [sys.executable, "-c", ONE_OF_MANY, str(path), str(number)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(count)
        ]
        for process in started:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        said = []
        for process in started:
            assert process.stdout is not None
            said.append(process.stdout.readline().strip())
        for process in started:
            process.communicate("done\n", timeout=60)
        return said.count("in")


def room(asked: float) -> int:
    """How many runs of this epsilon a cap of CAP holds, by dp-accounting."""
    rho = float(Budget.of(asked, DELTA, BETA).rho_cap)
    return next(count for count in itertools.count() if epsilon(rho * (count + 1)) > CAP)


def killed(folder: Path, seed: int, again: str) -> dict[str, object]:
    """A run by processes under a cap, killed three times at any moment, each time taken up with --resume or
    --replace.

    What was opened is counted from all parties' journals there ever were, each release of a session once.
    """
    rng = random.Random(seed)
    trial = small.write(folder / "study", count=60)
    own, out, kept = folder / "north.toml", folder / "out", folder / "journals"
    own.write_text(f'[ledger]\ndataset = "patients"\ncap_epsilon = {CAP}\ncap_delta = {DELTA}\n')
    codes: list[int] = []
    opened: dict[tuple[str, int], float] = {}
    for attempt in range(4):
        option = [again] if attempt else []
        program = Program(
            *("run", trial.path, "--private", f"north={own}", "--out", out, *option),
            ledger=folder / "ledger.db",
            scratch=folder / f"scratch{attempt}",
        )
        if attempt < 3:
            wanted = rng.randrange(4, 40)
            while _lines(out) < wanted and program.process.poll() is None:
                time.sleep(0.002)
            time.sleep(rng.random() * 0.05)
            for number in parties(out).values():
                try:
                    os.kill(number, signal.SIGKILL)
                except ProcessLookupError:
                    continue
        codes.append(program.end().code)
        gone(out)
        for number, path in enumerate(out.glob("parties/*/journal-*.jsonl")):
            kept.mkdir(exist_ok=True)
            copy = kept / f"{attempt}-{number}.jsonl"
            shutil.copy(path, copy)
            try:
                record = read(copy)
            except Exception:  # torn in its first lines
                continue
            for place, release in enumerate(record.releases):
                if release.opened:  # what is begun at one party only is opened nowhere
                    opened[record.header.session.hex(), place] = float(release.event.rho)
    entries = Ledger(folder / "ledger.db").entries("patients")
    charged = sum(float(entry.spent.rho) for entry in entries)
    return {
        "codes": codes,
        "opened": epsilon(sum(opened.values())),
        "charged": epsilon(charged),
        "runs": len(entries),
    }


def _lines(out: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in out.glob("parties/*/*.jsonl") if path.is_file())


def names(folder: Path) -> Iterator[tuple[str, str, bool]]:
    """Other ways to write down the same table: (words, the account's name, whether it is the same account)."""
    from parties.data.location import locate

    table = folder / "people.csv"
    table.write_text("a\n1\n")
    (folder / "link.csv").symlink_to(table)
    os.link(table, folder / "hard.csv")
    (folder / "sub").mkdir()
    base = locate("people.csv", folder).dataset
    for words, data in (
        ("./people.csv", "./people.csv"),
        ("sub/../people.csv", "sub/../people.csv"),
        ("a symbolic link", "link.csv"),
        ("a hard link", "hard.csv"),
    ):
        found = locate(data, folder).dataset
        yield words, found, found == base
    pairs: Sequence[tuple[str, dict[str, str], dict[str, str]]] = (
        (
            "duckdb: people, People",
            {"url": "duckdb://a.db", "table": "people"},
            {"url": "duckdb://a.db", "table": "People"},
        ),
        (
            "duckdb: people, main.people",
            {"url": "duckdb://a.db", "table": "people"},
            {"url": "duckdb://a.db", "table": "main.people"},
        ),
        (
            'duckdb: people, "people"',
            {"url": "duckdb://a.db", "table": "people"},
            {"url": "duckdb://a.db", "table": '"people"'},
        ),
        (
            "postgres: with and without the port",
            {"url": "postgres://u@h/db", "table": "t"},
            {"url": "postgres://u@h:5432/db", "table": "t"},
        ),
        (
            "postgres: host H and h",
            {"url": "postgres://u@h/db", "table": "t"},
            {"url": "postgres://u@H/db", "table": "t"},
        ),
    )
    for words, one, other in pairs:
        first, second = locate(one, folder).dataset, locate(other, folder).dataset
        yield words, second, first == second
