"""A finished run, opened for more rows or more marginals: its facts, domain and model. No further budget is spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import ProtocolAborted, StudyInvalid, UsageError
from runner.results.outdir import RUN, finished
from synth.domain import Domain

if TYPE_CHECKING:
    from synth.mrf import Model

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
    try:
        domain = Domain.from_spec({"columns": [_spec(column) for column in facts["columns"]]})
    except (KeyError, TypeError, AttributeError, StudyInvalid):
        raise UsageError(
            f"{directory / RUN} does not state the study's columns; it is damaged or of another version."
        ) from None
    from synth.mrf import Model

    try:
        model = Model.load(directory / MODEL)
    except FileNotFoundError:
        raise UsageError(
            f"{directory} holds no {MODEL}; name the --out directory of a finished run."
        ) from None
    except (ProtocolAborted, ValueError, KeyError, OSError):
        raise UsageError(
            f"{directory / MODEL} is damaged or of another version; it must be as the run wrote it."
        ) from None
    if dict(model.sizes) != dict(domain.sizes):
        raise UsageError(
            f"{directory / MODEL} has other columns than {RUN} beside it; the files must be of one run."
        )
    return FinishedRun(facts, domain, model)


def _spec(column: Mapping[str, Any]) -> dict[str, Any]:
    """A column's table; run.json states the size of every column, which only integer codes declare."""
    return {key: value for key, value in column.items() if key != "size" or column.get("kind") == "codes"}
