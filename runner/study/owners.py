"""Who owns which column of a vertical study, and whether its alignment can be run by these owners
(`docs/design/vertical.md` 2, `docs/reference/study-file.md`).

The rules are public and every party applies them to the same announcements, so all refuse alike (exit 10):
each column of the domain has exactly one owner; two to eight owners; a protocol that these owners can run. A
partition that is vertical and horizontal at once (some columns at several owners) is refused by the first
rule: it would count one person's values twice or leave open whose hold. Rows of different people are no
matter of columns: `population` says which people the table is about. Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpc_protocols.backend import BACKENDS, Backend
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.psu.method import AUTO, METHODS, AlignmentMethod, resolve
from mpc_protocols.vertical.partition import MAX_OWNERS

if TYPE_CHECKING:
    from mpc_protocols.functionality import Adjacency
    from runner.study.declared.tables import Alignment, Privacy
    from runner.study.model import Party, VerticalStudy


@dataclass(frozen=True)
class Ownership:
    """Public. owners: names, in the study's order. columns: every column of the domain, in its order, with
    its owner's name."""

    owners: tuple[str, ...]
    columns: Mapping[str, str]

    def of(self, owner: str) -> tuple[str, ...]:
        """The columns of one owner, in the domain's order."""
        return tuple(column for column, name in self.columns.items() if name == owner)


def method_of(study: VerticalStudy) -> AlignmentMethod:
    """The method that runs; which one "auto" takes follows from who computes."""
    alignment, backend = study.alignment, BACKENDS[study.backend]
    if not alignment.psu:
        return METHODS[alignment.method]
    if alignment.via != AUTO:
        return METHODS[alignment.via]
    deviating = deviating_adjacency(study.descriptor, study.privacy)
    return resolve(
        alignment.via, (), [party.name for party in study.computing], backend.alignments, deviating
    )


def deviating_adjacency(backend: Backend, privacy: Privacy) -> Adjacency | None:
    """What an alignment must withstand: the adjacency of a study in which a computing party may deviate, else
    None."""
    return privacy.adjacency if backend.malicious else None


def ownership(study: VerticalStudy, announced: Mapping[str, Sequence[str]]) -> Ownership:
    """announced: the parties with data and the domain's columns in it, which count for who declares none in
    the study.

    Raises `StudyInvalid` with the first misfit.
    """
    for sentence in misfits(study, announced):
        raise StudyInvalid(f"{study.path}: {sentence}")
    owner = _owners_of(study, announced)
    return Ownership(
        tuple(party.name for party in study.parties if party.name in announced),
        {column: owner[column][0] for column in study.domain.names},
    )


def misfits(study: VerticalStudy, announced: Mapping[str, Sequence[str]]) -> list[str]:
    """Everything that keeps these owners from running the study, one sentence each."""
    if len(announced) < 2:
        return missing_owners(study, announced)
    return clashing(study, announced) + missing_owners(study, announced)


def missing_owners(study: VerticalStudy, announced: Mapping[str, Sequence[str]]) -> list[str]:
    """Problems of a study that has no other owners than these."""
    names = [party.name for party in study.parties if party.name in announced]
    if len(names) < 2:
        return [
            "a vertical study needs columns at two parties or more, and "
            + (f"only {names[0]} has any" if names else "nobody has any")
            + "; give the others data."
        ]
    owner = _owners_of(study, announced)
    orphans = [column for column in study.domain.names if not owner[column]]
    if not orphans:
        return []
    return [
        f"no owner has the column{'s' * (len(orphans) > 1)} {', '.join(orphans)}: every column of the domain needs exactly "
        "one owner (names must be equal, capitals included)."
    ]


def clashing(study: VerticalStudy, announced: Mapping[str, Sequence[str]]) -> list[str]:
    """Problems of these owners, whichever others there are."""
    names = [party.name for party in study.parties if party.name in announced]
    found, owner = [], _owners_of(study, announced)
    shared = [column for column in study.domain.names if len(owner[column]) > 1]
    if len(shared) == len(study.domain) and len({tuple(owner[column]) for column in shared}) == 1:
        found.append(
            f"every column of the domain is at {_and(owner[shared[0]])}: different people's rows with the same columns "
            'are partition = "horizontal"; for a vertical study give each column one owner by `columns` in [[party]].'
        )
    else:
        found += [several_owners(column, owner[column]) for column in shared]
    found += _torn(study, owner)
    found += misfits_of_method(study.alignment, study.descriptor, study.parties, names, study.privacy)
    return found


