"""Small tables, exact and noisy, for tests of `synth.inference`."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Level
from runner.api.conditions import allowed
from synth.domain import Codes, Domain
from synth.inference import Answer, infer
from synth.mrf import Measurement, Model, fit
from synth.synthesis import Measured

DOMAIN = Domain(("a", "b", "c"), (Codes(4), Codes(2), Codes(3)))
AB, BC, AC = ("a", "b"), ("b", "c"), ("a", "c")
FACTS: dict[str, Any] = {"privacy": {"events": []}}


def people(rows: int, seed: int = 1) -> NDArray[np.int64]:
    """Codes of dependent columns."""
    rng = np.random.default_rng(seed)
    b = rng.integers(0, 2, rows)
    a = np.minimum(3, rng.binomial(3, 0.35 + 0.25 * b))
    c = rng.integers(0, 2, rows) + (rng.random(rows) < 0.2 + 0.15 * a)
    return np.stack([a, b, c], 1).astype(np.int64)


def measured(
    table: NDArray[np.int64],
    cliques: Sequence[tuple[str, ...]],
    sigma2: Sequence[Fraction],
    rng: np.random.Generator | None = None,
    domain: Domain = DOMAIN,
    levels: Sequence[Level] = (),
) -> list[Measured]:
    """Noisy marginals, rounded normal; exact without a generator. A clique may name levels."""
    of = {level.name: level for level in levels}
    found = []
    for number, (clique, variance) in enumerate(zip(cliques, sigma2, strict=True)):
        codes, shape = [], []
        for name in clique:
            column = table[:, domain.names.index(of[name].column if name in of else name)]
            codes.append(np.array(of[name].bins)[column] if name in of else column)
            shape.append(of[name].size if name in of else domain.sizes[name])
        flat = np.ravel_multi_index(codes, shape)
        counts = np.bincount(flat, minlength=int(np.prod(shape))).astype(np.float64)
        if rng is not None:
            counts += rng.normal(0, float(variance) ** 0.5, counts.size)
        values = np.rint(counts).astype(np.int64)
        used = tuple(of[name] for name in clique if name in of)
        found.append(Measured(clique, variance, number, values, used))
    return found


def model(measurements: Sequence[Measured], total: float, domain: Domain = DOMAIN) -> Model:
    """Fitted to the end."""
    levels = {level.name: level for m in measurements for level in m.levels}
    return fit(
        domain.sizes,
        [Measurement(m.clique, m.values.astype(np.float64), float(m.sigma2)) for m in measurements],
        total=total,
        levels=levels,
        iterations=3000,
        tolerance=0,
    )


def ask(
    questions: Sequence[str],
    measurements: Sequence[Measured],
    fitted: Model,
    domain: Domain = DOMAIN,
    **options: Any,
) -> list[Answer]:
    """`infer` of a release without further facts."""
    return infer(
        questions,
        domain,
        fitted,
        measurements,
        options.pop("facts", FACTS),
        lambda name, value: allowed(domain, {name: value})[name],
        **options,
    )
