"""Questions to an oracle of the four columns (`tables`), whose answers do not depend on the noise."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from mpc_protocols.functionality import MarginalOracle
from tests.worlds.tables import ONE_WAY, SMALL


def work(oracle: MarginalOracle) -> list[Any]:
    """All kinds of questions; at tiny sigma and huge epsilon the answers do not depend on the noise."""
    handles = oracle.prepare(ONE_WAY)
    seen: list[Any] = [
        handles,
        [list(x) for x in oracle.measure(handles, SMALL)],
        oracle.row_bound,
        oracle.noisy_total,
    ]
    wide = oracle.prepare([("a", "b", "c"), ("c", "d"), ("b", "a"), ("d", "c"), ("a",)])
    seen += [wide, [list(x) for x in oracle.measure([wide[2], wide[0], wide[3]], SMALL)]]
    cells = [60, 10, 12, 10, 3]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        guesses = [rng.random(n) * (rng.random(n) < 0.7) for n in cells]
        guesses = [g / max(g.sum(), 1e-9) * 900.0 for g in guesses]
        weights = [Fraction(int(w)) for w in rng.integers(1, 9, 5)]
        penalties = [Fraction(int(p)) for p in rng.integers(0, 40, 5)]
        if seed:
            oracle.expect(SMALL)  # a third of it is left for the second measurement
        [picked] = oracle.select(wide, guesses, weights, penalties, Fraction(20))
        seen.append(picked)
        if seed:
            seen.append([list(x) for x in oracle.measure([wide[picked]], SMALL)])
    seen.append(oracle.total(SMALL))
    return seen
