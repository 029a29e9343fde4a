"""The ledger: what a dataset has spent is right after any end of a run, with any number of runs at once."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from mpc_protocols.errors import BudgetRefused, OutOfResources, StudyInvalid
from mpc_protocols.functionality import Event
from mpc_protocols.psu.dummies import centre, delta_of, size_events
from mpc_protocols.psu.functionality import AlignmentSpec
from parties.budget.account import Account, Cap
from parties.budget.ledger import Ledger
from parties.budget.ledger_file import default_path
from parties.budget.notion import Notion, ProtectedUnit
from parties.budget.open_run import RunFile, discard, read
from parties.budget.spending import STARTED, Entry, Reservation
from synth.budget.accounting import Budget, epsilon_beside, epsilon_of

BETA = Fraction(1, 10**15)
RHO = Budget.of(1.0, 1e-9, BETA).rho_cap
ROWS = Notion(ProtectedUnit(), "add-remove")
RUN = Reservation(
    "patients", "run-1", "adult-joint", "ab" * 32, 1.0, 1e-9, ROWS, RHO, BETA, ("south", "west")
)
EVENT = Event("measure", RHO / 4, Fraction(1, 10**16), {"clique": ["age", "sex"], "sigma2": "81"})


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "data" / "ledger.db")


def spent(ledger: Ledger, dataset: str = "patients") -> Fraction:
    return sum((entry.spent.rho for entry in ledger.entries(dataset)), Fraction(0))


def epsilon_by_rho(entries: list[Entry], delta: float | Fraction) -> float:
    return Account.of(entries, Cap()).epsilon_by_rho(delta)


def spent_epsilon(entries: list[Entry], delta: float | Fraction) -> float:
    return Account.of(entries, Cap()).epsilon(delta)


def another(number: int, **changes: object) -> Reservation:
    return replace(RUN, run=f"run-{number}", **changes)  # type: ignore[arg-type]


def test_a_run_is_charged_in_full_until_it_is_settled_to_its_events(ledger: Ledger) -> None:
    assert ledger.entries() == [] and not ledger.path.exists()
    run = ledger.reserve(RUN)
    assert spent(ledger) == RHO
    run.begin(EVENT)
    run.begin(replace(EVENT, rho=RHO / 2))
    assert spent(ledger) == RHO
    run.settle()
    (entry,) = Ledger(ledger.path).entries("patients")
    assert (entry.reservation, entry.state, entry.spent.rho) == (RUN, "settled", RHO * 3 / 4)
    assert entry.spent.beta == 2 * EVENT.beta
    assert [begun.event for begun in entry.events] == [EVENT, replace(EVENT, rho=RHO / 2)]
    assert ledger.entries("others") == [] and len(ledger.entries()) == 1


def test_files_are_private(ledger: Ledger) -> None:
    old = os.umask(0)
    try:
        run = ledger.reserve(RUN)
    finally:
        os.umask(old)
    folder = ledger.path.parent
    modes = {path.relative_to(folder).as_posix(): path.stat().st_mode & 0o777 for path in folder.rglob("*")}
    assert modes == {"ledger.db": 0o600, "ledger.db.open": 0o700, "ledger.db.open/1": 0o600}
    assert ledger.path.parent.stat().st_mode & 0o777 == 0o700
    run.settle()
    assert not list(ledger.path.parent.glob("*.open/*"))


def test_a_cap_admits_what_fits_exactly_and_nothing_more(ledger: Ledger) -> None:
    cap = Cap(1.0, 1e-9)
    run = ledger.reserve(RUN, cap)  # a study of epsilon 1 under a cap of epsilon 1
    with pytest.raises(BudgetRefused) as caught:
        ledger.reserve(another(2, rho=Fraction(1, 10**9)), cap)
    assert "only who answers for this data may raise cap_epsilon" in caught.value.sentence
    with pytest.raises(BudgetRefused) as caught:
        ledger.reserve(another(2), cap)
    asked = f"{epsilon_beside(2 * RHO, 1e-9, 2 * BETA):.6g}"
    for part in (
        "patients",
        "spent epsilon 1,",
        f"would make it {asked},",
        "the cap is 1 ",
        "1e-09",
        str(ledger.path),
    ):
        assert part in caught.value.sentence
    assert caught.value.exit_code == 50 and len(ledger.entries()) == 1
    run.begin(EVENT)
    run.settle()
    with pytest.raises(BudgetRefused):
        ledger.reserve(another(3), cap)
    with pytest.raises(BudgetRefused, match=r"would make it 1\.0+[1-9]\d*, and the cap is 1 "):
        ledger.reserve(another(4, rho=RHO * 3 / 4), cap)  # its samplers come on top of those that have run
    ledger.reserve(another(4, rho=RHO * 3 / 4, beta=BETA - EVENT.beta), cap).settle()
    ledger.reserve(another(5, dataset="others"), cap).settle()  # another population
    ledger.reserve(another(6, rho=100 * RHO)).settle()  # no cap: it only counts


def test_open_reservations_count_against_the_cap(ledger: Ledger) -> None:
    cap = Cap(epsilon_beside(2 * RHO, 1e-9, 2 * BETA), 1e-9)
    runs = [ledger.reserve(another(i), cap) for i in (1, 2)]
    with pytest.raises(BudgetRefused):
        ledger.reserve(another(3), cap)
    runs[0].settle()  # failed before its first event
    ledger.reserve(another(3), cap)


def test_the_samplers_distance_may_take_a_hundredth_of_the_caps_delta(ledger: Ledger) -> None:
    ledger.reserve(another(1, rho=Fraction(0), beta=Fraction(6, 10**12)), Cap(1.0, 1e-9))
    with pytest.raises(BudgetRefused, match="raise cap_delta"):
        ledger.reserve(another(2, rho=Fraction(0), beta=Fraction(6, 10**12)), Cap(1.0, 1e-9))


def test_events_never_exceed_the_reservation(ledger: Ledger) -> None:
    run = ledger.reserve(RUN)
    run.begin(replace(EVENT, rho=RHO))
    with pytest.raises(BudgetRefused, match="exceed what this run reserved"):
        run.begin(replace(EVENT, rho=Fraction(1, 10**30)))
    run.begin(replace(EVENT, rho=Fraction(0)))
    run.settle()
    assert spent(ledger) == RHO


def test_the_samplers_distance_never_exceeds_the_reservation(ledger: Ledger) -> None:
    """Nor does what a resumed run adds to its first attempt's."""
    run = ledger.reserve(RUN)
    run.begin(replace(EVENT, beta=BETA))
    run.close()
    run = ledger.reserve(RUN)
    with pytest.raises(BudgetRefused, match="exceed what this run reserved"):
        run.begin(EVENT)
    run.settle()
    assert ledger.entries()[0].spent.beta == BETA


