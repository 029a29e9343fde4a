"""AIM's plan: everything about a run that is fixed before the first question is asked. Public and deterministic.

AIM (McKenna-Mullins-Sheldon-Miklau 2022; `notes.md` 4) measures all one-column marginals, then repeats: select the marginal
that the model approximates worst, measure it, refit. With d columns, budget rho, share r = 1 - select_share for measuring:

    fixed rounds T    sigma^2 = (T + d) / (2 r rho),  epsilon_t = sqrt(8 (1 - r) rho / T)
    adaptive          starts as if T = 8 d rounds were to come, the d first measurements among them, and anneals (`loop`)

in units of one row's effect; `charges` has the sensitivities of the study's adjacency and unit. Every column of the domain is
measured and modelled, also one that no workload clique names: the table will have it, and uniform noise is no use to anybody.

Which candidates exist at all is public: the workload's closure, less what could never be in a model of max_model_mb (named
for `check`). With prune, a candidate whose penalty sqrt(2/pi) sigma n_q exceeds twice the noisy total is not one in that
round: a score is w_q (L1 - penalty) with L1 at most about twice the total, so it could only be picked for its noise
(DESIGN 4). That choice reads the noisy total only; it belongs here, so that every backend is asked about the same list.

The samplers' distance (`beta_cap`) is bounded here for the worst case, because the cap on rho is solved for what it leaves of
delta. Standard library only at import.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import Adjacency, Clique
from mpc_protocols.mechanisms.gaussian import MAX_SIGMA2
from synth.accounting import Budget
from synth.charges import Charges, cell_distance, mean_noise
from synth.domain import MOST_VALUES, Domain
from synth.workload import Workload

CELL_BYTES = 8
FIRST_ROUNDS_PER_COLUMN = 8
MOST_ROUNDS = 100_000
SELECTION_DISTANCE = Fraction(1, 2**70)
"""Of one candidate's noise in one selection (`mechanisms.md` 1.2)."""
TOTAL_DISTANCE = Fraction(1, 2**56)
"""Of all uses of the noisy total as a bound on the number of rows: nine sigma, 3e-18 (`mechanisms.md` 5), with room."""


@dataclass(frozen=True)
class AimConfig:
    """The `[aim]` table of a study. rounds: None means adaptive. max_model_mb: MiB at 8 bytes a cell."""

    rounds: int | None = None
    max_model_mb: float = 4
    select_share: float = 0.1
    prune: bool = True
    synthetic_rows: int | None = None

    def __post_init__(self) -> None:
        if self.rounds is not None and not (_whole(self.rounds) and 1 <= self.rounds <= MOST_ROUNDS):
            raise StudyInvalid(f'[aim] rounds must be an integer from 1 to {MOST_ROUNDS} or "adaptive", got {self.rounds!r}.')
        if not _number(self.max_model_mb) or not 0 < self.max_model_mb < math.inf:
            raise StudyInvalid(f"[aim] max_model_mb must be a number above 0, got {self.max_model_mb!r}.")
        if not _number(self.select_share) or not 0 < self.select_share < 1:
            raise StudyInvalid(f"[aim] select_share must lie strictly between 0 and 1, got {self.select_share!r}.")
        if not isinstance(self.prune, bool):
            raise StudyInvalid(f"[aim] prune must be true or false, got {self.prune!r}.")
        if self.synthetic_rows is not None and not (_whole(self.synthetic_rows) and self.synthetic_rows >= 1):
            raise StudyInvalid(f"[aim] synthetic_rows must be an integer of at least 1, got {self.synthetic_rows!r}.")

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> AimConfig:
        """The configuration of a parsed `[aim]` table; what it leaves out has its default. Raises `StudyInvalid`."""
        known = ("rounds", "max_model_mb", "select_share", "prune", "synthetic_rows")
        if foreign := sorted(str(key) for key in spec if key not in known):
            raise StudyInvalid(f"[aim] has an unknown key {foreign[0]}; it knows {', '.join(known)}.")
        values = dict(spec)
        if "rounds" in values and values["rounds"] is None:
            raise StudyInvalid('[aim] rounds must be an integer or "adaptive".')
        if values.get("rounds") == "adaptive":
            values["rounds"] = None
        return cls(**values)  # type: ignore[arg-type]


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True)
class AimPlan:
    """What will happen, as far as it does not depend on noisy outputs.

    sigma2, epsilon: of the one-column marginals and of the first round; of every round when rounds are fixed.
    least_sigma2: the smallest any round can reach. rounds: fewest and most rounds. candidates: with their number of cells, in
    the order of the closure. oversized: workload cliques that no model of max_model_mb can hold.
    """

    domain: Domain
    workload: Workload
    config: AimConfig
    charges: Charges
    budget: Budget
    sigma2: Fraction
    epsilon: Fraction
    least_sigma2: Fraction
    rounds: tuple[int, int]
    candidates: Mapping[Clique, int]
    oversized: tuple[Clique, ...]

    @property
    def singles(self) -> tuple[Clique, ...]:
        """The one-column cliques that are measured first."""
        return tuple((name,) for name in self.domain.names)

    @property
    def closure_cells(self) -> int:
        """Cells of the whole closure, candidates or not."""
        return sum(self.domain.cells(clique) for clique in self.workload.closure)

    def can_win(self, sigma2: Fraction, noisy_total: float) -> list[Clique]:
        """Candidates whose penalty at this noise leaves them a score above 0; all of them without prune."""
        if not self.config.prune:
            return list(self.candidates)
        bound = 2 * Fraction(noisy_total)
        return [clique for clique in self.candidates if self.penalty(clique, sigma2) <= bound]

    def penalty(self, clique: Clique, sigma2: Fraction) -> Fraction:
        """sqrt(2/pi) sigma n_q: the L1 norm that the noise of measuring the clique will have, in the mean."""
        return mean_noise(sigma2) * self.candidates[clique]

    def shared(self, noisy_total: float) -> list[Clique]:
        """Candidates that are made available to the oracle: all that can win at the smallest noise the budget can reach."""
        return self.can_win(self.least_sigma2, noisy_total)

    def round_cost(self, sigma2: Fraction, epsilon: Fraction) -> Fraction:
        """rho of one round: a selection and a measurement."""
        return self.charges.selecting(epsilon) + self.charges.measuring(sigma2)

    def spend(self, rho: Fraction) -> tuple[Fraction, Fraction]:
        """(sigma2, epsilon) of one round that spends all of rho."""
        epsilon = self.charges.epsilon(rho * _exact(self.config.select_share))
        return self.charges.sigma2(rho - self.charges.selecting(epsilon)), epsilon


