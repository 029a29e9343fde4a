"""Fit and sample on one table, as other libraries have it: for experiments, teaching, and the custodian of a
whole table.

The backend is `ideal`: this process sees every row, and no cryptography is at work. What comes out, rows and
model, has the study's differential privacy all the same; the budget is charged to this user's ledger.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_protocols.errors import StudyInvalid, UsageError
from runner.api.metadata import columns_of
from runner.api.run import Run
from runner.api.running import run_study
from runner.api.saved import load, save
from runner.study.declared.table import nearest
from runner.study.in_code import of
from runner.study.read import SECTIONS

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from runner.study import Study

PARTY = "holder"
"""The only party's name."""
NOTE = (
    "backend ideal: this process sees every row and protects nothing while it computes; only what it releases is "
    "differentially private"
)


class Synthesizer:
    """One table in, any number of synthetic rows out.

        synthesizer = Synthesizer(columns={"age": {"kind": "integer", "low": 0, "high": 99, "bins": 20}, "sex": 2}, epsilon=1.0)
        synthesizer.fit(frame).sample(1000)

    columns: of each column its size or its table, in the study file's words: public, never taken from the
    rows. workload, tables: as `Study.of`. name: of the study, and of the data in the ledger. Raises
    `StudyInvalid` for settings that make no study.

    Parameters are kept as they were given and hold no data, as scikit-learn expects of an estimator
    (`get_params`, `set_params`, its clones); what `fit` leaves has been released.
    """

    def __init__(
        self,
        columns: Mapping[str, Any],
        *,
        epsilon: float,
        delta: float = 1e-9,
        algorithm: str | None = None,
        adjacency: str = "add-remove",
        workload: Mapping[str, Any] | None = None,
        name: str = "one table",
        **tables: Mapping[str, Any],
    ) -> None:
        self._params: dict[str, Any] = {
            "columns": columns,
            "epsilon": epsilon,
            "delta": delta,
            "algorithm": algorithm,
            "adjacency": adjacency,
            "workload": workload,
            "name": name,
            **tables,
        }
        self.study: Study = _study(self._params)
        self._run: Run | None = None

    @classmethod
    def from_metadata(
        cls, metadata: Any, limits: Mapping[str, Mapping[str, Any] | int] | None = None, **params: Any
    ) -> Synthesizer:
        """For a table that SDV's metadata describe: their object of one table, or its dict.

        limits: of each column what metadata do not say: `low` and `high` of numbers, dates and times,
        `values` of categories: public, in the study file's words, and before what metadata say. Identifiers
        and personal fields (sdtypes "id", "email", ..) are left out unless limits have them. params: as of
        the class. Raises `UsageError`, `StudyInvalid`.
        """
        return cls(columns_of(metadata, limits or {}), **params)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, as they were given; deep: besides, those of tables, as aim__rounds."""
        params = dict(self._params)
        if deep:
            params |= {
                f"{table}__{key}": value
                for table, given in self._params.items()
                if table not in _OWN and isinstance(given, Mapping)
                for key, value in given.items()
            }
        return params

    def set_params(self, **params: Any) -> Synthesizer:
        """Change parameters, also one of a table (aim__rounds=5), for the next `fit`; returns itself.

        Raises `StudyInvalid`, and then changes nothing.
        """
        changed = dict(self._params)
        for name, value in params.items():
            table, nested, key = name.partition("__")
            before = changed.get(table) or {}
            if nested and not isinstance(before, Mapping):
                raise StudyInvalid(
                    f"{table} is no table of the study, so that it has no parameter {name!r:.60}."
                )
            changed[table] = {**before, key: value} if nested else value
        self.study = _study(changed)
        self._params = changed
        return self

    def fit(
        self,
        frame: pd.DataFrame,
        y: None = None,
        *,
        ledger: Mapping[str, Any] | None = None,
        out: str | os.PathLike[str] | None = None,
    ) -> Synthesizer:
        """Run the algorithm on the frame's rows; returns itself. Each call spends epsilon anew.

        y: for scikit-learn's pipelines, and None: a label is a column of the frame. ledger: the keys of a
        private file's [ledger], such as `dataset` and a cap. out: where the run's files go (default: a
        temporary directory that lives as long as this object or its run). Raises `UsageError`, `DataRefused`,
        `BudgetRefused`.
        """
        if y is not None:
            raise UsageError(
                "A synthesizer is fitted to one table; put the label into the frame as a column."
            )
        holder = None
        if out is None:
            holder = tempfile.TemporaryDirectory(prefix="cosynth-run-")
        run = run_study(
            self.study,
            {PARTY: frame},
            Path(holder.name) / "out" if out is None and holder is not None else Path(out or "."),
            ledger=None if ledger is None else {PARTY: ledger},
        )
        self._run = Run(run.directory, run.summary, holder)
        return self

    def sample(
        self, rows: int, where: Mapping[str, Any] | None = None, *, seed: int | None = None
    ) -> pd.DataFrame:
        """As `Run.sample`, of the run that `fit` has made."""
        return self.run.sample(rows, where, seed=seed)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write parameters and the released files of the run into one file, a zip archive; its path.

        Nothing in it is private, and nothing of it is run when it is opened. Raises `UsageError`: not fitted,
        path taken or not writable.
        """
        return save(Path(path), self._params, self.run)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Synthesizer:
        """What `save` has written, fitted: no budget is spent. Raises `UsageError` for another or a damaged
        file."""
        params, run = load(Path(path))
        try:
            synthesizer = cls(**params)
        except (TypeError, StudyInvalid):
            raise UsageError(f"{path} holds settings that this version does not know; fit anew.") from None
        synthesizer._run = run
        return synthesizer

    @property
    def run(self) -> Run:
        """The run that `fit` has made. Raises `UsageError` before."""
        if self._run is None:
            raise UsageError("The synthesizer has not seen a table; call fit first.")
        return self._run

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """The fitted table's columns, as scikit-learn calls them: an object array. `AttributeError` before
        `fit`."""
        if self._run is None:
            raise AttributeError("The synthesizer has no feature names before fit.")
        return np.array([column["name"] for column in self._run.summary["columns"]], dtype=object)

    @property
    def n_features_in_(self) -> int:
        """How many they are. Raises `AttributeError` before `fit`."""
        return len(self.feature_names_in_)

    def __sklearn_is_fitted__(self) -> bool:
        return self._run is not None

    def __sklearn_tags__(self) -> Any:
        """Asked by scikit-learn alone, which is then installed."""
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(categorical=True, string=True, allow_nan=True),
            non_deterministic=True,
        )

    def __repr__(self) -> str:
        privacy = self.study.privacy
        state = "not fitted" if self._run is None else f"{self._run.summary['rows']:,} rows"
        return (
            f"Synthesizer({self.study.algorithm}, epsilon {float(privacy.epsilon):g}, delta {float(privacy.delta):g}, {state}; "
            f"{NOTE})"
        )


_OWN = frozenset({"columns", "epsilon", "delta", "algorithm", "adjacency", "workload", "name"})
"""Parameters that are no tables of the study."""


def _study(params: Mapping[str, Any]) -> Study:
    """Raises `StudyInvalid`."""
    if not isinstance(params["columns"], Mapping):
        raise StudyInvalid(
            f"The columns are a mapping of every column's name to its size or its table, got an object of type "
            f"{type(params['columns']).__name__}; a table's rows are given to fit."
        )
    for name, value in params.items():
        if (
            name not in (*_OWN, *SECTIONS)
            and (close := nearest(name, _OWN))
            and not isinstance(value, Mapping)
        ):
            raise StudyInvalid(
                f"There is no parameter {name!r:.60}{close}; there are {', '.join(sorted(_OWN))}."
            )
    return of(
        params["name"],
        params["columns"],
        [PARTY],
        epsilon=params["epsilon"],
        delta=params["delta"],
        algorithm=params["algorithm"],
        backend="ideal",
        partition="horizontal",
        adjacency=params["adjacency"],
        workload=params["workload"],
        tables={name: table for name, table in params.items() if name not in _OWN},
    )