def test_epsilon_of_all_runs(ledger: Ledger) -> None:
    for i in range(3):
        run = ledger.reserve(another(i))
        run.begin(EVENT)
        run.settle()
    assert spent_epsilon(ledger.entries(), 1e-6) == epsilon_beside(3 * EVENT.rho, 1e-6, 3 * EVENT.beta)


def test_alignments_with_one_counterparty_are_limited(ledger: Ledger) -> None:
    cap = Cap(max_alignments=2)
    ledger.reserve(another(0), cap).settle()  # a run without an alignment does not count
    for i in (1, 2):
        ledger.reserve(another(i, aligns=True), cap).settle()
    assert (ledger.alignments("patients", "south"), ledger.alignments("patients", "east")) == (2, 0)
    with pytest.raises(BudgetRefused, match="aligned 2 times with west"):
        ledger.reserve(another(3, aligns=True, counterparties=("east", "west")), cap)
    ledger.reserve(another(4, aligns=True, counterparties=("east",)), cap).settle()
    ledger.reserve(another(5), cap).settle()


SPEC = AlignmentSpec(
    "dh2", adjacency="add-remove", size_epsilon=Fraction(1, 2), size_delta=Fraction(1, 10**9)
)
SIZES = size_events(SPEC, ["south"])
ALIGNS = replace(
    RUN,
    aligns=True,
    size_rho=sum((event.rho for event in SIZES), Fraction(0)),
    size_delta=sum((event.beta for event in SIZES), Fraction(0)),
)


def test_sizes_are_reserved_on_top_and_settled_to_what_was_announced(ledger: Ledger) -> None:
    assert (
        len(SIZES) == 2 and ALIGNS.size_rho == Fraction(1, 4) and 0 < ALIGNS.size_delta <= Fraction(2, 10**9)
    )
    run = ledger.reserve(ALIGNS)
    (entry,) = ledger.entries()
    assert (
        entry.reservation == ALIGNS
        and entry.spent.rho == RHO + Fraction(1, 4)
        and entry.spent.size_rho == Fraction(1, 4)
    )
    assert (entry.spent.size_delta, entry.spent.beta) == (ALIGNS.size_delta, RUN.beta)
    assert spent_epsilon([entry], 1e-6) == epsilon_beside(
        RHO + Fraction(1, 4), Fraction(1e-6) - ALIGNS.size_delta, BETA
    )
    assert spent_epsilon([entry], float(ALIGNS.size_delta) / 2) == float("inf")
    run.begin(SIZES[0])
    run.begin(replace(EVENT, rho=RHO))  # sizes take nothing of the study's budget
    run.settle()
    (entry,) = ledger.entries()
    assert (entry.spent.rho, entry.spent.size_rho) == (RHO + SIZES[0].rho, SIZES[0].rho)
    assert (entry.spent.size_delta, entry.spent.beta) == (SIZES[0].beta, EVENT.beta)
    assert entry.events[0].event == SIZES[0]


