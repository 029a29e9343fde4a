"""The end of a collection, at a computing party of a run: the agreed list, this party's sum, and what keeps a
study to one run.

    agree       the intersection of what the three hold; not before the collection is over, not below the minimum (exit 40); once
                all three have it on disk, on record in this party's ledger, once for the study (another list later: exit 50)
    collected   the sum of this party's parts, on disk, then the key that opened them is deleted
    begin       before the first release: this run is the study's only one (another run later: exit 50), in ledger and inbox
    finish      the results are in place: bundles, sum and keys are deleted

A study that selects while contributors arrive has a list for each round, which holds the one before:
`next_round`, then `agree` and `collected` again, when the round is over; parties look into their inboxes
until then. Fewer newcomers than the minimum wait for a later round.

Before `begin` nothing is opened: a run that ends earlier may be started anew, on the same list. A study that
will not be run is declared void (`runner.contributors.void`): only then do contributors, who have reserved
its budget, get that back.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from mpc_protocols.errors import DataRefused, ProtocolAborted, StudyInvalid
from mpc_protocols.process.installation import program
from mpc_protocols.process.later import Later
from parties.budget.collected_lists import CollectedList
from parties.budget.ledger import Ledger
from parties.inbox.agreement import agree, all_say, confirm, grown, looks, standing
from parties.inbox.store import AgreedList
from runner.contributors.collection import inbox_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.backends.bundles import collected
    from mpc_protocols.backends.bundles.collected import CollectedCounts
    from mpc_protocols.functionality import LocalCounts
    from mpc_protocols.wire import Wire
    from parties.inbox.close import Close
    from parties.inbox.collection import Collection
    from parties.inbox.store import Inbox
    from runner.study import Study
    from runner.study.private_file import Private
    from synth.plan import Plan
else:
    collected = Later("mpc_protocols.backends.bundles.collected")


POLL_S, MAX_POLL_S = 1.0, 15.0
"""Between two looks into the inboxes while the next round's contributors arrive: longer while nothing changes
in the own one."""


@dataclass
class Closing:
    """One computing party's side of it. agreed: the list, once `agree` has returned. custodians: computing
    parties with tables of their own, once they are known. round: of arrivals, from 1. lists: those of the
    rounds before."""

    inbox: Inbox
    record: CollectedList
    party: str
    agreed: AgreedList
    custodians: tuple[str, ...] = ()
    round: int = 1
    lists: tuple[AgreedList, ...] = ()

    @classmethod
    def of(cls, study: Study, party: str, private: Private, plan: Plan) -> Closing:
        """Before anything is agreed. Raises `UsageError` for a party without inbox."""
        inbox = inbox_of(study, party, private, plan)
        record = CollectedList(Ledger(private.ledger.file), inbox.collection.study, party)
        return cls(inbox, record, party, AgreedList({}))

    @property
    def collection(self) -> Collection:
        """What is public about it."""
        return self.inbox.collection

    @property
    def close(self) -> Close:
        """When the list may be fixed."""
        return self.collection.closes[self.round - 1]

    @property
    def fixed(self) -> bytes | None:
        """Hash of the round's list at this party; None as long as there is none."""
        return self._list.fixed

    @property
    def _list(self) -> CollectedList:
        if self.round == 1:
            return self.record
        return CollectedList(Ledger(self.record.file), self.collection.study, self.party, self.round)

    def next_round(self) -> Closing:
        """The closing of the next round of arrivals, whose list holds this one's."""
        return replace(
            self, agreed=type(self.agreed)({}), round=self.round + 1, lists=(*self.lists, self.agreed)
        )

    def held(self) -> Mapping[bytes, str]:
        """The bundles that this party offers: those of the list that it has fixed, else those it has
        accepted.

        Raises `DataRefused` if the list is gone that its ledger knows to be fixed.
        """
        if (fixed := self.fixed) is not None:
            return self.list_of(fixed).entries
        before = self.lists[-1].entries if self.lists else {}
        return {**self.inbox.accepted(_now()), **before}

    def list_of(self, fixed: bytes) -> AgreedList:
        """The list that is fixed, here or at another party. Raises `DataRefused` if the inbox does not hold
        it."""
        for kept in (self.inbox.agreed(self.round), self.inbox.proposed(self.round)):
            if kept is not None and kept.hash == fixed:
                return kept
        raise DataRefused(
            f"The inbox {self.inbox.folder} does not hold the list of bundles that is fixed for this study at party {self.party} "
            f"or another one; restore {self.inbox.folder / 'agreed.json'} from a copy."
        )

    def agree(self, wire: Wire, run: bytes) -> None:
        """Agree with the other two on the list; after the first round of arrivals wait until it is over. 2 or
        4 rounds, and two for each look. Raises `ProtocolAborted`, `BudgetRefused`, `DataRefused`."""
        self.check(run)
        enrolled, names = len(self.collection.contributors), tuple(self.collection.receivers)
        fixed = standing(wire, self.fixed, names)
        if fixed is None:
            agreed = agree(wire, self.held(), enrolled, names) if self.round == 1 else self._arrived(wire)
            self.propose(agreed)
        else:
            agreed = self.list_of(fixed)
        confirm(wire, agreed, names)
        self.fix(agreed)

    def _arrived(self, wire: Wire) -> AgreedList:
        """The list of a later round, once it is over at all three parties. Blocks until then. Raises
        `ProtocolAborted`."""
        enrolled, names = len(self.collection.contributors), tuple(self.collection.receivers)
        watch, tried = _Watch(self), None
        while True:
            marks = looks(wire, watch.look())
            if marks is not None and marks != tried:  # else they would find what they have found before
                tried, agreed = marks, agree(wire, self.held(), enrolled, names)
                if not self.lists[-1].entries.keys() <= agreed.entries.keys():
                    raise ProtocolAborted(
                        "A computing party does not hold a bundle any more that was in an earlier round; restore its inbox."
                    )
                if all_say(wire, self.is_over(len(agreed.entries))):
                    return grown(self.lists[-1], agreed, self.collection.minimum)
            time.sleep(watch.pause_s)

    def is_over(self, bundles: int) -> bool:
        """Whether the round may be closed with so many bundles: all rounds when the last one's date has come."""
        return self.is_late() or self.close.still_open(bundles, _now()) is None

    def is_late(self) -> bool:
        """Whether a date has come that ends the round with whoever is there."""
        dates = [at for at in (self.close.at, self.collection.close_at) if at is not None]
        return bool(dates) and _now() >= min(dates)

    def check(self, run: bytes) -> None:
        """Raise `BudgetRefused` if another run of the study may have released something, or none ever may."""
        self.record.check(run)
        self.inbox.check_run(run)

    def begin(self, run: bytes) -> None:
        """Before a release: this run is the study's only one. Raises `BudgetRefused` if another one may be,
        or none ever may."""
        self.record.begin(run)
        self.inbox.begin(run)

    def propose(self, agreed: AgreedList) -> None:
        """Put the list on disk, if the collection is over with it. Raises `ProtocolAborted`, `BudgetRefused`,
        `DataRefused`."""
        if self.round == 1:
            check_over(self.collection, len(agreed.entries))
        self.inbox.propose(agreed, self.round)

    def fix(self, agreed: AgreedList) -> None:
        """Take the list as the study's, which all three have on disk. Raises `BudgetRefused`."""
        self._list.fix(agreed.hash)
        self.inbox.keep(agreed, self.round)
        self.agreed = agreed

    def collected(self, own: LocalCounts | None) -> CollectedCounts:
        """What this party brings to the run. own: its own table's counts. Raises as `Inbox.sum`."""
        return collected.CollectedCounts(
            self.collection.layout, self.inbox.sum(self.agreed, self.round), self.agreed.hash, own
        )


