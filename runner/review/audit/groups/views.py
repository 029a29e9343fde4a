"""V: what a corrupted party receives is a function of its own data, the output, and coins that it does not
have.

A protocol that is private has a simulator, which makes up a party's messages from its own input, keys, coins
and the output. So fix all randomness, and change the others' rows such that every output stays the same.
Whatever byte of the messages follows the rows must then follow keys or coins that the receiver lacks, too:
draw these afresh, and the byte changes sooner or later. One that follows the rows and nothing the receiver
lacks is not masked. No statistics on the protocol, no knowledge of it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import MarginalOracle
from runner.review.audit.check import Check, Finding, Group, Verdict, by_name, judged
from runner.review.audit.subjects.in_memory.arena import Arena, Codes, Coins, Ran
from runner.review.audit.subjects.in_memory.openings import Openings, Party
from runner.review.audit.subjects.in_memory.streams import Streams
from runner.review.audit.subjects.questions import NO_NOISE, PICKS, every_kind
from runner.review.audit.subjects.subject import Subject

REDRAWS = 38
"""A byte with a single random bit stays as it was in so many fresh runs with a chance of 4e-12; there are
some thousand bytes."""
ALARM = 1e-7
_COUNT = 6


def same_outputs(subject: Subject, parties: int, kept: int) -> tuple[list[Codes], list[Codes]]:
    """Two sets of tables with equal rows at party `kept`, and equal answers to all that `ask` opens.

    In the first set every other party's first two columns are equal, in the second half of the rows have the
    next value in the second column: single columns agree, and all L1 distances to answers above every count.
    """
    a, b, _ = subject.sizes.values()
    length = min(a, b)
    own = subject.tables(parties, _COUNT)
    first, second = [], []
    for party in range(parties):
        if party == kept:
            first.append(own[party])
            second.append(own[party])
            continue
        places = np.repeat(np.arange(length), _COUNT)
        last, shift = np.zeros_like(places), np.arange(len(places)) % 2
        first.append(np.stack([places, places, last], axis=1))
        second.append(np.stack([places, (places + shift) % length, last], axis=1))
    return first, second


def ask(oracle: MarginalOracle, columns: Sequence[str], rows: int) -> Any:
    """Questions whose answers are the same for both sets of tables, although scores and single counts are
    not.

    Single columns; a choice between a pair whose score differs and one that is certain to win (their scores
    lie 100 scales of the noise apart); distances to answers above every count.
    """
    a, b, c = columns[:3]
    singles = oracle.prepare([(a,), (b,), (c,)])
    found = [cells.tolist() for cells in oracle.measure(singles, NO_NOISE)]
    pairs = oracle.prepare([(a, b), (b, c)])
    cells = [oracle.facts.cells(pair) for pair in ((a, b), (b, c))]
    graph = np.where(np.arange(cells[0]) % (oracle.facts.sizes[b] + 1) == 0, 2.0, 0.0)
    far = np.full(cells[1], float(rows))
    weights, penalties = [Fraction(1)] * 2, [Fraction(0)] * 2
    found.append(oracle.select(pairs, [graph, far], weights, penalties, Fraction(4)))
    above = [np.full(n, rows * 4.0) for n in cells]
    found.append(oracle.distances(pairs, above, NO_NOISE).tolist())
    return found


def payloads(ran: Ran, party: int) -> list[NDArray[np.uint8]]:
    return [np.frombuffer(frame.payload, np.uint8) for frame in ran.view(party)]


def following(
    view: list[NDArray[np.uint8]], other: list[NDArray[np.uint8]]
) -> list[NDArray[np.bool_]] | None:
    """Which bytes differ; None if the messages are not even of the same sizes."""
    if [len(each) for each in view] != [len(each) for each in other]:
        return None
    return [mine != theirs for mine, theirs in zip(view, other, strict=True)]


def keep_equal(
    follows: list[NDArray[np.bool_]], view: list[NDArray[np.uint8]], redrawn: list[NDArray[np.uint8]]
) -> bool:
    """Of the bytes that follow the rows leave those that are as they were when all was redrawn, in place.

    False if the messages are not of the same sizes: then nobody knows which byte is which.
    """
    changed = following(view, redrawn)
    for mine, differs in zip(follows, changed or [], strict=changed is not None):
        mine &= ~differs
    return changed is not None


def run_views(arena: Arena, subject: Subject, tables: list[Codes], coins: Coins) -> Ran:
    """A run that asks for what is the same for both sets of tables."""
    rows = sum(map(len, tables))
    return arena.run(lambda oracle: ask(oracle, list(subject.sizes), rows), tables, coins)


def _arenas(subject: Subject) -> dict[str, Arena]:
    """By the words for it, each backend's arena with a contributor, and without.

    A contributor's counts come in parts that it draws, and a holder that adds one to its own counts has a part
    that follows those draws: messages in which only the gates lack a mask would follow them, too. Without
    contributors nothing but the gates hides what a holder brings.
    """
    found = subject.arenas
    return found | {
        f"{name}, no contributor": replace(arena, contributing=0) for name, arena in found.items()
    }


def masks(subject: Subject) -> Finding:
    """At each party of each backend: find the bytes that follow the others' rows, and redraw what the party
    lacks."""
    problems, counted, uncertain = [], {}, []
    for name, arena in _arenas(subject).items():
        coins = subject.coins("views")
        secret_bytes = redraws = 0
        for party in range(arena.computing):
            first, second = same_outputs(subject, arena.parties, party)
            base, other = (run_views(arena, subject, tables, coins) for tables in (first, second))
            who = f"{name}, party {party}"
            if base.answer != other.answer:
                uncertain.append(f"{who}: the outputs of both sets of tables differ.")
                continue
            view = payloads(base, party)
            follows = following(view, payloads(other, party))
            if follows is None:
                problems.append(f"{who}: the sizes of messages follow the rows.")
                continue
            secret_bytes += sum(int(each.sum()) for each in follows)
            for fresh in range(1, REDRAWS + 1):
                if not any(each.any() for each in follows):
                    break
                redraws += 1
                redrawn = payloads(
                    run_views(arena, subject, first, replace(coins, kept=party, fresh=fresh)), party
                )
                if not keep_equal(follows, view, redrawn):
                    uncertain.append(f"{who}: the sizes of messages follow keys or coins.")
                    follows = []
            bare = [(number, int(each.sum())) for number, each in enumerate(follows) if each.any()]
            if bare:
                frame = base.view(party)[bare[0][0]]
                problems.append(
                    f"{who}: {sum(count for _, count in bare)} bytes in {len(bare)} messages follow the others' rows and "
                    f"nothing that it lacks; the first message comes from party {frame.sender} in round {frame.clock} and "
                    f"has {len(frame.payload)} bytes."
                )
        counted[name] = {"bytes_that_follow": secret_bytes, "redraws": redraws}
        if not secret_bytes:
            uncertain.append(f"{name}: nothing follows the rows, so nothing was looked at.")
    if uncertain and not problems:
        return Finding(Verdict.UNINFORMATIVE, " ".join(uncertain), counted)
    return judged(
        problems,
        by_name(
            counted,
            "{name}: all {each[bytes_that_follow]} bytes that follow the others' rows follow keys or coins that their "
            "receiver lacks ({each[redraws]} redraws)",
            joint="; ",
        )
        + ".",
        counted,
    )


def streams(subject: Subject) -> Finding:
    """Ask all kinds of questions twice in different sessions, and look for a stream that a party begins
    twice."""
    problems, counted = [], {}
    for name, arena in subject.arenas.items():
        found = Streams()
        tables = subject.tables(arena.parties, _COUNT)
        with found.watched():
            for session in (b"1" * 32, b"2" * 32):
                other = replace(arena, facts=replace(arena.facts, session=session))
                other.run(
                    lambda oracle: every_kind(oracle, list(subject.sizes), NO_NOISE, 20),
                    tables,
                    subject.coins("streams"),  # the same keys in both sessions
                )
        twice = found.twice()
        counted[name] = len(found.begun)
        if twice:
            problems.append(
                f"{name}: {len(twice)} streams are begun more than once, the first "
                f"by {twice[0][0]} {twice[0][1]} times."
            )
    return judged(
        problems,
        "No stream of masks or noise is begun twice by a party in two sessions under the same keys ("
        f"{by_name(counted, '{name}: {each} streams')}).",
        {"streams": counted},
    )


def opened(subject: Subject) -> Finding:
    """Ask all kinds of questions, and count the numbers that each computing party of an engine has a hand in
    opening."""
    problems, counted = [], {}
    for name, arena in subject.arenas.items():
        asked: list[int] = []

        def script(oracle: MarginalOracle, asked: list[int] = asked) -> None:
            asked.extend(map(len, every_kind(oracle, list(subject.sizes), NO_NOISE, 20)[1]))

        revealed, picks = _Opened(), 1 + PICKS
        with revealed.watched():
            arena.run(script, subject.tables(arena.parties, _COUNT), subject.coins("opened"))
        counted[name] = sum(asked)
        for party, numbers in sorted(revealed.numbers.items()):
            if numbers != sum(asked) or revealed.picks[party] != picks:
                problems.append(
                    f"{name}, {party}: {numbers} numbers and {revealed.picks[party]} positions were opened; "
                    f"{sum(asked)} and {picks} are the outputs."
                )
        if not revealed.numbers:
            return Finding(
                Verdict.UNINFORMATIVE,
                f'What backend "{arena.backend.name}" opens cannot be seen: it runs on no engine.',
            )
    return judged(
        problems,
        "What is opened are the outputs: " + by_name(counted, "{name} {each} numbers") + ", and 3 positions.",
        {"numbers": counted},
    )


class _Opened(Openings):
    """How many numbers and positions the engine of each party's thread opens."""

    def __init__(self) -> None:
        self.numbers: Counter[str] = Counter()
        self.picks: Counter[str] = Counter()

    def opened(self, party: Party, values: list[int], picks: int) -> None:
        """Count them."""
        (self.picks if picks else self.numbers)[threading.current_thread().name] += len(values)


GROUP = Group(
    "V",
    "Views",
    "Could a computing party have made up what it receives?",
    (
        Check(
            "masks",
            "Every byte that follows others' data is masked by keys or coins that its receiver lacks.",
            "exact",
            "A message, or 8 bits of each word of one, without a mask, or with one that the receiver knows. Not: "
            "messages that only tell together.",
            masks,
            ALARM,
        ),
        Check(
            "opened",
            "What a run opens are its outputs.",
            "exact",
            "A score, a sum or a count that is opened on the way.",
            opened,
        ),
        Check(
            "streams",
            "No key stream serves two operations, sessions or releases.",
            "exact",
            "A mask or noise used twice: an operation number repeated, a session or a release left out of a key.",
            streams,
        ),
    ),
)