def test_sizes_never_exceed_what_was_reserved_for_them(ledger: Ledger) -> None:
    run = ledger.reserve(RUN)
    with pytest.raises(BudgetRefused, match=r"alignment\.size would exceed"):
        run.begin(SIZES[0])
    run.close()
    run = ledger.reserve(replace(ALIGNS, run="run-2"))
    for event in SIZES:
        run.begin(event)
    for event in (SIZES[0], replace(SIZES[0], rho=Fraction(0)), replace(SIZES[0], beta=Fraction(0))):
        with pytest.raises(BudgetRefused, match=r"alignment\.size would exceed"):
            run.begin(event)
    run.begin(replace(EVENT, rho=RHO))
    with pytest.raises(StudyInvalid, match="must say that its run aligns"):
        replace(RUN, size_delta=Fraction(1, 10**9))


def test_sizes_survive_an_abort_and_a_resumed_run_adds_its_own(ledger: Ledger) -> None:
    run = ledger.reserve(ALIGNS)
    for event in SIZES:
        run.begin(event)
    run.begin(EVENT)
    run.close()  # as dead as its process
    (entry,) = ledger.entries()
    assert (entry.state, entry.spent.rho, entry.spent.size_delta) == (
        "settled",
        EVENT.rho + Fraction(1, 4),
        ALIGNS.size_delta,
    )
    assert ledger.alignments("patients", "south") == 1
    run = ledger.reserve(ALIGNS)  # fresh keys, fresh noise: sizes are announced once more
    (entry,) = ledger.entries()
    assert (entry.spent.rho, entry.spent.size_delta) == (RHO + Fraction(1, 2), 2 * ALIGNS.size_delta)
    for event in SIZES:
        run.begin(event)
    with pytest.raises(BudgetRefused):
        run.begin(SIZES[0])
    with pytest.raises(BudgetRefused):
        run.begin(replace(EVENT, rho=RHO))  # a quarter of the study's budget was spent before
    run.begin(replace(EVENT, rho=RHO * 3 / 4))
    run.settle()
    (entry,) = ledger.entries()
    assert (entry.spent.rho, entry.spent.size_delta) == (RHO + Fraction(1, 2), 2 * ALIGNS.size_delta)
    assert ledger.alignments("patients", "south") == 1  # one run


def test_sizes_count_against_the_cap_with_their_delta(ledger: Ledger) -> None:
    delta = 1e-8
    exact = epsilon_beside(RHO + ALIGNS.size_rho, Fraction(delta) - ALIGNS.size_delta, BETA)
    with pytest.raises(BudgetRefused) as caught:
        ledger.reserve(ALIGNS, Cap(exact * (1 - 1e-12), delta))
    assert f"would make it {exact:.6g}" in caught.value.sentence
    assert epsilon_of(RHO + ALIGNS.size_rho, delta) < exact * (
        1 - 1e-3
    )  # delta matters: without it the cap would have held
    ledger.reserve(ALIGNS, Cap(exact, delta)).settle()
    with pytest.raises(BudgetRefused, match="raise cap_delta, or ask for a smaller size_delta"):
        ledger.reserve(replace(ALIGNS, run="run-2"), Cap(100.0, float(ALIGNS.size_delta) / 2))


def test_sizes_alone_are_shown_as_their_epsilons_and_capped_by_rho(ledger: Ledger) -> None:
    """An alignment that aborts after it has announced its sizes: two of 1/2."""
    run = ledger.reserve(ALIGNS)
    for event in SIZES:
        run.begin(event)
    assert spent_epsilon(ledger.entries(), 1e-6) == epsilon_by_rho(
        ledger.entries(), 1e-6
    )  # open: the reservation, by rho
    run.close()
    (entry,) = entries = ledger.entries()
    assert entry.spent.rho == Fraction(1, 4) and 1.0 <= spent_epsilon(entries, 1e-6) <= 1.0 + 1e-12
    left = Fraction(1e-6) - ALIGNS.size_delta
    assert epsilon_by_rho(entries, 1e-6) == epsilon_of(Fraction(1, 4), left) > 2.5
    assert (
        spent_epsilon(entries, ALIGNS.size_delta)
        == epsilon_by_rho(entries, ALIGNS.size_delta)
        == float("inf")
    )
    other = ledger.reserve(another(2))  # whatever else was released is converted by itself
    other.begin(EVENT)
    other.settle()
    assert spent_epsilon(ledger.entries(), 1e-6) == pytest.approx(
        epsilon_beside(EVENT.rho, left, EVENT.beta) + 1.0, rel=1e-12
    )
    with pytest.raises(
        BudgetRefused, match=f"has spent epsilon {epsilon_by_rho(ledger.entries(), 1e-6):.6g}, "
    ):
        ledger.reserve(another(3), Cap(3.0, 1e-6))


