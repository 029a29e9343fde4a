"""P: joining records tells nobody more than it says - the private set unions, and alignment by row order.

Attacked is every method that two owners and a third party can run, and those that may take another way when all three
own lists. An honest but curious owner looks at all
that it receives, and at the order of the rows; a deviating one changes messages.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.psu.method import AlignmentMethod
from runner.review.audit import statistics
from runner.review.audit.check import Check, Finding, Group, Profile, by_name, judged, tallied
from runner.review.audit.groups.hostile import endings
from runner.review.audit.subjects.ends import unless_stuck
from runner.review.audit.subjects.in_memory.bent_wire import Bend
from runner.review.audit.subjects.in_memory.union import (
    COMPUTING,
    MEMBERS,
    OWNERS,
    Aligned,
    identifiers,
    methods,
    run_alignment,
)
from runner.review.audit.subjects.subject import Subject

MINE, COMMON = 24, 10
"""Identifiers of an owner, and how many of them the other one has too."""
REDRAWS = 6
"""A word of 64 bits survives one by chance once in 2^64, however many there are; the others are for words of
few random bits."""
RUNS = {Profile.QUICK: 10, Profile.DEFAULT: 100, Profile.DEEP: 1000}
CASES = {Profile.QUICK: 12, Profile.DEFAULT: 60, Profile.DEEP: 2000}
ORDER_ALPHA = 2e-8


STRANGERS = identifiers(range(5000, 5000 + MINE))
"""Of a third owner, who has nobody in common with the others."""


def _ways() -> Iterator[tuple[str, AlignmentMethod, list[list[bytes]]]]:
    """Every method with two owners and, where the third party may own a list, with three: a name, and the lists
    beside those of two."""
    names = [member.name for member in MEMBERS]
    for method in methods():
        yield method.name, method, []
        if method.psu and method.misfit(names, names) is None:
            yield f"{method.name} of three owners", method, [STRANGERS]


def lists(kept: int, others_from: int, shift: int = 0) -> list[list[bytes]]:
    """Both owners' identifiers: owner `kept` has the first MINE, the other COMMON of them from `shift` on,
    and strangers."""
    own = identifiers(range(MINE))
    other = identifiers([*range(shift, shift + COMMON), *range(others_from, others_from + MINE - COMMON)])
    return [own, other] if kept == 0 else [other, own]


def _same_rows(of: Aligned, both: Sequence[Sequence[bytes]]) -> list[str]:
    """What is wrong with a result: the ideal functionality's, up to the order of the rows."""
    union = len(set().union(*both))
    problems = [
        f"party {party} counts {result.n_rows} rows of {union}"
        for party, result in enumerate(of.results)
        if result.n_rows != union
    ]
    row_of: dict[bytes, int] = {}
    for entries, result in zip(both, of.results, strict=False):
        for entry, row in zip(entries, result.rows.tolist(), strict=True):
            if row_of.setdefault(entry, row) != row:
                problems.append("one record has two rows")
    if len(set(row_of.values())) != len(row_of):
        problems.append("two records have one row")
    return problems


def _by_rows(method: AlignmentMethod, both: list[list[bytes]]) -> list[list[bytes]]:
    """The lists, as far as a method tells identifiers apart: by row order the same records for both."""
    return both if method.psu else [both[0], both[0]]


def tables(subject: Subject) -> Finding:
    """Align lists of all kinds of overlap, and compare with a union of sets."""
    problems, runs = [], 0
    for name, method, beside in _ways():
        cases = {
            "some in common": lists(0, 1000),
            "all in common": [identifiers(range(MINE)), identifiers(range(MINE))[::-1]],
            "none in common": [identifiers(range(MINE)), identifiers(range(1000, 1000 + MINE))],
            "lists of different lengths": [identifiers(range(MINE)), identifiers(range(3))],
        }
        for words, case in cases.items():
            both = [*_by_rows(method, case), *beside]
            runs += 1
            found = run_alignment(method, both, subject.coins(f"tables {words}"))
            problems += [f'"{name}", {words}: {each}.' for each in _same_rows(found, both)]
    return judged(
        problems, f"{runs} alignments by {_names()}: each is the union of the sets.", {"runs": runs}
    )


