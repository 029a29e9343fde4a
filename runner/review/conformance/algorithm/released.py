"""Oracles that show whether an algorithm knows more than it was answered: one with nothing to read, one with
other rows."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import MarginalOracle
from mpc_protocols.public.history import NoHistory
from runner.review.conformance.checks import expect
from synth.synthesis import Synthesis

OFFERED = {name for name in dir(MarginalOracle) if not name.startswith("_")} | {"facts"}
"""What an oracle is asked by; `facts` is public."""
SAMPLED_ROWS = 200


class Sealed:
    """Passes every question on, and shows nothing else. read: the other attributes that somebody has tried to
    read."""

    def __init__(self, oracle: MarginalOracle, read: list[str]) -> None:
        self._sealed = oracle, read

    def __getattribute__(self, name: str) -> Any:
        oracle, read = object.__getattribute__(self, "_sealed")
        if name in OFFERED:
            offered = getattr(oracle, name)
            # not the bound method, whose __self__ is the oracle
            return (lambda *asked, **named: offered(*asked, **named)) if callable(offered) else offered
        if name == "__class__":  # isinstance asks for it
            return Sealed
        read.append(name)
        raise AttributeError(f"An oracle has no {name} for algorithms.")


def sealed(oracle: MarginalOracle, read: list[str]) -> MarginalOracle:
    """The oracle, of which nothing can be read but what it is asked by."""
    return cast(MarginalOracle, Sealed(oracle, read))


class Answers(NoHistory):
    """What a run's releases came to; a run that is given it as `known` gets the same, whatever rows its
    oracle has."""

    def __init__(self, known: Answers | None = None) -> None:
        self._known = known
        self.values: dict[int, tuple[bytes, NDArray[np.int64]]] = {}

    def opened(self, number: int, inputs: bytes) -> NDArray[np.int64] | None:
        if self._known is None:
            return None
        expect(
            number in self._known.values and self._known.values[number][0] == inputs,
            f"after the same answers it must ask the same, whatever rows the oracle has; step {number} is another.",
        )
        self.values[number] = self._known.values[number]
        return self.values[number][1]

    def learn(self, number: int, inputs: bytes, values: NDArray[np.int64]) -> None:
        self.values[number] = inputs, values


def compare_released(first: Synthesis, second: Synthesis) -> None:
    """Everything that two runs with the same answers release; which part differs, if one does."""
    parts = {
        "rows": (first.rows, second.rows),
        "noisy_total": (first.noisy_total, second.noisy_total),
        "noise_share": (first.noise_share, second.noise_share),
        "selections": (first.selections, second.selections),
        "levels": (first.levels, second.levels),
        "table": (_plain(first.table), _plain(second.table)),
        "measurements": (_measured(first), _measured(second)),
        "model": (first.model.to_bytes(), second.model.to_bytes()),
        "sampled rows": (_sampled(first), _sampled(second)),
    }
    differing = [what for what, (mine, theirs) in parts.items() if mine != theirs]
    expect(
        not differing,
        f"what is released must follow from the answers alone; with other rows behind the same answers, {', '.join(differing)} "
        "came out differently.",
    )


def _plain(table: NDArray[Any] | None) -> list[Any] | None:
    return None if table is None else np.asarray(table).tolist()


def _measured(synthesis: Synthesis) -> list[tuple[Any, ...]]:
    return [
        (m.clique, m.sigma2, m.round, m.values.tolist(), m.levels, m.rows) for m in synthesis.measurements
    ]


def _sampled(synthesis: Synthesis) -> list[Any]:
    codes: list[Any] = synthesis.model.sample(SAMPLED_ROWS, np.random.default_rng(0)).tolist()
    return codes
