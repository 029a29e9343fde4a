"""What both encodings of VertiMRF share: one report of each owner, its own marginals and then its columns,
encoded."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from mpc_protocols.process.later import Later
from synth.algorithm import Promise, Reporting
from synth.algorithms.vertimrf.encoding import Encoding

if TYPE_CHECKING:
    from mpc_protocols.functionality import Observe, Reports
    from synth.algorithms.vertimrf.config import VertiMrfConfig
    from synth.domain import Domain
    from synth.research.vertimrf import plan, reports
    from synth.research.vertimrf.plan import EncodedPlan
    from synth.research.vertimrf.reports import Encoder
    from synth.synthesis import Synthesis
    from synth.workload import Workload
else:
    plan = Later("synth.research.vertimrf.plan")
    reports = Later("synth.research.vertimrf.reports")


class OwnersEncoding(Encoding):
    """An encoding of each owner's columns, row by row or key by key."""

    @abstractmethod
    def encoder(self, plan: EncodedPlan) -> Encoder:
        """How the columns of a plan are encoded."""

    def plan(
        self, domain: Domain, workload: Workload, config: VertiMrfConfig, **promise: Unpack[Promise]
    ) -> EncodedPlan:
        return plan.encoded_plan(domain, workload, config, **promise)

    def completed(self, plan: EncodedPlan, event: Mapping[str, Any]) -> Mapping[str, Any]:
        return plan.completed(event)

    def reporting(self) -> Encoded:
        return Encoded(self)


class Encoded(Reporting["EncodedPlan"]):
    """One report of each owner."""

    protocol = "reports"

    def __init__(self, encoding: OwnersEncoding) -> None:
        self._encoding = encoding

    def reporter(self, plan: EncodedPlan) -> reports.EncodedReporter:
        return reports.EncodedReporter(plan, self._encoding.encoder(plan))

    def conclude(self, reports: Reports, plan: EncodedPlan, observe: Observe) -> Synthesis:
        from synth.research.vertimrf.reports import conclude

        return conclude(plan, self._encoding.encoder(plan), reports, observe)
