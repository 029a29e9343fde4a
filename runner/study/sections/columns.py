"""The tables [domain] and [workload] of a study: its columns, and the sets of columns that count."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import MAX_CELLS
from runner.failures import reason
from runner.study.declared.table import Table, nearest, value_text
from synth.algorithm import ALGORITHMS
from synth.domain import BROKEN_ROWS, Column, Domain, column_from_spec
from synth.workload import MAX_CANDIDATES, Workload, WorkloadKeys


def read_domain(
    table: Table, path: Path, where: str = "[domain.columns]"
) -> tuple[tuple[str, ...], Domain | None]:
    """The declared names and the domain, from the table's columns or its file; every bad column is a problem
    of its own.

    where: what sentences call its columns.
    """
    if ("file" in table) == ("columns" in table):
        table.problem("needs either file or columns, and only one of them")
        return (), None
    given, prefix = table.raw.get("columns"), where
    if "file" in table:
        file = path.parent / table.text("file", expected="the name of a JSON file")
        given, prefix = _read_json(table, file), str(file)
    if given is None:
        return (), None
    if not isinstance(given, dict) or not given:
        key = "file" if "file" in table else "columns"
        table.problem(f"must map every column to its size or to a table, got {value_text(given)}", key)
        return (), None
    columns: dict[str, Column] = {}
    for name, spec in given.items():
        try:
            columns[name] = column_from_spec(spec, f"{prefix} {name}")
        except StudyInvalid as error:
            table.problems.append(f"{table.file}: {error.sentence}")
    if len(columns) != len(given):
        return tuple(given), None
    try:
        domain = Domain(tuple(columns), tuple(columns.values()))
        rule = table.raw.get("broken_rows", BROKEN_ROWS[0])
        return tuple(given), domain.constrained(table.raw.get("constraints", []), rule)
    except StudyInvalid as error:
        table.problems.append(f"{table.file}: {error.sentence}")
        return tuple(given), None


def check_workload(table: Table, names: tuple[str, ...], domain: Domain | None) -> None:
    """Check the workload without drawing a random subset of its sets, which needs NumPy, unless their sizes
    are in doubt."""
    before = len(table.problems)
    label, cliques = table.raw.get("label"), table.raw.get("cliques")
    if isinstance(label, str) and label not in names:
        table.problem(
            f'names the column "{label}", which the domain does not have{nearest(label, names)}', "label"
        )
    elif "label" in table and not isinstance(label, str):
        table.problem(f"must be the name of a column, got {label!r}", "label")
    if isinstance(cliques, list):
        for name in dict.fromkeys(
            name
            for clique in cliques
            if isinstance(clique, list)
            for name in clique
            if isinstance(name, str) and name not in names
        ):
            table.problem(
                f'names the column "{name}", which the domain does not have{nearest(name, names)}', "cliques"
            )
    elif "degree" in table:
        degree = table.integer("degree", low=1, high=len(names))
        count = table.integer("count", 1, low=1)
        table.integer("seed", 0, low=0)
        joined = degree + ("label" in table)
        largest = math.prod(sorted(domain.sizes.values())[-joined:]) if domain is not None else MAX_CELLS
        sets = count if "count" in table else math.comb(len(names), degree) * 2**joined
        if sets <= MAX_CANDIDATES and largest <= MAX_CELLS:
            return
    if len(table.problems) > before or domain is None:
        return
    try:
        workload = Workload.from_spec(
            {key: table.raw[key] for key in WorkloadKeys.options() if key in table}, domain
        )
    except StudyInvalid as error:
        table.problems.append(f"{table.file}: {error.sentence}")
        return
    for clique in workload.cliques:
        if (cells := domain.cells(clique)) > MAX_CELLS:
            table.problem(
                f"holds the clique {', '.join(clique)} of {cells:,} cells; more than {MAX_CELLS:,} cannot be shared: "
                "use fewer bins or a smaller clique"
            )
            return


def has_workload(tree: Mapping[str, Any]) -> bool:
    """Whether the study's algorithm takes a table of marginals; one that is unknown is told elsewhere."""
    head = tree.get("study")
    name = head.get("algorithm") if isinstance(head, dict) else None
    algorithm = ALGORITHMS.get(name) if isinstance(name, str) else None
    return algorithm is None or algorithm.workload


def _read_json(table: Table, file: Path) -> object:
    def no_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
        repeated = [key for key, times in Counter(key for key, _ in pairs).items() if times > 1]
        if repeated:
            raise ValueError(f'"{repeated[0]}" stands there twice')
        return dict(pairs)

    try:
        return cast(object, json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=no_repeats))
    except OSError as error:
        table.problem(f"names {file}, which cannot be read ({reason(error)})", "file")
    except json.JSONDecodeError as error:
        table.problem(
            f"names {file}, which is not JSON: {error.msg} at line {error.lineno}, column {error.colno}",
            "file",
        )
    except UnicodeDecodeError:
        table.problem(f"names {file}, which is not UTF-8", "file")
    except ValueError as error:
        table.problem(f"names {file}: {error}", "file")
    except RecursionError:
        table.problem(f"names {file}, which is nested too deeply", "file")
    return None
