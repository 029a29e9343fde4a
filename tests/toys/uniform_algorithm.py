"""A toy algorithm: it counts the rows and makes them uniform. It shows what a descriptor has to say; nobody
wants its tables."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Unpack

from mpc_protocols.options import option
from synth.algorithm import SOUND, Algorithm, Promise
from synth.config import ModelConfig

if TYPE_CHECKING:
    from mpc_protocols.functionality import MarginalOracle, Observe
    from synth.domain import Domain
    from synth.plan import Plan
    from synth.synthesis import Synthesis
    from synth.workload import Workload


@dataclass(frozen=True)
class UniformConfig(ModelConfig):
    """The `[uniform]` table. mood: "bold" has no claim, so that the research switch can be tried."""

    mood: str = option("sober", "word", "nothing depends on it", words=("sober", "bold"))
    iterations: int = option(1, "whole", "of a fit that has nothing to fit", low=1, high=10)


class Uniform(Algorithm[UniformConfig, "Plan"]):
    """Uniform rows, as many as there are."""

    name = "uniform"
    title = "Uniform"
    summary = "only how many rows there are"
    config = UniformConfig

    def claim(self, config: UniformConfig) -> str:
        return SOUND if config.mood == "sober" else "no privacy claim"

    def alternative(self, config: UniformConfig) -> str | None:
        return 'mood = "sober"' if config.mood == "bold" else None

    def plan(
        self, domain: Domain, workload: Workload, config: UniformConfig, **promise: Unpack[Promise]
    ) -> Plan:
        from synth.budget.charges import Charges, cell_distance
        from synth.plan import TOTAL_DISTANCE, Plan, calibrate, check_sizes

        check_sizes(domain, workload, config)
        charges = Charges(promise["adjacency"], promise.get("unit_rows", 1))
        budget = calibrate(
            promise["epsilon"],
            promise["delta"],
            charges.total_sigma2,
            lambda sigma2: 2 * cell_distance(sigma2) + TOTAL_DISTANCE,
            "one count",
        )
        return Plan(
            domain,
            workload,
            config,
            charges,
            budget,
            sigma2=charges.total_sigma2(budget.rho_cap),
            epsilon=Fraction(0),
            rounds=(0, 0),
            candidates={},
            oversized=(),
        )

    def asks(self, plan: Plan) -> str:
        return "the number of rows, and nothing else"

    def run(self, oracle: MarginalOracle, plan: Plan, observe: Observe) -> Synthesis:
        from synth.run import Run

        run = Run(oracle, plan, observe)
        run.count_rows(plan.sigma2)
        assert isinstance(plan.config, UniformConfig)
        run.refit(0, plan.config.iterations)
        return run.synthesis()


ALGORITHM = Uniform()
