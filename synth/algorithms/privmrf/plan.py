"""PrivMRF's plan: budget, noise, and which marginals may be asked (`synth.plan` has what all algorithms
share).

PrivMRF (Cai-Lei-Wei-Xiao, VLDB 2021) with the oracle's questions and zCDP throughout; what is not taken over,
and why: `docs/design/algorithms.md` 9. Shares of rho:

    columns      0.10   all d one-way marginals
    dependences  0.08   the distance of every pair from independence, one batch
    selections   0.12   r = round(1.2 d) of them
    marginals    0.70   one for each column (fewer, where columns share one), then the r selected ones

and what is left goes to the last batch. Candidates are the pairs, and of the larger sets of at most
`max_columns` columns those with the fewest cells, until there are MAX_SETS of them, or they have
MAX_SET_CELLS cells or MAX_NAME_BYTES of names together: custodians count all of them before anything is sent,
because a pass over the rows in the middle of a run would show by its duration how many there are. Which of
equally large ones, hashes of their names decide, so that no column gets more of them by its place.

Standard library only at import.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import nsmallest
from itertools import accumulate, chain, combinations
from typing import Unpack

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import Clique
from synth.algorithm import PromiseWithReserved
from synth.algorithms.privmrf.config import PrivMrfConfig
from synth.budget.accounting import Budget
from synth.budget.charges import Charges, cell_distance
from synth.budget.reserved import NOTHING_RESERVED, Reserved
from synth.budget.small.fallback import least_share
from synth.domain import Domain
from synth.plan import SELECTION_DISTANCE, TOTAL_DISTANCE, Plan, calibrate, check_sizes, modelled
from synth.workload import Workload

COLUMNS_SHARE = Fraction(10, 100)
PAIRS_SHARE = Fraction(8, 100)
SELECT_SHARE = Fraction(12, 100)
MEASURE_SHARE = 1 - COLUMNS_SHARE - PAIRS_SHARE - SELECT_SHARE
SELECTIONS_PER_COLUMN = Fraction(6, 5)
MAX_BATCHES = 8
MAX_PAIRS = 1 << 15
MAX_PAIR_CELLS = 1 << 27
MAX_NAME_BYTES = 4_000_000
"""All pairs are shared in one step: what no oracle shares is refused before anything is paid for."""
MAX_SETS = 1 << 14
MAX_SET_CELLS = 1 << 22
MIN_SHARPENING = Fraction(1, 20)
"""Of the budget: what is worth a second measurement of the columns at the end."""


@dataclass(frozen=True)
class PrivMrfPlan(Plan):
    """PrivMRF's plan. rounds: fewest and most selections. pairs: whose dependence is measured, with noise
    pairs_sigma2."""

    config: PrivMrfConfig
    pairs: tuple[Clique, ...]
    pairs_sigma2: Fraction

    @property
    def batches(self) -> tuple[int, int]:
        """Of selections, and the first marginals, for which nothing is selected."""
        return min(1, self.rounds[1]), self.most_batches + 1

    @property
    def most_batches(self) -> int:
        """The selections are made in so many batches, unless candidates run out."""
        return max(1, min(len(self.domain) // 2, MAX_BATCHES))

    def marginal_sigma2(self, first: int) -> Fraction:
        """The noise of a marginal if so many are measured before the selected ones."""
        return self.charges.sigma2(MEASURE_SHARE * self.own_rho / (first + self.rounds[1]))


def plan(
    domain: Domain, workload: Workload, config: PrivMrfConfig, **promise: Unpack[PromiseWithReserved]
) -> PrivMrfPlan:
    """Fix budget, noise and candidates of a study.

    Raises `StudyInvalid`: a clique of more than 2^24 cells, a column that no model can hold, more pairs than
    can be asked for, (epsilon, delta) out of range.
    """
    charges = Charges(promise["adjacency"], promise.get("unit_rows", 1))
    reserved = promise.get("reserved", NOTHING_RESERVED)
    check_sizes(domain, workload, config)
    asked = questions(domain, config)
    budget = calibrate(
        promise["epsilon"],
        promise["delta"],
        *reserved.beside(
            charges, lambda rho: asked.widest(charges, rho), lambda sigma2: asked.distance(charges, sigma2)
        ),
        f"{len(domain)} columns and {asked.picks} selections",
    )
    return within(budget, domain, workload, config, charges, asked, reserved)


@dataclass(frozen=True)
class Questions:
    """What PrivMRF may ask about a table. columns: sizes. pairs, larger: of columns, with their cells. picks:
    selections."""

    columns: tuple[int, ...]
    pairs: Mapping[Clique, int]
    larger: Mapping[Clique, int]
    oversized: tuple[Clique, ...]
    picks: int

    @property
    def column_share(self) -> Fraction:
        """Of the budget, for the columns: all of it where there is nothing to join."""
        return COLUMNS_SHARE if self.pairs else Fraction(1)

    def widest(self, charges: Charges, rho: Fraction) -> Fraction:
        """The most noise of any question, sigma^2, of a run that may spend rho."""
        columns = len(self.columns)
        first = charges.sigma2(self.column_share * rho / columns)
        if not self.pairs:
            return first
        return max(
            first,
            charges.distances_sigma2(PAIRS_SHARE * rho, len(self.pairs)),
            charges.sigma2(MEASURE_SHARE * rho / (columns + self.picks)),
            charges.sigma2(MIN_SHARPENING * rho / columns),
            charges.sigma2(least_share(columns) * rho),
        )

    def distance(self, charges: Charges, sigma2: Fraction) -> Fraction:
        """Bound of beta of all events with noise up to sigma2. The first batch also fixes the bound on the
        rows, an event of all its cells."""
        return (
            (4 * len(self.columns) + self.picks) * charges.distance(sigma2)
            + (sum(self.columns) + len(self.pairs)) * cell_distance(sigma2)
            + self.picks * (len(self.pairs) + len(self.larger)) * SELECTION_DISTANCE
            + TOTAL_DISTANCE
        )


def questions(domain: Domain, config: PrivMrfConfig) -> Questions:
    """What may be asked about these columns. Raises `StudyInvalid` for more pairs than can be asked for."""
    pairs, oversized = modelled(domain, combinations(domain.names, 2), config.max_model_mb)
    cells, named = sum(pairs.values()), sum(map(_name_bytes, pairs))
    if len(pairs) > MAX_PAIRS or cells > MAX_PAIR_CELLS or named > MAX_NAME_BYTES:
        raise StudyInvalid(
            f"All {len(pairs)} pairs of columns would be asked for, of {cells} cells and {named} bytes of names together; at "
            f"most {MAX_PAIRS} of {MAX_PAIR_CELLS} cells and {MAX_NAME_BYTES} bytes can be: leave columns out, coarsen or "
            "rename them, or lower max_model_mb."
        )
    larger = modelled(domain, _larger(domain, config.max_columns), config.max_model_mb)[0]
    picks = round(SELECTIONS_PER_COLUMN * len(domain)) if pairs else 0
    return Questions(tuple(domain.sizes.values()), pairs, larger, oversized, picks)


def within(
    budget: Budget,
    domain: Domain,
    workload: Workload,
    config: PrivMrfConfig,
    charges: Charges,
    asked: Questions,
    reserved: Reserved = NOTHING_RESERVED,
) -> PrivMrfPlan:
    """The plan of a run that may spend this budget, whose beta_cap must be `asked.distance` of `asked.widest`
    or more."""
    rho = reserved.rest(budget.rho_cap)
    return PrivMrfPlan(
        domain,
        workload,
        config,
        charges,
        budget,
        charges.sigma2(asked.column_share * rho / len(domain)),
        charges.epsilon(SELECT_SHARE * rho / max(1, asked.picks)),
        (min(1, asked.picks), asked.picks),
        {**asked.pairs, **asked.larger},
        asked.oversized,
        tuple(asked.pairs),
        charges.distances_sigma2(PAIRS_SHARE * rho, max(1, len(asked.pairs))),
        reserved=reserved,
    )


def _larger(domain: Domain, most: int) -> list[Clique]:
    """Sets of 3 to `most` columns, those of the fewest cells, in the order of their cells, their size and the
    domain."""
    names = sorted(domain.names, key=lambda name: domain.sizes[name])
    sizes, drawn = [domain.sizes[name] for name in names], [_public_number(name) for name in names]
    found: list[tuple[int, int, int, tuple[int, ...]]] = []
    limit = MAX_SET_CELLS
    for count in range(3, min(most, len(names)) + 1):
        found = nsmallest(MAX_SETS + 1, chain(found, _sets(sizes, drawn, count, limit)))
        cells = accumulate(each[0] for each in found[:MAX_SETS])
        named = accumulate(_name_bytes([names[place] for place in each[3]]) for each in found[:MAX_SETS])
        fitting = sum(
            total <= MAX_SET_CELLS and length <= MAX_NAME_BYTES
            for total, length in zip(cells, named, strict=True)
        )
        if fitting < len(found):  # from now on a set must be smaller than the first that does not fit
            limit = found[fitting][0] - 1
            found = found[:fitting]
    order = {name: number for number, name in enumerate(domain.names)}
    columns = [order[name] for name in names]
    ordered = sorted((cells, count, sorted(columns[place] for place in of)) for cells, count, _, of in found)
    return [tuple(domain.names[column] for column in of) for *_, of in ordered]


def _name_bytes(names: Sequence[str]) -> int:
    """What the names of a set take in a step."""
    return len(json.dumps(names))


def _public_number(name: str) -> int:
    """A public number of 64 bits that is drawn for a column, the same at every party."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")


def _sets(
    sizes: Sequence[int], drawn: Sequence[int], count: int, limit: int
) -> Iterator[tuple[int, int, int, tuple[int, ...]]]:
    """The sets of `count` columns that have at most `limit` cells: cells, count, the sum of what was drawn,
    columns.

    sizes: of the columns, ascending. drawn: for each column.
    """

    def grow(
        chosen: tuple[int, ...], cells: int, total: int, start: int
    ) -> Iterator[tuple[int, int, int, tuple[int, ...]]]:
        missing = count - len(chosen)
        for number in range(start, len(sizes) - missing + 1):
            if cells * sizes[number] ** missing > limit:  # the others are no smaller
                return
            grown, more = cells * sizes[number], total + drawn[number]
            if missing == 1:
                yield grown, count, more % (1 << 64), (*chosen, number)
            else:
                yield from grow((*chosen, number), grown, more, number + 1)

    return grow((), 1, 0, 0)
