"""The demo: the main job on a table that comes with Cosynth, no questions asked.

Each custodian gets a file of its own and a process of its own (`runner.starting.demo.tables`); from there on
everything is as in any run on one machine. Only a demo can compare the result with the rows that it was made
from, since only here somebody holds them all: the comparison is marked so in the report, and kept
(COMPARISON), so that a report that is built again has it too.

With `vertical` the columns are split instead: a counselling service and a register hold different answers of
overlapping women, and a third party without data computes with them. What the table is compared with is the
women that both hold.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mpc_protocols.errors import UsageError
from parties.data.libraries import pd
from runner.launch.launcher import launch
from runner.launch.ports import free_ports
from runner.party.options import Progress
from runner.report import render
from runner.results.outdir import RUN, claim, finished, state
from runner.results.warnings import tell, texts_of
from runner.starting.demo.tables import RATING, STUDIES, coded, prepare, real_rows
from runner.study import load
from synth.judgement.metrics import workload_error

COMPARISON = Path("data", "comparison.json")
"""Where, in the demo's directory, its comparison with the real rows is kept: {"session": of its run,
"comparison": {...}}."""


def compare(directory: Path, vertical: bool = False) -> dict[str, Any]:
    """What only a demo can say: the synthetic table in `directory` against the real rows, for the report's
    `comparison`."""
    study = load(directory / "data" / "study.toml")
    domain = study.domain
    real = coded(real_rows(vertical), domain)
    synthetic = coded(pd.read_csv(directory / "synthetic.csv", dtype={"children": str}), domain)
    rng = np.random.default_rng(0)
    shuffled = np.column_stack([rng.permutation(column) for column in real.T])
    cliques = study.workload.cliques
    affair, marriage = domain.names.index("affair"), domain.names.index("marriage")

    def share(codes: Any, rating: str) -> float:
        return float(codes[codes[:, marriage] == RATING.index(rating), affair].mean())

    return {
        "metrics": {
            "error of all pairs of columns": (
                workload_error(real, synthetic, domain, cliques),
                workload_error(real, shuffled, domain, cliques),
                "mean L1 distance between the real and the synthetic two-way marginals, from 0 (equal) to 2 (disjoint); "
                "beside it the error of a table with perfect single columns and no relation between them",
            ),
            **{
                f"women with an affair, marriage rated {rating}": (
                    share(synthetic, rating),
                    share(real, rating),
                    "share in the synthetic table; beside it that in the real one",
                )
                for rating in ("poor", "very good")
            },
        },
        "counts": {
            name: np.bincount(real[:, j], minlength=domain.sizes[name]).tolist()
            for j, name in enumerate(domain.names)
        },
    }


def demo(out: Path, vertical: bool = False, progress: Progress = "human") -> None:
    """Run the demo into `out` and say where its report is; an earlier demo there is replaced. Raises
    `CosynthError`."""
    if state(out) != "free" and not _is_ours(out):
        raise UsageError(f"--out {out} holds a run that is not the demo's; name another directory.")
    with claim(out, replace=True):
        study = prepare(out / "data", free_ports(3), vertical)
        # a demo's data is public: it has an account of its own, not one in the user's ledger
        os.environ.setdefault("COSYNTH_LEDGER", str((out / "data" / "ledger.db").resolve()))
    run = launch(study, out, replace=True, progress=progress)
    kept = {"session": run["session"], "comparison": compare(out, vertical)}
    (out / COMPARISON).write_text(json.dumps(kept) + "\n", encoding="utf-8")
    report = render(out, comparison=comparison_of(out))
    print(
        f"done: {run['rows']:,} synthetic rows in {out / 'synthetic.csv'}\n"
        f"the study that was run: {study}\nopen the report in a browser: {report.resolve().as_uri()}"
    )
    tell(texts_of(run))


def comparison_of(directory: Path) -> Mapping[str, Any] | None:
    """What the demo whose results are in `directory` has found out about them; None for any other run."""
    try:
        kept = json.loads((directory / COMPARISON).read_text(encoding="utf-8"))
        ours = kept["session"] == finished(directory)["session"]
        return kept["comparison"] if ours else None
    except (OSError, ValueError, KeyError, TypeError):  # none, or of somebody else's making
        return None


def _is_ours(out: Path) -> bool:
    """Whether the run in a directory, finished or not, is a demo's."""
    if (out / RUN).exists():
        return finished(out).get("study") in STUDIES.values()
    return (out / "data" / "study.toml").exists()
