"""[table.NAME]: tables of children, which belong to the people of [domain] (`docs/howto/linked.md`), and
`data` of several tables.

The study's domain is then that of a person's one row (`synth/linked/tables.py`); everything but data, files
and this page follows from it. Standard library only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mpc_protocols.errors import StudyInvalid
from parties.data.location import KINDS_OF_FILES
from parties.data.tallies.places import DaskCluster
from runner.study.declared.keys import RESERVED, ChildKeys
from runner.study.declared.table import Table, listed, nearest, value_text
from runner.study.declared.tables import Alignment, Privacy
from runner.study.model import DataLocation
from runner.study.sections.columns import read_domain
from synth.algorithm import ALGORITHMS, Algorithm
from synth.domain import Domain
from synth.linked.tables import MAX_CHILDREN, NAME, ChildTable, LinkedTables


def read_linked(root: Table, people: Domain | None) -> LinkedTables | None:
    """The linked tables of a study; None of one without, or where they are wrong, which the table is told.
    people: of [domain]."""
    given = root.raw.get("table")
    if not isinstance(given, dict) or not given:
        root.problem("table must hold tables of children: begin each with [table.NAME]")
        return None
    before = len(root.problems)
    tables = {
        str(name): Table(raw, root.file, f"[table.{name}]", ChildKeys, root.problems)
        for name, raw in given.items()
    }
    parents = {
        name: table.text("parent", expected="the name of the table of people")
        for name, table in tables.items()
    }
    keys = {
        name: table.text("key", expected="the column that names a row's person")
        for name, table in tables.items()
    }
    tops = [name for name in tables if parents[name] not in tables]
    first = next(iter(tops or tables))
    for name, table in tables.items():
        one = next(other for other in tables if parents[other] == parents[name] or other == name)
        if parents[name] not in tables and parents[name] != parents[first]:
            table.problem(
                f'= "{parents[name]}" is another one than the parent of {first}, "{parents[first]}": there is one table of '
                "people, whose columns are those of [domain]",
                "parent",
            )
        elif keys[name] != keys[one]:
            table.problem(f'= "{keys[name]}" is another one than the key of {one}, "{keys[one]}"', "key")
    _check_name(tables[first], parents[first], "parent")
    beneath: dict[str, list[ChildTable]] = {}
    for name in [*(name for name in tables if name not in tops), *tops]:
        child = _child(name, tables[name], tables, parents)
        if child is not None and child.name in beneath:
            own = tuple(beneath[child.name])
            child = replace(child, key=keys[own[0].name], children=own)
        if child is not None:
            beneath.setdefault(parents[name], []).append(child)
    if len(root.problems) > before or people is None:
        return None
    try:
        return LinkedTables(parents[first], keys[first], people, tuple(beneath[parents[first]]))
    except StudyInvalid as error:
        root.problems.append(f"{root.file}: [table.{first}]: {error.sentence}")
        return None


def _check_name(table: Table, name: str, key: str | None) -> None:
    if not NAME.fullmatch(name) or name.lower() in RESERVED:
        table.problem(
            "must be named by letters, digits and _, beginning with a letter, since files are named after it, and not "
            f"{', '.join(sorted(RESERVED))}, got {value_text(name)}",
            key,
        )


def _child(
    name: str, table: Table, tables: Mapping[str, Table], parents: Mapping[str, str]
) -> ChildTable | None:
    _check_name(table, name, None)
    parent = parents[name]
    if parent == name:
        table.problem(
            f'= "{parent}" is this table itself; name the table to whose rows these belong', "parent"
        )
    elif parents.get(parent) == name:
        table.problem(
            f'= "{parent}" belongs to rows of {name} itself: one of both must belong to people', "parent"
        )
    elif parent in tables and parents[parent] in tables:
        table.problem(
            f'= "{parent}" belongs to rows of {parents[parent]}, which are no people: tables go as far as the rows of a '
            "person's rows",
            "parent",
        )
    elif parent not in tables and parent.casefold() in {other.casefold() for other in tables}:
        table.problem(
            f'= "{parent}" is called like a table of children; names must differ by more than case', "parent"
        )
    most = table.integer("max_rows", low=1, high=MAX_CHILDREN)
    order = table.text("order", expected="the name of a column of this table") if "order" in table else None
    if "columns" not in table:
        table.problem(f"has no columns: begin them with [table.{name}.columns]")
        return None
    before = len(table.problems)
    inner = Table(
        {"columns": table.raw["columns"]}, table.file, f"[table.{name}]", ("columns",), table.problems
    )
    domain = read_domain(inner, Path(), f"[table.{name}.columns]")[1]
    if domain is None or len(table.problems) > before:
        return None
    if order is not None and order in domain and not domain[order].ordered:
        table.problem(
            f'= "{order}" is a {domain[order].kind} column, whose values have no order; name one of kind integer, numeric, date, '
            "datetime or ordinal, or one that is not among the columns",
            "order",
        )
    return ChildTable(name, most, order, domain)


def check_study(
    linked: LinkedTables,
    root: Table,
    algorithm: Algorithm[Any, Any] | None,
    privacy: Privacy,
    alignment: Alignment | None,
) -> None:
    """What of the rest of the study does not stand together with linked tables."""
    if algorithm is not None and not (algorithm.workload and algorithm.constrained):
        others = listed(one.name for one in ALGORITHMS if one.workload and one.constrained)
        root.problem(
            f'[table] has no meaning with algorithm = "{algorithm.name}": children are drawn from a model of '
            f"marginals that knows which "
            f"rows cannot be; use {others}"
        )
    if "contributors" in root:
        root.problem(
            "[table] has no meaning with [contributors], whose bundles are of one table; remove one of them"
        )
    unit = privacy.unit
    if unit.id is not None and (unit.id != linked.key or unit.max_rows != 1):
        root.problem(
            f'[privacy] unit: linked tables have one row a person once they are unfolded; write "row", or '
            f'{{ id = "{linked.key}", '
            "max_rows = 1, max_custodians = ... }"
        )
    if alignment is not None and alignment.population == "union":
        root.problem(
            '[alignment] population = "union" has no meaning with [table]: who lacks a person cannot say it has no children; '
            'use population = "intersection"'
        )
    if alignment is not None and alignment.psu and alignment.id != (linked.key,):
        root.problem(f'[alignment] id must be "{linked.key}", the key of the linked tables')


def placed(linked: LinkedTables | None, data: DataLocation, where: str, whole: bool) -> DataLocation:
    """Where a custodian's linked tables are, by the study's names. whole: whether each custodian has all of
    them (horizontal).

    where: for sentences. Raises `StudyInvalid` for tables that the study does not have, or that it lacks.
    """
    if linked is None:
        tables = data.tables if data.cluster is None else data.cluster.tables
        if tables:
            raise StudyInvalid(
                f"{where}: data names several tables ({', '.join(tables)}), and the study has no [table.NAME]; "
                f"name one file."
            )
        return data
    if data.linked is not None:
        return data
    tables = data.tables
    if tables is None and data.path is not None and data.path.is_dir():
        tables = _in_folder(data.path, linked.names)
    if data.cluster is not None:
        return replace(data, cluster=_on_cluster(linked, data.cluster, where))
    if data.tallies is not None:
        return data
    if tables is None:
        tables = {linked.parent: data}
    _check_names(linked, tables, where)
    needed = linked.names if whole else (linked.parent,)
    if lacking := [name for name in needed if name not in tables]:
        also = "" if whole else " (a file of the keys of its people, at least)"
        raise StudyInvalid(
            f"{where}: data lacks the table {lacking[0]}{also}; write data = {{ "
            + ", ".join(f'{name} = "{name}.csv"' for name in linked.names)
            + " }."
        )
    if odd := [name for name, place in tables.items() if place.path is None and place.url is None]:
        raise StudyInvalid(
            f"{where}: data.{odd[0]} is neither a file nor a database's table, and linked tables need one."
        )
    for child in linked.children:
        if child.name not in tables and (own := [one.name for one in child.children if one.name in tables]):
            raise StudyInvalid(
                f"{where}: data names {own[0]} without {child.name}, to whose rows its rows belong; whoever has one table needs "
                f"the other."
            )
    pushed = {(place.push_down, place.url if place.push_down else None) for place in tables.values()}
    if len(pushed) > 1:
        raise StudyInvalid(
            f"{where}: linked tables are unfolded inside a database where all of them are in it: write push_down = true and the "
            "same url for each, or for none."
        )
    children = {name: place for name, place in tables.items() if name != linked.parent}
    return replace(tables[linked.parent], children=children, linked=linked)


def _check_names(linked: LinkedTables, tables: Collection[str], where: str) -> None:
    """Raise `StudyInvalid` for a table that the study does not have."""
    if foreign := [name for name in tables if name not in linked.names]:
        raise StudyInvalid(
            f'{where}: data names "{foreign[0]}", which is no table of the '
            f"study{nearest(foreign[0], linked.names)}; its tables are "
            f"{', '.join(linked.names)}."
        )


def _on_cluster(linked: LinkedTables, cluster: DaskCluster, where: str) -> DaskCluster:
    """The cluster that unfolds them. Raises `StudyInvalid`."""
    _check_names(linked, cluster.tables, where)
    if lacking := [name for name in linked.names if name not in cluster.tables]:
        raise StudyInvalid(
            f"{where}: data.url lacks the table {lacking[0]}; write url = {{ "
            + ", ".join(f'{name} = "/mnt/{name}/*.parquet"' for name in linked.names)
            + " }."
        )
    if cluster.by_unit:
        raise StudyInvalid(
            f"{where}: data.partitioned_by has no meaning where Dask unfolds linked tables, which it sorts by persons itself; "
            "remove it."
        )
    return replace(cluster, files=cluster.tables[linked.parent])


def _in_folder(folder: Path, names: Sequence[str]) -> dict[str, DataLocation]:
    """The tables that lie in a folder, each in a file of its name."""
    found = {
        name: DataLocation(path=file)
        for name in names
        for suffix in KINDS_OF_FILES
        if (file := folder / f"{name}{suffix}").exists()
    }
    return found


def expanded(linked: LinkedTables, parties: object) -> object:
    """The parties as the study states them, with all columns of a table that `columns` names by its name."""
    if not isinstance(parties, list):
        return parties
    return [
        {**entry, "columns": list(linked.expanded(tuple(entry["columns"])))}
        if isinstance(entry, dict)
        and isinstance(entry.get("columns"), list)
        and all(isinstance(name, str) for name in entry["columns"])
        else entry
        for entry in parties
    ]


def tree_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """[table] as a study file has it, of `LinkedTables.to_spec`. Raises KeyError or TypeError for anything
    else."""
    return {
        one["name"]: {
            "parent": one.get("parent", spec["parent"]),
            "key": one.get("key", spec["key"]),
            "max_rows": one["max_rows"],
            **({"order": one["order"]} if "order" in one else {}),
            "columns": {
                column["name"]: {key: value for key, value in column.items() if key != "name"}
                for column in one["columns"]
            },
        }
        for one in spec["tables"]
    }
