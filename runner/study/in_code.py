"""Studies that no file holds: from a tree as TOML has it, from its text, or from a few words in Python.

All of them are read by the reader of study files, which names every problem; where a sentence would name the
file, it says `IN_CODE`. Paths start in a directory that the caller names and are absolute afterwards, so that
the study can be written down anywhere (`runner.study.toml_text`) and means the same.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.options import Options
from mpc_protocols.process.foreign_toml import parse_toml
from runner.study.declared.keys import ContributorKeys, PriorKeys, WaveKeys
from runner.study.model import Study
from runner.study.read import read_tree
from runner.study.sections.parties import placed
from runner.study.toml_text import to_toml
from synth.algorithm import ALGORITHMS, proposed
from synth.domain.keys import DomainKeys

IN_CODE = Path("The study")
"""What stands for the file's name in sentences."""
FIRST_PORT = 7101


def from_dict(tree: Mapping[str, Any], base: Path | None = None) -> Study:
    """The study of a tree with the study file's tables and keys. base: where relative paths start (default:
    here).

    Raises `StudyInvalid` with the first problem.
    """
    try:
        plain = tomllib.loads(to_toml(tree))
    except TypeError as error:
        raise StudyInvalid(f"{IN_CODE}: a value has no form in a study file ({_sentence(error)}).") from None
    study, problems = read_tree(IN_CODE, _placed(plain, Path.cwd() if base is None else base))
    if study is None:
        raise StudyInvalid(problems[0])
    return study


def from_toml(text: str, base: Path | None = None) -> Study:
    """The study of a study file's text. Raises `StudyInvalid`, also for a text that is not TOML."""
    try:
        tree = parse_toml(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise StudyInvalid(f"{IN_CODE}: its text is not TOML ({_sentence(error)}).") from None
    return from_dict(tree, base)


def of(
    name: str,
    columns: Mapping[str, Any],
    parties: Iterable[str | Mapping[str, Any]],
    *,
    epsilon: float,
    delta: float,
    algorithm: str | None,
    backend: str,
    partition: str,
    adjacency: str,
    workload: Mapping[str, Any] | None,
    tables: Mapping[str, Any],
) -> Study:
    """See `Study.of`."""
    if isinstance(parties, str):
        raise StudyInvalid(
            f"{IN_CODE}: parties are a list of names, such as ['north', 'south'], got the text {parties!r:.40}."
        )
    if algorithm is None:
        configured = [table for table in tables if table in ALGORITHMS.names]
        algorithm = configured[0] if len(configured) == 1 else proposed().name
    if (
        workload is None
        and "table" not in tables
        and ((known := ALGORITHMS.get(algorithm)) is None or known.workload)
    ):
        workload = {"degree": min(2, len(columns))}
    tree: dict[str, Any] = {
        "study": {"name": name, "algorithm": algorithm, "backend": backend, "partition": partition},
        "privacy": {"epsilon": epsilon, "delta": delta, "adjacency": adjacency},
        **({} if workload is None else {"workload": workload}),
        "domain": {"columns": columns},
        "party": [
            {"name": party, "address": f"127.0.0.1:{FIRST_PORT + number}"}
            if isinstance(party, str)
            else party
            for number, party in enumerate(parties)
        ],
    }
    for key, table in tables.items():
        stated = tree.get(key)
        if isinstance(stated, Mapping) and isinstance(table, Mapping):
            if twice := [entry for entry in table if entry in stated]:
                raise StudyInvalid(
                    f"{IN_CODE}: [{key}] {twice[0]} is a parameter of its own; leave it out of {key}."
                )
            tree[key] = {**stated, **table}
        else:
            tree[key] = table
    return from_dict(tree)


def _placed(tree: dict[str, Any], base: Path) -> dict[str, Any]:
    """With absolute paths. What is not as it should be stays: the reader says so."""
    tables: dict[str, type[Options]] = {
        "domain": DomainKeys,
        "contributors": ContributorKeys,
        "prior": PriorKeys,
    }
    tree = tree | {name: _with_paths(tree[name], keys, base) for name, keys in tables.items() if name in tree}
    if isinstance(tree.get("contributors"), dict) and "after" in tree["contributors"]:
        waves = tree["contributors"]["after"]
        after = (
            [_with_paths(wave, WaveKeys, base) for wave in waves]
            if isinstance(waves, list)
            else _with_paths(waves, WaveKeys, base)
        )
        tree["contributors"]["after"] = after
    if isinstance(tree.get("party"), list):
        tree["party"] = [_with_data(party, base) for party in tree["party"]]
    return tree


def _with_paths(table: Any, keys: type[Options], base: Path) -> Any:
    if not isinstance(table, dict):
        return table
    paths = {key for key, option in keys.options().items() if option.path}
    return {
        key: str(base / value) if key in paths and isinstance(value, str) else value
        for key, value in table.items()
    }


def _with_data(party: Any, base: Path) -> Any:
    data = party.get("data") if isinstance(party, dict) else None
    if isinstance(party, dict) and isinstance(data, str) and "://" not in data:
        return {**party, "data": str(base / os.path.expanduser(data))}
    if isinstance(party, dict) and isinstance(data, dict) and isinstance(data.get("url"), str):
        return {**party, "data": {**data, "url": placed(data["url"], base)}}
    if isinstance(party, dict) and isinstance(data, dict):
        tables = {name: _with_data({"data": place}, base)["data"] for name, place in data.items()}
        return {**party, "data": tables}
    return party


def _sentence(error: Exception) -> str:
    return str(error).rstrip(".")
