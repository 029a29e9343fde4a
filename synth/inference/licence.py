"""What a run's release can be asked at all, and why not: each refusal is a sentence that says what would have
to be measured.

A number is *measured* if the columns that it needs together lie in one released marginal. Where none holds
them the model says that they are independent given others, and no formula knows by how much that is wrong:
there is no interval then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mpc_protocols.errors import UsageError
from synth.algorithm import CHOICES, OWN_MODEL
from synth.synthesis import Measured


class Unanswerable(UsageError):
    """A question that gets no interval, and the reason."""


class Uncertain(Unanswerable):
    """A question that the noise leaves open: a group that may be empty, regressors that it cannot tell apart."""


class NoFormulas(UsageError):
    """A regression where the package that reads formulas is not installed: other questions can still be
    answered."""


class NotMeasured(Unanswerable):
    """columns: those that no released marginal holds together."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        joined = " x ".join(self.columns)
        super().__init__(
            f"Not measured: no released marginal holds {joined}, so the table's relation among them follows from other "
            f"measurements alone; a marginal of {joined} would have to be measured."
        )


class UnfitRun(Unanswerable):
    """A run whose released counts are not sums over all rows with noise of a stated variance."""


def readable(facts: Mapping[str, Any], measurements: Iterable[Measured]) -> tuple[Measured, ...]:
    """The measurements that count all rows, each with independent noise of its stated variance.

    facts: run.json. Raises `UnfitRun` with the case: marginals that owners or clients made by themselves, a
    later wave, none.
    """
    privacy = facts["privacy"]
    events = [*privacy["events"], *privacy.get("all_events", [])]
    what = {str(event.get("what", "")) for event in events}
    if "clients" in privacy or CHOICES in what or (facts.get("clients")):
        raise UnfitRun(
            "In this run clients answered for themselves, some of them in each round, so its marginals do not all count the same "
            "rows; intervals need a run over an oracle, such as mosaic's."
        )
    if OWN_MODEL in what:
        raise UnfitRun(
            "In this run each owner reported marginals of its own table with noise of its own, and what joins them is decoded, "
            "not measured; intervals need a run whose marginals are measured over all columns."
        )
    if (facts.get("contributors") or {}).get("after"):
        raise UnfitRun(
            "This run is a later wave: its table is of all waves and its measurements are of the last one; ask the waves one by "
            "one, or the table without intervals."
        )
    whole = tuple(m for m in measurements if m.rows is None and m.sigma2 > 0)
    if not whole:
        raise UnfitRun(
            "This run has released no marginal that counts all rows with noise of a stated variance, so there is nothing to take "
            "an interval from."
        )
    return whole
