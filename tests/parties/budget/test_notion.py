"""What a run under one notion of neighbouring tables counts for under another, and caps that name theirs."""

from __future__ import annotations

import math
import sqlite3
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_protocols.errors import BudgetRefused
from mpc_protocols.functionality import Adjacency, Event
from mpc_protocols.mechanisms.selection import dither_inflation, plan_selection, tie_inflation
from parties.budget.account import Account, Cap
from parties.budget.ledger import Ledger
from parties.budget.notion import Notion, ProtectedUnit, covering
from parties.budget.open_run import RecordedEvent
from parties.budget.spending import Charge, Entry, Proposal, Reservation
from synth.budget.accounting import Budget, epsilon_beside
from synth.budget.charges import Charges

BETA = Fraction(1, 10**15)
RHO = Budget.of(1.0, 1e-9, BETA).rho_cap
ROW = ProtectedUnit()
PERSON = ProtectedUnit(("person",), 3)
BOTH: tuple[Adjacency, ...] = ("add-remove", "replace")
RUN = Reservation(
    "patients",
    "run-1",
    "study",
    "ab" * 32,
    1.0,
    1e-9,
    Notion(ROW, "add-remove"),
    RHO,
    BETA,
    ("south", "west"),
)


def person(rows: int, custodians: int = 1, name: str = "person") -> ProtectedUnit:
    return ProtectedUnit((name,), rows, custodians)


def run(number: int, unit: ProtectedUnit = ROW, adjacency: Adjacency = "add-remove") -> Reservation:
    return replace(RUN, run=f"run-{number}", notion=Notion(unit, adjacency))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.db")


@pytest.mark.parametrize(
    ("own", "other", "steps"),
    [
        (ROW, ROW, 1),
        (PERSON, ROW, 3),
        (person(3, 2), ROW, 6),
        (PERSON, person(3), 1),
        (PERSON, person(1, 3), 1),  # as many rows in all
        (PERSON, person(2), Fraction(3, 2)),
        (PERSON, person(1), 3),
        (PERSON, person(7), 1),  # a larger unit counts in full
        (PERSON, ProtectedUnit(("person",), whole=True), 1),
        (ROW, PERSON, None),
        (ROW, person(1), None),
        (PERSON, person(3, name="household"), None),
        (ProtectedUnit(("name", "born")), ProtectedUnit(("name", "born"), whole=True), 1),
        (ProtectedUnit(("name", "born")), ProtectedUnit(("born",), whole=True), None),
        (ProtectedUnit(unread="a household"), ProtectedUnit(unread="a household"), 1),
        (PERSON, ProtectedUnit(unread="a household"), None),
        (ProtectedUnit(unread="a household"), ROW, None),
    ],
)
def test_what_a_unit_counts_for_another(
    own: ProtectedUnit, other: ProtectedUnit, steps: Fraction | int | None
) -> None:
    assert Notion(own, "add-remove").steps(Notion(other, "add-remove")) == steps
    assert Notion(own, "replace").steps(Notion(other, "replace")) == steps
    # replacing is taking away and adding: rho counts four times
    assert Notion(own, "replace").steps(Notion(other, "add-remove")) == (steps and 2 * steps)
    assert Notion(own, "add-remove").steps(Notion(other, "replace")) is None
    if steps is None:
        assert Notion(own, "add-remove").why_not(Notion(other, "add-remove"))


@pytest.mark.parametrize("sigma2", [Fraction(9), Fraction(10**6)])
def test_steps_are_what_the_same_releases_cost_for_the_larger_unit(sigma2: Fraction) -> None:
    """The same noise, charged for s rows instead of s': never more than the steps say, and as much if the
    adjacency is kept."""
    for (mine, own), (others, run) in product(product((1, 2, 3, 6), BOTH), repeat=2):
        steps = Notion(person(mine), own).steps(Notion(person(others), run))
        if steps is None:
            continue
        wide, narrow = Charges(own, mine), Charges(run, others)
        for cost in (Charges.measuring, Charges.counting):
            true, counted = cost(wide, sigma2), steps**2 * cost(narrow, sigma2)
            assert true <= counted
            assert own != run or mine < others or true == counted
        assert wide.distance(sigma2) <= steps * narrow.distance(sigma2)


def settled(*events: Event) -> Entry:
    begun = tuple(RecordedEvent(event, str(number), 0.0) for number, event in enumerate(events))
    return Entry(run(1, person(2)), 0.0, "settled", begun)


