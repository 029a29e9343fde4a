"""A FLAIM study's plan: who is asked for what, with how much noise, so that no record is charged more than
rho.

Charges (`docs/design/flaim.md` 2), as shares of rho: what everybody's one-way marginals take at registration,
what the client's noisy size takes, and of the rest select_share for its choices (epsilon^2 / 8 each) and what
remains for the noisy sums that hold a record (1 / (2 sigma^2) each). All of it is for a client that takes
part as often as it may; whatever the rounds bring, no record is charged more, because clients' records are
disjoint and a participation is counted when the invitation is accepted.

The study's candidates are those of AIM. Standard library only at import.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Unpack

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import Clique, Event
from synth.algorithm import CHOICES, Promise
from synth.algorithms.flaim.variant import Variant
from synth.algorithms.flaim.variants import VARIANTS
from synth.budget.charges import Charges, cell_distance, mean_noise
from synth.domain import Domain
from synth.plan import SELECTION_DISTANCE, TOTAL_DISTANCE, Plan, calibrate, check_sizes, modelled
from synth.workload import Workload

if TYPE_CHECKING:
    from synth.algorithms.flaim.config import FlaimConfig

SIZES, TRUTH = "sizes", "true marginals"
"""What the events of clients' noisy sizes, and of what protects nothing, are called."""
_ROOT_BITS = 40
MAX_ROWS = 1 << 22
"""Rows of one client at most, unless a study says less."""


@dataclass(frozen=True)
class Shares:
    """zCDP of one record's charges, exact: of its size, registration, each choice and each noisy sum, and how
    many there are."""

    size: Fraction
    registration: Fraction
    choice: Fraction
    choices: int
    release: Fraction
    releases: int

    @property
    def most(self) -> Fraction:
        """What a record is charged that is in everything it may be in."""
        return self.size + self.registration + self.choices * self.choice + self.releases * self.release


@dataclass(frozen=True)
class FlaimPlan(Plan):
    """What is fixed before the first client is asked. Public.

    sigma2: of every sum but registration's. epsilon: of every choice; 0 if there is none. size_sigma2,
    registration_sigma2: 0 if there is none. max_rows: of one client.
    """

    config: FlaimConfig
    variant: Variant
    shares: Shares
    size_sigma2: Fraction
    registration_sigma2: Fraction
    max_rows: int

    @property
    def participations(self) -> int:
        """How often a client takes part at most."""
        return participations(self.config, self.variant)

    @property
    def noises(self) -> dict[Clique, Fraction]:
        """Of one shot: the noise of each marginal, columns first; together they cost rho at most."""
        shared = parts(self.domain, self.workload, self.candidates)
        return {clique: self.charges.sigma2(self.budget.rho_cap * part) for clique, part in shared.items()}

    @property
    def moved(self) -> int:
        """Squared L2 norm by which a unit moves one marginal, at most."""
        return self.charges.unit_rows * self.charges.cells_moved

    @property
    def factor(self) -> int:
        """How much a unit moves a client's distance."""
        return self.charges.cells_moved * self.variant.movement

    def penalty(self, clique: Clique) -> Fraction:
        """sqrt(2/pi) sigma n_q: the mean L1 norm of the noise of the sum that is opened."""
        return mean_noise(self.sigma2) * self.candidates[clique]

    def worth_noise(self, cohort_rows: int) -> list[Clique]:
        """Candidates whose noise is at most twice the cohort's rows: the others' scores are below 0 at every
        client."""
        return [clique for clique in self.candidates if self.penalty(clique) <= 2 * cohort_rows]

    def size_event(self, new: list[int], cohort: list[int]) -> Event:
        """Of a cohort's sizes, drawn by the clients that take part for the first time."""
        rho = self.charges.counting(self.size_sigma2) if self.size_sigma2 and new else Fraction(0)
        beta = cell_distance(self.size_sigma2) if rho else Fraction(0)
        return Event(SIZES, rho, beta, {"charged": new, "invited": cohort})

    def exposed_event(self, clients: list[int], cliques: Sequence[Clique]) -> Event:
        """Of true marginals, which no budget covers. Raises `StudyInvalid` in a study with a claim."""
        if self.variant.private:
            raise StudyInvalid(f'[flaim] variant = "{self.variant.name}" opens no true marginals.')
        named = [list(clique) for clique in cliques]
        return Event(TRUTH, Fraction(0), Fraction(0), {"charged": clients, "cliques": named, "claim": "none"})

    def choice_event(self, clients: list[int], candidates: int) -> Event:
        """Of one choice of each of these clients."""
        beta = candidates * SELECTION_DISTANCE
        detail: dict[str, object] = {"charged": clients, "candidates": candidates}
        return Event(CHOICES, self.charges.selecting(self.epsilon), beta, detail)