def test_many_sizes_are_less_by_rho(ledger: Ledger) -> None:
    many = replace(ALIGNS, size_rho=50 * SIZES[0].rho, size_delta=50 * SIZES[0].beta)
    run = ledger.reserve(many)
    for _ in range(50):
        run.begin(SIZES[0])
    run.settle()
    assert spent_epsilon(ledger.entries(), 1e-6) == epsilon_by_rho(ledger.entries(), 1e-6) < 50 * 0.5


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_two_sizes_are_what_is_shown_of_them(epsilon: Fraction) -> None:
    """The exact hockey-stick divergence of two sizes that one identifier moves: within the deltas at the sum of the epsilons, and
    not at 95 % of it, so that nothing less could be shown."""
    c = centre(epsilon, Fraction(1, 10**4))
    law = np.exp(-float(epsilon) * np.abs(np.arange(-c, c + 1)))
    law /= law.sum()
    one, moved = np.append(law, 0.0), np.append(0.0, law)
    both, shifted = np.outer(one, one), np.outer(moved, moved)
    delta = 2 * float(delta_of(epsilon, c))
    for share, least, most in ((1.0, 0.0, delta), (0.95, delta, 1.0)):
        stick = np.maximum(0, both - np.exp(share * 2 * float(epsilon)) * shifted).sum()
        assert least <= stick <= most, share


def test_a_ledger_of_the_first_version_is_taken_over(ledger: Ledger) -> None:
    """Written by version 1 of the schema, with a run settled, one open, and events of both."""
    ledger.path.parent.mkdir()
    with sqlite3.connect(ledger.path) as old:
        old.executescript("""
            CREATE TABLE runs (
                number INTEGER PRIMARY KEY AUTOINCREMENT, dataset TEXT NOT NULL, run TEXT NOT NULL, study TEXT NOT NULL,
                digest TEXT NOT NULL, time REAL NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, adjacency TEXT NOT NULL,
                unit TEXT NOT NULL, rho TEXT NOT NULL, beta TEXT NOT NULL, counterparties TEXT NOT NULL,
                computes INTEGER NOT NULL, aligns INTEGER NOT NULL,
                state TEXT NOT NULL CHECK (state IN ('open', 'settled')), UNIQUE (dataset, run)
            );
            CREATE TABLE events (
                id TEXT PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs (number), what TEXT NOT NULL, rho TEXT NOT NULL,
                beta TEXT NOT NULL, detail TEXT NOT NULL, time REAL NOT NULL
            );
            INSERT INTO runs VALUES (1, 'patients', 'run-1', 's', 'd', 5.0, 1.0, 1e-9, 'replace', 'row', '1/7', '0', '["south"]',
                                     1, 0, 'settled');
            INSERT INTO runs VALUES (2, 'patients', 'run-2', 's', 'd', 6.0, 1.0, 1e-9, 'replace', 'row', '1/9', '0', '["south"]',
                                     0, 1, 'open');
            INSERT INTO events VALUES ('a', 1, 'measure', '1/11', '0', '{}', 5.5);
            PRAGMA user_version = 1;""")
    old.close()
    none = Fraction(0)
    assert [
        (entry.spent.rho, entry.spent.size_rho, entry.spent.size_delta) for entry in ledger.entries()
    ] == [(Fraction(1, 11), none, none), (Fraction(1, 9), none, none)]
    ledger.reserve(replace(ALIGNS, run="run-3")).settle()
    assert len(Ledger(ledger.path).entries()) == 3 and ledger.alignments("patients", "south") == 2
    with sqlite3.connect(ledger.path) as new:
        assert new.execute("PRAGMA user_version").fetchone() == (6,)
    new.close()


def test_what_a_cap_may_be() -> None:
    for epsilon, delta, most in (
        (1.0, None, None),
        (None, 1e-9, None),
        (0.0, 1e-9, None),
        (float("inf"), 1e-9, None),
        (float("nan"), 1e-9, None),
        (1.0, 0.0, None),
        (1.0, 1.0, None),
        (None, None, -1),
    ):
        with pytest.raises(StudyInvalid, match=r"\[ledger\]"):
            Cap(epsilon, delta, most)
    with pytest.raises(StudyInvalid):
        another(1, rho=Fraction(-1))


CHILD = """
import sys, time
from dataclasses import replace
from mpc_protocols.errors import BudgetRefused
from parties.budget.account import Cap
from parties.budget.ledger import Ledger
from tests.parties.budget.test_ledger import EVENT, RUN
run = Ledger(sys.argv[1]).reserve(replace(RUN, computes=sys.argv[2] == "computes"))
run.begin(EVENT)
print("begun", flush=True)
time.sleep(60)
"""


@pytest.fixture
def child(ledger: Ledger, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(ledger.path), request.param], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_refusal_does_not_forget_what_a_dead_run_has_begun(ledger: Ledger) -> None:
    """It rolls back its own transaction, not the settling of the dead; a resumed run adds to the sizes of its first attempt."""
    run = ledger.reserve(ALIGNS)
    run.begin(SIZES[0])
    run.begin(EVENT)
    run.close()
    with pytest.raises(BudgetRefused):
        ledger.reserve(another(2), Cap(1e-3, 1e-6))
    (entry,) = ledger.entries()
    assert entry.state == "settled" and [begun.event for begun in entry.events] == [SIZES[0], EVENT]
    assert not list(ledger.path.parent.glob("*.open/*"))
    ledger.reserve(ALIGNS)
    (entry,) = ledger.entries()
    assert entry.spent.size_rho == SIZES[0].rho + ALIGNS.size_rho