def test_a_fraction_counts_its_square_for_gaussian_releases_only() -> None:
    """A reservation, and events of any other kind, count the square of the next whole number."""
    ratio = Fraction(3, 2)
    for what in ("measure", "total", "distances"):
        assert settled(Event(what, RHO, BETA, {})).spent_at(ratio) == Charge(RHO * 9 / 4, BETA * 3 / 2)
    for what in ("select", "sum"):
        assert settled(Event(what, RHO, BETA, {})).spent_at(ratio) == Charge(RHO * 4, BETA * 3 / 2)
    both = settled(Event("measure", RHO, BETA, {}), Event("select", RHO / 5, BETA, {}))
    assert both.spent_at(ratio).rho == RHO * 9 / 4 + RHO * 4 / 5
    assert (
        both.spent_at(Fraction(3)) == both.spent.at(Fraction(3)) and both.spent_at(Fraction(1)) == both.spent
    )
    assert replace(both, state="open").spent_at(ratio) == replace(both, state="open").reservation.charge.at(
        ratio
    )
    assert RUN.charge.at(ratio).rho == 4 * RHO
    assert both.times(ratio) == Fraction(9, 4) * Fraction(5, 6) + 4 * Fraction(1, 6)
    assert settled().times(ratio) == 4


def test_a_selection_of_a_smaller_unit_never_costs_more_than_it_counts() -> None:
    """Both theorems at the account's sensitivity, which theorem 1 rounds up to whole grid steps: the square
    would not do."""
    short = 0
    for rows, epsilon, (mine, others) in product(
        (10**3, 10**5, 4 * 10**6),
        (Fraction(1, 16), Fraction(1, 4), Fraction(31, 32), Fraction(2)),
        ((3, 2), (5, 4), (5, 2), (7, 3)),
    ):
        plan = plan_selection([Fraction(1)] * 2, [Fraction(0)] * 2, epsilon, [rows] * 2, rows, others)
        ratio, grid = Fraction(mine, others), 1 << plan.a
        moved = plan.sensitivity // others * mine
        spans = min(
            -(-moved // grid) * (1 + tie_inflation()) / 32,
            Fraction(moved, 32 * grid) * (1 + dither_inflation(plan.a)),
        )
        assert spans**2 / 8 <= settled(plan.event).spent_at(ratio).rho
        short += spans**2 / 8 > plan.event.rho * ratio**2
    assert short


def test_the_adversarial_pair_of_runs_is_what_it_is_for_a_person(ledger: Ledger) -> None:
    """Unit "row" and a unit of 3 rows, epsilon 1 each: 10 rho for the person, 3.37 and not 1.437."""
    for reservation in (run(1), run(2, PERSON)):
        ledger.reserve(reservation)
    entries = ledger.entries()
    shown = Account.of_entries(entries, Cap())
    assert shown.notion == Notion(PERSON, "add-remove") and shown.spent.rho == 10 * RHO
    assert 3.36 < shown.epsilon(1e-9) == epsilon_beside(10 * RHO, 1e-9, 4 * BETA) < 3.38
    for order in ((run(1), run(2, PERSON)), (run(1, PERSON), run(2))):
        fresh = Ledger(ledger.path.with_name(f"{order[0].notion.unit.rows}.db"))
        fresh.reserve(order[0], Cap(1.5, 1e-9))
        with pytest.raises(BudgetRefused):
            fresh.reserve(order[1], Cap(1.5, 1e-9))


def test_a_person_cap_counts_rows_squared(ledger: Ledger) -> None:
    cap = Cap(epsilon_beside(9 * RHO, 1e-9, 3 * BETA), 1e-9, unit=PERSON, adjacency="add-remove")
    with pytest.raises(BudgetRefused, match="counted 9 times for everybody who shares one person: at most 3"):
        ledger.reserve(run(1), replace(cap, epsilon=cap.epsilon and cap.epsilon * (1 - 1e-9)))
    ledger.reserve(run(1), cap).settle()
    two = run(2, person(2))
    with pytest.raises(BudgetRefused, match="counted 4 times"):  # 9/4, where a fraction's square is proved
        ledger.reserve(two, replace(cap, epsilon=1.0))
    ledger.reserve(two, replace(cap, epsilon=epsilon_beside(RHO * 4, 1e-9, BETA * 3 / 2))).settle()
    ledger.reserve(run(3, person(5)), replace(cap, epsilon=1.0)).settle()  # in full, not less


def test_add_remove_counts_four_times_under_a_replace_cap(ledger: Ledger) -> None:
    cap = Cap(epsilon_beside(4 * RHO, 1e-9, 2 * BETA), 1e-9, unit=ROW, adjacency="replace")
    with pytest.raises(BudgetRefused, match="counted 4 times for one row"):
        ledger.reserve(run(1), replace(cap, epsilon=cap.epsilon and cap.epsilon * (1 - 1e-9)))
    ledger.reserve(run(1), cap).settle()
    ledger.reserve(run(2, ROW, "replace"), replace(cap, epsilon=1.0)).settle()


@pytest.mark.parametrize(
    ("cap", "asked", "advice"),
    [
        (Notion(ROW, "add-remove"), Notion(PERSON, "add-remove"), 'cap_unit = { id = "person", max_rows = 3'),
        (Notion(PERSON, "add-remove"), Notion(person(3, name="household"), "add-remove"), "of its own"),
        (Notion(ROW, "add-remove"), Notion(ROW, "replace"), 'cap_adjacency = "replace"'),
        (Notion(PERSON, "add-remove"), Notion(ROW, "replace"), 'cap_adjacency = "replace"'),
    ],
)
@pytest.mark.parametrize("fixed_by", ["cap", "first run"])
def test_what_a_cap_cannot_count_is_refused_with_50(
    ledger: Ledger, cap: Notion, asked: Notion, advice: str, fixed_by: str
) -> None:
    """Whatever the cap would allow: named in the private file, or fixed by the account's first run."""
    plenty = Cap(1000.0, 0.1)
    if fixed_by == "cap":
        plenty = replace(plenty, unit=cap.unit, adjacency=cap.adjacency)
    else:
        ledger.reserve(replace(RUN, notion=cap), plenty)
    with pytest.raises(BudgetRefused) as caught:
        ledger.reserve(replace(RUN, run="run-2", notion=asked), plenty)
    assert caught.value.exit_code == 50 and advice in caught.value.sentence
    assert caught.value.sentence.startswith("The cap of dataset patients holds for ")


def test_a_first_run_that_spends_nothing_fixes_nothing(ledger: Ledger) -> None:
    cap = Cap(1.0, 1e-9)
    ledger.reserve(run(1, PERSON), cap).settle()
    with pytest.raises(BudgetRefused):  # under way, it fixes the notion until it is over
        ledger.reserve(run(2), cap)
        ledger.reserve(run(3, PERSON), cap)
    assert ledger.entries()[-1].reservation.notion == Notion(ROW, "add-remove")


def test_a_cap_finds_an_earlier_run_that_it_cannot_count(ledger: Ledger) -> None:
    """Runs from before the cap was set, or under another one."""
    ledger.reserve(run(1, PERSON))
    with pytest.raises(BudgetRefused, match="its earlier run of study for everybody who shares one person"):
        ledger.reserve(run(2), Cap(1000.0, 0.1, unit=ROW, adjacency="add-remove"))
    account = Account.of(ledger.entries(), Cap(1000.0, 0.1, unit=ROW, adjacency="add-remove"))
    assert len(account.uncounted) == 1 and account.epsilon(1e-9) == account.epsilon_by_rho(1e-9) == math.inf


def test_a_vertical_first_run_fixes_one_row_of_its_identifier(ledger: Ledger) -> None:
    cap = Cap(epsilon_beside(2 * RHO, 1e-9, 2 * BETA), 1e-9)
    ledger.reserve(run(1, ProtectedUnit(("person",), whole=True)), cap)
    ledger.reserve(run(2), cap)
    assert Account.of(ledger.entries(), cap).notion == Notion(person(1), "add-remove")


def test_the_cap_leaves_room_for_the_samplers(ledger: Ledger) -> None:
    """At epsilon 8 they take (1 + e^8) beta: 3 of 1000 parts of delta with this beta."""
    beta = Fraction(1, 10**15)
    budget = Budget.of(8.0, 1e-9, beta)
    whole = Budget.of(8.0, 1e-9, Fraction(0))
    assert budget.rho_cap < whole.rho_cap
    asked = replace(run(1), rho=whole.rho_cap, beta=beta)
    with pytest.raises(BudgetRefused, match=r"would make it 8\.000\d"):
        ledger.reserve(asked, Cap(8.0, 1e-9))
    ledger.reserve(replace(asked, rho=budget.rho_cap), Cap(8.0, 1e-9))
    shown = Account.of_entries(ledger.entries(), Cap()).epsilon(1e-9)
    assert 8.0 <= shown < 8.0 + 1e-9


def test_beyond_the_samplers_precision_no_epsilon_is_claimed(ledger: Ledger) -> None:
    """Two runs of epsilon 20, each calibrated to about 13: together nothing holds at this delta, and nothing
    is said to."""
    budget = Budget.of(20.0, 1e-9, BETA)
    one = replace(run(1), rho=budget.rho_cap)
    ledger.reserve(one, Cap(20.0, 1e-9))
    with pytest.raises(BudgetRefused, match="would make it above any number"):
        ledger.reserve(replace(one, run="run-2"), Cap(40.0, 1e-9))
    ledger.reserve(replace(one, run="run-2"), Cap(40.0, 1e-3))  # a larger delta has room


@given(
    rho=st.fractions(Fraction(1, 1000), Fraction(5)),
    beta=st.fractions(Fraction(0), Fraction(1, 10**12)),
    delta=st.sampled_from([1e-9, 1e-6, 1e-3]),
)
def test_the_shown_epsilon_is_enough_and_hardly_more(rho: Fraction, beta: Fraction, delta: float) -> None:
    """delta(rho, epsilon) + (1 + e^epsilon) beta <= delta there, and not at 0.1 % less."""
    from synth.budget.accounting import epsilon_of

    epsilon = epsilon_beside(rho, delta, beta)
    if epsilon == math.inf:
        return

    def fits(at: float) -> bool:
        left = Fraction(delta) - Fraction((1 + math.exp(at)) * (1 - 1e-12)) * beta
        return left > 0 and epsilon_of(rho, left) <= at * (1 + 1e-12)

    assert fits(epsilon) and not fits(epsilon * 0.999)


def test_a_charge_for_more_steps_is_group_privacy() -> None:
    charge = Charge(Fraction(3), Fraction(1, 100), Fraction(1, 2), Fraction(1, 1000))
    assert charge.at(Fraction(1)) == charge
    twice = charge.at(Fraction(2))
    assert twice.rho == 12 and twice.beta == Fraction(1, 50) and twice.size_rho == 2
    assert twice.size_delta >= Fraction((1 + math.e) / 1000)  # two steps of (1, 1/1000): 1/1000 + e/1000
    assert charge.at(Fraction(10**9)).size_delta == 1  # nothing is left, and nothing overflows


def test_what_covers_several_notions() -> None:
    add, other = Notion(ROW, "add-remove"), Notion(PERSON, "replace")
    assert covering([add]) == add and covering([]) is None
    assert covering([add, other, Notion(person(2), "add-remove")]) == Notion(PERSON, "replace")
    assert covering([other, Notion(person(3, name="household"), "replace")]) is None
    for notion in (add, other, Notion(person(2), "add-remove")):
        wide = covering([add, other, Notion(person(2), "add-remove")])
        assert wide is not None and wide.steps(notion) is not None


def test_units_of_earlier_ledgers_are_understood(ledger: Ledger) -> None:
    words = {
        "one row": ROW,
        "row": ROW,
        "everybody who shares one person: at most 3 rows per custodian, at most 2 custodians": person(3, 2),
        "everything that the owners hold under one identifier (name, born)": ProtectedUnit(
            ("name", "born"), whole=True
        ),
        "a household of the north": ProtectedUnit(unread="a household of the north"),
    }
    for text, unit in words.items():
        assert ProtectedUnit.from_text(text) == unit
        assert ProtectedUnit.from_text(unit.to_text()) == unit
        assert ProtectedUnit.from_text(unit.words) == unit
    ledger.reserve(RUN)
    database = sqlite3.connect(ledger.path)
    with database:
        database.execute("UPDATE runs SET unit = 'a household of the north'")
    database.close()
    with pytest.raises(BudgetRefused, match="holds for a household of the north"):
        ledger.reserve(replace(RUN, run="run-2"), Cap(1000.0, 0.1))


def test_refusals_are_on_record_and_cost_nothing(ledger: Ledger) -> None:
    assert ledger.refusals() == []
    asked = Proposal("patients", "study", "cd" * 32, ("south",), Notion(PERSON, "replace"), "ef" * 32, 4096)
    ledger.refuse(asked, 30)
    ledger.refuse(replace(asked, dataset="others"), 50)
    assert [(found.proposal, found.code) for found in ledger.refusals("patients")] == [(asked, 30)]
    assert len(ledger.refusals()) == 2 and ledger.entries() == []


def test_in_what_a_second_proposal_differs() -> None:
    first = replace(run(1), domain="aa", max_rows=100).proposal
    assert first.differs(first) == ()
    assert replace(first, domain="bb").differs(first) == ("the domain",)
    assert replace(first, domain="aa+cc").differs(replace(first, domain="aa+dd")) == ("the alignment",)
    assert replace(first, domain="aa+cc").differs(replace(first, domain="aa+cc")) == ()
    assert replace(first, domain="aa+cc").differs(first) == ()  # an older ledger does not say
    assert replace(first, max_rows=99, notion=Notion(PERSON, "add-remove")).differs(first) == (
        "max_rows",
        "the unit",
    )
    assert replace(first, max_rows=99, counterparties=("east",)).differs(first) == ()
    assert replace(first, max_rows=99, dataset="others").differs(first) == ()
    assert first.differs(replace(first, domain="", max_rows=0)) == ()  # an older ledger does not say
