"""Questions to an oracle of the four columns (`tables`), whose answers do not depend on the noise."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from mpc_protocols.functionality import Handle, Level, MarginalOracle
from tests.worlds.tables import ONE_WAY, SMALL


def columns_first(oracle: MarginalOracle) -> tuple[list[Any], list[Handle]]:
    """What is seen of each column, and five wider candidates."""
    handles = oracle.prepare(ONE_WAY)
    measured = [list(x) for x in oracle.measure(handles, SMALL)]
    seen: list[Any] = [handles, measured, oracle.row_bound, oracle.noisy_total]
    return seen, oracle.prepare([("a", "b", "c"), ("c", "d"), ("b", "a"), ("d", "c"), ("a",)])


def work(oracle: MarginalOracle) -> list[Any]:
    """All kinds of questions; at tiny sigma and huge epsilon the answers do not depend on the noise."""
    seen, wide = columns_first(oracle)
    seen += [wide, [list(x) for x in oracle.measure([wide[2], wide[0], wide[3]], SMALL)]]
    cells = [60, 10, 12, 10, 3]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        guesses = [rng.random(n) * (rng.random(n) < 0.7) for n in cells]
        guesses = [g / max(g.sum(), 1e-9) * 900.0 for g in guesses]
        weights = [Fraction(int(w)) for w in rng.integers(1, 9, 5)]
        penalties = [Fraction(int(p)) for p in rng.integers(0, 40, 5)]
        if seed:
            oracle.expect(SMALL, promised=seed == 2)  # a third of it is left for the second measurement
        [picked] = oracle.select(wide, guesses, weights, penalties, Fraction(20))
        seen.append(picked)
        if seed:
            seen.append([list(x) for x in oracle.measure([wide[picked]], SMALL)])
    seen.append(oracle.total(SMALL))
    return seen


def total_and_work(oracle: MarginalOracle) -> list[Any]:
    """`work`, after a total that is asked before anything is shared."""
    return [oracle.total(SMALL), *work(oracle)]


def wide_keys(oracle: MarginalOracle, rows: float = 650.0) -> list[int]:
    """Three picks of a favourite: with a bound of 40,000,000 rows their keys take 64 bits."""
    handles = oracle.prepare([("a", "b"), ("b", "c"), ("c", "d")])
    answers = [np.full(n, rows / n) for n in (12, 20, 10)]
    found = []
    for favourite in range(3):
        weights = [Fraction(50 if q == favourite else 1) for q in range(3)]
        found.extend(oracle.select(handles, answers, weights, [Fraction(0)] * 3, Fraction(2)))
    return found


def several_picks(oracle: MarginalOracle) -> list[int]:
    """Three of four, of which the first and the last exclude each other."""
    handles = oracle.prepare([("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")])
    answers = [np.full(n, 650.0 / n) for n in (12, 20, 10, 6)]
    weights = [Fraction(w) for w in (1, 2, 3, 4)]
    return oracle.select(handles, answers, weights, [Fraction(0)] * 4, Fraction(20), 3, [(0, 3)])


def levels_and_distances(oracle: MarginalOracle) -> list[Any]:
    """Marginals of coarser columns, and their noisy distances."""
    levels = [Level("b2", "b", (0, 0, 1, 1)), Level("c2", "c", (0, 1, 1, 1, 0))]
    handles = oracle.prepare([("a", "b2"), ("c2", "d")], levels)
    measured = [list(x) for x in oracle.measure(handles, [SMALL, SMALL * 2])]
    answers = [np.full(6, 100.0), np.arange(4) * 100.0]
    return [measured, list(oracle.distances(handles, answers, SMALL))]
