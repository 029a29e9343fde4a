"""All marginals of the workload, or of the columns that `[kway] columns` names, each measured once with the
same noise.

Nothing is selected: what is asked follows from the study alone, as in the first step of McKenna et al.,
"Winning the NIST Contest" (2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

from mpc_protocols.options import option
from synth.algorithm import SOUND, Algorithm, Promise
from synth.config import ModelConfig

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from fractions import Fraction

    from mpc_protocols.functionality import MarginalOracle, Observe
    from synth.domain import Domain
    from synth.plan import Plan
    from synth.synthesis import Synthesis
    from synth.workload import Workload


@dataclass(frozen=True)
class KwayConfig(ModelConfig):
    """The `[kway]` table of a study."""

    columns: tuple[str, ...] | None = option(
        None, "texts", "only marginals of these columns; all if it is absent", example=("age", "sex")
    )

    def misfits(self, sizes: Mapping[str, int]) -> Iterator[tuple[str, str]]:
        """A column that the study does not have."""
        yield from super().misfits(sizes)
        for name in self.columns or ():
            if name not in sizes:
                yield "columns", f'names "{name}", which is no column of the study'


class Kway(Algorithm["KwayConfig", "Plan"]):
    """A fixed set of marginals."""

    name = "kway"
    title = "k-way marginals"
    rank = 60
    summary = "every marginal of the workload is measured once; nothing is selected"
    config = KwayConfig

    def claim(self, config: KwayConfig) -> str:
        return SOUND

    def plan(
        self, domain: Domain, workload: Workload, config: KwayConfig, **promise: Unpack[Promise]
    ) -> Plan:
        from fractions import Fraction

        from synth.budget.charges import Charges, cell_distance
        from synth.plan import TOTAL_DISTANCE, Plan, calibrate, check_model, check_sizes, modelled

        check_sizes(domain, workload, config)
        charges = Charges(promise["adjacency"], promise.get("unit_rows", 1))
        joint = [
            clique
            for clique in workload.cliques
            if len(clique) > 1 and set(clique) <= set(config.columns or domain.names)
        ]
        candidates, oversized = modelled(domain, joint, config.max_model_mb)
        check_model(domain, candidates, config)
        measured = len(domain) + len(candidates)

        def noise(rho: Fraction) -> Fraction:
            return charges.sigma2(rho / measured)

        def distance(sigma2: Fraction) -> Fraction:
            # the first batch, of single columns, also fixes the bound on the rows: an event of all its cells
            cells = sum(domain.sizes.values())
            return measured * charges.distance(sigma2) + cells * cell_distance(sigma2) + TOTAL_DISTANCE

        budget = calibrate(promise["epsilon"], promise["delta"], noise, distance, f"{measured} marginals")
        return Plan(
            domain=domain,
            workload=workload,
            config=config,
            charges=charges,
            budget=budget,
            sigma2=noise(budget.rho_cap),
            epsilon=Fraction(1),
            rounds=(0, 0),
            candidates=candidates,
            oversized=oversized,
        )

    def asks(self, plan: Plan) -> str:
        return "every column and every marginal of the workload, once"

    def run(self, oracle: MarginalOracle, plan: Plan, observe: Observe) -> Synthesis:
        from synth.run import FINAL_ITERATIONS, ROUND_ITERATIONS, Run

        run, joint = Run(oracle, plan, observe), list(plan.candidates)
        run.measure_columns(plan.one_way, plan.sigma2, 0)
        run.refit(0, ROUND_ITERATIONS)
        run.share(joint)
        if joint:
            answers = run.model.marginals(joint)
            run.measure_shared(joint, answers, plan.sigma2, [0] * len(joint), [0] * len(joint))
        run.refit(0, FINAL_ITERATIONS)
        return run.synthesis()


ALGORITHM = Kway()
