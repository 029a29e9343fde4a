"""A finished run as its public files tell it: run.json, measurements.json, model.npz, synthetic.csv.

Reading is strict about what the report needs and blind to everything else, so that a newer run still renders.
Every value here has been released or was public from the start; the custodians' own files are never opened. A
file that is missing or damaged is a `UsageError` that names it: the cure is to name the directory of a
finished run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_protocols.errors import CosynthError, UsageError
from mpc_protocols.functionality import Level
from parties.data.files.arrow import entries, present
from parties.data.libraries import csv, pa
from runner.report.words.prior_text import prior_text
from runner.results.finished_run import domain_of
from runner.results.outdir import finished, table_of
from synth.domain import Column, Domain
from synth.mrf import Model
from synth.prior import Known
from synth.synthesis import Measured

if TYPE_CHECKING:
    from numpy.typing import NDArray


Clique = tuple[str, ...]


@dataclass(frozen=True)
class Release:
    """One entry of the ledger of events; `detail` holds the public facts beside what and rho."""

    what: str
    rho: float
    detail: Mapping[str, Any]


@dataclass(frozen=True)
class Moment:
    """When something happened at the leader, in seconds, and in which phase."""

    t: float
    phase: str


@dataclass(frozen=True)
class Run:
    """Everything the report is made from. `facts` is run.json; codes: int32 (rows, columns) of synthetic.csv,
    recoded. inherited: marginals that it has of what it began from."""

    facts: Mapping[str, Any]
    domain: Domain
    noisy_total: float
    measurements: tuple[Measured, ...]
    events: tuple[Release, ...]
    moments: tuple[Moment, ...]
    selected: tuple[Clique, ...]
    resolutions: tuple[Mapping[str, int], ...]
    codes: NDArray[np.int32]
    model: Model
    inherited: tuple[Known, ...] = ()


def load(directory: Path) -> Run:
    """Read a finished run. Raises `UsageError` naming the file that is missing or does not hold what it
    should."""
    facts = _read(directory, "run.json", lambda path: _facts(path.read_text(encoding="utf-8")))
    domain = _read(directory, "run.json", lambda _: domain_of(facts))
    events = _read(directory, "run.json", lambda _: tuple(map(_release, facts["privacy"]["events"])))
    selected = _read(
        directory, "run.json", lambda _: tuple(_clique(names, domain) for names in facts["selected"])
    )
    resolutions = _read(directory, "run.json", lambda _: _resolutions(facts, selected))
    total, measurements = _read(directory, "measurements.json", lambda path: _measurements(path, domain))
    moments = _read(directory, "run.json", lambda _: _moments(facts.get("timeline", {})))
    table = _read(directory, "run.json", lambda _: table_of(facts))
    codes = _read(directory, table, lambda path: _rows(path, domain))
    inherited = _read(
        directory, "measurements.json", lambda path: inherited_in(path.read_text("utf-8"), domain)
    )
    model = _read(directory, "model.npz", lambda path: _model(path, domain))
    return Run(
        facts, domain, total, measurements, events, moments, selected, resolutions, codes, model, inherited
    )


def facts_of(directory: Path) -> Mapping[str, Any]:
    """run.json, as far as every report needs it. Raises `UsageError` as `load`."""
    facts: Mapping[str, Any] = _read(
        directory, "run.json", lambda path: _facts(path.read_text(encoding="utf-8"))
    )
    return facts


def measurements_of(directory: Path, domain: Domain) -> tuple[Measured, ...]:
    """What measurements.json holds, in order. Raises `UsageError` as `load`."""
    found: tuple[float, tuple[Measured, ...]] = _read(
        directory, "measurements.json", lambda path: _measurements(path, domain)
    )
    return found[1]


def _read(directory: Path, name: str, parse: Any) -> Any:
    try:
        return parse(directory / name)
    except (FileNotFoundError, NotADirectoryError):
        finished(directory)  # says more of a file that is taken for its directory
        raise UsageError(
            f"{directory} does not hold a finished run: {name} is missing; name the directory that was given "
            "to run --out."
        ) from None
    except (
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        OverflowError,
        ZeroDivisionError,
        EOFError,
        RecursionError,
        CosynthError,
    ):
        raise UsageError(
            f"{directory / name} is damaged or belongs to another version; a report needs the files of one "
            "finished run as they were written."
        ) from None


def _object(text: str) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


_TEXTS = (
    "study",
    "algorithm",
    "backend",
    "partition",
    "deployment",
    "version",
    "started",
    "digest",
    "session",
)
_PRIVACY = ("epsilon", "delta", "rho", "beta")


def _facts(text: str) -> dict[str, Any]:
    """run.json with every entry that the page names, of the right kind."""
    facts = _object(text)
    privacy, phases, parties = facts["privacy"], facts["phases"], facts["parties"]
    texts = [
        *(facts[key] for key in _TEXTS),
        privacy["adjacency"],
        *(entry["name"] for entry in [*phases, *parties]),
        *(party["role"] for party in parties),
    ]
    numbers = [
        facts["rows"],
        *(facts["soundness"][key] for key in ("proofs", "lg_chance") if "soundness" in facts),
        facts["wall_s"],
        *(privacy[key] for key in _PRIVACY),
        privacy.get("delta_for_zcdp", 0.0),
        privacy.get("calibrated_epsilon", 0.0),
        *(phase[key] for phase in phases for key in ("wall_s", "rounds", "bytes_sent")),
        *(party[key] for party in parties for key in ("bytes_sent", "bytes_received", "rounds")),
    ]
    if not all(isinstance(entry, str) for entry in texts) or not all(
        math.isfinite(entry) for entry in numbers
    ):
        raise ValueError("an entry of another kind")
    if not (privacy["rho"] > 0 and privacy["epsilon"] > 0) or "unit" not in privacy:
        raise ValueError("privacy")
    prior_text(facts)  # raises for what it cannot tell
    return facts


def _clique(names: Sequence[str], domain: Domain) -> Clique:
    if not all(name in domain.names for name in names):
        raise ValueError("a column outside the domain")
    return tuple(names)


def _resolutions(facts: Mapping[str, Any], selected: Sequence[Clique]) -> tuple[Mapping[str, int], ...]:
    """Of each selection the bins of columns that it asked for over bins; a run without bins has no such
    entry."""
    found = facts.get("resolutions", [{}] * len(selected))
    if len(found) != len(selected) or not all(
        type(size) is int and name in clique
        for bins, clique in zip(found, selected, strict=True)
        for name, size in bins.items()
    ):
        raise ValueError("resolutions")
    return tuple(dict(bins) for bins in found)


def _release(form: Mapping[str, Any]) -> Release:
    detail = {key: value for key, value in form.items() if key not in ("what", "rho")}
    return Release(str(form["what"]), float(form["rho"]), detail)


def _measurements(path: Path, domain: Domain) -> tuple[float, tuple[Measured, ...]]:
    return measurements_in(path.read_text(encoding="utf-8"), domain)


def measurements_in(text: str, domain: Domain) -> tuple[float, tuple[Measured, ...]]:
    """The noisy total and the measurements of a measurements.json's text. Raises many kinds of errors for
    anything else."""
    form = _object(text)
    found = []
    levels = {name: _level(name, level, domain) for name, level in form.get("levels", {}).items()}
    for entry in form["measurements"]:
        clique = _clique(entry["clique"], domain)
        values = np.asarray(entry["values"], dtype=np.int64)
        names = tuple(entry.get("resolution", clique))
        coarse = tuple(levels[name] for name in names if name not in clique)
        rows = None if entry.get("rows") is None else int(entry["rows"])
        measured = Measured(names, Fraction(entry["sigma2"]), int(entry["round"]), values, coarse, rows)
        if measured.columns != clique or len(values) != math.prod(measured.shape(domain.sizes)):
            raise ValueError("number of cells")
        found.append(measured)
    return float(form["noisy_total"]), tuple(found)


def inherited_in(text: str, domain: Domain) -> tuple[Known, ...]:
    """What a measurements.json says that its run had of what it began from. Raises as `measurements_in`."""
    entries = _object(text).get("inherited", [])
    found = tuple(Known.of(entry["clique"], entry["cells"], entry["error"]) for entry in entries)
    if not all(name in domain for known in found for name in known.columns):
        raise ValueError("an inherited marginal of other columns")
    return found


def _level(name: str, form: Mapping[str, Any], domain: Domain) -> Level:
    column, bins = form["column"], tuple(map(int, form["bins"]))
    if name in domain or len(bins) != domain.sizes[column]:
        raise ValueError("bins")
    return Level(name, column, bins)


def _moments(timeline: Mapping[str, Sequence[float]]) -> tuple[Moment, ...]:
    """A run of an older version has none."""
    found = tuple(Moment(float(t), str(phase)) for phase, times in timeline.items() for t in times)
    if not all(math.isfinite(moment.t) for moment in found):
        raise ValueError("a time")
    return found


def _model(path: Path, domain: Domain) -> Model:
    if not path.exists():
        raise FileNotFoundError(path)
    model: Model = Model.load(path)
    if dict(model.sizes) != domain.sizes:
        raise ValueError("a model of other columns")
    return model


def _rows(path: Path, domain: Domain) -> NDArray[np.int32]:
    """The synthetic table as codes, (rows, columns) in domain order: the inverse of decoding."""

    def type_of(column: Column) -> pa.DataType:
        if column.textual or column.dated:
            return pa.dictionary(pa.int32(), pa.string())
        return pa.float64() if column.binned else pa.int64()

    types = {name: type_of(column) for name, column in zip(domain.names, domain.columns, strict=True)}
    with path.open("rb") as file:
        table = csv.read_csv(
            file,
            convert_options=csv.ConvertOptions(
                column_types=types,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )
    codes = np.empty((table.num_rows, len(domain)), dtype=np.int32, order="F")
    for j, (name, column) in enumerate(zip(domain.names, domain.columns, strict=True)):
        codes[:, j] = _codes(table.column(name), column)
    return codes


def _codes(array: Any, column: Column) -> NDArray[np.int64]:
    """Codes 0..size-1 of one column of synthetic.csv (a pyarrow ChunkedArray); an empty field is the missing
    code."""
    if array.null_count and not column.missing:
        raise ValueError("an empty field where the study declares none")
    empty = column.size - 1
    if column.textual or column.dated:
        array = array.unify_dictionaries()
        texts = array.chunk(0).dictionary.to_pylist() if array.num_chunks else []
        place = np.array([_place(text, column) for text in texts] + [empty])
        parts = [
            np.where(present(chunk.indices), entries(chunk.indices, np.int32), len(texts))
            for chunk in array.chunks
        ]
        return _joined([place[part] for part in parts])
    if column.binned:
        return _joined([_binned(chunk, column, empty) for chunk in array.chunks])
    codes = _joined([entries(chunk, np.int64) for chunk in array.chunks])
    if len(codes) and not 0 <= codes.min() <= codes.max() < column.size:
        raise ValueError("a code outside the domain")
    return codes


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts]).astype(np.int64)


def _binned(chunk: Any, column: Column, empty: int) -> NDArray[np.int64]:
    numbers = entries(chunk, np.float64)
    codes = np.searchsorted(np.asarray(column.edges()[1:-1]), numbers, side="right")
    if column.zero:
        codes = np.where(numbers == 0, column.zero_code, codes + (codes >= column.zero_code))
    return np.where(present(chunk), codes, empty)


def _place(text: str, column: Column) -> int:
    code = column.read(text)
    if code < 0:
        raise ValueError("a value outside the domain")
    return code
