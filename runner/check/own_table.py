"""What `check --party NAME` shows its owner of its own table, column by column (`docs/howto/harmonise.md`).

Shares, counts and line numbers of private data: for the terminal of whoever runs the command as this party.
Nothing of it is logged, sent or written to a file, and a run never makes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from runner.check.finding import Finding, note

if TYPE_CHECKING:
    from parties.data.survey import ColumnSurvey, Survey
    from runner.study import DataLocation


def own_table(party: str, data: DataLocation, found: Survey) -> Iterator[Finding]:
    """A line a column of the study, for its owner's eyes; none if no row could be read."""
    recipe = data.recipe
    if recipe is not None and data.linked is None:  # of linked tables it is that of people alone
        yield note(
            f"{party}: the digest of how the private file reads this table, equal where another custodian's means the same: "
            f"{recipe.digest[:12]}"
        )
    if not found.columns:
        return
    yield note(f"{party}: what follows is private, about {found.rows:,} rows: do not pass it on")
    if found.filtered:
        yield note(f"{party}: {found.filtered:,} rows are left out by [harmonise] filter")
    if found.unnamed:
        yield note(f"{party}: {found.unnamed:,} rows have no identifier and are left out (missing_ids)")
    unstated = _unstated(data)
    for text, count in found.broken.items():
        if text in unstated:
            continue  # what unfolding makes true
        yield note(f"{party}: {count:,} rows break the study's constraint {text}")
    for column in found.columns:
        yield note(f"{party}: {column.name}: {_words(column, found.rows)}")
    for name, shapes in found.shapes.items():
        words = "; ".join(f"{shape} {_share(count, found.rows)}" for shape, count in shapes)
        yield note(
            f"{party}: identifiers of {name} look like this once normalised, 9 a digit, a letters: {words}"
        )


def _unstated(data: DataLocation) -> set[str]:
    """Constraints of linked tables that no study states."""
    if data.linked is None:
        return set()
    return {one.text for one in data.linked.unfolded.constraints} - {
        one.text for one in data.linked.people.constraints
    }


def _words(column: ColumnSurvey, rows: int) -> str:
    marked = f" (by a marker {_share(column.marked, rows)})" if column.marked else ""
    words = [f"missing {_share(column.missing, rows)}{marked}", f"clamped {_share(column.clamped, rows)}"]
    if column.mapped:
        words.append(f"mapped {_share(column.mapped, rows)}")
    if column.other:
        words.append(f"not listed, counted as other {_share(column.other, rows)}")
    for one in column.refused:
        places = ", ".join(one.places)
        more = ", ..." if one.count > len(one.places) > 0 else ""
        words.append(
            f"refused {one.count:,} rows ({places}{more}): {one.reason}"
            if places
            else f"refused: {one.reason}"
        )
    return "; ".join(words)


def _share(count: int, rows: int) -> str:
    """Of the rows, such as 3.1 %; a few of many are said to be more than none."""
    if not count:
        return "0 %"
    return f"{100 * count / rows:.1f} %" if count * 1000 >= rows else "under 0.1 %"
