"""How owners may tell their columns instead of counting on shares, and how one is found: a file
NAME_encoding.py under `synth/research` that holds ENCODING.

VertiMRF asks the descriptor that `[vertimrf] encoder` names; nobody compares names. Standard library only at
import.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from mpc_protocols.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synth.algorithm import Promise, Reporting
    from synth.algorithms.vertimrf.config import VertiMrfConfig
    from synth.domain import Domain
    from synth.plan import Plan
    from synth.workload import Workload


class Encoding(ABC):
    """name: in the study file. claim, sound, views: as an algorithm's. sends: what an owner's report holds
    beside noisy marginals of its own columns, in words."""

    name: ClassVar[str]
    rank: ClassVar[int]
    claim: ClassVar[str]
    sound: ClassVar[bool]
    views: ClassVar[tuple[tuple[str, str, str], ...]]
    sends: ClassVar[str]

    def expects(self, plan: Any, rows: int) -> str | None:
        """See `synth.algorithm.Algorithm`."""
        return None

    @abstractmethod
    def plan(
        self, domain: Domain, workload: Workload, config: VertiMrfConfig, **promise: Unpack[Promise]
    ) -> Plan:
        """The plan of a study whose owners report. Raises `StudyInvalid`."""

    @abstractmethod
    def completed(self, plan: Any, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """See `synth.algorithm.Algorithm`."""

    @abstractmethod
    def reporting(self) -> Reporting[Any]:
        """How they do."""


ENCODINGS: Registry[Encoding] = Registry(
    "synth.algorithms.vertimrf", "encoding", Encoding, research="synth.research"
)
"""All encodings, by name."""
