"""VertiMRF's descriptor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Unpack

from mpc_protocols.process.later import Later
from synth.algorithm import SOUND, Algorithm, Promise, PromiseWithReserved, Reporting
from synth.algorithms.privmrf.algorithm import PrivMrf
from synth.algorithms.vertimrf.config import ON_SHARES, VertiMrfConfig
from synth.algorithms.vertimrf.encoding import ENCODINGS, Encoding
from synth.algorithms.vertimrf.plan import VertiMrfPlan, plan
from synth.config import AlgorithmConfig

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpc_protocols.functionality import Adjacency, MarginalOracle, Observe
    from synth.algorithms.privmrf import loop
    from synth.domain import Domain
    from synth.plan import Plan
    from synth.synthesis import Measured, Synthesis
    from synth.workload import Workload
else:
    loop = Later("synth.algorithms.privmrf.loop")

ALTERNATIVE: Final = f'[vertimrf] encoder = "{ON_SHARES}"'


class VertiMrf(Algorithm["VertiMrfConfig", "Plan"]):
    """VertiMRF with marginals on shares: the structure inside each owner's columns first, then across owners.

    For research with encoded columns, as the paper has it: owners report once
    (`synth.algorithms.vertimrf.encoding`).
    """

    name = "vertimrf"
    title = "VertiMRF"
    rank = 5
    summary = "VertiMRF is PrivMRF for columns of several owners: what depends inside an owner's columns comes first"
    config = VertiMrfConfig
    left_out = "no graph will join its columns"
    partitions = ("vertical",)
    reserves = True

    def claim(self, config: VertiMrfConfig) -> str:
        encoding = encoding_of(config)
        return SOUND if encoding is None else encoding.claim

    def alternative(self, config: VertiMrfConfig) -> str | None:
        return None if encoding_of(config) is None else ALTERNATIVE

    def sound(self, config: VertiMrfConfig) -> bool:
        encoding = encoding_of(config)
        return encoding is None or encoding.sound

    def misfit(self, config: VertiMrfConfig, adjacency: Adjacency, aligned: bool) -> str | None:
        if encoding_of(config) is None or (adjacency == "replace" and aligned):
            return None
        return (
            f'with encoder = "{config.encoder}" is about aligned rows whose number is public: it needs [privacy] adjacency = '
            f'"replace" and [alignment] method = "row-order"; use {ALTERNATIVE} for any other'
        )

    def views(self, config: VertiMrfConfig) -> tuple[tuple[str, str, str], ...]:
        encoding = encoding_of(config)
        return () if encoding is None else encoding.views

    def expects(self, plan: Plan, rows: int) -> str | None:
        encoding = encoding_of(plan.config)
        return None if encoding is None else encoding.expects(plan, rows)

    def adaptive(self, config: VertiMrfConfig) -> bool:
        return encoding_of(config) is None

    def plan(
        self,
        domain: Domain,
        workload: Workload,
        config: VertiMrfConfig,
        **promise: Unpack[PromiseWithReserved],
    ) -> Plan:
        if (encoding := encoding_of(config)) is not None:
            promised: Promise = {
                "epsilon": promise["epsilon"],
                "delta": promise["delta"],
                "adjacency": promise["adjacency"],
                "unit_rows": promise.get("unit_rows", 1),
            }
            return encoding.plan(domain, workload, config, **promised)
        return plan(domain, workload, config, **promise)

    def small_share(self, plan: Plan, measurements: Sequence[Measured], noisy_total: float) -> float:
        return loop.small_share(plan, noisy_total) if isinstance(plan, VertiMrfPlan) else 0.0

    def completed(self, plan: Plan, event: Mapping[str, Any]) -> Mapping[str, Any]:
        encoding = encoding_of(plan.config)
        return event if encoding is None else encoding.completed(plan, event)

    def asks(self, plan: Plan) -> str:
        if isinstance(plan, VertiMrfPlan):
            return PrivMrf().asks(plan)
        encoding = encoding_of(plan.config)
        assert encoding is not None
        return f"of each owner one report: noisy marginals of its own columns, and {encoding.sends}"

    def run(self, oracle: MarginalOracle, plan: Plan, observe: Observe) -> Synthesis:
        from synth.algorithms.vertimrf import loop

        assert isinstance(plan, VertiMrfPlan)
        return loop.run(oracle, plan, observe)

    def reporting(self, config: VertiMrfConfig) -> Reporting[Any] | None:
        encoding = encoding_of(config)
        return None if encoding is None else encoding.reporting()


def encoding_of(config: AlgorithmConfig) -> Encoding | None:
    """How owners tell their columns; None where marginals are counted on shares."""
    assert isinstance(config, VertiMrfConfig)
    return None if config.encoder == ON_SHARES else ENCODINGS[config.encoder]


ALGORITHM = VertiMrf()
"""VertiMRF on shares: PrivMRF whose graph takes what depends inside each owner's columns first."""
