"""A plan: everything about a run that is fixed before the first question is asked. Public and deterministic.

Every select-measure-generate algorithm here is planned the same way: which marginals are candidates (public
sizes decide), how much noise each step has, how many steps there are, and the budget that bounds them. `aim`,
`mwem` and `mst` say in their own `plan` how they split it; this file holds what they share, and `runner`
knows plans by this class only.

Candidates. A marginal that no model of max_model_mb can hold is never one; those of them that were wished for
are named for `check`. With prune, a candidate whose penalty sqrt(2/pi) sigma n_q exceeds twice the noisy
total is not one in that round: a score is w_q (L1 - penalty) with L1 at most about twice the total, so it
could only be picked for its noise (`docs/design/algorithms.md` 4). That choice reads the noisy total only; it
belongs here, so that every backend is asked about the same list.

Budget. The samplers' statistical distance (`beta_cap`) is bounded for the worst case, because the cap on rho
is solved for what it leaves of delta (`accounting.Budget`). Standard library only at import.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import MAX_CELLS, Clique
from mpc_protocols.mechanisms.gaussian import MAX_SIGMA2
from mpc_protocols.process.later import Later
from synth.budget.accounting import Budget
from synth.budget.charges import Charges, mean_noise
from synth.budget.reserved import NOTHING_RESERVED, Reserved
from synth.config import AlgorithmConfig, ModelConfig, RoundConfig, cells_within
from synth.domain import Domain
from synth.workload import Workload

if TYPE_CHECKING:
    from synth import mrf
    from synth.mrf import tree_size
    from synth.prior import Prior
else:
    mrf = Later("synth.mrf")
    tree_size = Later("synth.mrf.tree_size")

SELECTION_DISTANCE = Fraction(1, 2**70)
"""Of one candidate's noise in one selection (`docs/design/mechanisms.md` 1.2)."""
TOTAL_DISTANCE = Fraction(1, 2**56)
"""Of all uses of the noisy total as a bound on the number of rows: nine sigma, 3e-18
(`docs/design/mechanisms.md` 5), with room."""


@dataclass(frozen=True)
class Plan:
    """What will happen, as far as it does not depend on noisy outputs.

    sigma2: of the first measurements. epsilon: of the first selection. rounds: fewest and most selections.
    candidates: with their number of cells, in the order they are offered. oversized: marginals that no model
    of max_model_mb can hold and that would be candidates otherwise; of AIM's, the workload's own only.
    reserved: what is measured whatever is selected. prior: what an earlier release or a public table tells;
    of an algorithm that `inherits`.
    """

    domain: Domain
    workload: Workload
    config: AlgorithmConfig
    charges: Charges
    budget: Budget
    sigma2: Fraction
    epsilon: Fraction
    rounds: tuple[int, int]
    candidates: Mapping[Clique, int]
    oversized: tuple[Clique, ...]
    reserved: Reserved = field(default=NOTHING_RESERVED, kw_only=True)
    prior: Prior | None = field(default=None, kw_only=True, repr=False, compare=False)

    @property
    def own_rho(self) -> Fraction:
        """rho that is not reserved."""
        return self.reserved.rest(self.budget.rho_cap)

    @property
    def one_way(self) -> tuple[Clique, ...]:
        """The cliques of one column, in domain order."""
        return tuple((name,) for name in self.domain.names)

    @property
    def batches(self) -> tuple[int, int]:
        """Fewest and most steps in which selections are made: of an algorithm that makes several at once,
        fewer than `rounds`."""
        return self.rounds

    def likely(self, rows: float) -> Collection[Clique]:
        """The candidates that a run on a table of about so many rows may ask for; of most algorithms all of
        them."""
        return self.candidates

    def knowing(self, owners: Mapping[str, str]) -> Plan:
        """The plan once the owner of each column is known, of data split by columns; of most algorithms the
        same.

        Candidates, noise and budget stay as they are: parties have counted and reserved by them.
        """
        return self

    def beside(self, columns: Sequence[str]) -> tuple[Fraction, Fraction]:
        """rho and beta of what an owner of these columns spends besides the budget, at most; of most
        algorithms nothing."""
        return Fraction(0), Fraction(0)

    @property
    def known_rounds(self) -> int | None:
        """How many selections there are, where that is known beforehand."""
        low, high = self.rounds
        return high if low == high else None

    def times(self, noun: str) -> str:
        """How many selections there are, in words: "10 rounds", "3 to 9 rounds"."""
        low, high = self.rounds
        return f"{high if low == high else f'{low} to {high}'} {noun}{'s' * (high != 1)}"


