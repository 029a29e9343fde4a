"""Fit and sample on one table, as other libraries have it: for experiments, teaching, and the custodian of a whole table.

The backend is `ideal`: this process sees every row, and no cryptography is at work. What comes out, rows and model, has the
study's differential privacy all the same; the budget is charged to this user's ledger.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import UsageError
from runner.api.run import Run
from runner.api.running import run_study

if TYPE_CHECKING:
    import pandas as pd

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

    columns: of each column its size or its table, in the study file's words: public, never taken from the rows. workload, tables:
    as `Study.of`. name: of the study, and of the data in the ledger. Raises `StudyInvalid` for settings that make no study.
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
        from runner.study.in_code import of

        self.study: Study = of(
            name,
            columns,
            [PARTY],
            epsilon=epsilon,
            delta=delta,
            algorithm=algorithm,
            backend="ideal",
            partition="horizontal",
            adjacency=adjacency,
            workload=workload,
            tables=tables,
        )
        self._run: Run | None = None

    def fit(
        self,
        frame: pd.DataFrame,
        *,
        ledger: Mapping[str, Any] | None = None,
        out: str | os.PathLike[str] | None = None,
    ) -> Synthesizer:
        """Run the algorithm on the frame's rows; returns itself. Each call spends epsilon anew.

        ledger: the keys of a private file's [ledger], such as `dataset` and a cap. out: where the run's files go (default: a
        temporary directory that lives as long as this object or its run). Raises `DataRefused`, `BudgetRefused`.
        """
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

    @property
    def run(self) -> Run:
        """The run that `fit` has made. Raises `UsageError` before."""
        if self._run is None:
            raise UsageError("The synthesizer has not seen a table; call fit first.")
        return self._run

    def __repr__(self) -> str:
        privacy = self.study.privacy
        state = "not fitted" if self._run is None else f"{self._run.summary['rows']:,} rows"
        return (
            f"Synthesizer({self.study.algorithm}, epsilon {float(privacy.epsilon):g}, delta {float(privacy.delta):g}, {state}; "
            f"{NOTE})"
        )
