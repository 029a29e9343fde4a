"""Parameters under which the promise of differential privacy says little, whatever was computed.

    epsilon   above 10 an outcome may become more than 22,000 times as likely through one unit, and somebody who guesses between
              two neighbours may be right in more than 99.99 % of the cases
    delta     with probability delta the bound may not hold at all: a mechanism that publishes each of n rows with probability
              1/n satisfies delta = 1/n, so delta must be well below that (Dwork and Roth 2014, section 2.3)

A guess is right with probability (e^epsilon + delta) / (1 + e^epsilon) at most (`docs/design/privacy.md` 7).
Standard library only.
"""

from __future__ import annotations

import math

from synth.judgement.warned import Warned

UNSAFE_EPSILON, UNSAFE_GUESS = 10.0, 0.99
SMALL_DELTA = 10
"""Delta is to be below one over so many times the rows."""
MAX_DELTA = 0.01
"""Above it a study must say that it accepts its delta."""


def best_guess(epsilon: float, delta: float) -> float:
    """The largest probability of guessing right between two neighbours that a fair coin decided between."""
    odds = math.exp(-epsilon)
    return min(1.0, (1 + delta * odds) / (1 + odds))


def unsafe(epsilon: float, delta: float, rows: int | None) -> tuple[Warned, ...]:
    """What is to be said before anything else of such a promise. rows: how many there are at most, or about;
    None: unknown."""
    found = []
    guess = best_guess(epsilon, delta)
    if epsilon > UNSAFE_EPSILON or guess > UNSAFE_GUESS:
        percent = math.floor(guess * 10_000) / 100
        found.append(
            Warned(
                "unsafe-epsilon",
                f"Epsilon {epsilon:g} protects hardly anybody: whoever guesses what the data held may be right in {percent:g} % "
                "of the cases. Studies of people mostly stay at or below 3.",
            )
        )
    if rows and delta > 1 / (SMALL_DELTA * rows):
        found.append(
            Warned(
                "unsafe-delta",
                f"Delta {delta:g} is large for {rows:,} rows: a method that publishes one row in {max(1, round(1 / delta)):,} "
                f"as it is would satisfy it. Choose less than {1 / (SMALL_DELTA * rows):.0e}.",
            )
        )
    return tuple(found)