@dataclass(frozen=True)
class RoundPlan(Plan, ABC):
    """A plan of rounds: select the candidate that the model approximates worst, measure it, refit.

    sigma2, epsilon: of the first round too; of every round when their number is fixed.
    """

    config: RoundConfig

    @abstractmethod
    def weight(self, clique: Clique) -> int:
        """The factor of a candidate's score."""

    def penalty(self, clique: Clique, sigma2: Fraction) -> Fraction:
        """sqrt(2/pi) sigma n_q: expected L1 norm of the noise added when the clique is measured."""
        return mean_noise(sigma2) * self.candidates[clique]

    def can_win(self, sigma2: Fraction, noisy_total: float) -> list[Clique]:
        """Candidates whose penalty at this noise leaves them a score above 0; all of them without prune."""
        if not self.config.prune:
            return list(self.candidates)
        most = 2 * Fraction(noisy_total) // mean_noise(sigma2)
        return [clique for clique, cells in self.candidates.items() if cells <= most]

    def likely(self, rows: float) -> Collection[Clique]:
        """Those that can win at the noise of a round."""
        return self.can_win(self.sigma2, rows)

    def round_cost(self, sigma2: Fraction, epsilon: Fraction) -> Fraction:
        """rho of one round: a selection and a measurement."""
        return self.charges.selecting(epsilon) + self.charges.measuring(sigma2)


def check_sizes(domain: Domain, workload: Workload, config: ModelConfig) -> None:
    """Refuse what no run could ever do. Raises `StudyInvalid`: a column that no model can hold, a clique
    beyond sharing."""
    for key, sentence in config.misfits(domain.sizes):
        raise StudyInvalid(f"The option {key} {sentence}.")
    for clique in workload.cliques:
        if domain.cells(clique) > MAX_CELLS:
            raise StudyInvalid(
                f"The workload clique {', '.join(clique)} has {domain.cells(clique)} cells, and no clique of more "
                f"than {MAX_CELLS} can be shared: coarsen its columns or leave it out."
            )
    if domain.impossible:
        _check_constraints(domain, config)


def _check_constraints(domain: Domain, config: ModelConfig) -> None:
    """Refuse constraints that no model can hold or no row can keep. Raises `StudyInvalid`."""
    size = tree_size.model_size_mb(domain.sizes, list(domain.impossible))
    if size > config.max_model_mb:
        raise StudyInvalid(
            f"[domain] constraints join columns whose model would have {size:.1f} MiB alone, more than max_model_mb = "
            f"{config.max_model_mb:g}: bin these columns coarser, or raise it."
        )
    try:
        mrf.fit(domain.sizes, [], impossible=domain.impossible, iterations=0)
    except ValueError:
        raise StudyInvalid(
            "[domain] constraints contradict each other: no row could keep all of them."
        ) from None


def modelled(
    domain: Domain, cliques: Iterable[Clique], max_model_mb: float
) -> tuple[dict[Clique, int], tuple[Clique, ...]]:
    """(cliques that a model can hold and parties can share, with their number of cells; the others), in the
    given order."""
    cells = {clique: domain.cells(clique) for clique in cliques}
    most = min(cells_within(max_model_mb), MAX_CELLS)
    return (
        {clique: count for clique, count in cells.items() if count <= most},
        tuple(clique for clique, count in cells.items() if count > most),
    )


def check_model(domain: Domain, asked: Iterable[Clique], config: ModelConfig) -> None:
    """Refuse marginals that are all measured whatever the answers are, before anything is spent on some of
    them. Raises `StudyInvalid`: no model of max_model_mb holds them together."""
    size = tree_size.model_size_mb(domain.sizes, [*asked, *domain.impossible])
    if size > max(config.max_model_mb, tree_size.model_size_mb(domain.sizes, domain.impossible)):
        raise too_large(size, config.max_model_mb)


def too_large(size_mb: float, max_model_mb: float) -> StudyInvalid:
    """What refuses a model of so many MiB."""
    taken = f"{size_mb:,.0f}" if size_mb >= 10 else f"{size_mb:.2g}"
    return StudyInvalid(
        f"The marginals that the algorithm asks for have a model larger than max_model_mb = {max_model_mb:g}; it takes "
        f"{taken} MiB: raise max_model_mb, or ask for fewer or smaller marginals."
    )


def calibrate(
    epsilon: float,
    delta: float,
    widest: Callable[[Fraction], Fraction],
    distance: Callable[[Fraction], Fraction],
    asked: str,
) -> Budget:
    """The budget of a run whose noise is `widest(rho_cap)` at most and whose samplers' statistical distances
    then add up to `distance`.

    sigma depends on the cap on rho, which depends on the samplers' statistical distance, which grows (slowly)
    with sigma: the distance is taken for more noise than the study will have, and again if that was not
    enough. asked: in words, what the budget is for. Raises `StudyInvalid`: (epsilon, delta) out of range, or
    so little that the noise is beyond the samplers.
    """
    budget = Budget.of(epsilon, delta, Fraction(0))
    sigma2 = presumed = Fraction(0)
    while sigma2 >= presumed:
        presumed = 2 * widest(budget.rho_cap)
        budget = Budget.of(epsilon, delta, distance(presumed))
        sigma2 = widest(budget.rho_cap)
    if sigma2 > MAX_SIGMA2:
        raise StudyInvalid(
            f"[privacy] epsilon = {epsilon} is too little for {asked}: the noise would have a standard deviation "
            f"of {math.sqrt(sigma2):.3g}; raise it, or ask for less."
        )
    return budget
