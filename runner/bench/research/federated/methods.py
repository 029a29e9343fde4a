"""The rows of a federated table: by name, what is made of who arrives.

A row is NAME or NAME:KEY=VALUE:..; keys of the FLAIM family are those of its configuration
(participations=all: every round).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mpc_protocols.errors import StudyInvalid, UsageError
from runner.bench.research.federated import arriving, collected, family, gan
from runner.bench.research.federated.world import Outcome, World
from synth.algorithms.flaim.config import FlaimConfig
from synth.algorithms.flaim.variants import VARIANTS

Run = Callable[..., Outcome]


def _family(variant: str) -> Run:
    def run(world: World, **options: Any) -> Outcome:
        return family.run(world, FlaimConfig(variant=variant, **options))

    return run


def _everybody(world: World, rounds: int | str) -> Outcome:
    return collected.aim(world, rounds, clients=range(world.clients))


@dataclass(frozen=True)
class Method:
    """title: in tables. run: on a world, with the row's options. defaults: of options."""

    title: str
    run: Run
    defaults: Mapping[str, Any]


METHODS: Final[Mapping[str, Method]] = {
    "central": Method("AIM on everybody", _everybody, {"rounds": 10}),
    "collect": Method("collect, then AIM", collected.aim, {"rounds": 10}),
    "waves": Method("collect, then a wave of latecomers", collected.waves, {"rounds": 10, "first": 10}),
    "one-shot": Method("collect, one shot", collected.one_shot, {}),
    "arriving": Method("DistAIM, mended", arriving.run, {}),
    **{
        name: Method(of.title, _family(name), {"group": 1 if of.once and not of.chooses else 3})
        for name, of in VARIANTS.items()
        if not of.union
    },
    "dp-ctgan": Method("DP-CTGAN, central", gan.run, {}),
    "fed-dp-ctgan": Method("Fed DP-CTGAN", gan.run, {"federated": True}),
    "independent": Method("independent columns of everybody", collected.independent, {}),
}


@dataclass(frozen=True)
class Row:
    """A method with its options. text: as it was asked for."""

    text: str
    method: Method
    options: Mapping[str, Any]

    @classmethod
    def parse(cls, text: str) -> Row:
        """Raises `UsageError` for a method that there is not."""
        name, *parts = text.split(":")
        if name not in METHODS:
            raise UsageError(f"There is no federated method {name!r}; there are {', '.join(METHODS)}.")
        options = dict(METHODS[name].defaults)
        for part in parts:
            key, _, value = part.partition("=")
            options[key] = {"true": True, "false": False}.get(
                value, int(value) if value.isdecimal() else value
            )
        return cls(text, METHODS[name], options)

    def run(self, world: World) -> Outcome:
        """Raises `UsageError` for an option that the method lacks, and what it raises."""
        try:
            return self.method.run(world, **self.options)
        except (TypeError, StudyInvalid) as error:
            if isinstance(error, TypeError) and "argument" in str(error):
                raise UsageError(
                    f"The federated method {self.text!r} has an option that it does not know."
                ) from None
            raise
