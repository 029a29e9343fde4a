"""What `check` says of a table whose parts were counted elsewhere: whether their counts add up to a table
that fits the study."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mpc_protocols.errors import CosynthError
from parties.data.counting.counters import check_memory
from parties.data.tallies.workers import cores
from runner.check.finding import Finding, fine, note, problem
from runner.party.own_counts import own_counts
from runner.party.synthesis import counted, plan_of
from runner.study import VerticalStudy

if TYPE_CHECKING:
    from runner.study import DataLocation, Study


def processes(party: str, workers: int) -> Iterator[Finding]:
    """A machine that has fewer cores than the private file asks for."""
    if workers > 1 and workers > (here := cores()):
        yield note(
            f"{party}: workers = {workers}, and this machine has {here} cores: so many processes count"
        )


def memory(study: Study, party: str) -> Iterator[Finding]:
    """Marginals that this machine cannot count."""
    if isinstance(study, VerticalStudy):
        return
    try:
        check_memory(map(study.domain.cells, counted(plan_of(study))), 1)
    except CosynthError as error:
        yield problem(type(error)(f"{party}: {error.sentence}"))


def added(study: Study, party: str, data: DataLocation, allow_empty: bool) -> Iterator[Finding]:
    """The first problem, as a run would end with it."""
    try:
        own_counts(study, data, counted(plan_of(study)), allow_empty=allow_empty)
    except CosynthError as error:
        yield problem(type(error)(f"{party}: {error.sentence}"))
        return
    yield fine(f"{party}: the counts of its table's parts fit the study")
    if data.tallies is not None and data.tallies.parts is None:
        yield note(
            f"{party}: with `parts` in `data`, the number of tallies that there are to be, a run would refuse to go without one"
        )