@dataclass
class _Watch:
    """A party's looks into its inbox while a round is open. mark: changes with what is to be found there; 32
    random bytes.

    pause_s: until the next look.
    """

    closing: Closing
    mark: bytes = b""
    pause_s: float = POLL_S
    _seen: object = None

    def look(self) -> bytes | None:
        """The mark; None as long as the round is not over here."""
        bundles, late = self.closing.inbox.waiting(), self.closing.is_late()
        if (bundles, late) == self._seen:
            self.pause_s = min(2 * self.pause_s, MAX_POLL_S)
        else:
            self._seen, self.mark, self.pause_s = (bundles, late), secrets.token_bytes(32), POLL_S
        return self.mark if self.closing.is_over(len(bundles)) else None


def check_over(collection: Collection, bundles: int) -> None:
    """Raise `ProtocolAborted` unless the collection may be closed with so many bundles."""
    if sentence := collection.closes[0].still_open(bundles, _now()):
        raise ProtocolAborted(sentence)
    if bundles < collection.minimum:
        raise ProtocolAborted(
            f"The collection is over with {bundles} bundles at all three parties, and [contributors] min = {collection.minimum}: "
            f"nothing is opened; collect again for a new study, and let contributors have their budget back by `{program()} "
            "inbox STUDY --party NAME --void` at each party."
        )


def in_the_clear(closings: Sequence[Closing]) -> NDArray[np.int64]:
    """All contributors' counts together, from the inboxes of all three parties on one machine, int64 of
    (cells,); after the first round of arrivals, once the round is over. IT PROTECTS NOTHING. Raises as
    `Closing.agree` and `Inbox.sum`."""
    if all(closing.fixed is None for closing in closings):
        common = _common(closings) if closings[0].round == 1 else _common_later(closings)
        for closing in closings:
            closing.propose(common)
    else:
        common = closings[0].list_of(next(found for each in closings if (found := each.fixed) is not None))
    for closing in closings:
        closing.fix(common)
    total = np.zeros(closings[0].collection.layout.cells, np.uint32)
    for closing in closings:
        total += closing.inbox.sum(common, closing.round)
    return total.astype(np.int64)


def _common(closings: Sequence[Closing]) -> AgreedList:
    """What all hold."""
    held = [closing.held() for closing in closings]
    return AgreedList({name: held[0][name] for name in held[0] if all(name in other for other in held)})


def _common_later(closings: Sequence[Closing]) -> AgreedList:
    """The same of a later round, once it is over, with `grown`. Blocks until then."""
    first, watches, tried = closings[0], [_Watch(closing) for closing in closings], None
    while True:
        marks = [watch.look() for watch in watches]
        if None not in marks and marks != tried:
            tried, common = marks, _common(closings)
            if first.is_over(len(common.entries)):
                return grown(first.lists[-1], common, first.collection.minimum)
        time.sleep(min(watch.pause_s for watch in watches))


def check_custodians(study: Study, custodians: Sequence[str]) -> None:
    """Raise `StudyInvalid` if computing parties bring tables to a later wave: these may be in an earlier one
    already."""
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
        **(
            {
                "rounds": [
                    {"bundles": len(of.entries), "list": of.hash.hex()}
                    for of in (*closing.lists, closing.agreed)
                ]
            }
            if closing.collection.rounds > 1
            else {}
        ),
    }


def _now() -> datetime:
    return datetime.now(UTC)
