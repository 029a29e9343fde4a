"""What a measurement is charged: marginals, or the number of rows, plus discrete Gaussian noise (`mechanisms.md` 3.2, 5).

With s rows per privacy unit and noise of parameter sigma^2 on every cell:

    add-remove  L2 sensitivity s        rho = s^2 / (2 sigma^2) per marginal
    replace     L2 sensitivity sqrt(2) s  rho = s^2 / sigma^2     per marginal
    the total   s^2 / (2 sigma^2) under both

Statement (finite tables). The release is rho-zCDP up to the total variation of the AFFECTED cells' noise: s cells, 2 s under
replace, not all of them. Proof: compare with the hybrid in which the cells that differ have ideal noise and the others keep the
table. The others' noise is independent of the data and the same in both worlds, so the hybrid pair is rho-zCDP by data
processing, and each real run is within the affected cells' total variation of its hybrid.

The release that fixes the row bound is charged all its cells besides, and `bounds.BETA`: the bound is an event over all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mpc_protocols.functionality import Clique, Event, Setting
from mpc_protocols.mechanisms import bounds
from mpc_protocols.mechanisms.gaussian import Sampler, sampler


@dataclass(frozen=True)
class MeasurePlan:
    """Public facts of one measurement. sampler: the noise of every cell. event: what is charged."""

    sampler: Sampler
    event: Event


def _text(x: Fraction) -> str:
    return f"{x.numerator}/{x.denominator}"


def plan_marginals(
    setting: Setting, cliques: Sequence[Clique], sigma2: Fraction, row_bound: int, first: bool
) -> MeasurePlan:
    """One batch of marginals, each with noise of parameter sigma2 on every cell: one event, their costs summed.

    row_bound: n' as known before. first: nothing was released before, so that n' is derived from this. Raises
    `StudyInvalid` (variance out of range, ring).
    """
    noise = sampler(sigma2)
    bounds.check_measurement(row_bound, noise.bound)
    moves = 2 if setting.adjacency == "replace" else 1
    cells = [setting.cells(clique) for clique in cliques]
    beta = sum(min(n, moves * setting.unit_rows) for n in cells) * noise.tv
    if first:
        beta += sum(cells) * noise.tv + bounds.BETA
    event = Event(
        "measure",
        rho=len(cliques) * moves * setting.unit_rows**2 / (2 * sigma2),
        beta=beta,
        detail={"cliques": [list(clique) for clique in cliques], "sigma2": _text(sigma2)},
    )
    return MeasurePlan(noise, event)


def plan_total(setting: Setting, sigma2: Fraction, row_bound: int, first: bool) -> MeasurePlan:
    """The number of rows plus noise of parameter sigma2: one cell. Arguments and errors as `plan_marginals`."""
    noise = sampler(sigma2)
    bounds.check_measurement(row_bound, noise.bound)
    beta = noise.tv + (noise.tv + bounds.BETA if first else 0)
    event = Event("total", setting.unit_rows**2 / (2 * sigma2), beta, {"sigma2": _text(sigma2)})
    return MeasurePlan(noise, event)
