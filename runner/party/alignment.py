"""From a vertical study and its owners to the common table: what the alignment is told and what it gives
(`docs/design/vertical.md` 6, `docs/design/psu.md`).

    specification(study, owned)           the public parameters of the protocol
    identifier_policy(study)              how identifiers are made; None for row order
    join(...)                             phase "align" of one party: its part in the protocol, and what it brings to the oracle
    ideal_join(...)                       the same for all owners at once, in the clear

Who learns what: owners and computing parties learn the list sizes and u, the size of the union
(`docs/design/psu.md` 0 says which of them for which protocol); with adjacency "add-remove" all of them carry
noise, and each release is an event that `authorise` has put on record before the first message of the
alignment leaves. Nothing of it goes into the run's outputs: recipients see neither list sizes, nor u, nor how
many records are in common. An empty intersection is no error either, for an error would tell it: the run goes
on, and its counts are noise around zero.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from fractions import Fraction
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mpc_protocols.errors import BudgetRefused, CosynthError, DataRefused, OutOfResources, StudyInvalid
from mpc_protocols.functionality import Event, Guard
from mpc_protocols.psu.dummies import size_events, view_events
from mpc_protocols.psu.functionality import MAX_IDENTIFIERS, AlignmentSpec, Context, Member, ideal_align
from mpc_protocols.psu.identifiers.normalise import IdentifierPolicy
from mpc_protocols.psu.row_order.protocol import UNEQUAL
from mpc_protocols.vertical.partition import OwnRows, Partition, VerticalData
from parties.budget.aborted import ABORTED
from parties.budget.spending import STARTED
from parties.data.counting.scan import unknown
from parties.data.linked.opening import open_source
from runner.study import DataLocation, Study, VerticalStudy
from runner.study.owners import Ownership, method_of

if TYPE_CHECKING:
    from mpc_protocols.psu.functionality import Alignment
    from mpc_protocols.wire import Wire
    from parties.data.records import Records
    from synth.plan import Plan


def identifier_policy(study: VerticalStudy) -> IdentifierPolicy | None:
    """How the owners make identifiers; None if the study aligns by row order."""
    alignment = study.alignment
    if not alignment.psu:
        return None
    return IdentifierPolicy(alignment.id, alignment.normalise, alignment.duplicates)


def own_columns(study: Study, party: str, data: DataLocation) -> tuple[str, ...]:
    """The columns that a party with data owns: those the study declares, else the domain's in its data.
    Raises `DataRefused`."""
    names, declared = study.domain.names, study.party(party).columns
    if declared is not None:
        return tuple(name for name in names if name in declared)
    with open_source(data.locate()) as source:
        found = tuple(name for name in names if name in source.columns)
    if not found:
        raise DataRefused(unknown(source, names))
    return found


def check_size(study: VerticalStudy, owner: str, records: int) -> None:
    """Raise `DataRefused` if an owner has too few records for an alignment to hide anybody, or more than its
    list is padded to.

    Before anything is sent, and before the other owners have put on record what their sizes reveal.
    """
    alignment = study.alignment
    if records < alignment.min_size:
        raise DataRefused(
            f"Party {owner} has fewer records than [alignment] min_size = {alignment.min_size:,}: an alignment of "
            "so few would reveal who is in it; the parties must agree on a smaller min_size if they accept that."
        )
    pad_to = (
        alignment.pad_to
        if alignment.pad_to is None or isinstance(alignment.pad_to, int)
        else alignment.pad_to.get(owner)
    )
    if pad_to is not None and records > pad_to:
        raise DataRefused(
            f"Party {owner} has more records than [alignment] pad_to = {pad_to:,}; the parties must agree on a "
            "larger one."
        )


def specification(study: VerticalStudy, owned: Ownership) -> AlignmentSpec:
    """The public parameters, equal at all parties. Raises `StudyInvalid`."""
    alignment, privacy = study.alignment, study.privacy
    pad_to = alignment.pad_to
    sizes = (
        None
        if pad_to is None
        else tuple(pad_to if isinstance(pad_to, int) else pad_to[name] for name in owned.owners)
    )
    return AlignmentSpec(
        method_of(study).name,
        alignment.security,
        privacy.adjacency,
        alignment.min_size,
        min(privacy.max_rows, MAX_IDENTIFIERS),
        alignment.size_epsilon,
        alignment.size_delta,
        sizes,
        study.descriptor.malicious,
    )


def check_tables(study: VerticalStudy, plan: Plan, owned: Ownership) -> None:
    """Raise `StudyInvalid` if the backend cannot compute a table that a run may ask these owners for."""
    asked = dict.fromkeys((*plan.one_way, *plan.candidates))
    try:
        study.descriptor.check_tables(partition(study, owned, 0), study.domain.sizes, asked)
    except StudyInvalid as error:
        raise StudyInvalid(f"{study.path}: {error.sentence}") from None


def partition(study: VerticalStudy, owned: Ownership, rows: int) -> Partition:
    """How the columns of the common table of so many rows are split, by wire numbers."""
    number = {party.name: i for i, party in enumerate(study.numbered)}
    union = study.alignment.population == "union"
    return Partition(
        tuple(number[name] for name in owned.owners),
        {column: number[name] for column, name in owned.columns.items()},
        study.alignment.population,
        {name: study.domain[name].size - 1 for name in study.domain.names} if union else {},
        rows,
    )


def own_events(study: VerticalStudy, owned: Ownership, owner: str) -> tuple[Event, ...]:
    """What an owner's sizes reveal to the others in one run: charged to its data on top of the study's
    budget."""
    psu = study.alignment.psu  # aligned tables have as many rows at every owner, who so learn nothing
    others = [party.name for party in (study.parties if psu else study.computing) if party.name != owner]
    outside = [name for name in others if name not in owned.owners]
    others = others if psu else outside
    return size_events(specification(study, owned), others, len(owned.owners), outside)


def view_of(study: VerticalStudy, owned: Ownership, viewer: str) -> tuple[Event, ...]:
    """What a party of the run learns from everybody's sizes, beyond what recipients learn."""
    spec = specification(study, owned)
    if study.alignment.psu:
        return view_events(spec, owned.owners, viewer)
    return () if viewer in owned.owners else size_events(spec, [viewer], len(owned.owners))