def test_a_runs_file_is_not_removed_under_the_run_that_has_taken_it(tmp_path: Path) -> None:
    held = RunFile.take(tmp_path / "tallies" / "1")
    assert held is not None
    discard(tmp_path / "tallies" / "1")
    held.append(EVENT)
    assert [begun.event for begun in read(tmp_path / "tallies" / "1")] == [EVENT]
    held.close()
    discard(tmp_path / "tallies" / "1")
    assert not (tmp_path / "tallies" / "1").exists()


@pytest.mark.parametrize("child", ["computes"], indirect=True)
def test_a_computing_partys_run_that_dies_keeps_its_events(
    ledger: Ledger, child: subprocess.Popen[str]
) -> None:
    assert spent(ledger) == RHO
    with pytest.raises(BudgetRefused, match="already under way"):
        ledger.reserve(RUN)
    child.send_signal(signal.SIGSTOP)  # stopped is not dead
    assert spent(ledger) == RHO
    child.kill()
    child.wait()
    assert spent(ledger) == EVENT.rho
    run = ledger.reserve(RUN)  # resumed under the same id: reserved again, its events kept
    assert spent(ledger) == RHO and len(ledger.entries()) == 1
    run.begin(EVENT)
    run.settle()
    assert spent(ledger) == 2 * EVENT.rho


@pytest.mark.parametrize("child", ["contributes"], indirect=True)
def test_a_contributors_run_that_dies_keeps_its_reservation(
    ledger: Ledger, child: subprocess.Popen[str]
) -> None:
    child.kill()
    child.wait()
    assert spent(ledger) == RHO == spent(ledger)
    with pytest.raises(BudgetRefused):
        ledger.reserve(another(2), Cap(1.0, 1e-9))


def test_without_its_file_a_run_is_not_known_to_be_dead(ledger: Ledger) -> None:
    ledger.reserve(RUN).close()
    (open_run,) = ledger.path.parent.glob("*.open/*")
    open_run.unlink()
    assert spent(ledger) == RHO


def test_in_a_copy_of_the_ledger_a_run_under_way_is_not_known_to_be_dead(
    ledger: Ledger, tmp_path: Path
) -> None:
    """A copied file is locked by nobody, and its run goes on to release more."""
    run = ledger.reserve(RUN, Cap(1.0, 1e-9))
    run.begin(EVENT)
    shutil.copytree(ledger.path.parent, tmp_path / "copied")
    run.begin(replace(EVENT, rho=RHO / 2))
    copied = Ledger(tmp_path / "copied" / ledger.path.name)
    assert spent(copied) == RHO and copied.entries()[0].state == "open"
    with pytest.raises(BudgetRefused, match="cap"):
        copied.reserve(another(2, rho=RHO / 4), Cap(1.0, 1e-9))
    run.close()
    assert spent(ledger) == RHO * 3 / 4  # of the original it is known
    run = ledger.reserve(RUN)
    shutil.copytree(ledger.path.parent, tmp_path / "again")
    assert spent(Ledger(tmp_path / "again" / ledger.path.name)) == RHO


def test_a_run_that_is_resumed_in_a_copy_is_its_own_there(ledger: Ledger, tmp_path: Path) -> None:
    ledger.reserve(RUN).close()
    shutil.copytree(ledger.path.parent, tmp_path / "copied")
    copied = Ledger(tmp_path / "copied" / ledger.path.name)
    run = copied.reserve(RUN)
    run.begin(EVENT)
    run.close()
    assert spent(copied) == EVENT.rho


def test_an_older_version_s_file_is_told_by_its_lock(ledger: Ledger) -> None:
    run = ledger.reserve(RUN)
    run.begin(EVENT)
    (file,) = (ledger.path.parent / f"{ledger.path.name}.open").iterdir()
    own, event = file.read_bytes().splitlines(keepends=True)
    assert b"inode" in own
    file.write_bytes(event)
    assert spent(ledger) == RHO
    run.close()
    assert spent(ledger) == EVENT.rho


def test_a_torn_line_is_dropped_whatever_its_length(tmp_path: Path) -> None:
    for share in (0, 0.3, 0.99):  # of the second event's line, what a crash leaves
        ledger = Ledger(tmp_path / f"{share}.db")
        for run_id in (1, 2):
            run = ledger.reserve(another(run_id))
            run.begin(EVENT)
            run.begin(EVENT)
            run.close()
            (open_run,) = tmp_path.glob(f"{share}.db.open/{run_id}")
            whole = open_run.read_bytes()
            first = whole.rindex(b"\n", 0, -1) + 1
            open_run.write_bytes(whole[: first + int(share * (len(whole) - first))])
            if run_id == 1:
                assert spent(ledger) == EVENT.rho
        run = ledger.reserve(another(2))  # resumed: appends after the first event, not after half a line
        run.begin(replace(EVENT, what="third"))
        run.settle()
        assert [begun.event.what for begun in ledger.entries()[1].events] == ["measure", "third"]


