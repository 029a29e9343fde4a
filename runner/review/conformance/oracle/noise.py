"""Checks of noise: it is there in answers of every kind, at every size, with the law that was asked for, and
never the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from mpc_protocols.backend import Backend
from mpc_protocols.functionality import LocalCounts, MarginalOracle, StudyFacts
from runner.review.audit.subjects.in_memory.arena import counter
from runner.review.conformance.checks import expect
from runner.review.conformance.oracle.law import MISSING, Suspicions
from runner.review.conformance.oracle.runs import (
    ROWS,
    Data,
    Parties,
    facts_of,
    rows_of,
    run_backend,
    together,
)

SIGMA2 = Fraction(100)
WINDOW = 12
"""Draws in a row at sigma 10 that nobody sees twice: any two windows are equal with a chance of 35^-12 =
3e-19."""
TWICE = f"no {WINDOW} draws in a row may occur twice, nor be alike."
CANDIDATES = 12
"""Equal ones, all picked: 12! = 5e8 orders, alike likely."""
CELLS = (1, 2, 3, 5, 9, 17, 33, 65, 129, 257, 513, 1025, 2049)
MAX_FEW = 17
"""Marginals of so many cells at most are judged together, but for noise that is missing."""
MAX_OF_BATCH = 129
OTHER_SIGMA2 = (Fraction(4), Fraction(40_000))
"""Further variances: in reach of a short table, and beyond one table's (`mechanisms/gaussian.py`)."""
BEYOND, STRETCH = (1 << 18) + 4_099, 1_024
"""Cells of one marginal: more than a backend here draws noise for, opens or sends at once (2^18), and not a
multiple of anything. They are judged in stretches of about so many."""
KINDS = ("shared marginal", "derived marginal")
OFF, SLIGHTLY_OFF = (0.25, 4.0), (0.8, 1.25)
"""Factors of the variance that some draws tell, and that thousands tell."""


@dataclass(frozen=True)
class Noisy:
    """The noise of some answers of one run, and the order in which equal candidates were picked."""

    measured: list[NDArray[np.int64]]
    totals: list[int]
    distances: list[int]
    picked: list[list[int]]


def fresh(
    backend: Backend, parties: Parties, of: Callable[[StudyFacts, int], StudyFacts] = lambda plain, _: plain
) -> None:
    """Two runs with the same data, questions and session: nothing of the one's noise is in the other's, or
    twice in one.

    600 draws at sigma 10: their squares' sum over 100 has 600 degrees of freedom; five standard deviations
    are 173. 30 selections between two equal candidates do not all fall alike. False alarms: 1e-6, 2e-9, 2e-9
    for equal picks in both runs, less for everything else.
    """
    first, second = (_noise_of_a_run(backend, parties, of) for _ in range(2))
    noise = np.array(first.measured + second.measured)
    expect(no_window_twice(list(noise)), "each measurement must have fresh noise, in each run.")
    size = float((noise**2).sum()) / 100
    expect(
        abs(size - noise.size) < 173,
        f"600 draws at sigma 10 must have squares of about 60,000, and have {100 * size:.0f}.",
    )
    pairs = [position for picks in (*first.picked, *second.picked) for position in picks if len(picks) == 1]
    expect(set(pairs) == {0, 1}, "of two equal candidates each must be selected sometimes.")
    for what, mine, theirs in (
        ("totals", first.totals, second.totals),
        ("distances", first.distances, second.distances),
        ("selections", first.picked[-1], second.picked[-1]),
    ):
        expect(mine != theirs, f"the noise of {what} must be another one in every run.")


def _noise_of_a_run(backend: Backend, parties: Parties, of: Callable[[StudyFacts, int], StudyFacts]) -> Noisy:
    sizes = {"a": 3, "b": 4, "c": 5, "d": 2} | {f"x{number}": 2 for number in range(CANDIDATES)}
    data = _random_rows(parties, sizes)
    facts = of(facts_of(backend, parties, sizes), sum(rows_of(ROWS, parties)))

    def body(oracle: MarginalOracle) -> Noisy:
        handle, *pair = oracle.prepare([("a", "b", "c"), ("a",), ("d",)])
        measured = [oracle.measure([handle], SIGMA2)[0] for _ in range(5)]
        totals = [oracle.total(SIGMA2) for _ in range(WINDOW)]
        even = oracle.prepare([(f"x{number}",) for number in range(CANDIDATES)])
        zeros = [np.zeros(2)] * CANDIDATES
        distances = oracle.distances(even, zeros, SIGMA2).tolist()
        picked = []
        for handles, picks in ((pair, 1),) * 15 + ((even, CANDIDATES),):
            nothing = [np.zeros(facts.sizes["a"]), np.zeros(2)] if handles is pair else zeros
            weights, free = [Fraction(1)] * len(handles), [Fraction(0)] * len(handles)
            picked.append(oracle.select(handles, nothing, weights, free, Fraction(1), picks))
        return Noisy(measured, totals, distances, picked)

    answers: Noisy = run_backend(backend, body, data, parties, facts).answers
    counts = together(data)([("a", "b", "c")])[0]
    return Noisy(
        [cells - counts for cells in answers.measured], answers.totals, answers.distances, answers.picked
    )


