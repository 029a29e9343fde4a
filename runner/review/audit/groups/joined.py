"""J: vertically split data - what two owners of different columns are told, and which records count.

The first owner has the first column, the second the two others; a third computing party has none. Of the
common table's rows some are held by one owner only, some by nobody (fakes of an alignment): neither may count
in an intersection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

from mpc_protocols.errors import CosynthError
from mpc_protocols.functionality import Clique, MarginalOracle
from mpc_protocols.vertical.ordered_sums import OwnerShuffle
from runner.review.audit.check import Check, Finding, Group, Verdict, by_name, judged
from runner.review.audit.groups import views
from runner.review.audit.subjects.in_memory.arena import Arena, Coins, Ran
from runner.review.audit.subjects.in_memory.split_columns import Split, split, split_arena, vertical
from runner.review.audit.subjects.questions import NO_NOISE
from runner.review.audit.subjects.subject import Subject

ALARM = 1e-7
"""As of V.masks."""
BOTH, ALONE, NOBODY = 40, 7, 5
"""Rows that both owners hold, that each holds alone, and that nobody holds."""
WIDE = 40
"""Values of each column of an owner of two: so many cells that secret orders cost less than columns of 0 and
1."""


def values(subject: Subject) -> Finding:
    """Open the marginals of split columns without noise, and compare with a count of the records that both
    owners hold."""
    problems, compared = [], 0
    if not vertical(subject):
        return Finding(Verdict.UNINFORMATIVE, "No audited backend takes vertically split data.")
    (whole,) = subject.tables(1, BOTH + 2 * ALONE + NOBODY)
    case = split(subject, whole, ALONE, NOBODY)
    names = list(subject.sizes)
    cliques: list[Clique] = [*((name,) for name in names), (names[0], names[1]), (names[1], names[2])]
    expected = []
    for clique in cliques:
        cells = np.zeros([subject.sizes[name] for name in clique], np.int64)
        for row in whole[:BOTH]:
            cells[tuple(int(row[names.index(name)]) for name in clique)] += 1
        expected.append(cells.ravel())
    for backend in vertical(subject):
        arena = split_arena(subject, backend)
        ran = arena.run(
            lambda oracle: oracle.measure(oracle.prepare(cliques), NO_NOISE),
            case.data(arena.parties),
            subject.coins("joined"),
        )
        for clique, ours, theirs in zip(cliques, ran.answer, expected, strict=True):
            compared += len(ours)
            if not np.array_equal(ours, theirs):
                problems.append(
                    f'backend "{backend.name}", {", ".join(clique)}: {int(np.abs(ours - theirs).sum())} records too many or too '
                    f"few, of {BOTH} that both owners hold."
                )
    return judged(
        problems,
        f"{compared} counts of {BOTH} records that both owners hold; {2 * ALONE} that one of them lacks and {NOBODY} that nobody "
        "holds are in none.",
        {"compared": compared},
    )


def _run(subject: Subject, arena: Arena, case: Split, coins: Coins) -> Ran:
    return arena.run(
        lambda oracle: views.ask(oracle, list(subject.sizes), len(case.codes)),
        case.data(arena.parties),
        coins,
    )


def masks(subject: Subject) -> Finding:
    """As V.masks: which bytes follow the other owner's records, and whether these follow what the receiver
    lacks."""
    problems, counted, uncertain = [], {}, []
    if not vertical(subject):
        return Finding(Verdict.UNINFORMATIVE, "No audited backend takes vertically split data.")
    for backend in vertical(subject):
        arena, coins = split_arena(subject, backend), subject.coins("split views")
        bytes_that_follow = 0
        for party in range(arena.computing):
            first, second = _same_outputs(subject, party)
            base, other = (_run(subject, arena, case, coins) for case in (first, second))
            if base.answer != other.answer:
                uncertain.append(
                    f'backend "{backend.name}", party {party}: the outputs of both sets of records differ.'
                )
                continue
            view = views.payloads(base, party)
            following = views.following(view, views.payloads(other, party))
            if following is None:
                problems.append(
                    f'backend "{backend.name}", party {party}: the sizes of messages follow the records.'
                )
                continue
            bytes_that_follow += sum(int(each.sum()) for each in following)
            for fresh in range(1, views.REDRAWS + 1):
                if not any(each.any() for each in following):
                    break
                redrawn = _run(subject, arena, first, replace(coins, kept=party, fresh=fresh))
                if not views.keep_equal(following, view, views.payloads(redrawn, party)):
                    uncertain.append(
                        f'backend "{backend.name}", party {party}: the sizes of messages follow keys or coins.'
                    )
                    following = []
            bare = sum(int(each.sum()) for each in following)
            if bare:
                problems.append(
                    f'backend "{backend.name}", party {party}: {bare} bytes follow the other owner\'s records and nothing '
                    "that it lacks."
                )
                break
        counted[backend.name] = bytes_that_follow
        if not bytes_that_follow:
            uncertain.append(
                f'backend "{backend.name}": nothing follows the records, so nothing was looked at.'
            )
    if uncertain and not problems:
        return Finding(Verdict.UNINFORMATIVE, " ".join(uncertain), counted)
    return judged(
        problems,
        "Bytes that follow the other owner's records: "
        f"{by_name(counted)}; all follow keys or coins that their receiver lacks.",
        counted,
    )


def _same_outputs(subject: Subject, kept: int) -> tuple[Split, Split]:
    """Two common tables with equal columns at party `kept` and equal answers to all that `views.ask` opens.

    Half of the rows of the first or the second column have the next value in the second table.
    """
    a, b, _ = subject.sizes.values()
    length = min(a, b)
    places = np.repeat(np.arange(length), 6)
    moved = (places + np.arange(len(places)) % 2) % length
    last = np.zeros_like(places)
    own, other = ((places, moved), (places, places)) if kept == 1 else ((places, places), (places, moved))
    tables = [np.stack([own[number], other[number], last], axis=1) for number in range(2)]
    return split(subject, tables[0], 0, 0), split(subject, tables[1], 0, 0)


def orders(subject: Subject) -> Finding:
    """Let an owner whose columns make many cells count its first row in place of others: in all that it sends
    and computes."""
    problems, figures = [], dict[str, str]()
    if not vertical(subject):
        return Finding(Verdict.UNINFORMATIVE, "No audited backend takes vertically split data.")
    first, *own = subject.sizes
    sizes = {first: 2, **dict.fromkeys(own, WIDE)}
    case = split(subject, subject.generator("orders").integers(0, list(sizes.values()), (BOTH, 3)), 0, 0)

    def ask(oracle: MarginalOracle) -> int:
        [cells] = oracle.measure(oracle.prepare([tuple(sizes)]), NO_NOISE)
        return int(cells.sum())

    for backend in vertical(subject):
        plain = split_arena(subject, backend)
        arena = replace(plain, facts=replace(plain.facts, sizes=sizes))
        made = list[OwnerShuffle]()

        with mock.patch.object(OwnerShuffle, "__init__", _greedy(made)):
            try:
                counted = arena.run(ask, case.data(arena.parties), subject.coins("orders")).answer
                ended = f"went on with {counted} records of {BOTH}"
            except CosynthError as error:
                ended = f"stopped with {error.exit_code}"
        figures[backend.name] = ended if made else "no secret orders"
        if made and ended != "stopped with 40":
            problems.append(f'backend "{backend.name}": an owner counts a row again and again: {ended}.')
    return judged(
        problems,
        "An owner that counts a row again and again: " + by_name(figures, "{name}: {each}", joint="; ") + ".",
        figures,
    )


def _greedy(made: list[OwnerShuffle]) -> Callable[..., None]:
    """How an owner's order begins that names its first row in place of all others. made: takes each."""
    plain = OwnerShuffle.__init__

    def begin(self: OwnerShuffle, *given: Any) -> None:
        plain(self, *given)
        for places in (self.places, self._arrangement, self._rows):
            places[1:BOTH] = places[0]
        made.append(self)

    return begin


GROUP = Group(
    "J",
    "Split columns",
    "Where owners hold different columns, what is each told of the other's records, and which records count?",
    (
        Check(
            "values",
            "A record counts if every owner holds it, and only then.",
            "exact",
            "A record that one owner lacks, or a fake of the alignment, in a marginal; a join of the wrong rows.",
            values,
        ),
        Check(
            "orders",
            "Where rows are counted by secret orders, an owner that names a row again and again is stopped.",
            "exact",
            "An order that nobody looks at: a row of one owner's choice that counts as often as it likes.",
            orders,
        ),
        Check(
            "masks",
            "Every byte that follows another owner's records is masked by keys or coins that its receiver lacks.",
            "exact",
            "A column, a membership or a product of theirs without a mask, or with one that the receiver knows.",
            masks,
            ALARM,
        ),
    ),
)
