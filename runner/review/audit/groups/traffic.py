"""T: what an observer of the network sees - who sends how much to whom, in which round - is the same for
every input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from mpc_protocols.backend import BACKENDS, DistributedBackend
from mpc_protocols.functionality import MarginalOracle
from mpc_protocols.in_memory.presumed import PresumedRun
from runner.review.audit.check import Check, Finding, Group, by_name, judged
from runner.review.audit.groups.views import run_views, same_outputs
from runner.review.audit.subjects.in_memory.arena import Arena, Codes, Coins, counter
from runner.review.audit.subjects.questions import every_kind
from runner.review.audit.subjects.subject import Subject

ROWS = 40
REFERENCE = {"a": 2, "b": 3, "c": 4, "d": 5}
"""A table's columns and how many values they have."""
Shape = list[tuple[int, str, int, int, int]]
"""Of each message in order: receiver, stream, sender, round, bytes."""


def inputs(subject: Subject, parties: int) -> dict[str, list[Codes]]:
    """Tables that differ as much as tables can which have the same number of rows in all."""
    own = subject.tables(parties, ROWS)
    sizes = np.array(list(subject.sizes.values()))
    first, last = np.zeros((ROWS, len(sizes)), np.int64), np.tile(sizes - 1, (ROWS, 1))
    none, twice = own[0][:0], np.concatenate([own[0], own[-1]])
    even = np.stack([np.arange(ROWS) % size for size in sizes], axis=1)
    return {
        "the study's rows": own,
        "every row in the first cell": [first] * parties,
        "every row in the last cell": [last] * parties,
        "even counts, with ties": [even] * parties,
        "one party holds the first cell, the others the last": [first, *[last] * (parties - 1)],
        "a contributor without rows": [twice, *own[1:-1], none],
    }


def shape(arena: Arena, tables: Sequence[Codes], subject: Subject) -> Shape:
    """What travels when all kinds of questions are asked."""

    def ask(oracle: MarginalOracle) -> None:
        every_kind(oracle, list(subject.sizes), Fraction(1, 64), ROWS * arena.parties)

    ran = arena.run(ask, tables, subject.coins("traffic"))
    return [
        (party, frame.stream, frame.sender, frame.clock, len(frame.payload))
        for party in range(arena.parties)
        for frame in ran.view(party)
    ]


def same_for_all_inputs(subject: Subject) -> Finding:
    """Compare the messages of all inputs, one by one."""
    problems, messages = [], {}
    for where, arena in subject.arenas.items():
        shapes = {
            name: shape(arena, tables, subject) for name, tables in inputs(subject, arena.parties).items()
        }
        (usual, expected), *others = shapes.items()
        messages[where] = len(expected)
        for name, found in others:
            if found == expected:
                continue
            place = next(
                (n for n, pair in enumerate(zip(expected, found, strict=False)) if pair[0] != pair[1]),
                min(len(expected), len(found)),
            )
            said = [str(each[place]) if place < len(each) else "nothing" for each in (expected, found)]
            problems.append(
                f"{where}: {name}: {len(found)} messages, {len(expected)} with {usual}; the first that "
                f"differs is {said[1]} instead of {said[0]} (receiver, stream, sender, round, bytes)."
            )
    return judged(
        problems,
        f"Six inputs with equally many rows: alike in receiver, stream, sender, round and bytes of all messages "
        f"({', '.join(f'{name} {count}' for name, count in messages.items())}).",
        {"messages": messages, "inputs": 6},
    )


def sent_and_rounds(
    arena: Arena, tables: Sequence[Codes], coins: Coins, ask: Callable[[MarginalOracle], None]
) -> tuple[list[int], int]:
    """The bytes that each party sends, and the rounds."""
    ran = arena.run(ask, tables, coins)
    sent = [0] * arena.parties
    for frame in ran.frames:
        sent[frame.sender] += len(frame.payload)
    return sent, max(frame.clock for frame in ran.frames)