def plan(domain: Domain, workload: Workload, config: AimConfig, *, epsilon: float, delta: float, adjacency: Adjacency,
         unit_rows: int = 1) -> AimPlan:
    """Fix budget, noise and candidates of a study. unit_rows: the most rows of one privacy unit over all custodians.

    Raises `StudyInvalid`: a clique of more than 2^24 cells, a column that no model can hold, (epsilon, delta) out of range.
    """
    charges = Charges(adjacency, unit_rows)
    candidates, oversized = _candidates(domain, workload, config)
    columns, share = len(domain), _exact(config.select_share)
    most_rounds = FIRST_ROUNDS_PER_COLUMN * columns if config.rounds is None else config.rounds

    def noise(rho: Fraction) -> tuple[Fraction, Fraction]:
        measured = most_rounds if config.rounds is None else most_rounds + columns
        return charges.sigma2((1 - share) * rho / measured), charges.epsilon(share * rho / most_rounds)

    def distance(sigma2: Fraction) -> Fraction:  # the first batch also fixes the bound on the rows, an event of all its cells
        return ((most_rounds + 2 * columns) * charges.distance(sigma2) + sum(domain.sizes.values()) * cell_distance(sigma2)
                + most_rounds * len(candidates) * SELECTION_DISTANCE + TOTAL_DISTANCE)

    # sigma depends on the cap on rho, which depends on the samplers' distance, which grows (slowly) with sigma: the distance
    # is taken for more noise than the study will have, and again if that was not enough.
    budget = Budget.of(epsilon, delta, Fraction(0))
    sigma2 = presumed = Fraction(0)
    while sigma2 >= presumed:
        presumed = 2 * noise(budget.rho_cap)[0]
        budget = Budget.of(epsilon, delta, distance(presumed))
        sigma2, first_epsilon = noise(budget.rho_cap)
    if sigma2 > MAX_SIGMA2:
        raise StudyInvalid(f"[privacy] epsilon = {epsilon} is too little for {columns} columns and {most_rounds} rounds: the "
                           f"noise would have a standard deviation of {math.sqrt(sigma2):.3g}.")
    left = budget.rho_cap - columns * charges.measuring(sigma2)
    draft = AimPlan(domain, workload, config, charges, budget, sigma2, first_epsilon, sigma2, (most_rounds, most_rounds),
                    candidates, oversized)
    if config.rounds is not None:
        return draft
    return AimPlan(domain, workload, config, charges, budget, sigma2, first_epsilon, draft.spend(left)[0],
                   _adaptive_rounds(draft, left), candidates, oversized)


def _exact(share: float) -> Fraction:
    """The decimal number that was written: 0.1 is a tenth."""
    return Fraction(str(share))


def _candidates(domain: Domain, workload: Workload, config: AimConfig) -> tuple[dict[Clique, int], tuple[Clique, ...]]:
    most_cells = config.max_model_mb * 2**20 / CELL_BYTES
    for name, size in domain.sizes.items():
        if size > most_cells:
            raise StudyInvalid(f"The column {name} has {size} values, more than a model of max_model_mb = {config.max_model_mb} "
                               "can hold: give it fewer bins, or raise max_model_mb.")
    for clique in workload.cliques:
        if domain.cells(clique) > MOST_VALUES:
            raise StudyInvalid(f"The workload clique {', '.join(clique)} has {domain.cells(clique)} cells, and no clique of more "
                               f"than {MOST_VALUES} can be shared: coarsen its columns or leave it out.")
    cells = {clique: domain.cells(clique) for clique in workload.closure}
    return ({clique: count for clique, count in cells.items() if count <= most_cells},
            tuple(clique for clique in workload.cliques if cells[clique] > most_cells))


def _adaptive_rounds(first: AimPlan, left: Fraction) -> tuple[int, int]:
    """Fewest rounds (noise halves after each) and most (it never does) until `left` is spent, the last taking what is left."""
    cost = first.round_cost(first.sigma2, first.epsilon)
    most = min(max(1, math.floor(left / cost)), FIRST_ROUNDS_PER_COLUMN * len(first.domain))
    sigma2, epsilon, fewest, spent = first.sigma2, first.epsilon, 1, cost
    while left - spent >= 2 * (cost := first.round_cost(sigma2 / 4, epsilon * 2)):
        sigma2, epsilon, fewest, spent = sigma2 / 4, epsilon * 2, fewest + 1, spent + cost
    return min(fewest + 1, most), most
