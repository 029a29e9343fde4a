"""Every kind of question, and the comparison of a run with the ideal functionality and with its cost model.

Noise is negligible: at sigma 1/8 a cell's noise is not 0 with a chance of 3e-14, and the selections' scores
are at least 80 scales of their noise apart (the tables are fixed), so that another candidate wins with a
chance below 1e-30.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from mpc_protocols.backend import Backend
from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.functionality import Level, LocalCounts, MarginalOracle, StudyFacts
from mpc_protocols.in_memory.presumed import PresumedRun
from mpc_protocols.vertical.partition import Partition
from runner.review.conformance.checks import expect
from runner.review.conformance.guards import Recorder
from runner.review.conformance.oracle.runs import SIZES, SMALL, Parties, Ran

LEVELS = (Level("b in two", "b", (0, 0, 1, 1)), Level("c in two", "c", (0, 1, 1, 1, 0)))


class Questions:
    """Every kind of question, asked of one oracle. seen: the answers as plain lists. measured: noisy
    marginals, in order."""

    def __init__(self, oracle: MarginalOracle) -> None:
        self.oracle = oracle
        self.seen: list[Any] = []
        self.measured: list[list[int]] = []

    def ask(self) -> tuple[list[Any], list[list[int]]]:
        """All of them."""
        oracle, seen = self.oracle, self.seen
        seen.append(["nothing is known", oracle.noisy_total, oracle.row_bound])
        seen.append(["total", oracle.total(SMALL), oracle.noisy_total, oracle.row_bound])
        columns = oracle.prepare([(name,) for name in SIZES])
        self._measure(columns, SMALL)
        wide = oracle.prepare([("a", "b", "c"), ("c", "d"), ("b", "a"), ("d", "c"), ("a",), ("only", "d")])
        oracle.expect_keys(12)  # of two of the selections below
        self._measure([wide[2], wide[0], wide[5]], [SMALL, SMALL * 2, SMALL])
        coarse = oracle.prepare([("b in two", "d"), ("c in two",), ("a", "c in two")], LEVELS)
        self._measure(coarse[::-1], SMALL)
        some = [wide[0], wide[1], coarse[0], columns[4]]
        guesses = [np.full(60, 4.5), np.arange(10) * 9.25, np.zeros(4), np.array([100.0])]
        seen.append(["distances", *oracle.distances(some, guesses, SMALL).tolist()])
        self._select(columns)
        seen.append(["end", oracle.total(SMALL), oracle.noisy_total, oracle.row_bound, columns, wide, coarse])
        return seen, self.measured

    def _measure(self, handles: Sequence[int], sigma2: Fraction | Sequence[Fraction]) -> None:
        noisy = self.oracle.measure(handles, sigma2)
        for cells in noisy:
            expect(
                cells.dtype == np.int64 and cells.ndim == 1,
                f"a measured marginal must be a vector of int64, and is {cells.dtype} of shape {cells.shape}.",
            )
        self.seen.append(["measure", *(cells.tolist() for cells in noisy)])
        self.measured += [cells.tolist() for cells in noisy]

    def _select(self, handles: Sequence[int]) -> None:
        """Scores far apart: chance decides nothing. Without rows they cannot be: then a selection's length
        alone is kept."""
        bound = self.oracle.row_bound
        answers = [np.eye(1, size)[0] * bound for size in SIZES.values()]
        weights = [Fraction(w) for w in (2, 5, 1, 4, 3)]
        free = [Fraction(0)] * 5
        for penalties, picks, conflicts in (
            (free, 1, ()),
            ([Fraction(0), Fraction(10**7), *free[2:]], 1, ()),
            (free, 3, ()),
            (free, 3, ((0, 1), (1, 3))),
            (free, 5, tuple((p, q) for q in range(5) for p in range(q))),  # the first pick leaves none
        ):
            self.oracle.expect(SMALL)
            picked = self.oracle.select(handles, answers, weights, penalties, Fraction(100), picks, conflicts)
            expect(
                len(set(picked)) == len(picked)
                and not any(p in picked and q in picked for p, q in conflicts)
                and all(type(position) is int for position in picked),
                f"picks must be different positions, of which {conflicts} exclude each other, and were {picked}.",
            )
            self.seen.append(["select", *picked] if bound > 100 else ["select", len(picked)])
        self._measure(handles[:2], SMALL)


def everything(oracle: MarginalOracle) -> tuple[list[Any], list[list[int]]]:
    return Questions(oracle).ask()


def compare(ran: Ran, counts: LocalCounts, facts: StudyFacts) -> None:
    """Answers, charges and public inputs of a run of `everything`, with the ideal oracle's on all data
    together."""
    guards = {}
    for dealers in range(
        1, max(9, len(ran.guards) + 2)
    ):  # into how many parts a backend cuts answers is its own affair
        guard = Recorder()
        expected = everything(IdealOracle(facts, counts, guard, dealers=dealers))
        guards[dealers] = guard
    for ours, theirs in zip(ran.answers[0], expected[0], strict=True):
        expect(ours == theirs, f"the answer must be {theirs}, and was {ours}.")
    for opened in ran.opened:
        expect(
            [cells.tolist() for cells in opened] == expected[1],
            "every follower must return the noisy marginals that the leader measured, in order.",
        )
    for party, mine in enumerate(ran.guards):
        expect(
            mine.events == guard.events,
            f"the guard of party {party} must be asked for {[event.what for event in guard.events]} with their costs, and was "
            f"asked for {[event.what for event in mine.events]}.",
        )
    empty = not counts([("d",)])[
        0
    ].any()  # then chance decides what is selected, and the transcript follows it
    part = slice(None, [event.what for event in guard.events].index("select") + 1 if empty else None)
    expect(
        any(all(mine.asked[part] == guard.asked[part] for mine in ran.guards) for guard in guards.values()),
        "every guard must be given the hash of the public inputs that PublicState has at that step, with some number of dealers.",
    )


def compare_costs(
    backend: Backend,
    parties: Parties,
    facts: StudyFacts,
    ran: Ran,
    counts: LocalCounts,
    split: Partition | None,
    delay_us: int = 0,
) -> None:
    run = PresumedRun(facts, counts, parties.computing, parties.contributing, split, delay_us)
    dry = backend.dry_run(run)
    answers = everything(dry)
    expect(answers == ran.answers, "a dry run on the true table must give the run's own answers at no noise.")
    dry.close()
    sent = [traffic.bytes_sent for traffic in ran.traffic] or [0] * parties.number
    rounds = max((traffic.rounds for traffic in ran.traffic), default=0)
    expect(
        list(dry.sent) == sent,
        f"a dry run must count the bytes of each party, {sent}, and counted {list(dry.sent)}.",
    )
    expect(dry.rounds == rounds, f"a dry run must count {rounds} rounds, and counted {dry.rounds}.")
    expect(dry.shared_cells > 0 and dry.seconds >= 0, "a dry run must count cells and seconds.")
    marks = [*dry.marks, (dry.rounds, sum(dry.sent))]
    expect(marks == sorted(marks), f"marks must grow to what the run costs in all, and are {marks}.")