def _names() -> str:
    return ", ".join(method.name for method in methods())


def sizes(subject: Subject) -> Finding:
    """Compare the messages of runs on lists of equal lengths and unions, one by one."""
    problems, messages = [], {}
    for name, method, beside in _ways():
        cases = [
            _by_rows(method, lists(0, others, shift)) for others, shift in ((1000, 0), (2000, 14), (3000, 5))
        ]
        cases.append([each[::-1] for each in cases[0]])
        shapes = []
        for number, both in enumerate(cases):
            ran = run_alignment(method, [*both, *beside], subject.coins(f"sizes {number}"))
            shapes.append(
                [
                    (party, frame.stream, frame.sender, frame.clock, len(frame.payload))
                    for party in range(COMPUTING)
                    for frame in ran.view(party)
                ]
            )
        messages[name] = len(shapes[0])
        if any(shape != shapes[0] for shape in shapes):
            problems.append(f'"{name}": what travels depends on which identifiers are in the lists.')
    return judged(
        problems,
        "Lists of the same lengths and union: alike in receiver, stream, sender, round and bytes of all messages ("
        f"{by_name(messages)}).",
        {"messages": messages},
    )


def _words(ran: Aligned, party: int) -> set[bytes]:
    """Every 8 bytes that a party received, at any multiple of 8 within a message."""
    return {
        frame.payload[at : at + 8] for frame in ran.view(party) for at in range(0, len(frame.payload) - 7, 8)
    }


def masks(subject: Subject) -> Finding:
    """At each party: find what follows the others' identifiers, wherever it stands, and redraw what the party
    lacks."""
    problems, counted = [], {}
    for name, method, beside in _ways():
        followed, coins = 0, subject.coins("alignment")
        for party in range(COMPUTING):
            first, second = (
                [*_by_rows(method, lists(party % OWNERS, others)), *beside] for others in (1000, 2000)
            )
            base = run_alignment(method, first, coins)
            follows = _words(base, party) - _words(run_alignment(method, second, coins), party)
            followed += len(follows)
            for fresh in range(1, REDRAWS + 1):
                if not follows:
                    break
                follows &= _words(
                    run_alignment(method, first, replace(coins, kept=party, fresh=fresh)), party
                )
            if follows:
                problems.append(
                    f'"{name}", party {party}: {len(follows)} words of 64 bits follow the others\' identifiers and '
                    "nothing that it lacks."
                )
        counted[name] = followed
    return judged(
        problems,
        "Words of 64 bits that follow others' identifiers: "
        f"{by_name(counted)}; all follow keys or coins that their receiver lacks.",
        {"words": counted},
    )


def rank_sum(chosen: NDArray[np.int64], among: NDArray[np.int64]) -> tuple[float, float]:
    """Deviation of the ranks' sum of those `chosen` (places) from its mean, and its variance, if ranks are
    uniform."""
    n, k = len(among), len(chosen)
    ranks = np.argsort(np.argsort(among)) + 1.0
    return float(ranks[chosen].sum() - k * (n + 1) / 2), k * (n - k) * (n + 1) / 12


def _correlation(first: NDArray[np.int64], second: NDArray[np.int64]) -> tuple[float, float]:
    """Sum of products of centred ranks, and its variance, if one is a uniform permutation of the other."""
    n = len(first)
    x, y = (np.argsort(np.argsort(each)) - (n - 1) / 2 for each in (first, second))
    spread = n * (n * n - 1) / 12
    return float((x * y).sum()), spread * spread / (n - 1)


