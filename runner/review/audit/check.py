"""What a check is, what it finds, and how groups of checks are found: a file in `runner/review/audit/groups`,
or in `runner/review/audit/research/groups`, that holds GROUP.

A check states a claim of this build, tries to refute it on the study that is audited, and says what it would
have seen. A statistical one also says how often it would cry wolf. Checks know backends by their descriptors
alone.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Literal

from mpc_protocols.process.plug_ins import plug_ins
from mpc_protocols.registry import modules_of

if TYPE_CHECKING:
    from runner.review.audit.subjects.subject import Subject

Kind = Literal["exact", "statistical", "attack", "fault"]
MAX_ALARM = 1e-6
"""The chance of a false alarm that all checks of an audit share."""


class Verdict(Enum):
    """How a check ended. ERROR: it could not be carried out; UNINFORMATIVE: what it saw decides nothing."""

    PASS = "pass"
    FAIL = "fail"
    UNINFORMATIVE = "uninformative"
    ERROR = "error"


class Profile(IntEnum):
    """How much time an audit takes; a check runs in its own profile and all longer ones."""

    QUICK = 0
    DEFAULT = 1
    DEEP = 2


@dataclass(frozen=True)
class Plot:
    """One drawing of a finding. curves: by name, points (x, y)."""

    title: str
    across: str
    up: str
    curves: Mapping[str, tuple[tuple[float, float], ...]]


@dataclass(frozen=True)
class Finding:
    """What a check found. evidence: a sentence or more, with figures. figures: numbers for machines,
    JSON-able."""

    verdict: Verdict
    evidence: str
    figures: Mapping[str, object] = field(default_factory=dict)
    plot: Plot | None = None


@dataclass(frozen=True)
class Check:
    """One attack. name: within its group. claim: what it tries to refute. sees: the faults it would have
    seen, in words.

    alarm: at most the chance that it fails a build whose claim holds; 0 for a deterministic one.
    """

    name: str
    claim: str
    kind: Kind
    sees: str
    run: Callable[[Subject], Finding]
    alarm: float = 0.0
    profile: Profile = Profile.QUICK


@dataclass(frozen=True)
class Group:
    """Checks of one kind of claim. letter: unlike any other group's."""

    letter: str
    title: str
    question: str
    checks: tuple[Check, ...]


def load() -> dict[str, Group]:
    """All groups by letter, in the order of their letters. Raises `ValueError` if names clash or alarms add
    up to too much.

    Those of other distributions are added. Raises `StudyInvalid` for one that cannot be loaded.
    """
    groups: dict[str, Group] = {}
    for module in modules_of("runner.review.audit.groups", research="runner.review.audit.research.groups"):
        _add(groups, importlib.import_module(module).GROUP, f"{module}.GROUP")
    for plug_in in plug_ins("cosynth.audits").values():
        _add(groups, plug_in.load(), plug_in.label)
    alarm = sum(check.alarm for group in groups.values() for check in group.checks)
    if alarm > MAX_ALARM:
        raise ValueError(
            f"The checks may raise a false alarm with a chance of {alarm:.2g}, above {MAX_ALARM:g}."
        )
    return dict(sorted(groups.items()))


def _add(groups: dict[str, Group], group: object, label: str) -> None:
    if not isinstance(group, Group) or group.letter in groups:
        raise ValueError(f"{label} is no group of checks with a letter of its own.")
    groups[group.letter] = group


def tallied(counts: Mapping[str, Mapping[str, int]]) -> str:
    """How often what was seen of each, in words."""
    return "; ".join(
        f"{name}: {', '.join(f'{words} {n}' for words, n in each.items())}" for name, each in counts.items()
    )


def by_name(figures: Mapping[str, object], words: str = "{name} {each}", joint: str = ", ") -> str:
    """What there is of each backend or method, one after the other."""
    return joint.join(words.format(name=name, each=each) for name, each in figures.items())


def judged(
    problems: list[str], evidence: str, figures: Mapping[str, object] | None = None, plot: Plot | None = None
) -> Finding:
    """A finding that fails if there are problems, which then are its evidence."""
    verdict = Verdict.FAIL if problems else Verdict.PASS
    return Finding(verdict, " ".join(problems[:5]) if problems else evidence, figures or {}, plot)
