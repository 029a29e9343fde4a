"""What a reader must know before anything else: which columns stand alone."""

from __future__ import annotations

from runner.report.files import Run


def unrelated(run: Run) -> tuple[str, ...]:
    """Columns that no measured marginal holds together with another: in the table they are independent of all
    others."""
    levels = run.model.used_levels
    tied = set()
    for clique in run.model.cliques:
        columns = {levels[name].column if name in levels else name for name in clique}
        if len(columns) > 1:
            tied |= columns
    return tuple(name for name in run.domain.names if name not in tied)
