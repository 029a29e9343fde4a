"""A run that trains a model (`synth.training`): after the alignment, instead of the synthesizer
(`docs/design/florist.md` 2).

    the study's noisy rate of the label, if any, is authorised by every computing party, which meet then; so is the evaluation
    what an owner's data shows the other one goes on record with that owner, before the first tensor leaves it
    owners train over a stream of their own; other computing parties wait
    the oracle is asked about the finished model: owners bring label, score and whose records they hold, of the rows held out

Who learns what: `Training.exposes`. Whatever is a function of the common table's size (bytes, rounds and
times of the training) stays out of the results, as for the alignment: before anything else is counted all
parties meet, so that the rounds of the training are behind everybody.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.engine.prg import KeyStream
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import StudyFacts, unobserved
from mpc_protocols.public.history import NO_HISTORY
from mpc_protocols.vertical.owners import SPLIT_PROTOCOLS
from mpc_protocols.vertical.partition import OwnRows, Partition, VerticalData
from runner.party.alignment import take_part
from runner.party.collective import Collective
from runner.party.course.course import Course, Run
from runner.party.record.events import OF_JOINED
from runner.results.training import describe_training, write_training
from runner.study import VerticalStudy
from runner.study.owners import Ownership
from runner.study.trained import active_owner, check_owners, predicted
from synth.budget.accounting import Accountant
from synth.training import Evaluation, Half, Lists, Outside, OwnTable, Training

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.backend import DistributedBackend
    from mpc_protocols.functionality import Event, Guard, Observe
    from mpc_protocols.psu.functionality import Alignment
    from mpc_protocols.wire import Wire
    from parties.data.records import Records
    from synth.domain import Domain
    from synth.plan import Plan


class SplitTraining(Course):
    """Of a `synth.training.Training`. All parties compute; it ends with files of its own, and no table."""

    withheld = untimed = OF_JOINED

    def __init__(self, training: Training[Any, Any]) -> None:
        self._training = training

    def check(self, study: VerticalStudy, owned: Ownership) -> None:
        """See `Course`."""
        check_owners(study, owned)

    def take_part(self, run: Run) -> None:
        """See `Course`."""
        study, owned, journal, begin = run.study, run.owned, run.journal, run.custodian.begin
        assert isinstance(study, VerticalStudy) and owned is not None and journal is not None
        recorder = run.attempt.recorder(journal, run.custodian.begin_all, run.wire.check_valid)
        accountant = Accountant(run.plan.budget, record=recorder.record_all)

        def beside(event: Event) -> None:
            journal.alignment(event, run.digest)
            begin(event)

        aligned = run.join(owned, take_part)
        trainer = Trainer(
            self._training, study, run.plan, owned, run.name, run.wire, run.id, run.digest, run.observe
        )
        half = trainer.train(aligned, run.custodian.records, Record(accountant, beside))
        run.meter.mark("fit")
        figures = trainer.evaluate(run.backend, run.facts, aligned, half, accountant)
        recorder.opened()
        journal.end(0)
        run.meter.mark("measure")
        shared = run.counters()
        run.custodian.settle()
        facts = describe_training(
            study, run.plan, accountant.events, figures, shared, run.id, run.digest, run.mode, owned
        )
        write_training(run.options.out, facts, {} if half is None else half.files)
        run.meter.mark("report")
        run.events("report", "written", rows=0)


@dataclass(frozen=True)
class Record:
    """Where a party puts on record what its own data shows. Both raise `BudgetRefused`."""

    guard: Guard
    beside: Callable[[Event], None]


class Trainer:
    """One party's part. name: its own; run: the run's public id; digest: of the study."""

    def __init__(
        self,
        training: Training[Any, Any],
        study: VerticalStudy,
        plan: Plan,
        owned: Ownership,
        name: str,
        wire: Wire,
        run: bytes,
        digest: bytes,
        observe: Observe,
    ) -> None:
        self._training, self._study, self._plan, self._owned = training, study, plan, owned
        self._name, self._wire, self._run, self._digest, self._observe = name, wire, run, digest, observe
        self._collective = Collective(wire, study)
        self._numbers = {party.name: number for number, party in enumerate(study.numbered)}
        self._active = active_owner(study, owned)

    def train(self, aligned: Alignment, records: Records | None, record: Record) -> Half | None:
        """Put on record what is to be shown, then train. None at a party without data.

        Raises `BudgetRefused`, `PeerLost`, `ProtocolAborted`.
        """
        training, plan = self._training, self._plan
        if (event := training.rate_event(plan)) is not None:
            record.guard.authorise(event, self._digest)
            self._collective.meet("authorised")
        half = None if records is None else self._own_half(aligned, records, record)
        self._collective.meet("trained")
        if self._collective.leads:
            self._observe("fit", "trained", owners=list(self._owned.owners))
        return half

    def _own_half(self, aligned: Alignment, records: Records, record: Record) -> Half:
        training, plan = self._training, self._plan
        for event in training.own_events(plan, self._name == self._active):
            record.beside(event)
        own = self._own_columns()
        codes = np.stack([records.codes[column] for column in own.names], axis=1).astype(np.int64)
        invented = None
        if self._name != self._active:
            invented = self._invented(own, codes, aligned.n_rows - len(aligned.rows), record)
        outside, lists = self._outside(aligned)
        table = OwnTable(aligned.n_rows, aligned.rows, codes)
        if self._name == self._active:
            return training.active(plan, table, lists, outside)
        return training.passive(plan, own, table, invented, outside)

    def _own_columns(self) -> Domain:
        """The columns that the training reads of this party: the label alone, or all but the label's owner's."""
        active = self._name == self._active
        return self._study.domain.subset((predicted(self._study),) if active else self._owned.of(self._name))

    def _outside(self, aligned: Alignment) -> tuple[Outside, Lists]:
        training, config = self._training, self._study.config
        peer = next(name for name in self._owned.owners if name != self._name)
        shape = training.described(config, self._study.domain, ())
        protocol = SPLIT_PROTOCOLS[training.protocol]
        link = protocol.link(self._wire.fork("train"), self._numbers[peer], peer, int(shape["cut"]))
        other = link.announce(aligned.listed)
        batches = protocol.batches(
            aligned.n_rows,
            self._wire.session_id,
            link.common_seed(),
            int(shape["batch"]),
            int(shape["held_out"]),
        )
        keys = KeyStream(secrets.token_bytes(16))

        def draw(row: int, count: int) -> NDArray[np.uint64]:
            drawn: NDArray[np.uint64] = keys.draw(count, np.uint64, row)
            return drawn

        outside = Outside(link, batches, secrets.token_bytes, draw, self._observe, self._run.hex())
        return outside, Lists(aligned.listed, other)

    def _invented(
        self, domain: Domain, codes: NDArray[np.int64], count: int, record: Record
    ) -> NDArray[np.int64] | None:
        """Rows of a differentially private model of this party's own columns; None if the study wants no
        model."""
        found = self._training.own_model(self._plan, domain)
        if found is None:
            return None
        algorithm, plan = found
        privacy = self._study.privacy

        def record_beside(releases: Sequence[tuple[Event, bytes]]) -> None:
            for event, _ in releases:
                record.beside(replace(event, what=f"features.{event.what}"))

        def counts(cliques: Any) -> list[NDArray[np.int64]]:
            marginals = []
            for clique in cliques:
                shape = tuple(domain.sizes[name] for name in clique)
                places = tuple(codes[:, domain.names.index(name)] for name in clique)
                cells = np.ravel_multi_index(places, shape)
                marginals.append(np.bincount(cells, minlength=int(np.prod(shape))).astype(np.int64))
            return marginals

        facts = StudyFacts(
            domain.sizes, privacy.adjacency, privacy.unit.rows, privacy.max_rows, self._wire.session_id
        )
        oracle = IdealOracle(facts, counts, Accountant(plan.budget, record=record_beside))
        model = algorithm.run(oracle, plan, unobserved).model
        drawn = model.sample(count, np.random.default_rng(secrets.randbits(128)), sweeps=0)
        rows: NDArray[np.int64] = drawn[np.argsort(np.frombuffer(secrets.token_bytes(8 * count), "<u8"))]
        return rows

    def evaluate(
        self,
        backend: DistributedBackend,
        facts: StudyFacts,
        aligned: Alignment,
        half: Half | None,
        guard: Guard,
    ) -> Mapping[str, float]:
        """Ask about the finished model, as the study wants it; the figures, alike at all parties. {} if
        nothing is asked."""
        asked = self._training.evaluation(self._plan)
        if asked is None:
            return {}
        facts = replace(facts, sizes=dict(asked.sizes))
        data = self._data(asked, aligned, half)
        if self._collective.leads:
            with backend.lead(self._wire, facts, data, guard, self._observe, NO_HISTORY) as oracle:
                counts = oracle.measure(oracle.prepare([asked.clique]), asked.sigma2)
        else:
            counts = backend.follow(self._wire, facts, data, guard, self._observe, NO_HISTORY)
        if len(counts) != 1:
            raise ProtocolAborted(
                f"Party {self._study.leader.name} asked {len(counts)} questions about the model, not one; do not use its result."
            )
        return self._training.assessed(self._plan, counts[0])

    def _data(self, asked: Evaluation, aligned: Alignment, half: Half | None) -> VerticalData:
        owners = tuple(self._numbers[name] for name in self._owned.owners)
        active = self._numbers[self._active]
        passive = next(number for number in owners if number != active)
        columns = {**dict.fromkeys(asked.clique, active), asked.held: passive}
        split = Partition(owners, columns, "intersection", {}, aligned.n_rows)
        if half is None:
            return VerticalData(split, None)
        if half.scores is None:
            return VerticalData(
                split, OwnRows(aligned.rows, {asked.held: np.zeros(len(aligned.rows), np.uint8)})
            )
        rows, labels, bins = half.scores
        return VerticalData(split, OwnRows(rows, dict(zip(asked.clique, (labels, bins), strict=True))))
