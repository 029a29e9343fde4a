"""How good a table may become, before anybody runs it: rows per cell against noise, and what to change.

Everything is a function of public sizes, the budget and a guess at the number of rows. The yardstick is that of
`synth.fallback`: the noise of a marginal of n cells, as a share of the rows, is the mean L1 distance (0 to 2) that measuring it
brings into the table; on real tables, pairs of related columns lie 0.1 to 0.4 from what independent columns would have. So a
question whose noise is below `CLEAR` is worth asking, and one above `LOST` tells of nothing but noise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from synth.algorithm import ALGORITHMS, proposed
from synth.budget.charges import mean_noise
from synth.config import ADAPTIVE
from synth.fallback import SHARE, joining_cells, noise_share

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
    """column_sd, pair_sd: of a count, in rows. cells: of a marginal whose noise stays below `CLEAR`. warning: set if private
    independent columns would do about as well."""

    rows: int
    column_sd: float
    pair_sd: float
    columns: tuple[ColumnQuality, ...]
    pairs: tuple[PairQuality, ...]
    cells: int
    warning: str | None
    advice: tuple[str, ...]

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
    typical = plan.charges.sigma2(SHARE * plan.budget.rho_cap)
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
    simplest = noise_share(plan, joining_cells(plan.candidates), rows)
    warning = None
    if simplest > CLEAR:
        warning = (
            f"for about {rows:,} rows half of the columns or more can be joined to another only with noise of at least "
            f"{simplest:.0%} of the rows: private independent columns would do about as well"
        )
    return Quality(
        rows,
        float(plan.sigma2) ** 0.5,
        float(typical) ** 0.5,
        columns,
        pairs,
        cells,
        warning,
        _advice(study, plan, columns, pairs, math.isqrt(cells), rows),
    )


def _advice(
    study: Study,
    plan: Plan,
    columns: Sequence[ColumnQuality],
    pairs: Sequence[PairQuality],
    bins: int,
    rows: int,
) -> tuple[str, ...]:
    """What to change in the study, the most useful first."""
    found = []
    algorithm, better = ALGORITHMS[study.algorithm], proposed()
    rounds, option = getattr(study.config, "rounds", None), study.config.options().get("rounds")
    free = plan.rounds[1] and not (study.contributors is not None and study.contributors.arriving)
    if isinstance(rounds, int) and free and option is not None and ADAPTIVE in option.words:
        joins = f"cannot even join {len(columns)} columns" if rounds < len(columns) - 1 else "are a guess"
        found.append(
            f'rounds = "{ADAPTIVE}" goes on as long as there is something to learn; {rounds} rounds {joins}'
        )
    lost = sum(pair.noise > LOST for pair in pairs)
    if lost * 4 > len(pairs) and better.chooses_bins and not algorithm.chooses_bins:
        found.append(f'algorithm = "{better.name}": {better.summary}')
    wide = sorted((column for column in columns if column.values > bins), key=lambda each: -each.values)
    if wide and bins >= 2 and not algorithm.chooses_bins:
        names = ", ".join(f"{column.name} ({column.values})" for column in wide[:MAX_NAMED])
        more = f" and {len(wide) - MAX_NAMED} more" if len(wide) > MAX_NAMED else ""
        found.append(
            f"fewer bins: so many rows carry about {bins} values of a column beside another's {bins}; more have "
            f"{names}{more}"
        )
    widths = [len(clique) for clique in plan.workload.cliques]
    if max(widths) > 2:
        wider = sorted(plan.domain.cells(clique) for clique in plan.workload.cliques if len(clique) > 2)
        share = noise_share(plan, wider[len(wider) // 2], rows)
        if share > LOST:
            found.append(
                f"[workload] degree = 2: a typical marginal of {max(widths)} columns would carry noise of {share:.0%} of the rows"
            )
    return tuple(found)


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
    told += [f"  advice     {sentence}" for sentence in found.advice]
    if found.warning is not None:
        first, _, second = found.warning.partition(": ")
        told += [f"  WARNING    {first}:", f"             {second}"]
    return told


def _listed(entries: Sequence[tuple[str, float, str, float]]) -> list[str]:
    width = max((len(name) for name, *_ in entries), default=0)
    return [
        f"             {name:{width}}  {rows:8,.3g} rows a {cell}, noise {_percent(noise)}"
        for name, rows, cell, noise in entries
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:,.0f} %"
