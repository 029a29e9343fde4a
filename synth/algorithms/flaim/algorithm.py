"""FLAIM's descriptor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from mpc_protocols.functionality import SUM
from mpc_protocols.process.later import Later
from synth.algorithm import CHOICES, NO_CLAIM, SOUND, Algorithm, CohortRounds, Promise
from synth.algorithms.flaim.config import FlaimConfig
from synth.algorithms.flaim.plan import SIZES, plan
from synth.algorithms.flaim.variants import VARIANTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpc_protocols.functionality import MarginalOracle, Observe
    from synth.algorithms.flaim import one_shot, rounds
    from synth.algorithms.flaim.plan import FlaimPlan
    from synth.domain import Domain
    from synth.synthesis import Measured, Synthesis
    from synth.workload import Workload
else:
    one_shot = Later("synth.algorithms.flaim.one_shot")
    rounds = Later("synth.algorithms.flaim.rounds")


class Flaim(Algorithm["FlaimConfig", "FlaimPlan"]):
    """FLAIM: each client chooses privately what its cohort is asked for."""

    name = "flaim"
    title = "FLAIM"
    rank = 25
    summary = "FLAIM: custodians choose, each for itself, which marginals their cohort adds up; less is sent, and less is learned"
    config = FlaimConfig
    left_out = "it is never chosen"
    partitions = ("horizontal",)

    def claim(self, config: FlaimConfig) -> str:
        if not VARIANTS[config.variant].private:
            return f"{NO_CLAIM}: true marginals of everybody's rows are opened"
        return SOUND

    def sound(self, config: FlaimConfig) -> bool:
        return VARIANTS[config.variant].private

    def alternative(self, config: FlaimConfig) -> str | None:
        return None if VARIANTS[config.variant].private else 'variant = "private"'

    def views(self, config: FlaimConfig) -> tuple[tuple[str, str, str], ...]:
        variant = VARIANTS[config.variant]
        if variant.union:
            return ()
        shown = ["the released results", "the model after each round", "who was in which cohort"]
        if variant.size:
            shown.append("how many rows each cohort has, noisily")
        if variant.chooses:
            shown.append(
                "which marginals enough clients of a cohort chose" + ", and how many rows these have, noisily"
            )
        if not variant.private:
            shown.append("the true marginals of all rows together, which nothing protects")
        counts = "rows, counts or number of rows" if variant.private else "rows or number of rows"
        unchosen = "; which client chose what, but where all of a cohort chose it" if variant.chooses else ""
        hidden = f"any other party's {counts}{unchosen}; any part of the noise"
        asked = ["the released results", "the members of the cohorts it is in"]
        if variant.chooses:
            asked += [
                "how many rows such a cohort has, noisily",
                "the model before each choice of its own",
                "the list that its cohort is asked for, which is what everybody chose if the cohort is a single group",
            ]
            if not variant.private:
                asked.append("the true marginals of all rows together, which it is sent to choose by")
        if variant.draws:
            asked.append("which marginal was drawn")
        of_client = ", and ".join((", ".join(asked[:-1]), asked[-1]))
        computing = f"{', '.join(shown)}; besides these, random-looking shares."
        return (
            ("Each computing party", f"{computing[0].upper()}{computing[1:]}", f"{hidden.capitalize()}."),
            (
                "Each other client",
                f"{of_client[0].upper()}{of_client[1:]}.",
                "The same, and the shares as well.",
            ),
            (
                "Recipients of the results",
                "The synthetic table, the model, the noisy measurements, which marginals were chosen and in what order, which "
                "parties were in which cohort, and this report.",
                "Everything else.",
            ),
        )

    def plan(
        self, domain: Domain, workload: Workload, config: FlaimConfig, **promise: Unpack[Promise]
    ) -> FlaimPlan:
        return plan(domain, workload, config, **promise)

    def small_share(self, plan: FlaimPlan, measurements: Sequence[Measured], noisy_total: float) -> float:
        return 0.0

    def completed(self, plan: FlaimPlan, event: Mapping[str, Any]) -> Mapping[str, Any]:
        if event["what"] == SIZES:
            return {**event, "sigma2": str(plan.size_sigma2)}
        if event["what"] == SUM and event["entries"] != sum(map(plan.domain.cells, plan.one_way)):
            # marginals with a number of rows beside each (`questions.py`), which may be all columns: each
            # client fills the one that it chose or that was drawn, with the rest of its vector 0
            return {**event, "sigma2": [event["sigma2"]]}
        return {**event, "epsilon": str(plan.epsilon)} if event["what"] == CHOICES else event

    def asks(self, plan: FlaimPlan) -> str:
        variant, config = plan.variant, plan.config
        if variant.union:
            return f"each column and {len(plan.candidates):,} pairs of columns, once"
        if not variant.in_rounds:
            return "everybody's single columns, once"
        first = "everybody's single columns once; then " if variant.registration else ""
        columns = ", their columns" if variant.columns else ""
        if variant.draws:
            each = "a marginal that a public seed draws"
        else:
            each = (
                f"which of {len(plan.candidates):,} marginals each client finds worst, and the counts of those that at least "
                f"{config.group} chose"
            )
        return (
            f"{first}of up to {config.rounds} cohorts, with each client in at most {plan.participations}: their rows{columns}, "
            f"{each}"
        )

    def cohorts(self, config: FlaimConfig) -> CohortRounds[FlaimPlan] | None:
        if VARIANTS[config.variant].union:
            return None
        return rounds.InRounds()

    def run(self, oracle: MarginalOracle, plan: FlaimPlan, observe: Observe) -> Synthesis:
        if not plan.variant.union:
            raise TypeError(f"The algorithm {self.name} as configured asks cohorts of clients and no oracle.")
        return one_shot.run(oracle, plan, observe)


ALGORITHM = Flaim()
