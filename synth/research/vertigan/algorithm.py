"""VertiGAN's descriptor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from mpc_protocols.process.later import Later
from synth.algorithm import SOUND, Promise, TrainedAlgorithm
from synth.research.vertigan.config import VertiGanConfig

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Observe
    from synth.algorithm import OwnersTraining, OwnTraining
    from synth.domain import Domain
    from synth.research.vertigan import loop, net, owner, plan
    from synth.research.vertigan.plan import VertiGanPlan
    from synth.synthesis import Synthesis
    from synth.workload import Workload
else:
    loop = Later("synth.research.vertigan.loop")
    net = Later("synth.research.vertigan.net")
    owner = Later("synth.research.vertigan.owner")
    plan = Later("synth.research.vertigan.plan")


class VertiGan(TrainedAlgorithm["VertiGanConfig", "VertiGanPlan"]):
    """VertiGAN: a generator and one critic at each owner of columns. Sound, and of no use for what lies
    across owners."""

    name = "vertigan"
    protocol = "star"
    title = "VertiGAN"
    rank = 50
    summary = "VertiGAN trains a generator against a critic at each owner; for research: it learns nothing across owners"
    config = VertiGanConfig
    partitions = ("vertical",)
    extra = "torch"
    requires = ("torch",)
    how = (
        "Each owner trained a critic on its own records, with noise that it drew itself and told nobody, and sent gradients of "
        "the generator computed from that noisy critic. No records were joined."
    )
    limits = (
        "Nothing that lies across owners is learned: each critic sees one owner's columns only, so how columns of different "
        "owners depend on each other in the table is an accident of the training, whatever the data says. Each owner trains on "
        "all its records: the table describes each owner's people, not those whom owners have in common."
    )
    threat = (
        "Semi-honest parties: everybody follows the protocol, and may study at leisure whatever it receives. The promise holds "
        "against the server, all other owners and all recipients together: nobody need be trusted not to pool.",
        "Not covered: an owner that lies about its own data (it can spoil the table); what a party's computer gives away; how "
        "long an owner takes for a round, which follows how many rows it has and is seen by the server.",
    )

    def claim(self, config: VertiGanConfig) -> str:
        return f"{SOUND}, towards every party of the run too; nothing that lies across owners is learned"

    def alternative(self, config: VertiGanConfig) -> str | None:
        return 'algorithm = "vertimrf" or "aim", which learn what lies across owners'

    def plan(
        self, domain: Domain, workload: Workload, config: VertiGanConfig, **promise: Unpack[Promise]
    ) -> VertiGanPlan:
        return plan.plan(domain, workload, config, **promise)

    def asks(self, plan: VertiGanPlan) -> str:
        config = plan.config
        return (
            f"how many rows each owner has, and {config.rounds} rounds of {config.critic_steps} noisy gradients of each owner's "
            f"critic (noise {float(plan.noise2) ** 0.5:.3g} times what one row counts)"
        )

    def prepare(self) -> None:
        net.torch()

    def owner(
        self, plan: VertiGanPlan, name: str, codes: Mapping[str, NDArray[Any]], rows: int
    ) -> OwnTraining:
        return owner.Owner(plan, name, codes, rows)

    def presumed(self, plan: VertiGanPlan, owners: Sequence[str]) -> VertiGanPlan:
        """With columns of about as many values each."""
        names = plan.domain.names
        if not 2 <= len(set(owners)) == len(owners) <= len(names):
            raise ValueError("These are no owners of the study's columns.")
        dealt = dict(zip(names, owners, strict=False))  # in the order of their first columns
        cells = {owner: plan.domain.sizes[name] for name, owner in dealt.items()}
        for name in names[len(owners) :]:
            dealt[name] = min(cells, key=cells.__getitem__)
            cells[dealt[name]] += plan.domain.sizes[name]
        return plan.knowing(dealt)

    def message_sizes(self, plan: VertiGanPlan) -> dict[str, int]:
        return {name: plan.branch_size(name) for name in plan.owner_names}

    def train(self, owners: OwnersTraining, plan: VertiGanPlan, observe: Observe) -> Synthesis:
        return loop.run(owners, plan, observe)


ALGORITHM = VertiGan()
