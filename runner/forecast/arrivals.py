"""A dry run of a study that selects while contributors arrive: one for each round of arrivals, on a presumed
table that grows.

Presumed is that as many rows come in each round as in any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpc_protocols.in_memory.presumed import DryRun
    from runner.study import Study

LOOK_ROUNDS = 6
"""To agree on a round's list: what is fixed, whether it is over, hash and list, whether it is over with it,
what to fix."""


class DryRounds:
    """What all rounds cost together, as one dry run tells it."""

    presumed = True
    input_checks, proofs = (0, 0), 0

    def __init__(self, study: Study, dry_run: Callable[[float], DryRun]) -> None:
        """dry_run: of a round in which this share of the rows is there."""
        assert study.contributors is not None
        self._dry_run = dry_run
        self._rounds = len(study.contributors.closes)
        self._ideal = study.descriptor.ideal
        self._done: list[DryRun] = []

    def oracles(self) -> Iterator[DryRun]:
        """Of each round; what they cost is counted when the last is used up."""
        for number in range(1, self._rounds + 1):
            oracle = self._dry_run(number / self._rounds)
            yield oracle
            oracle.close()
            self._done.append(oracle)

    @property
    def rounds(self) -> int:
        """Messages on the longest chain."""
        looks = 0 if self._ideal else LOOK_ROUNDS * (self._rounds - 1)
        return sum(each.rounds for each in self._done) + looks

    @property
    def sent(self) -> Sequence[int]:
        """Bytes of each party."""
        return [sum(own) for own in zip(*(each.sent for each in self._done), strict=True)]

    @property
    def marks(self) -> Sequence[tuple[int, int]]:
        """Nothing: the data does not decide how many steps there are."""
        return []

    @property
    def shared_cells(self) -> int:
        """The most that a round holds."""
        return max(each.shared_cells for each in self._done)

    @property
    def beside_bytes(self) -> int:
        """Of memory that a round takes beside its cells, the most."""
        return max(each.beside_bytes for each in self._done)

    @property
    def seconds(self) -> float:
        """CPU seconds of a computing party."""
        return sum(each.seconds for each in self._done)

    @property
    def counting_s(self) -> float:
        """CPU seconds that counting has taken here."""
        return sum(each.counting_s for each in self._done)

    def close(self) -> None:
        """Every round has ended."""


def arrives(study: Study) -> bool:
    """Whether it is such a study."""
    return study.contributors is not None and study.contributors.arriving