def test_an_altered_file_leaves_the_reservation(ledger: Ledger) -> None:
    run = ledger.reserve(RUN)
    run.begin(EVENT)
    run.close()
    (open_run,) = ledger.path.parent.glob("*.open/*")
    for altered in (
        b"x\n",
        b"[]\n",
        b'{"id": "a"}\n',
        open_run.read_bytes().replace(b'"rho": "', b'"rho": "x'),
    ):
        open_run.write_bytes(altered)
        assert spent(ledger) == RHO
    run = ledger.reserve(another(2))
    (open_run,) = ledger.path.parent.glob("*.open/2")
    open_run.write_text("x\n")
    with pytest.raises(BudgetRefused, match="reservation stands"):
        run.settle()
    assert spent(ledger) == 2 * RHO


def test_a_disk_that_is_full_stops_the_run_before_a_release(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ledger.reserve(RUN)
    run.begin(EVENT)
    write = os.write
    monkeypatch.setattr("os.write", lambda descriptor, line: write(descriptor, line[:9]))
    with pytest.raises(OutOfResources, match=r"disk is full.*nothing of the release measure is opened"):
        run.begin(EVENT)
    monkeypatch.undo()
    with pytest.raises(OutOfResources, match="the disk is full"):  # nothing may follow a torn line
        run.begin(EVENT)
    run.settle()
    assert spent(ledger) == EVENT.rho


def test_a_file_that_outlives_its_settling_is_not_charged_twice(ledger: Ledger) -> None:
    run = ledger.reserve(RUN)
    run.begin(EVENT)
    (open_run,) = ledger.path.parent.glob("*.open/*")
    copy = open_run.read_bytes()
    run.settle()
    open_run.write_bytes(copy)  # as if the process had died between the commit and the removal
    run = ledger.reserve(RUN)
    run.begin(EVENT)
    run.settle()
    assert spent(ledger) == 2 * EVENT.rho


RACE = """
import sys
from dataclasses import replace
from mpc_protocols.errors import BudgetRefused
from parties.budget.account import Cap
from parties.budget.ledger import Ledger
from tests.parties.budget.test_ledger import EVENT, RHO, RUN
ledger, me, done = Ledger(sys.argv[1]), sys.argv[2], 0
for i in range(8):
    try:
        run = ledger.reserve(replace(RUN, run=f"{me}-{i}", rho=RHO / 10, beta=EVENT.beta), Cap(1.0, 1e-9))
    except BudgetRefused:
        continue
    run.begin(replace(EVENT, rho=RHO / 10))
    run.settle()
    done += 1
print(done)
"""


def test_concurrent_runs_together_stay_within_the_cap(ledger: Ledger) -> None:
    """Four processes ask for eight tenths of the cap each: exactly ten runs in all are admitted, whoever comes first."""
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(ledger.path), str(i)], stdout=subprocess.PIPE, text=True
        )
        for i in range(4)
    ]
    admitted = [int(racer.communicate()[0]) for racer in racers]
    assert sum(admitted) == 10 and spent(ledger) == RHO
    assert all(entry.state == "settled" and len(entry.events) == 1 for entry in ledger.entries())


KILLED = """
import os, signal, sys
from parties.budget.ledger import Ledger
from tests.parties.budget.test_ledger import EVENT, RUN
ledger = Ledger(sys.argv[1])
with ledger.transaction() as database:  # killed between the first statement and the commit
    ledger._insert(database, RUN)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_reservation_that_was_not_committed_leaves_no_trace(ledger: Ledger) -> None:
    ledger.reserve(another(1)).settle()
    assert subprocess.run([sys.executable, "-c", KILLED, str(ledger.path)]).returncode == -9
    assert [entry.reservation.run for entry in ledger.entries()] == ["run-1"]
    ledger.reserve(RUN).settle()


def test_a_ledger_that_cannot_be_used_refuses_the_run(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a database" * 100)
    (tmp_path / "folder").mkdir()
    newer = sqlite3.connect(tmp_path / "newer")
    newer.execute("PRAGMA user_version = 7")
    newer.close()
    foreign = sqlite3.connect(tmp_path / "foreign")
    foreign.execute("CREATE TABLE theirs (x)")
    foreign.close()
    for name in ("text", "folder", "newer", "foreign", "text/below"):
        with pytest.raises(BudgetRefused) as caught:
            Ledger(tmp_path / name).reserve(RUN)
        assert str(tmp_path / name) in caught.value.sentence and caught.value.sentence.endswith(".")


def test_a_rehearsal_leaves_nothing_behind(tmp_path: Path) -> None:
    Ledger(tmp_path / "new" / "deep" / "ledger.db").rehearse()
    assert not list(tmp_path.iterdir())
    Ledger(tmp_path / "used.db").reserve(RUN)
    (tmp_path / "link.db").symlink_to(tmp_path / "later.db")
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    for name in ("used.db", "link.db"):
        Ledger(tmp_path / name).rehearse()
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_rehearsal_finds_what_may_not_be_written(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    for name in ("read-only.db", "closed/ledger.db"):
        Ledger(tmp_path / name).reserve(RUN)
    (tmp_path / "read-only.db").chmod(0o400)
    closed.chmod(0o500)
    for path in (
        tmp_path / "read-only.db",
        closed / "ledger.db",
        closed / "new.db",
        closed / "new" / "ledger.db",
    ):
        with pytest.raises(OutOfResources, match="cannot be used"):
            Ledger(path).rehearse()
    closed.chmod(0o700)


def test_a_folder_that_may_not_be_written_is_no_budget_that_is_refused(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite says only that it cannot open a file there."""
    ledger.path.mkdir(parents=True)
    with pytest.raises(BudgetRefused, match="cannot be used"):
        ledger.entries()
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(OutOfResources, match="it may not be written"):
        ledger.entries()


