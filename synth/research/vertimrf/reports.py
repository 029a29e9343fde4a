"""An owner's report: the noisy marginals of its own columns, then the encoding of its columns row by row or
key by key.

own marginals (`own_model`), encoding (`responses` or `sketches`; its length follows from public numbers)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import Event, Guard, MarginalOracle, Observe, Reporter, Reports
from synth.research.vertimrf import own_model
from synth.research.vertimrf.bins import levels_of
from synth.research.vertimrf.joint import Estimate, joint_model
from synth.research.vertimrf.plan import EncodedPlan
from synth.synthesis import Synthesis


class Encoder(Protocol):
    """How the columns of a plan are told; see `responses.Responses` and `sketches.Sketches`."""

    @property
    def keyed(self) -> bool: ...

    def events(self) -> tuple[Event, ...]: ...

    def length(self, columns: Sequence[str], rows: int) -> int: ...

    def encode(self, codes: Mapping[str, NDArray[Any]], key: bytes) -> bytes: ...

    def estimates(
        self, split: Sequence[Sequence[str]], encodings: Sequence[memoryview], rows: int
    ) -> list[Estimate]: ...


class EncodedReporter(Reporter):
    """What each owner sends."""

    def __init__(self, plan: EncodedPlan, encoder: Encoder) -> None:
        self._plan, self._encoder = plan, encoder
        self._levels = levels_of(plan.domain.sizes)
        self.keyed = encoder.keyed

    @property
    def events(self) -> Sequence[Event]:
        return (*self._plan.own_events(), *self._encoder.events())

    def limit(self, columns: Sequence[str], rows: int) -> int:
        return own_model.limit(self._plan.own_plan(columns)) + self._encoder.length(columns, rows)

    def length(self, columns: Sequence[str], rows: int) -> int:
        return own_model.usual_length(self._plan.own_plan(columns)) + self._encoder.length(columns, rows)

    def report(
        self,
        codes: Mapping[str, NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]],
        own_oracle: Callable[[Guard], MarginalOracle],
        key: bytes,
    ) -> bytes:
        marginals = own_model.own_marginals(self._plan.own_plan(list(codes)), own_oracle)
        return marginals + self._encoder.encode(self._encoded(codes), key)

    def _encoded(self, codes: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Bins where a column is told by bins."""
        found = {}
        for column in self._plan.domain.ordered(codes):
            level = self._levels.get(column)
            found[column] = codes[column] if level is None else np.array(level.bins, np.uint8)[codes[column]]
        return found


def conclude(plan: EncodedPlan, encoder: Encoder, reports: Reports, observe: Observe) -> Synthesis:
    """The model of all columns from all reports. Raises `ProtocolAborted` for a report that does not fit the
    study."""
    sizes, own, encodings, split = plan.domain.sizes, [], list[memoryview](), list[Sequence[str]]()
    owner_of = dict(plan.owners)
    for columns, payload in zip(reports.columns, reports.payloads, strict=True):
        ordered = plan.domain.ordered(columns)
        try:
            marginals, end = own_model.unpacked(payload, {name: sizes[name] for name in ordered})
            if len(payload) - end != encoder.length(ordered, reports.rows):
                raise ValueError("The encoding has another length.")
            encoder.estimates([ordered], [memoryview(payload)[end:]], reports.rows)
        except (ValueError, TypeError, LookupError, RecursionError, ArithmeticError, AssertionError):
            raise ProtocolAborted(
                f"Party {owner_of[ordered[0]]} sent a report that does not fit the study; use the same version at all parties."
            ) from None
        own += marginals
        encodings.append(memoryview(payload)[end:])
        split.append(ordered)
    across = encoder.estimates(split, encodings, reports.rows)
    return joint_model(plan, levels_of(sizes), own, across, observe)