def reference_answer(backend: DistributedBackend) -> tuple[int, int]:
    """Bytes of all parties together, and rounds, of a backend as it stands (no study's options) on the
    reference table."""
    arena = Arena.of(backend, REFERENCE, adjacency="add-remove", unit_rows=1, row_cap=4 * 1024)
    rows = np.stack([np.arange(ROWS) % size for size in REFERENCE.values()], axis=1)

    def ask(oracle: MarginalOracle) -> None:
        every_kind(oracle, list(REFERENCE), Fraction(1, 64), ROWS * arena.parties)

    sent, rounds = sent_and_rounds(arena, [rows] * arena.parties, Coins("reference"), ask)
    return sum(sent), rounds


def as_counted(subject: Subject) -> Finding:
    """Ask all kinds of questions of the parties, and of the backend's own count of what a run costs.

    The count is derived from the protocols' own code: what this build sends beside them it counts as well. So
    a reference table, of which it is known what travels, is asked about first.
    """
    problems, figures = [], {}
    for backend in subject.distributed:
        as_it_stands = BACKENDS[backend.name]
        assert isinstance(as_it_stands, DistributedBackend)
        if (known := as_it_stands.known_traffic) and (found := reference_answer(as_it_stands)) != known:
            problems.append(
                f'backend "{backend.name}": for the reference table {found[0]} bytes travel in {found[1]} rounds, and '
                f"{known[0]} in {known[1]} are known to."
            )
    for where, arena in subject.arenas.items():
        tables = subject.tables(arena.parties, ROWS)

        def ask(oracle: MarginalOracle, rows: int = ROWS * arena.parties) -> None:
            every_kind(oracle, list(subject.sizes), Fraction(1, 64), rows)

        sent, rounds = sent_and_rounds(arena, tables, subject.coins("traffic"), ask)
        counts = counter(np.concatenate(tables), arena.facts.sizes)
        planned = arena.backend.dry_run(
            PresumedRun(arena.facts, counts, arena.computing, arena.contributing, delay_us=arena.delay_us)
        )
        ask(planned)
        planned.close()
        figures[where] = {"bytes": sum(sent), "rounds": rounds}
        if (list(planned.sent), planned.rounds) != (sent, rounds):
            problems.append(
                f"{where}: the parties send {sent} bytes in {rounds} rounds, and the plan of the run counts "
                f"{list(planned.sent)} in {planned.rounds}."
            )
    return judged(
        problems,
        "What travels is what the plan of a run counts, byte by byte, and for a reference table what it is known to be: "
        f"{by_name(figures, '{name} {each[bytes]} in {each[rounds]} rounds')}.",
        figures,
    )


def compare_lines(subject: Subject) -> Finding:
    """Compare what observers and logs are told of two sets of tables with the same outputs."""
    problems, lines = [], {}
    for where, arena in subject.arenas.items():
        coins = subject.coins("told")
        runs = [
            run_views(arena, subject, tables, coins) for tables in same_outputs(subject, arena.parties, 0)
        ]
        lines[where] = sum(map(len, runs[0].lines))
        for party, (first, second) in enumerate(zip(runs[0].lines, runs[1].lines, strict=True)):
            differing = [pair for pair in zip(first, second, strict=False) if pair[0] != pair[1]]
            if differing or len(first) != len(second):
                said = (
                    f"{differing[0][1]!r} instead of {differing[0][0]!r}"
                    if differing
                    else "another number of lines"
                )
                problems.append(f"{where}, party {party}: logs and events follow the rows: {said}.")
    return judged(
        problems,
        f"Two sets of tables with the same outputs: alike in all events and log lines ({by_name(lines)}).",
        {"lines": lines},
    )


GROUP = Group(
    "T",
    "Traffic",
    "Does what travels depend on private data?",
    (
        Check(
            "sizes",
            "Messages have the same order, sizes and rounds whatever the tables hold.",
            "exact",
            "Any message that is sent, left out, longer, shorter or in another round for one of six extreme inputs.",
            same_for_all_inputs,
        ),
        Check(
            "counted",
            "What travels is what the plan of the run counts.",
            "exact",
            "A message that no plan knows of: a share, a score or a bit that is opened beside the protocol.",
            as_counted,
        ),
        Check(
            "told",
            "Events and logs of the protocols tell of outputs only.",
            "exact",
            "A line or an event with a count, or one that is written for some tables only.",
            compare_lines,
        ),
    ),
)
