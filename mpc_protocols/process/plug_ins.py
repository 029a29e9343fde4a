"""What other installed distributions add to Cosynth: entry points, found by name, loaded when they are asked
for.

A group holds things of one kind (`GROUPS`). Finding reads the metadata of installed distributions and imports
nothing; loading imports the plug-in's module, with the rights of this process, as any installed package is
imported. A study can name a plug-in, and cannot bring one: what is not installed here is not loaded. Name and
version enter the study's digest (`runner/study/hashing.py`), so that parties with other versions of a plug-in
do not meet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import StudyInvalid

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS = {
    "cosynth.algorithms": "an algorithm (`synth/algorithm.py`)",
    "cosynth.backends": "a backend (`mpc_protocols/backend.py`)",
    "cosynth.alignments": "an alignment method (`mpc_protocols/psu/method.py`)",
    "cosynth.benchmarks": "a benchmark (`runner/bench/registry.py`)",
    "cosynth.engines": "an engine that counts the parts of a custodian's table (`parties/data/tallies/engine.py`)",
    "cosynth.audits": "a group of an audit's checks (`runner/review/audit/check.py`)",
}
"""Every group, and what an entry point of it loads."""


@dataclass(frozen=True)
class PlugIn:
    """One entry point. distribution: name and version of what is installed, "cosynth-kway 0.1"."""

    name: str
    distribution: str
    _point: EntryPoint

    @property
    def label(self) -> str:
        """The beginning of a sentence about it."""
        return f"The plug-in {self.name} of {self.distribution}"

    def load(self) -> Any:
        """The object. Raises `StudyInvalid` if it cannot be imported, for whatever reason."""
        try:
            return self._point.load()
        except Exception as error:  # a stranger's code: the sentence says whose
            raise StudyInvalid(
                f"{self.label} cannot be loaded ({type(error).__name__}: {error}); mend or remove that distribution."
            ) from error


def plug_ins(group: str) -> Mapping[str, PlugIn]:
    """Those of a group that are installed here, by name. Raises `StudyInvalid` if two distributions have one
    of the same name."""
    from importlib.metadata import entry_points  # 40 ms, which `--help` does without

    found: dict[str, PlugIn] = {}
    for point in entry_points(group=group):
        owner = point.dist
        plug_in = PlugIn(
            point.name, f"{owner.name} {owner.version}" if owner else "an unnamed distribution", point
        )
        other = found.setdefault(point.name, plug_in)
        if other.distribution != plug_in.distribution:
            raise StudyInvalid(
                f"{other.distribution} and {plug_in.distribution} both have a plug-in {point.name}; remove one of them."
            )
    return found
