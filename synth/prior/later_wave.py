"""A later wave: what earlier waves have measured is measured again, of other people's rows, and added.

Nothing is selected (`docs/design/federated.md` 5): the marginals are those of the earlier waves, with noises
in the same proportions, so that the sums have noises in these proportions, too. With budget rho, and Var_q
the parameter of the noise of what the earlier waves together know of q,

    sigma_q^2 = c Var_q,    c such that   sum over q of   s^2 / (2 sigma_q^2) = rho   (replace: twice as much)

values add, parameters add, totals add; one model is fitted to the sums. A record is in the rows of one wave
only, and is charged for that one. Standard library only at import.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Unpack

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import Clique
from mpc_protocols.process.later import Later
from synth.algorithm import Algorithm, Promise
from synth.budget.charges import Charges, cell_distance, significant
from synth.config import AlgorithmConfig
from synth.plan import TOTAL_DISTANCE, Plan, calibrate

if TYPE_CHECKING:
    from mpc_protocols.functionality import MarginalOracle, Observe
    from synth import mrf, run, synthesis
    from synth.domain import Domain
    from synth.mrf import tree_size
    from synth.workload import Workload
else:
    mrf = Later("synth.mrf")
    run = Later("synth.run")
    synthesis = Later("synth.synthesis")
    tree_size = Later("synth.mrf.tree_size")

_BITS = 40


class Known(NamedTuple):
    """A noisy marginal: counts in row-major order of the clique's columns, and the parameter of their noise."""

    values: tuple[float, ...]
    sigma2: Fraction


@dataclass(frozen=True)
class Wave:
    """What a wave has measured, or several waves together: each clique once. total: about how many rows."""

    known: Mapping[Clique, Known]
    total: float

    @classmethod
    def of(cls, measured: Iterable[tuple[Clique, Sequence[int], Fraction]], total: float) -> Wave:
        """A wave's measurements; of what it has measured more than once, the inverse-variance mean."""
        known: dict[Clique, Known] = {}
        for clique, values, sigma2 in measured:
            if clique not in known:
                known[clique] = Known(tuple(map(float, values)), sigma2)
                continue
            before = known[clique]
            share = float(sigma2 / (sigma2 + before.sigma2))
            mean = tuple(share * x + (1 - share) * y for x, y in zip(before.values, values, strict=True))
            both = significant(1 / (1 / sigma2 + 1 / before.sigma2), _BITS, up=True)
            known[clique] = Known(mean, both)
        return cls(known, total)

    def plus(self, other: Wave) -> Wave:
        """Of both, whose rows are different people's. Raises `ValueError` if they have not measured the same."""
        if self.known.keys() != other.known.keys():
            raise ValueError("Waves of one table measure the same marginals.")
        known = {
            clique: Known(
                tuple(x + y for x, y in zip(of.values, other.known[clique].values, strict=True)),
                of.sigma2 + other.known[clique].sigma2,
            )
            for clique, of in self.known.items()
        }
        return Wave(known, self.total + other.total)


@dataclass(frozen=True)
class WavePlan(Plan):
    """sigma2: the largest noise. noises: of each clique. earlier: all earlier waves together."""

    noises: Mapping[Clique, Fraction]
    earlier: Wave


class LaterWave(Algorithm[AlgorithmConfig, WavePlan]):
    """What a study of an algorithm does after earlier waves. base: the algorithm. earlier: these waves
    together."""

    name = "later-wave"
    title = "A later wave"
    summary = "what an earlier wave has measured is measured again, of those who came too late for it"
    config = AlgorithmConfig
    left_out = "no wave has measured it"
    partitions: ClassVar[tuple[str, ...]] = ("horizontal",)

    def __init__(self, base: Algorithm[Any, Any], earlier: Wave) -> None:
        self._base, self._earlier = base, earlier

    def claim(self, config: AlgorithmConfig) -> str:
        return self._base.claim(config)

    def plan(
        self, domain: Domain, workload: Workload, config: AlgorithmConfig, **promise: Unpack[Promise]
    ) -> WavePlan:
        """Raises `StudyInvalid`: the model of what was measured is larger than the study's; (epsilon, delta)
        out of range."""
        charges = Charges(promise["adjacency"], promise.get("unit_rows", 1))
        known = self._earlier.known
        size = tree_size.model_size_mb(domain.sizes, [*known, *domain.impossible])
        if size > config.model_mb:
            raise StudyInvalid(
                f"The model of what the earlier wave has measured takes {size:.1f} MiB, and max_model_mb is {config.model_mb:g}: "
                "raise it."
            )
        inverse = {clique: 1 / of.sigma2 for clique, of in known.items()}
        whole = sum(inverse.values(), Fraction(0))
        shares = {clique: of / whole for clique, of in inverse.items()}
        least, cells = min(shares.values()), sum(domain.cells(clique) for clique in known)

        def noise(rho: Fraction) -> Fraction:
            return charges.sigma2(rho * least)

        def distance(
            sigma2: Fraction,
        ) -> Fraction:  # the batch also fixes the bound on the rows, an event of all its cells
            return len(known) * charges.distance(sigma2) + cells * cell_distance(sigma2) + TOTAL_DISTANCE

        asked = f"{len(known)} marginals of an earlier wave"
        budget = calibrate(promise["epsilon"], promise["delta"], noise, distance, asked)
        return WavePlan(
            domain,
            workload,
            config,
            charges,
            budget,
            noise(budget.rho_cap),
            Fraction(0),
            (0, 0),
            {clique: domain.cells(clique) for clique in known if len(clique) > 1},
            (),
            {clique: charges.sigma2(budget.rho_cap * share) for clique, share in shares.items()},
            self._earlier,
        )

    def asks(self, plan: WavePlan) -> str:
        return f"the {len(plan.noises):,} marginals that an earlier wave has measured, once; no selection"

    def run(self, oracle: MarginalOracle, plan: WavePlan, observe: Observe) -> synthesis.Synthesis:
        import numpy as np

        noises = plan.noises
        values = oracle.measure(oracle.prepare(list(noises)), list(noises.values()))
        own = oracle.noisy_total
        assert own is not None  # it has measured
        measured = tuple(
            synthesis.Measured(clique, noises[clique], 0, noisy)
            for clique, noisy in zip(noises, values, strict=True)
        )
        observe(
            "measure",
            "measured",
            round=0,
            cliques=[list(clique) for clique in noises],
            sigma=run.root(plan.sigma2),
            noisy_total=own,
            rho_spent=float(sum(map(plan.charges.measuring, noises.values()))),
            rho=float(plan.budget.rho_cap),
        )
        both = plan.earlier.plus(Wave.of([(m.clique, m.values.tolist(), m.sigma2) for m in measured], own))
        sums = [
            mrf.Measurement(clique, np.array(of.values), float(of.sigma2))
            for clique, of in both.known.items()
        ]
        model = mrf.fit(
            plan.domain.sizes,
            sums,
            total=max(1.0, both.total),
            impossible=plan.domain.impossible,
            iterations=run.FINAL_ITERATIONS,
        )
        observe("fit", "added", rows=round(both.total), model_mb=model.size_mb)
        most = oracle.row_bound + max(0, round(plan.earlier.total))
        rows = plan.config.synthetic_rows or min(max(0, round(both.total)), most)
        return synthesis.Synthesis(model, measured, (), own, rows)