def _random_rows(parties: Parties, sizes: dict[str, int]) -> list[Data]:
    """Each party's, the same in every run."""
    rng = np.random.default_rng(3)
    return [
        counter(np.stack([rng.integers(0, size, rows) for size in sizes.values()], axis=1), sizes)
        for rows in rows_of(ROWS, parties)
    ]


def no_window_twice(draws: Sequence[NDArray[np.int64]]) -> bool:
    """Whether no `WINDOW` draws in a row occur anywhere a second time."""
    seen = [sliding_window_view(one, WINDOW) for one in draws if one.size >= WINDOW]
    windows = np.concatenate([np.empty((0, WINDOW), np.int64), *seen])
    return len(np.unique(windows, axis=0)) == len(windows)


@dataclass(frozen=True)
class Question:
    """One that can be asked again. about: what its noise is about. ask: gives draws, each with what they are
    about and sigma2."""

    about: tuple[str, ...]
    ask: Callable[[], list[tuple[tuple[str, ...], NDArray[np.int64], Fraction]]]


def of_all_sizes(backend: Backend, parties: Parties) -> None:
    """Noise of marginals of 1 to 2,049 cells, none twice as large as the one before: shared and derived,
    alone and in a batch of two variances; of one to twelve distances; of the number of rows. Errors: `law`,
    and 1e-10 for windows."""
    sizes = {f"{letter}{n}": n for letter in "sd" for n in CELLS} | {"two": 2}
    data, facts = _random_rows(parties, sizes), facts_of(backend, parties, sizes)
    counts = together(data)

    def body(oracle: MarginalOracle) -> None:
        ladder = _Ladder(oracle, counts)
        questions, seen = ladder.questions(), Suspicions()
        for of, factors in ladder.suspected.items():
            seen.add(of, *factors)
            seen.add_shapes(of, alone=of in ladder.single)
        for of in ladder.pairs:
            seen.add_copies(of)
        due, measured = questions, list[NDArray[np.int64]]()
        while due:
            for question in due:
                for about, draws, sigma2 in question.ask():
                    if any(name in ladder.pairs for name in about):  # which have been seen alone
                        seen.see(about, draws, float(sigma2))
                        continue
                    if sigma2 >= SIGMA2:  # at less noise windows are equal now and then
                        measured.append(draws)
                    # what repeats itself may have any sum of squares; if there is none at all, the law says
                    # so
                    expect(sigma2 < SIGMA2 or not draws.any() or no_window_twice([draws]), TWICE)
                    seen.see(about, draws, float(sigma2))
            due = [question for question in questions if any(map(seen.undecided, question.about))]
        expect(no_window_twice(measured), TWICE)

    run_backend(backend, body, data, parties, facts)


