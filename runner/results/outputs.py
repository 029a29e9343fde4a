"""The files a finished run leaves at every party (`docs/reference/outputs.md`): written beside their final
place, then moved there.

`synthetic.csv`, `measurements.json`, `model.npz`, `run.json` and `report.html` appear together, after
everything has been written: a run that ends early leaves its events and its log, never half a table. All five
are functions of the release and of public facts; what only this party knows (clamped values, missing counts,
its own row count) stays in its private log.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_protocols.process.later import Later
from runner.results import outdir
from runner.results.measurements import measurements_json
from runner.results.release import Release
from runner.results.shared_report import Reports
from runner.results.table.writing import write_table
from synth.mrf import Model

if TYPE_CHECKING:
    from runner.results import linked
    from synth.domain import Domain
else:
    linked = Later("runner.results.linked")


def write_outputs(
    directory: Path,
    release: Release,
    domain: Domain,
    run: dict[str, Any],
    result: bytes | None = None,
    sign: Callable[[Path], bytes | None] = lambda _: None,
    reports: Reports = Reports(),  # noqa: B008 - frozen
) -> None:
    """Write all files of a finished run into `directory`. run: the content of run.json; result: of
    result.json, if there is one. sign: of the folder where they lie before any is in its place, what
    signatures.json is to hold; it may raise. reports: how this party comes by its report."""
    with tempfile.TemporaryDirectory(prefix=outdir.STAGING, dir=directory) as name:
        staging = Path(name)
        write_table(staging / outdir.table_of(run), release.codes, domain, release.decode_seed)
        (staging / "measurements.json").write_text(measurements_json(release, domain), encoding="utf-8")
        (staging / "model.npz").write_bytes(release.model)
        if (folded := linked.linked_of(run, domain, directory)) is not None:
            people = linked.People.of(folded, release.codes, release.decode_seed)
            seed = linked.seed_of(staging / outdir.table_of(run), staging / "model.npz")
            linked.write_tables(staging, folded, Model.from_bytes(release.model), people, seed)
        if result is not None:
            (staging / outdir.RESULT).write_bytes(result)
        (staging / outdir.RUN).write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
        reports.before_signatures(staging)
        if (signatures := sign(staging)) is not None:
            (staging / outdir.SIGNATURES).write_bytes(signatures)
        reports.after_signatures(staging)
        outdir.install(staging, directory, run)
