"""Files of linked tables: a CSV file a table, with fresh keys, folded from a released model (`docs/design/linked.md` 4)."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import UsageError
from runner.results.formulas import harmless
from runner.results.outdir import RUN
from runner.results.outputs import BLOCK_ROWS, decoded, shown_in_csv
from synth.linked.tables import LinkedTables

if TYPE_CHECKING:
    from synth.domain import Domain
    from synth.linked.folding import Children
    from synth.mrf import Model

FOLD, VALUES = 1, 2
"""What a public seed is joined with for the draws of children, and of their values."""


def linked_of(facts: Mapping[str, Any], domain: Domain, directory: Path | str) -> LinkedTables | None:
    """The linked tables of a run, None of one without. facts: run.json. Raises `UsageError` for a damaged statement."""
    if "linked" not in facts:
        return None
    try:
        return LinkedTables.from_spec(facts["linked"], domain)
    except (KeyError, TypeError, AttributeError, ValueError):
        raise UsageError(
            f"{Path(directory) / RUN} does not state its linked tables; it is damaged or of another version."
        ) from None


def write_tables(
    folder: Path,
    linked: LinkedTables,
    model: Model,
    codes: NDArray[np.integer[Any]],
    seed: int,
    *,
    safe: bool = False,
) -> list[Path]:
    """Write PARENT.csv and a file for each table of children; hand back where.

    codes: people's rows in all columns of the model; seed: public, that of the rows' values as well. safe: as `write_table`. A
    person's key is its number among the rows, from 1; children stand by person, and in their order.
    """
    from synth.linked.folding import fold

    people, counts = _people(linked, codes, seed)
    number = np.arange(1, len(codes) + 1)
    written = [folder / f"{linked.parent}.csv"]
    _write(written[0], (linked.key, *linked.people.names), [number.tolist(), *people], linked.people, safe)
    for place, child in enumerate(linked.children):
        found = fold(model, linked, child, codes, counts[child.name], np.random.default_rng([seed, FOLD, place]))
        values = _values(found, np.random.default_rng([seed, VALUES, place]))
        written.append(folder / f"{child.name}.csv")
        _write(
            written[-1],
            (linked.key, *child.domain.names),
            [number[found.person].tolist(), *values],
            child.domain,
            safe,
        )
    return written


def _people(
    linked: LinkedTables, codes: NDArray[np.integer[Any]], seed: int
) -> tuple[list[list[Any]], dict[str, NDArray[np.int64]]]:
    """The values of the parent's columns, as the unfolded table has them, and how many children each person has."""
    names = linked.unfolded.names
    own = [names.index(name) for name in linked.people.names]
    of = {child.name: names.index(child.count) for child in linked.children}
    people: list[list[Any]] = [[] for _ in own]
    counts: dict[str, list[int]] = {name: [] for name in of}
    for block in decoded(codes, linked.unfolded, seed):
        for values, j in zip(people, own, strict=True):
            values += block[j]
        for name, j in of.items():
            counts[name] += block[j]
    return people, {name: np.array(values, dtype=np.int64) for name, values in counts.items()}


def _values(found: Children, rng: np.random.Generator) -> list[list[Any]]:
    """The values of children; those of a modelled order rise within a person."""
    values = found.table.domain.decode(found.codes, rng)
    if (ordered := found.table.ordered_by) is not None and len(found.person):
        rank = np.unique(values[ordered], return_inverse=True)[1]
        values[ordered] = values[ordered][np.lexsort((rank, found.person))]
    return [column.tolist() for column in values]


def _write(
    path: Path, names: Sequence[str], columns: Sequence[list[Any]], domain: Domain, safe: bool
) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([harmless(name) for name in names] if safe else names)
        for start in range(0, len(columns[0]), BLOCK_ROWS):
            block = [column[start : start + BLOCK_ROWS] for column in columns]
            rows: Iterable[Sequence[Any]] = zip(block[0], *shown_in_csv(block[1:], domain), strict=True)
            writer.writerows(
                [harmless(value) for value in row] for row in rows
            ) if safe else writer.writerows(rows)
