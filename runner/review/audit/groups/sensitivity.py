"""S: how much one privacy unit moves what noise is added to, recorded on a table and replayed on its
neighbours.

At a variance without noise, the answers of a run ARE the exact values; so the whole way from rows through
shares to the opening is measured, not a formula. Also: the values are those of a count by other code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import CosynthError
from mpc_protocols.functionality import Clique, MarginalOracle
from parties.data.counting.local_marginals import count
from parties.data.linked.opening import open_source
from parties.data.location import locate
from runner.review.audit.check import Check, Finding, Group, Profile, judged
from runner.review.audit.subjects.in_memory.arena import Arena, Codes
from runner.review.audit.subjects.questions import NO_NOISE
from runner.review.audit.subjects.subject import Subject

NEIGHBOURS = {Profile.QUICK: 3, Profile.DEFAULT: 6, Profile.DEEP: 60}
FILES = {Profile.QUICK: 6, Profile.DEFAULT: 20, Profile.DEEP: 200}
BOUND = 2048
"""Rows allowed in the test of ranges; a power of two, so that a bit too few shows."""


def _cliques(subject: Subject) -> list[Clique]:
    a, b, c = subject.sizes
    return [(a,), (b,), (c,), (a, b), (b, c)]


def _exact(
    arena: Arena, subject: Subject, tables: list[Codes], answers: Sequence[NDArray[np.float64]]
) -> list[NDArray[np.int64]]:
    """The marginals, and the L1 distances of the pairs to `answers`, as a run opens them without noise; the
    total."""

    def ask(oracle: MarginalOracle) -> list[NDArray[np.int64]]:
        handles = oracle.prepare(_cliques(subject))
        found = oracle.measure(handles, NO_NOISE)
        return [
            *found,
            oracle.distances(handles[3:], answers, NO_NOISE),
            np.array([oracle.total(NO_NOISE)], np.int64),
        ]

    ran = arena.run(ask, tables, subject.coins("sensitivity"))
    found: list[NDArray[np.int64]] = ran.answer
    return found


def _counted(
    subject: Subject, tables: Sequence[Codes], answers: Sequence[NDArray[np.float64]]
) -> list[NDArray[np.int64]]:
    """The same by a count of rows, one after the other, that shares no code with the product."""
    names, rows = list(subject.sizes), [tuple(map(int, row)) for table in tables for row in table]
    found = []
    for clique in _cliques(subject):
        cells = np.zeros([subject.sizes[name] for name in clique], np.int64)
        for row in rows:
            cells[tuple(row[names.index(name)] for name in clique)] += 1
        found.append(cells.ravel())
    distances = [int(np.abs(cells - answer).sum()) for cells, answer in zip(found[3:], answers, strict=True)]
    return [*found, np.array(distances, np.int64), np.array([len(rows)], np.int64)]


def _answers(subject: Subject) -> list[NDArray[np.float64]]:
    """Public integers that the pairs are compared with: half of the cells far above, half at 0."""
    return [
        np.where(np.arange(math.prod(subject.sizes[name] for name in clique)) % 2, 90.0, 0.0)
        for clique in _cliques(subject)[3:]
    ]


def _neighbour(subject: Subject, tables: list[Codes], number: int) -> tuple[list[Codes], str]:
    """Tables in which one unit's rows are gone or added, or replaced; what was done, in words. The first ones
    are crafted."""
    rng = subject.generator(f"neighbour {number}")
    sizes = np.array(list(subject.sizes.values()))
    units, party = subject.study.privacy.unit.rows, number % len(tables)
    table = tables[party]
    rare = np.zeros(len(sizes), np.int64) if number % 2 else sizes - 1
    own = np.tile(rare if number < 4 else rng.integers(0, sizes), (units, 1))
    if subject.study.privacy.adjacency == "replace":
        changed, how = np.concatenate([table[units:], own]), "replaced"
    elif number % 2:
        changed, how = np.concatenate([table, own]), "added"
    else:
        changed, how = table[units:], "removed"
    return [*tables[:party], changed, *tables[party + 1 :]], f"{units} row(s) {how} at party {party}"


def _moved(
    first: Sequence[NDArray[np.int64]], second: Sequence[NDArray[np.int64]]
) -> tuple[float, float, float]:
    """The largest L2 distance of marginals, the largest change of a distance, and that of the total."""
    marginals = max(float(np.sqrt(((x - y) ** 2).sum())) for x, y in zip(first[:5], second[:5], strict=True))
    return marginals, float(np.abs(first[5] - second[5]).max()), float(np.abs(first[6] - second[6]).max())


def _limits(subject: Subject) -> tuple[float, float, float]:
    units = subject.study.privacy.unit.rows
    if subject.study.privacy.adjacency == "replace":
        return math.sqrt(2) * units, 2.0 * units, 0.0
    return float(units), float(units), float(units)


def _over(moved: tuple[float, float, float], limits: tuple[float, float, float]) -> list[str]:
    names = ("a marginal's L2 norm", "a distance", "the total")
    return [
        f"{name} moves by {found:.4g}, and is charged {limit:.4g}"
        for name, found, limit in zip(names, moved, limits, strict=True)
        if found > limit + 1e-9
    ]


def neighbours(subject: Subject) -> Finding:
    """Run each backend on a table and its neighbours."""
    problems, limits, answers = [], _limits(subject), _answers(subject)
    most = (0.0, 0.0, 0.0)
    count = NEIGHBOURS[subject.profile]
    for backend in subject.distributed:
        arena = subject.arena(backend)
        tables = subject.tables(arena.parties)
        base = _exact(arena, subject, tables, answers)
        for number in range(count):
            changed, how = _neighbour(subject, tables, number)
            moved = _moved(base, _exact(arena, subject, changed, answers))
            most = max(most[0], moved[0]), max(most[1], moved[1]), max(most[2], moved[2])
            problems += [f'backend "{backend.name}", {how}: {words}.' for words in _over(moved, limits)]
    return judged(
        problems,
        f"{count} neighbours each: marginals move by {most[0]:.3f} at most (charged {limits[0]:.3f}), distances by {most[1]:g} "
        f"({limits[1]:g}), the total by {most[2]:g} ({limits[2]:g}).",
        {"neighbours": count, "most": list(most), "charged": list(limits)},
    )


def exact_values(subject: Subject) -> Finding:
    """Compare each backend's answers without noise with a count by other code; also with as many rows as are
    allowed."""
    problems, compared = [], 0
    for backend in subject.distributed:
        for words, arena, rows in (
            ("usual rows", subject.arena(backend), 40),
            ("as many rows as allowed", subject.arena(backend, row_cap=BOUND), None),
        ):
            count = BOUND // arena.parties if rows is None else rows
            tables = subject.tables(arena.parties, count)
            if rows is None:
                tables[0] = np.concatenate([tables[0], tables[0][: BOUND - count * arena.parties]])
                tables = [
                    np.tile(np.zeros_like(table[:1]), (len(table), 1)) for table in tables
                ]  # one cell holds all
            answers = _answers(subject)
            if rows is None:
                answers = [
                    np.where(answer > 0, float(BOUND), 0.0)[::-1].copy() * (np.arange(len(answer)) < 2)
                    for answer in answers
                ]
            expected = _counted(subject, tables, answers)
            try:
                found = _exact(arena, subject, tables, answers)
            except CosynthError as error:  # nothing is wrong with the tables
                problems.append(f'backend "{backend.name}", {words}: the run ended: {error.sentence}')
                continue
            compared += sum(map(len, found))
            for name, ours, theirs in zip(
                (*map(str, _cliques(subject)), "distances", "total"), found, expected, strict=True
            ):
                if not np.array_equal(ours, theirs):
                    worst = int(np.abs(ours - theirs).max())
                    problems.append(f'backend "{backend.name}", {words}: {name} is off by {worst}.')
    return judged(problems, f"{compared} numbers equal a count by other code.", {"compared": compared})


def from_files(subject: Subject) -> Finding:
    """Write a custodian's table to a file, count it as a run does, take rows away one by one, and compare."""
    study, rng = subject.study, subject.generator("files")
    cliques: list[Clique] = [*study.workload.cliques][:20]
    sizes = np.array(list(study.domain.sizes.values()))
    rows = np.minimum(subject.rows[rng.choice(len(subject.rows), 80)], np.maximum(sizes - 2, 0))
    rows[0] = sizes - 1  # the only row with the largest values: bins must not follow it
    problems, limit, worst = [], float(study.privacy.unit.rows), 0.0
    with TemporaryDirectory(prefix="cosynth-audit-") as folder:
        base = _file_counts(subject, Path(folder) / "all.csv", rows, cliques)
        expected = [int(cells.sum()) for cells in base]
        if set(expected) != {len(rows)}:
            problems.append(f"Marginals of {len(rows)} rows add up to {sorted(set(expected))}.")
        for number in range(FILES[subject.profile]):
            without = np.delete(rows, number, axis=0)
            changed = _file_counts(subject, Path(folder) / f"{number}.csv", without, cliques)
            moved = max(float(np.sqrt(((x - y) ** 2).sum())) for x, y in zip(base, changed, strict=True))
            worst = max(worst, moved)
            if moved > limit + 1e-9:
                problems.append(
                    f"A row less in the file moves a marginal by {moved:.4g}, and is charged {limit:.4g}."
                )
    return judged(
        problems,
        f"{FILES[subject.profile]} files with a row less: {len(cliques)} marginals move by {worst:.3f} at most "
        f"(charged {limit:.3f}).",
        {"neighbours": FILES[subject.profile], "most": worst, "charged": limit},
    )


