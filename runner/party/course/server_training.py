"""A run whose owners train with a server (`synth.algorithm.TrainedAlgorithm`): each party's part, by wire or
in the clear.

Everything that will be charged is known beforehand, and on record at every party before the first message
leaves an owner: they meet then. The server is the leader; it may own columns itself. Nothing is joined: each
owner trains on all its records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_protocols.vertical.owners import STAR_PROTOCOLS
from runner.party.course.course import Course, Run
from runner.party.course.table import finish
from runner.party.record.events import OF_OWNERS
from runner.party.synthesis import sample
from synth.budget.accounting import Accountant

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Event, Guard, Observe
    from parties.data.records import Records
    from runner.study.owners import Ownership
    from synth.algorithm import OwnTraining, TrainedAlgorithm
    from synth.synthesis import Synthesis


class ServerTraining(Course):
    """Of a `synth.algorithm.TrainedAlgorithm`."""

    joins = False
    untimed = OF_OWNERS

    def __init__(self, algorithm: TrainedAlgorithm[Any, Any]) -> None:
        self._algorithm = algorithm

    def prepare(self) -> None:
        """See `Course`."""
        self._algorithm.prepare()

    def take_part(self, run: Run) -> None:
        """See `Course`."""
        assert run.owned is not None  # the study is vertical
        algorithm, begin = self._algorithm, run.custodian.begin_all
        protocol = STAR_PROTOCOLS[algorithm.protocol]
        plan: Any = run.plan  # the algorithm's own
        recorder = (
            None if run.journal is None else run.attempt.recorder(run.journal, begin, run.wire.check_valid)
        )

        def noted(releases: Sequence[tuple[Event, bytes]]) -> None:
            begin([(event, None) for event, _ in releases])

        accountant = Accountant(plan.budget, record=noted if recorder is None else recorder.record_all)
        authorise(plan, accountant, run.digest)
        run.collective.meet("authorised")
        records, stream = run.custodian.records, run.wire.fork("train")
        own = None if records is None else own_side(algorithm, plan, run.name, records)
        if run.collective.leads:
            number = {party.name: i for i, party in enumerate(run.study.numbered)}
            numbers = {name: number[name] for name in run.owned.owners}
            owners = protocol.server(stream, numbers, algorithm.message_sizes(plan), own)
            synthesis = algorithm.train(owners, plan, run.observe)
            release = sample(synthesis, plan, run.observe, run.limit, accountant.events)
        else:
            if own is not None:
                size = algorithm.message_sizes(plan)[run.name]
                protocol.take_part(stream, run.study.leader_number, own, size, plan.config.rounds)
                run.meter.mark("fit")
            release = run.receive_told([], accountant, "authorised")
        if recorder is not None and run.journal is not None:
            recorder.opened()
            run.journal.end(0)
        finish(run, release, joined=None)


def authorise(plan: Any, guard: Guard, inputs: bytes) -> None:
    """Put all events on record. inputs: the study's digest, of which they are a function. Raises
    `BudgetRefused`."""
    guard.authorise_all([(event, inputs) for event in plan.events()])


def own_side(algorithm: TrainedAlgorithm[Any, Any], plan: Any, name: str, records: Records) -> OwnTraining:
    """One owner's side."""
    return algorithm.owner(plan, name, records.codes, records.rows)


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