def of_long_marginals(backend: Backend, parties: Parties) -> None:
    """Noise of one marginal of 266,243 cells, stretch by stretch, as backends draw it batch by batch. Errors:
    `law`; two windows of 35,000,000,000 pairs are equal at sigma 20 with 71^-12 each, 2e-12 in all."""
    sizes, sigma2 = {"long": BEYOND}, 4 * SIGMA2
    data, facts = _random_rows(parties, sizes), facts_of(backend, parties, sizes)
    [counts] = together(data)([("long",)])

    def body(oracle: MarginalOracle) -> NDArray[np.int64]:
        [cells] = oracle.measure(oracle.prepare([("long",)]), sigma2)
        return cells

    noise = run_backend(backend, body, data, parties, facts).answers - counts
    stretches, seen, start = np.array_split(noise, BEYOND // STRETCH), Suspicions(), 0
    names = []
    for stretch in stretches:
        names.append(f"cells {start:,} to {start + stretch.size:,} of {BEYOND:,}")
        seen.add(names[-1], MISSING, *OFF)
        start += stretch.size
    for name, stretch in zip(names, stretches, strict=True):
        seen.see([name], stretch, float(sigma2))
        expect(
            not seen.undecided(name),
            f"{STRETCH} draws must tell noise that is off from noise that is not: {name}.",
        )
    expect(no_window_twice([noise]), TWICE)


class _Ladder:
    """The questions of a run about marginals of every size. suspected: of what they are about, which factors
    of the variance. single: of these, what is about one draw at a time. pairs: what is about two answers."""

    def __init__(self, oracle: MarginalOracle, counts: LocalCounts) -> None:
        self._oracle = oracle
        self.suspected: dict[str, tuple[float, ...]] = {}
        self.single, self.pairs = set[str](), set[str]()
        self._last: dict[str, NDArray[np.int64]] = {}
        shared = [(f"s{n}",) for n in CELLS]
        derived = [(f"d{n}",) for n in CELLS]
        first = oracle.prepare([*shared, *((f"d{n}", "two") for n in CELLS)])
        places = [(kind, n) for kind in KINDS for n in CELLS]
        handles = [*first[: len(CELLS)], *oracle.prepare(derived)]
        self._handles = dict(zip(places, handles, strict=True))
        self._truth = dict(zip(places, counts([*shared, *derived]), strict=True))

    def questions(self) -> list[Question]:
        """The number of rows first: distances need to know about how many there are."""
        alone = [self._measure([place], (SIGMA2,), "") for place in self._handles]
        some = [place for place in self._handles if place[1] <= MAX_FEW]
        batch = [place for place in self._handles if place[1] <= MAX_OF_BATCH]
        return [
            self._total(),
            *alone,
            self._measure(batch, (SIGMA2, 4 * SIGMA2), ", in a batch"),
            *(self._measure(some, (sigma2,), f", at sigma^2 = {sigma2}") for sigma2 in OTHER_SIGMA2),
            *(self._distances(some[:number]) for number in (1, 3, len(some))),
        ]

    def _measure(
        self, places: Sequence[tuple[str, int]], variances: Sequence[Fraction], how: str
    ) -> Question:
        """Marginals as one batch, whose variances take turns."""
        handles = [self._handles[place] for place in places]
        each = [variances[turn % len(variances)] for turn in range(len(places))]
        about = [self._about(*place, how) for place in places]
        again = [f"{names[0]}, asked again" for names in about]
        beside = {
            (one, other): f"{about[one][0]} and the {about[other][0]}"
            for one, other in pairwise(range(len(places)))
            if each[one] == each[other] and min(places[one][1], places[other][1]) > 1
        } | {
            (one, one + 2): f"{about[one][0]} and the {about[one + 2][0]}"
            for one in range(len(places) - 2)
            if each[one] == each[one + 2] and min(places[one][1], places[one + 2][1]) > 1
        }
        self.pairs |= {*again, *beside.values()}

        def ask() -> list[tuple[tuple[str, ...], NDArray[np.int64], Fraction]]:
            cells = self._oracle.measure(handles, each)
            noise = [noisy - self._truth[place] for noisy, place in zip(cells, places, strict=True)]
            told = list(zip(about, noise, each, strict=True))
            for (one, other), name in beside.items():
                both = min(noise[one].size, noise[other].size)
                told.append(((name,), np.concatenate([noise[one][:both], noise[other][:both]]), each[one]))
            for name, draws, sigma2 in zip(again, noise, each, strict=True):
                if name in self._last:
                    told.append(((name,), np.concatenate([self._last[name], draws]), sigma2))
                self._last[name] = draws
            return told

        names = dict.fromkeys(name for names in (*about, again, beside.values()) for name in names)
        return Question(tuple(names), ask)

    def _about(self, kind: str, cells: int, how: str) -> tuple[str, ...]:
        one, few, every = (
            f"{kind} of {cells} cells{how}",
            f"{kind} of at most {MAX_FEW} cells{how}",
            f"every {kind}{how}",
        )
        self.suspected |= {one: (MISSING,), few: OFF, every: SLIGHTLY_OFF}
        if cells == 1:
            self.single.add(one)
        if cells > MAX_FEW:
            self.suspected[one] = (MISSING, *OFF)
            return one, every
        return one, few, every

    def _distances(self, places: Sequence[tuple[str, int]]) -> Question:
        """From nothing: each is the number of rows."""
        handles, nothing = [self._handles[place] for place in places], [np.zeros(n) for _, n in places]
        rows = np.array([int(self._truth[place].sum()) for place in places])
        about = f"{len(places)} distances", "every distance"
        self.suspected |= {about[0]: (MISSING,), about[1]: OFF}
        self.single |= {about[0]} if len(places) == 1 else set()
        return Question(
            about, lambda: [(about, self._oracle.distances(handles, nothing, SIGMA2) - rows, SIGMA2)]
        )

    def _total(self) -> Question:
        rows = int(next(iter(self._truth.values())).sum())
        about = ("the number of rows",)
        self.suspected[about[0]] = (MISSING, *OFF)

        def ask() -> list[tuple[tuple[str, ...], NDArray[np.int64], Fraction]]:
            draws = np.array([self._oracle.total(SIGMA2) - rows for _ in range(WINDOW)], np.int64)
            return [(about, draws, SIGMA2)]

        return Question(about, ask)