def order(subject: Subject) -> Finding:
    """Align the same lists again and again: rows must tell neither who is common, nor places in a file, nor
    other runs."""
    problems, figures = [], {}
    hiding = [method for method in methods() if method.psu and method.hides_members]
    tests = max(3 * OWNERS * len(hiding), 1)
    limit = statistics.normal_quantile(1 - ORDER_ALPHA / 2 / tests)
    both = lists(0, 1000)
    for method in hiding:
        sums: dict[str, list[tuple[float, float]]] = {}
        last: Aligned | None = None
        for number in range(RUNS[subject.profile]):
            session = subject.coins(f"order {number}").key((0, 1))
            ran = run_alignment(method, both, subject.coins(f"order {number}"), session=session)
            for owner in range(OWNERS):
                rows, common = ran.results[owner].rows, np.arange(COMMON)
                sums.setdefault(f"owner {owner}, records in common", []).append(rank_sum(common, rows))
                sums.setdefault(f"owner {owner}, places in the file", []).append(
                    _correlation(np.arange(len(rows)), rows)
                )
                if last is not None:
                    sums.setdefault(f"owner {owner}, the run before", []).append(
                        _correlation(last.results[owner].rows, rows)
                    )
            last = ran
        for words, terms in sums.items():
            z = sum(x for x, _ in terms) / math.sqrt(sum(v for _, v in terms))
            figures[f"{method.name}, {words}"] = z
            if abs(z) > limit:
                problems.append(
                    f'"{method.name}": rows follow {words} ({z:+.1f} standard errors, limit {limit:.1f}).'
                )
    most = max((abs(z) for z in figures.values()), default=0.0)
    return judged(
        problems,
        f"{RUNS[subject.profile]} alignments by each of {', '.join(method.name for method in hiding)}: rows tell neither records "
        f"in common, nor places in the file, nor another run (at most {most:.1f} standard errors, limit {limit:.1f}).",
        {"z": figures, "limit": limit},
    )


def changed(subject: Subject) -> Finding:
    """Change one message of an alignment at a time; see how it ends."""
    problems, figures = [], {}
    rng = subject.generator("alignment messages")
    for method in methods():
        both = _by_rows(method, lists(0, 1000))
        honest = run_alignment(method, both, subject.coins("changed"))
        ways = Counter((frame.sender, frame.receiver) for frame in honest.frames)

        def run(
            bend: Bend, ends: dict[int, Any], method: AlignmentMethod = method, both: list[list[bytes]] = both
        ) -> str:
            found = run_alignment(method, both, subject.coins("changed"), bend, ends=ends)
            return "right table" if not _same_rows(found, both) else "another table, unnoticed"

        figures[method.name], found = endings(CASES[subject.profile], rng, ways, run)
        problems += [f'"{method.name}": {problem}' for problem in found]
    finding = judged(
        problems,
        "One message changed in each alignment, and how it ended: " + tallied(figures) + ".",
        figures,
    )
    return unless_stuck(finding, figures.values())


GROUP = Group(
    "P",
    "Alignments",
    "What does joining records tell, and to whom?",
    (
        Check(
            "tables",
            "Every method joins records as a union of sets does.",
            "exact",
            "A record with two rows, two records in one row, a union that is counted wrongly.",
            tables,
        ),
        Check(
            "sizes",
            "What travels depends on the lengths of the lists and of their union alone.",
            "exact",
            "A message that is longer, missing or in another round for other identifiers or another order.",
            sizes,
        ),
        Check(
            "masks",
            "Nothing that a party receives of others' identifiers can be tested without keys that it lacks.",
            "exact",
            "Identifiers, or plain or publicly salted hashes of them, in any order.",
            masks,
        ),
        Check(
            "order",
            "The rows of the common table tell neither membership, nor the order of a file, nor one run of another.",
            "statistical",
            "Common records that come first, rows in file order, the same order in the next run.",
            order,
            ORDER_ALPHA,
        ),
        Check(
            "changed",
            "A message that is not what the method says ends the alignment with 40 or 41, or is a list of the owner's choice.",
            "fault",
            "A traceback at an honest party, another exit code. What goes unnoticed is counted, and no violation: the methods "
            "protect against parties that follow them.",
            changed,
        ),
    ),
)
