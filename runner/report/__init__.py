"""The report of a finished run: one self-contained HTML file (`docs/reference/outputs.md`), made from the
run's public files only.

It loads nothing, runs no script and holds nothing that is not a function of the released outputs and of
public facts (traffic, times). The imports are inside the functions, so that the launcher can name this
package without paying for numpy.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_protocols.process.later import Later

if TYPE_CHECKING:
    from runner.report import page
else:
    page = Later("runner.report.page")


def prepare() -> None:
    """Load and compile what `render` needs: 0.1 s of CPU, for a thread that has nothing else to do."""
    from pyarrow import csv  # noqa: F401 - loaded for `files`

    page.prepare()


def render(directory: Path, *, comparison: Mapping[str, Any] | None = None) -> Path:
    """Write `directory`/report.html from the files beside it and return its path; the same files give the
    same bytes.

    Reads run.json, measurements.json, model.npz and synthetic.csv, which are the same at every party of a
    deployment. Replaces the report atomically.

    comparison: for `demo` only, which knows the real rows; adds a section that says so. Keys, all optional:
    `metrics` maps a name to (value, baseline or None, explanation); `counts` maps a column to its real
    counts, one per code, unreleased by any mechanism.

    Raises `UsageError` if the directory does not hold a finished run.
    """
    return page.write(directory, comparison)