def participations(config: FlaimConfig, variant: Variant) -> int:
    """How often a client takes part at most."""
    if variant.once:
        return 1
    often = config.participations if isinstance(config.participations, int) else int(config.rounds)
    return min(often, config.rounds)


def shares(rho: Fraction, config: FlaimConfig, variant: Variant, columns: int) -> Shares:
    """Divide rho: exactly all of it is charged to a record that is in everything it may be in."""
    often = participations(config, variant)
    rest = rho * (1 - variant.size - variant.registration)
    choosing = Fraction(str(config.select_share)) * rest if variant.chooses else Fraction(0)
    choices, releases = often * variant.chooses, variant.releases(often, columns)
    return Shares(
        size=rho * variant.size,
        registration=rho * variant.registration,
        choice=choosing / choices if choices else Fraction(0),
        choices=choices,
        release=(rest - choosing) / releases,
        releases=releases,
    )


def plan(domain: Domain, workload: Workload, config: FlaimConfig, **promise: Unpack[Promise]) -> FlaimPlan:
    """Fix budget, noise and candidates; for clients of at most `MAX_ROWS` rows (`FlaimPlan.max_rows`).

    Raises `StudyInvalid`: a variant that is not known, no candidate, a column that no model of max_model_mb holds, (epsilon,
    delta) out of range.
    """
    check_sizes(domain, workload, config)
    charges = Charges(promise["adjacency"], promise.get("unit_rows", 1))
    variant, columns = VARIANTS[config.variant], len(domain)
    cliques = [q for q in workload.closure if variant.offers_columns or len(q) > 1]
    if variant.union:
        cliques = [q for q in cliques if len(q) == 2]
    candidates, oversized = modelled(domain, cliques, config.max_model_mb)
    if not candidates and (variant.chooses or variant.draws):
        raise StudyInvalid(
            "The workload has no marginal of two columns that a model of max_model_mb holds: raise max_model_mb."
        )

    if variant.union:
        least = min(parts(domain, workload, candidates).values())
        measured = [*((name,) for name in domain.names), *candidates]
        cells = sum(domain.cells(clique) for clique in measured)

    def noise(rho: Fraction) -> Fraction:
        if variant.union:
            return charges.sigma2(rho * least)
        return charges.sigma2(shares(rho, config, variant, columns).release)

    def distance(sigma2: Fraction) -> Fraction:
        if variant.union:  # the batch also fixes the bound on the rows, an event of all its cells
            return len(measured) * charges.distance(sigma2) + cells * cell_distance(sigma2) + TOTAL_DISTANCE
        of = shares(Fraction(1), config, variant, columns)
        moved = charges.unit_rows * charges.cells_moved  # as many entries as `plan_sum` counts for a sum
        # a size has at least a nineteenth of a release's budget, a column at registration at least half of it
        # by columns
        sums = of.releases * moved * cell_distance(sigma2)
        registered = columns * moved * cell_distance(2 * columns * sigma2) if variant.registration else 0
        size = cell_distance(20 * sigma2) if variant.size else 0
        return sums + registered + size + of.choices * len(candidates) * SELECTION_DISTANCE

    budget = calibrate(
        promise["epsilon"], promise["delta"], noise, distance, f"{columns} columns and {config.rounds} rounds"
    )
    divided = shares(budget.rho_cap, config, variant, columns)
    named = set(workload.cliques)
    return FlaimPlan(
        domain=domain,
        workload=workload,
        config=config,
        charges=charges,
        budget=budget,
        sigma2=noise(budget.rho_cap),
        epsilon=charges.epsilon(divided.choice) if divided.choices else Fraction(0),
        rounds=(1, config.rounds) if variant.in_rounds else (0, 0),
        candidates=candidates,
        oversized=tuple(clique for clique in oversized if clique in named),
        variant=variant,
        shares=divided,
        size_sigma2=charges.total_sigma2(divided.size) if divided.size else Fraction(0),
        registration_sigma2=charges.sigma2(divided.registration / columns)
        if divided.registration
        else Fraction(0),
        max_rows=MAX_ROWS,
    )


def parts(domain: Domain, workload: Workload, pairs: Mapping[Clique, int]) -> dict[Clique, Fraction]:
    """The share of rho that each marginal takes, columns first; they sum to one. Integers throughout: the
    same at every party."""
    cliques: list[Clique] = [*((name,) for name in domain.names), *pairs]
    roots = {clique: _root(workload.weights.get(clique, 1) * domain.cells(clique)) for clique in cliques}
    total = sum(roots.values())
    return {clique: Fraction(root, total) for clique, root in roots.items()}


def _root(x: int) -> int:
    """x^(2/3) in units of 2^-40, rounded down."""
    cube, low, high = x**2 << 3 * _ROOT_BITS, 0, 1 << (_ROOT_BITS + x.bit_length())
    while low < high - 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**3 <= cube else (low, middle)
    return low