def test_the_tests_do_not_write_into_the_users_ledger(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert default_path().is_relative_to(tmp_path_factory.getbasetemp())
    command = [
        sys.executable,
        "-c",
        "from parties.budget.ledger_file import default_path; print(default_path())",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(default_path())
    monkeypatch.delenv("COSYNTH_LEDGER")
    assert not default_path().is_relative_to(tmp_path_factory.getbasetemp())  # what it keeps them from


def test_where_the_ledger_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "mine.db"))
    assert default_path() == tmp_path / "mine.db" == Ledger().path
    monkeypatch.delenv("COSYNTH_LEDGER")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_path() == tmp_path / "cosynth" / "ledger.db"
    for unset in ("", "relative"):  # the XDG specification: ignore what is not absolute
        monkeypatch.setenv("XDG_DATA_HOME", unset)
        monkeypatch.setenv("HOME", str(tmp_path))
        assert default_path() == tmp_path / ".local" / "share" / "cosynth" / "ledger.db"


def test_a_resumed_run_does_not_begin_its_releases_again(ledger: Ledger) -> None:
    run = ledger.reserve(RUN)
    run.begin(EVENT, 1)
    run.begin(SECOND, 2)
    run.close()
    run = ledger.reserve(RUN)
    with pytest.raises(BudgetRefused, match="Release 2 of this run is on record"):
        run.begin(EVENT, 2)
    for number, event in enumerate((EVENT, SECOND, EVENT), start=1):
        run.begin(event, number)
    run.settle()
    (entry,) = ledger.entries()
    assert [begun.event for begun in entry.events] == [EVENT, SECOND, EVENT]


SECOND = replace(EVENT, what="select", rho=EVENT.rho / 2)