class Account(Guard):
    """What an alignment releases, put on record before it is: a guard (`mpc_protocols.functionality`) of its
    own.

    The events are no part of the study's budget: they are what the other parties of the run learn beyond the
    released results, so they are charged to the owner's data on top of it. As a context manager it records
    that the alignment was started, before its first message, and an abort. Everything stays on record however
    the run ends.
    """

    def __init__(self, record: Callable[[Event, bytes], None], session: bytes, owned: Ownership) -> None:
        """record: makes an event durable. Raises `BudgetRefused`."""
        self._record, self._session, self._owned = record, session, owned

    def authorise(self, event: Event, inputs: bytes) -> None:
        """Put a release on record. Raises `BudgetRefused`: then nothing of it may leave."""
        self._record(event, inputs)

    def __enter__(self) -> Account:
        self._record(
            Event(STARTED, Fraction(0), Fraction(0), {"owners": list(self._owned.owners)}), self._session
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            return
        code = error.exit_code if isinstance(error, CosynthError) else 1
        with suppress(BudgetRefused, OutOfResources):  # the cause of the abort is what there is to tell
            self._record(Event(ABORTED, Fraction(0), Fraction(0), {"code": code}), self._session)


def join(
    study: VerticalStudy,
    owned: Ownership,
    wire: Wire,
    study_digest: bytes,
    records: Records | None,
    account: Account,
) -> VerticalData:
    """This party's part in the alignment, whatever its role; what it brings to the oracle. Blocks.

    wire: a stream of the alignment's own. records: an owner's. Raises `DataRefused` (before anything is
    sent), `BudgetRefused`, `ProtocolAborted`, `PeerLost`.
    """
    aligned = take_part(study, owned, wire, study_digest, records, account)
    own = None if records is None else OwnRows(aligned.rows, cast("Mapping[str, Any]", records.codes))
    return VerticalData(partition(study, owned, aligned.n_rows), own)


def take_part(
    study: VerticalStudy,
    owned: Ownership,
    wire: Wire,
    study_digest: bytes,
    records: Records | None,
    account: Account,
) -> Alignment:
    """As `join`, for who needs the rows alone."""
    from mpc_protocols.psu.align import align

    listed = None if records is None else records.rows if records.identifiers is None else records.identifiers
    return align(wire, listed, specification(study, owned), context(study, owned, study_digest), account)


def context(study: VerticalStudy, owned: Ownership, study_digest: bytes) -> Context:
    """Who takes part. The study's digest covers every party's pinned certificate, or the CA whose name for it
    is checked."""

    def member(number: int, name: str) -> Member:
        return Member(name, hashlib.sha256(study_digest + name.encode()).digest(), number)

    members = {party.name: member(number, party.name) for number, party in enumerate(study.numbered)}
    helpers = [party.name for party in study.computing if party.name not in owned.owners]
    return Context(
        study_digest,
        tuple(members[name] for name in owned.owners),
        members[helpers[0]] if method_of(study).helper else None,
        tuple(members[party.name] for party in study.computing),
    )


def ideal_join(
    study: VerticalStudy, owned: Ownership, records: Mapping[str, Records]
) -> tuple[Partition, dict[int, OwnRows]]:
    """The common table of all owners in the clear: its partition and every owner's rows. It protects nothing.

    records: by the owner's name. Raises `DataRefused` as the owners would.
    """
    spec = specification(study, owned)
    number = {party.name: i for i, party in enumerate(study.numbered)}
    own = [records[name] for name in owned.owners]
    if not study.alignment.psu:
        if len({table.rows for table in own}) > 1:
            raise DataRefused(UNEQUAL)
        rows = own[0].rows
        places = [np.arange(rows, dtype=np.int64) for _ in own]
    else:
        lists = [table.identifiers.entries for table in own if table.identifiers is not None]
        aligned = ideal_align(lists, spec)
        rows, places = aligned[0].n_rows, [result.rows for result in aligned]
    return partition(study, owned, rows), {
        number[name]: OwnRows(place, cast("Mapping[str, Any]", table.codes))
        for name, place, table in zip(owned.owners, places, own, strict=True)
    }
