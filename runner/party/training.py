"""A run whose owners train with a server (`synth.algorithm.TrainedAlgorithm`): each party's part, by wire or in the clear.

Everything that will be charged is known beforehand, and on record at every party before the first message leaves an owner. The
server is the leader; it may own columns itself. Nothing is joined: each owner trains on all its records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_protocols.vertigan.star import Server, serve

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Guard, Observe
    from mpc_protocols.wire import Wire
    from parties.data.records import Records
    from runner.study.owners import Ownership
    from synth.algorithm import OwnTraining, TrainedAlgorithm
    from synth.run import Synthesis


def authorise(plan: Any, guard: Guard, inputs: bytes) -> None:
    """Put all events on record. inputs: the study's digest, of which they are a function. Raises `BudgetRefused`."""
    for event in plan.events():
        guard.authorise(event, inputs)


def lead(
    algorithm: TrainedAlgorithm[Any, Any],
    plan: Any,
    wire: Wire,
    numbers: Mapping[str, int],
    own: OwnTraining | None,
    observe: Observe,
) -> Synthesis:
    """The server's part. numbers: of the owners on the wire, by name. own: the server's own side if it owns columns."""
    return algorithm.train(Server(wire, numbers, algorithm.message_sizes(plan), own), plan, observe)


def own_side(algorithm: TrainedAlgorithm[Any, Any], plan: Any, name: str, records: Records) -> OwnTraining:
    """One owner's side."""
    return algorithm.owner(plan, name, records.codes, records.rows)


def follow(
    algorithm: TrainedAlgorithm[Any, Any], plan: Any, wire: Wire, server: int, name: str, own: OwnTraining
) -> None:
    """An owner's part that is not the server. Blocks."""
    serve(wire, server, own, algorithm.message_sizes(plan)[name], plan.config.rounds)


class InTheClear:
    """All owners in this process (`synth.algorithm.OwnersTraining`). It protects nothing."""

    def __init__(self, owners: Mapping[str, OwnTraining]) -> None:
        self._owners = dict(owners)

    def counts(self) -> dict[str, int]:
        """See `OwnersTraining`."""
        return {name: owner.count() for name, owner in self._owners.items()}

    def gradients(
        self, parameters: Mapping[str, NDArray[np.float32]], seed: bytes
    ) -> dict[str, NDArray[np.float32]]:
        """See `OwnersTraining`."""
        return {name: owner.gradient(parameters[name], seed) for name, owner in self._owners.items()}


def ideal(
    algorithm: TrainedAlgorithm[Any, Any],
    plan: Any,
    owned: Ownership,
    records: Mapping[str, Records],
    observe: Observe,
) -> Synthesis:
    """The whole training in the clear."""
    owners = {name: own_side(algorithm, plan, name, records[name]) for name in owned.owners}
    return algorithm.train(InTheClear(owners), plan, observe)
