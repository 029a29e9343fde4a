"""What a reader must know before anything else: that most of a table is noise, and which columns stand alone."""

from __future__ import annotations

from collections.abc import Sequence

from runner.report.agreement import Agreement
from runner.report.files import Run
from runner.report.number_format import percent, spelled

LOST = 0.3
"""Noise of a marginal as a share of the rows, above which it tells of little else (`docs/howto/judge-a-result.md`)."""


def noise_banner(found: Sequence[Agreement]) -> str:
    """A warning if most of what was measured is mostly noise; "" for any other run. By released values alone."""
    lost = [each for each in found if each.noise > LOST]
    if not found or 2 * len(lost) <= len(found):
        return ""
    typical = sorted(each.noise for each in found)[len(found) // 2]
    return (
        f"This table shows little but noise: of {spelled(len(found))} measured marginals {spelled(len(lost))} carry noise of "
        f"more than {percent(LOST)} of the rows, half of them of {percent(typical)} or more. There is too little data for this "
        "epsilon, or columns have too many values for it: fewer bins, fewer columns or a larger epsilon would show more."
    )


def unrelated(run: Run) -> tuple[str, ...]:
    """Columns that no measured marginal holds together with another: in the table they are independent of all others."""
    levels = run.model.used_levels
    tied = set()
    for clique in run.model.cliques:
        columns = {levels[name].column if name in levels else name for name in clique}
        if len(columns) > 1:
            tied |= columns
    return tuple(name for name in run.domain.names if name not in tied)