def _file_counts(
    subject: Subject, path: Path, rows: Codes, cliques: Sequence[Clique]
) -> list[NDArray[np.int64]]:
    domain = subject.study.domain
    rng = subject.generator("decode")
    columns = domain.decode(rows, rng)
    lines = [",".join(domain.names)]
    lines += [
        ",".join("" if value is None else f'"{value}"' for value in row) for row in zip(*columns, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with open_source(locate(path)) as source:
        return count(source, domain, cliques, max_rows=subject.study.privacy.max_rows).counts(cliques)


GROUP = Group(
    "S",
    "Sensitivity",
    "Does one privacy unit move what is released by no more than is charged?",
    (
        Check(
            "neighbours",
            "One unit's rows move marginals, distances and the total by what is charged at most, through shares and all.",
            "exact",
            "A row that counts twice, in two cells, or at two parties; a distance that moves by more than one per row.",
            neighbours,
        ),
        Check(
            "values",
            "Without noise, a backend's answers are the exact counts, up to as many rows as are allowed.",
            "exact",
            "A ring or sign a bit too narrow, a carry that is lost, a cell that is another one's.",
            exact_values,
        ),
        Check(
            "files",
            "One row of a custodian's file moves each marginal by one at most.",
            "exact",
            "A row that is read twice or counted in two cells.",
            from_files,
        ),
    ),
)
