"""How much noise a marginal will have, before anybody runs it: rows per cell against noise. What that makes
of the table, and what may help, is tried (`trial`).

Everything is a function of public sizes, the budget and a guess at the number of rows. The yardstick is that
of `synth.budget.small.fallback`: the noise of a marginal of n cells, as a share of the rows, is the mean L1 distance
(0 to 2) that measuring it brings into the table; on real tables, pairs of related columns lie 0.1 to 0.4 from
what independent columns would have. So a question whose noise is below `CLEAR` is worth asking, and one above
`LOST` tells of nothing but noise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from synth.algorithm import ALGORITHMS
from synth.budget.charges import mean_noise
from synth.budget.small.fallback import SHARE, noise_share

if TYPE_CHECKING:
    from runner.study import Study
    from synth.plan import Plan

CLEAR, LOST = 0.1, 0.3
MAX_PAIRS = 20_000
"""Of pairs that are looked at."""
MAX_NAMED = 5


@dataclass(frozen=True)
class ColumnQuality:
    """A column: its values, rows for each of them, and noise as a share of the rows."""

    name: str
    values: int
    rows_per_value: float
    noise: float


@dataclass(frozen=True)
class PairQuality:
    """The same of two columns together, at the noise of a typical question."""

    columns: tuple[str, str]
    cells: int
    rows_per_cell: float
    noise: float


@dataclass(frozen=True)
class Quality:
    """column_sd, pair_sd: of a count, in rows. cells: of a marginal whose noise stays below `CLEAR`."""

    rows: int
    column_sd: float
    pair_sd: float
    columns: tuple[ColumnQuality, ...]
    pairs: tuple[PairQuality, ...]
    cells: int

    @property
    def bins(self) -> int:
        """Values that each of two columns may have, so that a pair of them is clear."""
        return math.isqrt(self.cells)

    def to_json(self) -> dict[str, Any]:
        """JSON-able form."""
        return {**asdict(self), "bins": self.bins}


def quality(study: Study, plan: Plan, rows: int) -> Quality | None:
    """What to expect on so many rows; None for an algorithm that measures no marginals one by one."""
    algorithm = ALGORITHMS[study.algorithm]
    if not algorithm.workload or not plan.candidates:
        return None
    sizes = plan.domain.sizes
    typical = plan.charges.sigma2(SHARE * plan.own_rho)
    columns = tuple(
        ColumnQuality(name, size, rows / size, float(mean_noise(plan.sigma2) * size) / rows)
        for name, size in sizes.items()
    )
    asked = {pair for clique in plan.workload.cliques for pair in itertools.combinations(clique, 2)}
    pairs = tuple(
        PairQuality(pair, cells, rows / cells, noise_share(plan, cells, rows))
        for pair in itertools.islice(itertools.combinations(sizes, 2), MAX_PAIRS)
        if pair in asked
        for cells in [sizes[pair[0]] * sizes[pair[1]]]
    )
    cells = int(CLEAR * rows / float(mean_noise(typical)))
    return Quality(rows, float(plan.sigma2) ** 0.5, float(typical) ** 0.5, columns, pairs, cells)


def lines(found: Quality) -> list[str]:
    """For a terminal."""
    told = [
        "",
        f"quality, for about {found.rows:,} rows; noise is all that a marginal's counts have together, as a share of the rows",
        f"  columns    sd of a count {found.column_sd:.3g}",
    ]
    columns = sorted(found.columns, key=lambda column: -column.noise)[:MAX_NAMED]
    told += _listed([(each.name, each.rows_per_value, "value", each.noise) for each in columns])
    if found.pairs:
        clear = sum(pair.noise <= CLEAR for pair in found.pairs)
        lost = sum(pair.noise > LOST for pair in found.pairs)
        told.append(
            f"  pairs      sd of a count about {found.pair_sd:.3g}; of {len(found.pairs):,} pairs {clear:,} are clear (noise up "
            f"to {CLEAR:.0%}), {len(found.pairs) - clear - lost:,} coarse, {lost:,} mostly noise (above {LOST:.0%})"
        )
        pairs = sorted(found.pairs, key=lambda pair: -pair.noise)[:MAX_NAMED]
        told += _listed(
            [(" x ".join(each.columns), each.rows_per_cell, "cell", each.noise) for each in pairs]
        )
    told.append(
        f"  bins       a marginal of up to {found.cells:,} cells is clear: two columns of {found.bins:,} values each"
    )
    return told


def _listed(entries: Sequence[tuple[str, float, str, float]]) -> list[str]:
    width = max((len(name) for name, *_ in entries), default=0)
    return [
        f"             {name:{width}}  {rows:8,.3g} rows a {cell}, noise {_percent(noise)}"
        for name, rows, cell, noise in entries
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:,.0f} %"
