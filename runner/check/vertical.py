"""What `check` looks at in a vertical study: the alignment, who owns what, an owner's identifiers, the quota
(`docs/design/psu.md` 3 and 5).

Counts of an owner's own records are shown to whoever runs `check` with that owner's data, and to nobody else.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING

from mpc_protocols.backend import BACKENDS
from mpc_protocols.errors import BudgetRefused, CosynthError, DataRefused, StudyInvalid
from mpc_protocols.psu.dummies import centre
from mpc_protocols.vertical.partition import MAX_OWNERS
from parties.budget.aborted import MAX_ABORTED, aborted_in_a_row, refusal
from parties.budget.account import used_up
from parties.data.linked.opening import open_source
from parties.data.records import read, validate
from runner.check.finding import Finding, fine, note, problem
from runner.check.own_table import own_table
from runner.party.alignment import check_size, check_tables, identifier_policy, own_columns, own_events
from runner.study import DataLocation, VerticalStudy, owners
from runner.study.owners import Ownership, clashing, method_of, misfits, missing_owners
from runner.study.private_file import Private
from runner.study.trained import trained

if TYPE_CHECKING:
    from mpc_protocols.functionality import Event
    from parties.budget.ledger import Ledger
    from synth.plan import Plan

POPULATIONS = {
    "intersection": "records that every owner has",
    "union": "records that some owner has; columns of the others are missing",
}


def alignment(study: VerticalStudy) -> Iterator[Finding]:
    """How records are joined and what the table will be about."""
    own = study.alignment
    if trained(study) is not None:
        yield fine("alignment: no records are joined: each owner trains on all its own")
        return
    by = f" on {', '.join(own.id)}" if own.id else ""
    way = (
        "in the clear"
        if BACKENDS[study.backend].ideal
        else method_of(study).way + ", with proofs" * (own.security == "proofs")
    )
    yield fine(f"alignment: records are joined{by} {way}; population: {POPULATIONS[own.population]}")
    if own.psu and study.privacy.adjacency == "add-remove":
        try:
            centre(own.size_epsilon, own.size_delta)
        except StudyInvalid as error:
            yield problem(StudyInvalid(f"{study.path}: {error.sentence}"))


def ownership(
    study: VerticalStudy, plan: Plan | None, tables: Mapping[str, DataLocation]
) -> Iterator[Finding]:
    """Whether the tables that the study names hold every column once, where all of them are on this machine,
    and whether the backend can make what a run asks these owners for.

    plan: None if there is none. tables: by party, as far as the study or a private file here says. A party
    whose data stands in a private file elsewhere may yet bring what is lacking: then that is only worth
    knowing.
    """
    announced: dict[str, tuple[str, ...]] = {}
    for party in study.parties:
        if party.name not in tables:
            continue
        columns = party.columns
        if columns is None:
            try:
                with open_source(tables[party.name].locate()) as source:
                    columns = tuple(name for name in study.domain.names if name in source.columns)
            except CosynthError:  # named already
                return
        announced[party.name] = columns
    for sentence in clashing(study, announced):
        yield problem(StudyInvalid(f"{study.path}: {sentence}"))
    if plan is not None and not misfits(study, announced):
        try:
            check_tables(study, plan, owners.ownership(study, announced))
        except StudyInvalid as error:
            yield problem(error)
    for sentence in missing_owners(study, announced):
        if len(announced) < len(study.parties):
            yield note(f"as far as the study says which party has data: {sentence}")
        else:
            yield problem(StudyInvalid(f"{study.path}: {sentence}"))


def records(
    study: VerticalStudy, party: str, data: DataLocation, allow_empty: bool, *, owner: bool
) -> Generator[Finding, None, int | None]:
    """An owner's table: every row is read, every identifier normalised, as a run would. Returns its rows if
    it could be read.

    owner: whether its owner asks, who alone is told of its columns.
    """
    try:
        columns = own_columns(study, party, data)
        domain, policy = study.domain.subset(columns), identifier_policy(study)
        with open_source(data.locate()) as source:
            seen = validate(source, domain, policy, max_rows=study.privacy.max_rows, allow_empty=allow_empty)
            for sentence in seen.problems:
                yield problem(DataRefused(f"{party}: {sentence}"))
            if owner:
                yield from own_table(party, data, seen)
            if seen.problems:
                return None
            found = read(source, domain, policy, max_rows=study.privacy.max_rows, allow_empty=allow_empty)
    except CosynthError as error:
        yield problem(type(error)(f"{party}: {error.sentence}"))
        return None
    yield fine(f"{party}: its table fits the study: {found.rows:,} records of {', '.join(columns)}")
    if found.identifiers is not None and found.identifiers.duplicates:
        yield note(f"{party}: {found.identifiers.duplicates:,} rows repeat an identifier and are left out")
    if found.ignored:
        yield note(
            f"{party}: columns that are not its own in this study are not read: {', '.join(found.ignored)}"
        )
    try:
        check_size(study, party, found.rows)
    except DataRefused as error:
        yield problem(error)
    return found.rows


def quota(study: VerticalStudy, party: str, own: Private, ledger: Ledger, dataset: str) -> Iterator[Finding]:
    """How many alignments with each of the others were aborted in a row, and how many the owner's private
    file still allows."""
    yield from _retries(study, party, ledger, dataset)
    allowed = own.ledger.max_alignments
    if allowed is None:
        yield note(
            "[ledger] max_alignments is not set in the private file: alignments with one counterparty are not limited"
        )
        return
    try:
        done = {
            other.name: ledger.alignments(dataset, other.name)
            for other in study.parties
            if other.name != party
        }
    except CosynthError as error:
        yield problem(error)
        return
    spent = [name for name, count in done.items() if count >= allowed]
    if spent:
        yield problem(BudgetRefused(used_up(dataset, spent[0], done[spent[0]], allowed)))
    else:
        yield fine(
            f"ledger: {dataset} has been aligned at most {max(done.values())} times with one of the others, "
            f"{allowed} are allowed"
        )


def _retries(study: VerticalStudy, party: str, ledger: Ledger, dataset: str) -> Iterator[Finding]:
    try:
        entries = ledger.entries(dataset)
    except CosynthError:  # said with the budget
        return
    counts = {
        other.name: aborted_in_a_row(entries, other.name) for other in study.parties if other.name != party
    }
    for name, count in counts.items():
        if count >= MAX_ABORTED:
            yield problem(BudgetRefused(refusal(dataset, name, count)))
        elif count:
            yield note(
                f"ledger: the last {count} of the alignments of {dataset} with {name} were aborted; after {MAX_ABORTED} in a row "
                "a run needs --allow-retry"
            )
    if not any(counts.values()):
        yield fine(
            f"ledger: the last alignment of {dataset} with each of the others, if any, was not aborted"
        )


def sizes(study: VerticalStudy, party: str) -> tuple[Event, ...]:
    """What an owner's ledger will be charged for its sizes on top of the study's budget, by the owners to be
    expected."""
    from runner.forecast.alignment import owners

    try:
        owned, _ = owners(study)
    except (
        StudyInvalid
    ):  # who owns what is not known here: the charge follows from how many owners there are, at most
        pad_to = study.alignment.pad_to
        names = [
            member.name
            for member in study.parties
            if not isinstance(pad_to, Mapping) or member.name in pad_to
        ]
        owned = Ownership(tuple(names[:MAX_OWNERS]), {})
    return own_events(study, owned, party)