def test_releases_of_one_step_are_begun_together_or_not_at_all(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ledger.reserve(RUN)
    run.begin(EVENT, 1)
    run.close()
    run, synced = ledger.reserve(RUN), list[int]()
    monkeypatch.setattr("os.fsync", synced.append)
    run.begin_all([(EVENT, 1), (SECOND, 2), (EVENT, 3)])
    assert len(synced) == 1
    for nothing_new in ([(EVENT, 1)], []):
        run.begin_all(nothing_new)
    assert len(synced) == 1
    monkeypatch.undo()
    with pytest.raises(BudgetRefused, match="exceed what this run reserved"):
        run.begin_all([(SECOND, 4), (replace(EVENT, rho=RHO), 5)])
    with pytest.raises(BudgetRefused, match="Release 1 of this run is on record"):
        run.begin_all([(SECOND, 4), (SECOND, 1)])
    run.settle()
    (entry,) = ledger.entries()
    assert [begun.event for begun in entry.events] == [EVENT, SECOND, EVENT]


def test_wherever_a_write_of_a_steps_releases_ends_what_is_on_record_is_charged_and_the_rest_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full in the middle: the step is refused, whole lines count, and an attempt that goes on begins
    those that lack."""
    step = [(EVENT, 1), (SECOND, 2), (EVENT, 3)]
    whole, ends = os.write, set[int]()
    for kept in range(0, 1000, 13):
        ledger = Ledger(tmp_path / f"{kept}.db")
        run = ledger.reserve(RUN)
        monkeypatch.setattr("os.write", lambda descriptor, lines, kept=kept: whole(descriptor, lines[:kept]))
        try:
            run.begin_all(step)
        except OutOfResources:
            there = [begun.event for entry in ledger.entries() for begun in entry.events]
            ends.add(len(there))
            assert there == [event for event, _ in step[: len(there)]]
        else:
            ends.add(len(step))
        monkeypatch.setattr("os.write", whole)
        run.close()
        run = ledger.reserve(RUN)
        run.begin_all(step)
        run.settle()
        (entry,) = ledger.entries()
        assert [begun.event for begun in entry.events] == [event for event, _ in step]
        assert entry.spent.rho == sum(event.rho for event, _ in step)
    assert ends == {0, 1, 2, 3}


def test_each_attempt_at_a_run_counts_as_an_alignment(ledger: Ledger) -> None:
    started = Event(STARTED, Fraction(0), Fraction(0), {"owners": ["north", "south"]})
    cap = Cap(max_alignments=2)
    aligns = replace(RUN, aligns=True)
    ledger.reserve(aligns, cap).close()  # died before it aligned
    for done in (1, 2):
        run = ledger.reserve(aligns, cap)
        run.begin(started)
        run.close()
        assert ledger.alignments("patients", "south") == done
    with pytest.raises(BudgetRefused, match="aligned 2 times with south"):
        ledger.reserve(aligns, cap)
    with pytest.raises(BudgetRefused, match="aligned 2 times with south"):
        ledger.reserve(another(1, aligns=True), cap)


def test_a_contributor_s_run_that_has_ended_is_not_resumed(ledger: Ledger) -> None:
    contributes = replace(RUN, computes=False)
    ledger.reserve(contributes).settle()  # nothing was released: its parties had not assembled
    run = ledger.reserve(contributes)
    assert not ledger.has_ended("patients", RUN.run)
    run.begin(EVENT, 1)
    run.settle()
    assert ledger.has_ended("patients", RUN.run)
    with pytest.raises(BudgetRefused, match="has ended on dataset patients and is not resumed"):
        ledger.reserve(contributes)


def test_a_run_that_the_ledger_knows_better_than_its_files_is_not_released_anew(ledger: Ledger) -> None:
    """A peer names a run that is over, or all files were set back: the same events would be charged nothing."""
    run = ledger.reserve(RUN, recorded=0)
    run.begin(EVENT, 1)
    run.begin(SECOND, 2)
    run.settle()
    for recorded in (0, 1):
        with pytest.raises(BudgetRefused, match=f"knows 2 releases .* go on from {recorded}"):
            ledger.reserve(RUN, recorded=recorded)
    assert [entry.state for entry in ledger.entries()] == ["settled"]
    ledger.reserve(RUN, recorded=3).close()  # one that was in the journal, and not yet here
    ledger.reserve(RUN).close()  # nothing is computed any more


def test_a_contributor_s_run_whose_result_was_handed_out_is_not_computed_again(ledger: Ledger) -> None:
    contributes = replace(RUN, computes=False)
    run = ledger.reserve(contributes, recorded=0)
    run.begin(EVENT, 1)
    run.close()  # it died before it had written its results
    with pytest.raises(BudgetRefused, match="knows 1 releases"):
        ledger.reserve(contributes, recorded=0)


@pytest.mark.parametrize(
    "change", [{"rho": RHO / 100}, {"study": "other"}, {"epsilon": 0.1}, {"computes": False}]
)
def test_a_run_is_not_resumed_as_one_of_another_study(ledger: Ledger, change: dict[str, object]) -> None:
    """Its reservation, which stands at a contributor for good, would shrink to the other's."""
    ledger.reserve(RUN).close()
    with pytest.raises(BudgetRefused, match="as one of another study or budget"):
        ledger.reserve(replace(RUN, **change), recorded=0)  # type: ignore[arg-type]
    ledger.reserve(replace(RUN, digest="cd" * 32), recorded=0).close()  # of a session under another CA


def test_a_cap_holds_whichever_open_run_turns_out_to_be_the_first(ledger: Ledger) -> None:
    """What a cap leaves open is the first spender's. One that is under way may die without: then another is the first."""
    cap, whole = Cap(5.0, 1e-6), Notion(ProtectedUnit(("person",), 10, 1), "add-remove")
    first = ledger.reserve(another(1, notion=Notion(ProtectedUnit(("person",)), "add-remove")), cap)
    second = ledger.reserve(another(2, notion=whole), cap)
    # for one row of a person both count once; for ten this one counts a hundred times
    with pytest.raises(
        BudgetRefused, match="counted 100 times for everybody who shares one person: at most 10 rows"
    ):
        ledger.reserve(another(3, notion=Notion(ProtectedUnit(("person",)), "add-remove")), cap)
    second.close()  # nothing of it was opened: the first one's notion it stays
    third = ledger.reserve(another(3, notion=Notion(ProtectedUnit(("person",)), "add-remove")), cap)
    first.begin(EVENT)
    first.close()
    ledger.reserve(another(4, notion=whole), cap).close()
    third.close()
    assert epsilon_by_rho(ledger.entries(), 1e-6) < 5


def test_a_run_that_counts_under_replace_alone_waits_until_the_notion_is_settled(ledger: Ledger) -> None:
    cap = Cap(8.0, 1e-6)
    replaced = replace(ROWS, adjacency="replace")
    first = ledger.reserve(another(1, notion=replaced), cap)
    second = ledger.reserve(another(2), cap)
    with pytest.raises(BudgetRefused, match="a run under replace does not hide how many rows there are"):
        ledger.reserve(another(3, notion=replaced), cap)
    first.begin(EVENT)
    third = ledger.reserve(another(3, notion=replaced), cap)
    for run in (first, second, third):
        run.close()
    assert Account.of(ledger.entries(), cap).notion == replaced
