"""What an engine of another distribution brings, which counts the parts of a custodian's table wherever it keeps them.

A private file names one, with keys of the engine's own beside its name:

    data = { tallies = { engine = "lake", table = "people" }, parts = 40 }

It is found by its entry point (group `cosynth.engines`), runs in this party's process and with its rights, and is this
custodian's own business, as its database is: no study names it, nothing of it enters the digest, and the others do not
learn of it. Standard library only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from mpc_protocols.registry import Registry

if TYPE_CHECKING:
    from parties.data.tallies.counting import Counting
    from parties.data.tallies.places import EngineTallies


class TallyEngine(ABC):
    """Counts parts of a table. name: the word of the private file. rank: its place in lists."""

    name: ClassVar[str]
    rank: ClassVar[int] = 100

    @abstractmethod
    def misfit(self, settings: Mapping[str, object]) -> str | None:
        """What is wrong with the keys beside `engine`, as the end of a sentence ("must name a table"); None if nothing is."""

    @abstractmethod
    def tallies(self, place: EngineTallies, counting: Counting) -> Iterator[bytes]:
        """The tally of each part, what `cosynth tally` writes: `count_partition` (`parties/data/tallies/counting.py`) counts an
        open table, and `to_bytes` makes a tally of that.

        What it raises ends the run, by its kind alone, but for this program's own errors, whose sentences are told.
        """


ENGINES: Registry[TallyEngine] = Registry(
    "parties.data.tallies.engines", "engine", TallyEngine, "cosynth.engines"
)
