"""The end of a collection, at a computing party of a run: the agreed list, this party's sum, and what keeps a study to one run.

    agree       the intersection of what the three hold; not before the collection is over, not below the minimum (exit 40); once
                all three have it on disk, on record in this party's ledger, once for the study (another list later: exit 50)
    collected   the sum of this party's parts, on disk, then the key that opened them is deleted
    begin       before the first release: this run is the study's only one (another run later: exit 50), in ledger and inbox
    finish      the results are in place: bundles, sum and keys are deleted

Before `begin` nothing is opened: a run that ends earlier may be started anew, on the same list. A study that will not be run is
declared void (`runner.contributors.void`): only then do contributors, who have reserved its budget, get that back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mpc_protocols.errors import DataRefused, ProtocolAborted, StudyInvalid
from runner.contributors.collection import inbox_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mpc_protocols.bundles.collected import CollectedCounts
    from mpc_protocols.functionality import LocalCounts
    from mpc_protocols.wire import Wire
    from parties.budget.collected_lists import CollectedList
    from parties.inbox.collection import Collection
    from parties.inbox.store import AgreedList, Inbox
    from runner.study import Study
    from runner.study.private_file import Private
    from synth.plan import Plan


@dataclass
class Closing:
    """One computing party's side of it. agreed: the list, once `agree` has returned. custodians: computing parties with tables of
    their own, once they are known."""

    inbox: Inbox
    record: CollectedList
    party: str
    agreed: AgreedList
    custodians: tuple[str, ...] = ()

    @classmethod
    def of(cls, study: Study, party: str, private: Private, plan: Plan) -> Closing:
        """Before anything is agreed. Raises `UsageError` for a party without inbox."""
        from parties.budget.collected_lists import CollectedList
        from parties.budget.ledger import Ledger
        from parties.inbox.store import AgreedList

        inbox = inbox_of(study, party, private, plan)
        record = CollectedList(Ledger(private.ledger.file), inbox.collection.study, party)
        return cls(inbox, record, party, AgreedList({}))

    @property
    def collection(self) -> Collection:
        """What is public about it."""
        return self.inbox.collection

    def held(self) -> Mapping[bytes, str]:
        """The bundles that this party offers: those of the list that it has fixed, else those it has accepted.

        Raises `DataRefused` if the list is gone that its ledger knows to be fixed.
        """
        fixed = self.record.fixed
        return self.inbox.accepted(_now()) if fixed is None else self.list_of(fixed).entries

    def list_of(self, fixed: bytes) -> AgreedList:
        """The list that is fixed, here or at another party. Raises `DataRefused` if the inbox does not hold it."""
        for kept in (self.inbox.agreed(), self.inbox.proposed()):
            if kept is not None and kept.hash == fixed:
                return kept
        raise DataRefused(
            f"The inbox {self.inbox.folder} does not hold the list of bundles that is fixed for this study at party {self.party} "
            f"or another one; restore {self.inbox.folder / 'agreed.json'} from a copy."
        )

    def agree(self, wire: Wire, run: bytes) -> None:
        """Agree with the other two on the list. 2 or 4 rounds. Raises `ProtocolAborted`, `BudgetRefused`, `DataRefused`."""
        from parties.inbox.agreement import agree, confirm, standing

        self.check(run)
        enrolled, names = len(self.collection.contributors), tuple(self.collection.receivers)
        fixed = standing(wire, self.record.fixed, names)
        if fixed is None:
            agreed = agree(wire, self.held(), enrolled, names)
            self.propose(agreed)
        else:
            agreed = self.list_of(fixed)
        confirm(wire, agreed, names)
        self.fix(agreed)

    def check(self, run: bytes) -> None:
        """Raise `BudgetRefused` if another run of the study may have released something, or none ever may."""
        self.record.check(run)
        self.inbox.check_run(run)

    def begin(self, run: bytes) -> None:
        """Before a release: this run is the study's only one. Raises `BudgetRefused` if another one may be, or none ever may."""
        self.record.begin(run)
        self.inbox.begin(run)

    def propose(self, agreed: AgreedList) -> None:
        """Put the list on disk, if the collection is over with it. Raises `ProtocolAborted`, `BudgetRefused`, `DataRefused`."""
        check_over(self.collection, len(agreed.entries))
        self.inbox.propose(agreed)

    def fix(self, agreed: AgreedList) -> None:
        """Take the list as the study's, which all three have on disk. Raises `BudgetRefused`."""
        self.record.fix(agreed.hash)
        self.inbox.keep(agreed)
        self.agreed = agreed

    def collected(self, own: LocalCounts | None) -> CollectedCounts:
        """What this party brings to the run. own: its own table's counts. Raises as `Inbox.sum`."""
        from mpc_protocols.bundles.collected import CollectedCounts

        return CollectedCounts(self.collection.layout, self.inbox.sum(self.agreed), self.agreed.hash, own)


def check_over(collection: Collection, bundles: int) -> None:
    """Raise `ProtocolAborted` unless the collection may be closed with so many bundles."""
    if sentence := collection.still_open(bundles, _now()):
        raise ProtocolAborted(sentence)
    if bundles < collection.minimum:
        raise ProtocolAborted(
            f"The collection is over with {bundles} bundles at all three parties, and [contributors] min = {collection.minimum}: "
            "nothing is opened; collect again for a new study, and let contributors have their budget back by `python -m runner "
            "inbox STUDY --party NAME --void` at each party."
        )


def in_the_clear(closings: Sequence[Closing]) -> NDArray[np.int64]:
    """All contributors' counts together, from the inboxes of all three parties on one machine, int64 of (cells,). IT PROTECTS
    NOTHING. Raises as `Closing.agree` and `Inbox.sum`."""
    import numpy as np

    from parties.inbox.store import AgreedList

    if all(closing.record.fixed is None for closing in closings):
        held = [closing.held() for closing in closings]
        common = AgreedList({name: held[0][name] for name in held[0] if all(name in other for other in held)})
        for closing in closings:
            closing.propose(common)
    else:
        common = closings[0].list_of(
            next(found for each in closings if (found := each.record.fixed) is not None)
        )
    for closing in closings:
        closing.fix(common)
    total = np.zeros(closings[0].collection.layout.cells, np.uint32)
    for closing in closings:
        total += closing.inbox.sum(common)
    return total.astype(np.int64)


def check_custodians(study: Study, custodians: Sequence[str]) -> None:
    """Raise `StudyInvalid` if computing parties bring tables to a later wave: these may be in an earlier one already."""
    if study.contributors is not None and study.contributors.after and custodians:
        raise StudyInvalid(
            f"{study.path} comes after an earlier wave, and {', '.join(custodians)} has a table of its own, which may be in "
            "that one already: let computing parties bring none, in the study or in their private files."
        )


def facts_for_report(closing: Closing, expected_rows: int) -> dict[str, object]:
    """run.json's `contributors`: who took part, of whom. Public."""
    took_part = closing.agreed.contributors
    public = closing.collection
    enrolled = tuple(name for name in public.contributors if name not in public.earlier)
    return {
        "enrolled": len(enrolled),
        "took_part": list(took_part),
        "absent": [name for name in enrolled if name not in set(took_part)],
        "list": closing.agreed.hash.hex(),
        "custodians": list(closing.custodians),
        "expected_rows": expected_rows,
        "cells": closing.collection.layout.cells,
    }


def _now() -> datetime:
    return datetime.now(UTC)