def _torn(study: VerticalStudy, owner: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Tables of children whose columns lie at several owners: each would draw another row of the same
    person."""
    for child in study.linked.children if study.linked else ():
        columns = [name for table in (child, *child.children) for name in table.names]
        whose = {name for column in columns for name in owner[column]}
        holders = [party.name for party in study.parties if party.name in whose]
        if len(holders) > 1:
            also = f", with what belongs to its rows ({child.children[0].name})," if child.children else ""
            yield (
                f"the columns of the table {child.name}{also} are at {_and(holders)}, and each would draw another row of the "
                "same person: name the whole table by `columns` of one [[party]]."
            )


def misfits_of_method(
    alignment: Alignment, backend: Backend, parties: Sequence[Party], owners: Sequence[str], privacy: Privacy
) -> list[str]:
    """Why these owners, and further ones if there are any, cannot run the alignment's protocol, or the
    backend join them.

    backend: as the study's security configures it.
    """
    if len(owners) > MAX_OWNERS:
        return [f"{len(owners)} parties own columns; at most {MAX_OWNERS} can be aligned."]
    sizes = alignment.pad_to
    if (
        isinstance(sizes, Mapping)
        and set(sizes) <= {party.name for party in parties}  # else a name is wrong, which is told
        and (bare := [name for name in owners if name not in sizes])
    ):
        return [f"[alignment] pad_to has no size for {_and(bare)}; give every owner one."]
    if backend.ideal:
        return []
    computing = [party.name for party in parties if party.compute]
    if misfit := backend.misfit_of_owners(owners, computing):
        return [f"{misfit}{_instead(backend, parties, owners)}."]
    named = alignment.via if alignment.psu else alignment.method
    deviating = deviating_adjacency(backend, privacy)
    if named == AUTO:
        try:
            resolve(named, owners, computing, backend.alignments, deviating)
        except StudyInvalid as error:
            return [f"{error.sentence.rstrip('.')}{_instead(backend, parties, owners)}."]
        return []
    if backend.alignments is not None and named not in backend.alignments:
        return [
            f'backend = "{backend.name}" cannot work with records joined by {named}; it works with '
            f"{', '.join(backend.alignments)}."
        ]
    refused = METHODS[named].refusal(owners, computing, deviating)
    return [f"{refused}."] if refused else []


def _instead(backend: Backend, parties: Sequence[Party], owners: Sequence[str]) -> str:
    """The end of a sentence: which other backends would join these owners' records, whichever way."""
    if backend.malicious:
        return ""  # the others have no such security
    found = []
    names = [*owners, *(party.name for party in parties if party.name not in owners)]
    for other in BACKENDS:
        if other.name == backend.name or other.ideal or "vertical" not in other.partitions:
            continue
        if backend.two_owners and other.two_owners:
            continue  # what one of them lacks, the other does
        computing = names[: other.by_default]
        try:
            resolve(AUTO, owners, computing, other.alignments)
        except StudyInvalid:
            continue
        if other.misfit(computing) is None and other.misfit_of_owners(owners, computing) is None:
            found.append(f'backend = "{other.name}"')
    return f"; use {' or '.join(found)}" if found else ""


def several_owners(column: str, owners: Sequence[str]) -> str:
    """The sentence for a column that more than one party claims."""
    return (
        f'the column "{column}" is at {_and(owners)}: each column needs exactly one owner (a partition by columns and by '
        "rows at once is not supported); name the columns of each party by `columns` in [[party]]."
    )


def _owners_of(study: VerticalStudy, announced: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Who claims each column of the domain, in the study's order."""
    owner: dict[str, list[str]] = {column: [] for column in study.domain.names}
    for party in study.parties:
        if party.name in announced:
            for column in announced[party.name] if party.columns is None else party.columns:
                owner[column].append(party.name)
    return owner


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
