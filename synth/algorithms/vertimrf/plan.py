"""VertiMRF's plan: PrivMRF's, and whose columns are whose once the owners have met
(`docs/design/algorithms.md` 10).

Standard library only at import.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Unpack

from mpc_protocols.functionality import Clique
from synth.algorithm import PromiseWithReserved
from synth.algorithms import privmrf
from synth.algorithms.privmrf.plan import PrivMrfPlan
from synth.domain import Domain
from synth.workload import Workload

if TYPE_CHECKING:
    from synth.algorithms.vertimrf.config import VertiMrfConfig


@dataclass(frozen=True)
class VertiMrfPlan(PrivMrfPlan):
    """VertiMRF's plan. owners: of each column; empty until they are known."""

    config: VertiMrfConfig
    owners: tuple[tuple[str, str], ...] = ()

    def knowing(self, owners: Mapping[str, str]) -> VertiMrfPlan:
        """See `synth.plan.Plan`."""
        return replace(self, owners=tuple(owners.items()))

    def is_one_owners(self, pair: Clique) -> bool:
        """Whether both columns are one owner's."""
        owner = dict(self.owners)
        return bool(owner) and owner[pair[0]] == owner[pair[1]]


def plan(
    domain: Domain, workload: Workload, config: VertiMrfConfig, **promise: Unpack[PromiseWithReserved]
) -> VertiMrfPlan:
    """As PrivMRF's."""
    same = privmrf.plan.plan(domain, workload, config, **promise)
    return VertiMrfPlan(**{field.name: getattr(same, field.name) for field in fields(same)})
