"""One owner's own records of a vertical study: its columns as compact codes, and who they are about.

Vertically split data cannot be counted at home (`local_marginals`): a marginal across owners needs every
owner's row of the same person. So the table is read once, in blocks, and what a run needs stays: the codes of
the columns that this party owns, one, two or four bytes each by the column's size, and the canonical
identifiers under the study's policy (`identifiers.py`, `docs/design/psu.md` 5). Columns that the party does
not own are not read, whatever they are called; an identifier column need not be in the domain. Data that is
aligned already (`method = "row-order"`) has no identifiers, and none are read.

One identifier is one record. Further rows with an identifier that was seen are refused, or left out with
their codes (`duplicates = "first"`); how many there were is for the custodian's private log only, like the
numbers clamped and values missing.

Cost: about 1 us a row for eight columns and a text identifier; memory: the codes and about 100 bytes an
identifier, whatever the format. What does not fit the study is refused before anything is sent (`scan`).
Everything here but `ignored` is private: it leaves this process only as shares, or under the alignment's
encryption.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mpc_protocols.errors import DataRefused
from mpc_protocols.process.later import np
from parties.data.counting.scan import Scan, Unit, inspect
from parties.data.source import BLOCK_ROWS, Source
from parties.data.survey import Survey, survey

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.psu.identifiers.normalise import IdentifierPolicy, Identifiers
    from parties.data.identifiers import IdentifierReader
    from synth.domain import Column, Domain

    Codes = NDArray[np.uint8 | np.uint16 | np.uint32]

log = logging.getLogger("cosynth.custodian.records")  # below the logger whose lines are private


@dataclass(frozen=True)
class Records:
    """An owner's records for a vertical run; all of it private but `ignored`.

    rows: n, its records. codes: per own column (n,), unsigned integers below the column's size. identifiers:
    `entries[i]` is the identifier of record i, and `rows[i]` its row in the table; None if the study aligns
    by row order. clamped, absent: per column, how many numbers lay outside low..high and how many values were
    missing, in all rows of the table. ignored: columns of the data that were not read, for they are neither
    this party's nor identifiers; another owner's may be among them.
    """

    rows: int = field(repr=False)
    codes: Mapping[str, Codes] = field(repr=False)
    identifiers: Identifiers | None = field(repr=False)
    clamped: Mapping[str, int] = field(repr=False)
    absent: Mapping[str, int] = field(repr=False)
    ignored: tuple[str, ...] = ()


def read(
    source: Source,
    domain: Domain,
    policy: IdentifierPolicy | None,
    *,
    max_rows: int,
    allow_empty: bool = False,
    block_rows: int = BLOCK_ROWS,
    unit: Unit | None = None,
) -> Records:
    """Read the table once. Raises `DataRefused` at the first thing that does not fit.

    domain: the columns that this party owns, and no others. policy: how identifiers are made, and whether
    duplicates are refused; None for row order. max_rows: the study's public bound on the rows of the table,
    duplicates included. unit: of rows that are not aligned, whom they are about, as `local_marginals.count`
    takes it.
    """
    seen = inspect(source, domain, unit, policy.columns if policy is not None else ())
    for sentence in (*seen.problems, *_unordered(source, policy)):
        raise DataRefused(sentence)
    scan, reader = _scan(source, domain, policy, max_rows, allow_empty, unit=unit)
    kept: dict[str, list[Codes]] = {name: [] for name in domain.names}
    for codes in scan.blocks(block_rows, stop=True):
        for name, blocks in kept.items():
            blocks.append(codes[name].astype(code_type(domain[name])))
    for sentence in scan.problems():
        raise DataRefused(sentence)
    identifiers = reader.finish() if reader is not None else None
    chosen = None
    if policy is not None and identifiers is not None and identifiers.duplicates:
        log.info("own data: %d rows have the identifier of an earlier row", identifiers.duplicates)
        if policy.duplicates == "refuse":
            raise DataRefused(f"{source.label} {policy.repeated()}")
        chosen = identifiers.rows
    columns: dict[str, Codes] = {}
    for name in domain.names:
        whole = np.concatenate([np.empty(0, code_type(domain[name])), *kept.pop(name)])
        columns[name] = whole if chosen is None else whole[chosen]
    return Records(
        scan.rows if identifiers is None else len(identifiers.entries),
        columns,
        identifiers,
        {name: coder.clamped for name, coder in scan.coders.items()},
        {name: coder.absent for name, coder in scan.coders.items()},
        seen.ignored,
    )


def validate(
    source: Source,
    domain: Domain,
    policy: IdentifierPolicy | None,
    *,
    max_rows: int,
    allow_empty: bool = False,
    block_rows: int = BLOCK_ROWS,
) -> Survey:
    """Everything that `read` would refuse, in one go: the first row of each kind of misfit in each column;
    and what the owner may know of its columns and identifiers."""
    names = policy.columns if policy is not None else ()
    seen = inspect(source, domain, keys=names)
    known = policy if all(name in source.columns for name in names) else None
    problems = [*seen.problems, *_unordered(source, policy)]
    if not seen.present:
        return Survey(tuple(problems))
    scan, reader = _scan(source, domain.subset(seen.present), known, max_rows, allow_empty, shapes=True)
    found = survey(source, scan, block_rows, problems, reader)
    if (
        known is not None
        and reader is not None
        and not found.problems
        and known.duplicates == "refuse"
        and reader.finish().duplicates
    ):
        return replace(found, problems=(f"{source.label} {known.repeated()}",))
    return found


def code_type(column: Column) -> type[np.uint8 | np.uint16 | np.uint32]:
    """The narrowest type of a column's codes."""
    return np.uint8 if column.size <= 1 << 8 else np.uint16 if column.size <= 1 << 16 else np.uint32


def _unordered(source: Source, policy: IdentifierPolicy | None) -> list[str]:
    """A table of a server has no order, and what it happens to give would join different people without a
    sign of it."""
    if policy is not None or source.ordered:
        return []
    return [
        f'{source.label} is a table whose rows have no order, so [alignment] method = "row-order" cannot use it; name a view '
        "with ORDER BY, or align by identifiers."
    ]


def _scan(
    source: Source,
    domain: Domain,
    policy: IdentifierPolicy | None,
    max_rows: int,
    allow_empty: bool,
    shapes: bool = False,
    unit: Unit | None = None,
) -> tuple[Scan, IdentifierReader | None]:
    from parties.data.identifiers import IdentifierReader

    reader = None
    if policy is not None:
        untyped = source.location.kind == "csv"
        reader = IdentifierReader(policy, untyped=untyped, leave_out=source.leaves_out, shapes=shapes)
    return Scan(source, domain, max_rows=max_rows, unit=unit, keys=reader, allow_empty=allow_empty), reader
