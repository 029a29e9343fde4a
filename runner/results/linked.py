"""Files of linked tables: a CSV file a table, with fresh keys, folded from a released model
(`docs/design/linked.md` 4).

They follow from the table of people's rows and the model beside them: whoever has those two files makes the
same ones (`verify`).
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import StudyInvalid, UsageError
from runner.results.columns import BLOCK_ROWS, decoded, shown_in_csv
from runner.results.outdir import RUN
from runner.results.table.csv_fields import row_writer
from runner.results.table.formulas import harmless
from synth.linked.folding import fold, fold_beneath
from synth.linked.tables import LinkedTables

if TYPE_CHECKING:
    from synth.domain import Domain
    from synth.linked.folding import Children
    from synth.mrf import Model

FOLD, VALUES = 1, 2
"""What a seed is joined with for the draws of children, and of their values."""


def linked_of(facts: Mapping[str, Any], domain: Domain, directory: Path | str) -> LinkedTables | None:
    """The linked tables of a run, None of one without. facts: run.json. Raises `UsageError` for a damaged
    statement."""
    if "linked" not in facts:
        return None
    try:
        return LinkedTables.from_spec(facts["linked"], domain)
    except (KeyError, TypeError, AttributeError, ValueError, StudyInvalid):
        raise UsageError(
            f"{Path(directory) / RUN} does not state its linked tables; it is damaged or of another version."
        ) from None


def check_of_people(facts: Mapping[str, Any], domain: Domain, names: Iterable[str], asked: str) -> None:
    """Raise `UsageError` for a column of a single child drawn, about which `asked` (the beginning of a
    sentence) would mislead."""
    linked = linked_of(facts, domain, "run.json")
    if linked is None:
        return
    told = {*linked.people.names, *(child.count for child in linked.children)}
    for name in names:
        if name in domain and name not in told:
            raise UsageError(
                f"{asked} is about people, a row each, and {name} is of one child of a person, drawn at random; ask about "
                f"{', '.join(sorted(told))}, or count in the tables of children."
            )


def seed_of(table: Path, model: Path) -> int:
    """The seed of the fold of a run: a function of its released files."""
    found = hashlib.sha256()
    for file in (table, model):
        found.update(hashlib.sha256(file.read_bytes()).digest())
    return int.from_bytes(found.digest()[:8], "big")


@dataclass(frozen=True)
class People:
    """People as a table of their rows has them. codes: (people, columns of the model). values: the parent's
    columns, as a CSV file
    shows them. counts: by table of children, how many each person has."""

    codes: NDArray[np.integer[Any]]
    values: Sequence[Sequence[Any]]
    counts: Mapping[str, NDArray[np.int64]]

    @classmethod
    def of(cls, linked: LinkedTables, codes: NDArray[np.integer[Any]], seed: int) -> People:
        """With the values that `write_table` draws by the same seed."""
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
        return cls(
            codes,
            shown_in_csv(people, linked.people),
            {name: np.array(values, dtype=np.int64) for name, values in counts.items()},
        )

    @classmethod
    def read(cls, linked: LinkedTables, codes: NDArray[np.integer[Any]], table: Path) -> People:
        """As `write_table` has written them. codes: what the file holds, as codes. Raises KeyError or
        ValueError for another."""
        with table.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file)
            place = {name: j for j, name in enumerate(next(reader, []))}
            columns = list(zip(*reader, strict=True)) or [()] * len(place)
        counts = {
            child.name: np.array(columns[place[child.count]], dtype=np.int64) for child in linked.children
        }
        for child in linked.children:
            if ((counts[child.name] < 0) | (counts[child.name] > child.max_rows)).any():
                raise ValueError(f"A number of {child.name} is beyond max_rows.")
        return cls(codes, [columns[place[name]] for name in linked.people.names], counts)


def write_tables(
    folder: Path, linked: LinkedTables, model: Model, people: People, seed: int, *, safe: bool = False
) -> list[Path]:
    """Write PARENT.csv and a file for each table of children; hand back where.

    seed: public, of the fold. safe: as `write_table`. A person's key is its number among the rows, from 1,
    and likewise that of a child that has rows of its own; children stand by person, and in their order.
    """
    number = np.arange(1, len(people.codes) + 1)
    written = [folder / f"{linked.parent}.csv"]
    _write(written[0], (linked.key, *linked.people.names), [number.tolist(), *people.values], safe)
    for place, child in enumerate(linked.children):
        draws = np.random.default_rng([seed, FOLD, place])
        found = fold(model, linked.people.names, child, people.codes, people.counts[child.name], draws)
        keys = {linked.key: number[found.person]}
        if child.key is not None:
            keys[child.key] = np.arange(1, len(found.person) + 1)
        written.append(_write_children(folder, found, keys, [seed, VALUES, place], safe))
        for at, own in enumerate(fold_beneath(model, linked.people.names, found, people.codes, draws)):
            keys = {str(child.key): own.person + 1}
            written.append(_write_children(folder, own, keys, [seed, VALUES, place, at], safe))
    return written


def _write_children(
    folder: Path, found: Children, keys: Mapping[str, NDArray[np.int64]], seed: Sequence[int], safe: bool
) -> Path:
    """The file of a table of children. keys: columns before its own."""
    domain, path = found.table.domain, folder / f"{found.table.name}.csv"
    values = shown_in_csv(_values(found, np.random.default_rng(seed)), domain)
    _write(path, (*keys, *domain.names), [*(own.tolist() for own in keys.values()), *values], safe)
    return path


def _values(found: Children, rng: np.random.Generator) -> list[list[Any]]:
    """The values of children; those of a modelled order rise within a person: listed ones as they are listed."""
    values = found.table.domain.decode(found.codes, rng)
    if (ordered := found.table.ordered_by) is not None and len(found.person):
        listed = found.table.domain.columns[ordered].listed
        rank = found.codes[:, ordered] if listed else np.unique(values[ordered], return_inverse=True)[1]
        values[ordered] = values[ordered][np.lexsort((rank, found.person))]
    return [column.tolist() for column in values]


def _write(path: Path, names: Sequence[str], columns: Sequence[Sequence[Any]], safe: bool) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = row_writer(file)
        writer.writerow([harmless(name) for name in names] if safe else names)
        writer.writerows(_rows(columns, safe))


def _rows(columns: Sequence[Sequence[Any]], safe: bool) -> Iterator[Sequence[Any]]:
    for start in range(0, len(columns[0]), BLOCK_ROWS):
        for row in zip(*(column[start : start + BLOCK_ROWS] for column in columns), strict=True):
            yield [harmless(value) for value in row] if safe else row
