"""A finished run, opened for more rows or more marginals: its facts, domain and model. No further budget is
spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import ProtocolAborted, StudyInvalid, UsageError
from runner.results.outdir import RUN, finished
from runner.study.read import read_tree
from runner.study.sections.linked import tree_of
from synth.domain import Domain
from synth.domain.kinds import KINDS
from synth.mrf import Model

if TYPE_CHECKING:
    from runner.study import Study

MODEL = "model.npz"


@dataclass(frozen=True)
class FinishedRun:
    """facts: run.json. All of it is released or public."""

    facts: Mapping[str, Any]
    domain: Domain
    model: Model


def open_run(directory: Path) -> FinishedRun:
    """Read run.json and model.npz. Raises `UsageError` naming the file that is missing or damaged."""
    facts = finished(directory)
    if "model" in facts:
        raise UsageError(
            f"{directory} holds the run of a trained model, which makes no table; there are no rows to draw or count."
        )
    try:
        domain = domain_of(facts)
    except (KeyError, TypeError, AttributeError, StudyInvalid):
        raise UsageError(
            f"{directory / RUN} does not state the study's columns; it is damaged or of another version."
        ) from None
    try:
        model = Model.load(directory / MODEL)
    except FileNotFoundError:
        raise UsageError(f"{directory} holds no {MODEL}; name the directory of a run's results.") from None
    except (ProtocolAborted, ValueError, KeyError, OSError):
        raise UsageError(
            f"{directory / MODEL} is damaged or of another version; it must be as the run wrote it."
        ) from None
    if dict(model.sizes) != dict(domain.sizes):
        raise UsageError(
            f"{directory / MODEL} has other columns than {RUN} beside it; the files must be of one run."
        )
    return FinishedRun(facts, domain, model)


def agreed_study(facts: Mapping[str, Any], file: Path) -> Study:
    """The study that the parties agreed on, as run.json has it; without what files beside it held
    ([contributors], [prior]).

    Raises `UsageError` for a run of another version, of a plug-in that is not installed here, or a run.json
    that was altered.
    """
    plug_ins: object = None
    try:
        tree = dict(facts["agreed"])
        columns = {
            each["name"]: {key: value for key, value in each.items() if key != "name"}
            for each in tree["domain"]["columns"]
        }
        rest = {key: value for key, value in tree["domain"].items() if key not in ("file", "columns")}
        tree["domain"] = {"columns": columns, **rest}
        tree.pop("contributors", None)
        tree.pop("prior", None)
        if "table" in tree:
            tree["table"] = tree_of(tree["table"])
        plug_ins = tree.pop("plug_ins", None)
        found = read_tree(file, tree)[0]
    except (KeyError, TypeError, AttributeError, ValueError):
        found = None
    if found is None and isinstance(plug_ins, dict) and plug_ins:
        named = ", ".join(map(str, plug_ins.values()))
        raise UsageError(
            f"{file} is of a run with plug-ins ({named:.200}); install them here to read what it states."
        )
    if found is None:
        raise UsageError(f"{file} does not state the study; it is damaged or of another version.")
    return found


def columns_of(domain: Domain) -> list[dict[str, Any]]:
    """run.json's `columns`: each column's table, and the size of every column, which only integer codes
    declare."""
    specs = domain.to_spec()["columns"]
    assert isinstance(specs, list)
    return [{"size": column.size, **spec} for column, spec in zip(domain.columns, specs, strict=True)]


def constraints_of(domain: Domain) -> dict[str, Any]:
    """run.json's `constraints`, if there are any."""
    specs = domain.to_spec()
    return {"constraints": specs["constraints"]} if "constraints" in specs else {}


def domain_of(facts: Mapping[str, Any]) -> Domain:
    """The domain that run.json's `columns` and `constraints` state; keys of newer versions are ignored.

    Raises `StudyInvalid`, or KeyError, TypeError or AttributeError if they are something else.
    """
    specs = [
        {key: value for key, value in column.items() if key in {"name", "kind", *KINDS[column["kind"]].keys}}
        for column in facts["columns"]
    ]
    return Domain.from_spec({"columns": specs, "constraints": facts.get("constraints", [])})
