"""Carrying out an audit: the checks that are asked for, side by side, and what they come to."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from mpc_protocols.errors import CosynthError, UsageError
from runner.review.audit.check import Check, Finding, Group, Profile, Verdict
from runner.review.audit.side_by_side import side_by_side
from runner.review.audit.subjects.subject import Subject
from runner.study.declared.table import nearest


@dataclass(frozen=True)
class Result:
    """A check that was carried out. cpu_s: of its process and of those that it has started and seen end."""

    group: Group
    check: Check
    finding: Finding
    wall_s: float
    cpu_s: float

    @property
    def name(self) -> str:
        """As on the command line."""
        return full_name(self.group, self.check)


def full_name(group: Group, check: Check) -> str:
    """GROUP.CHECK."""
    return f"{group.letter}.{check.name}"


def chosen(
    groups: Mapping[str, Group], asked: Sequence[str], only: Sequence[str], profile: Profile
) -> list[tuple[Group, Check]]:
    """The checks of an audit. asked: letters of groups, none for all. only: names of checks, whatever their
    profile.

    Raises `UsageError` for a name that is none.
    """
    checks = {full_name(group, check): (group, check) for group in groups.values() for check in group.checks}
    for letter in asked:
        if letter not in groups:
            raise UsageError(f"There is no group {letter!r} of checks; there are {', '.join(groups)}.")
    for name in only:
        if name not in checks:
            raise UsageError(
                f"There is no check {name!r}{nearest(name, list(checks))}; `audit --list` shows all."
            )
    if only:
        return [checks[name] for name in dict.fromkeys(only)]
    return [
        (group, check)
        for group, check in checks.values()
        if (not asked or group.letter in asked) and check.profile <= profile
    ]


def carry_out(subject: Subject, checks: Sequence[tuple[Group, Check]], jobs: int = 1) -> Iterator[Result]:
    """Run so many checks at a time, and give their results in order.

    A check that cannot be carried out is an error of the harness, and the others go on.
    """
    tasks = [partial(_measured, check.run, subject) for _, check in checks]
    for (group, check), ran in zip(checks, side_by_side(tasks, jobs), strict=True):
        finding, wall_s, cpu_s = ran or (
            Finding(Verdict.ERROR, "The process of the check ended without a word."),
            0.0,
            0.0,
        )
        yield Result(group, check, finding, wall_s, cpu_s)


def _measured(run: Callable[[Subject], Finding], subject: Subject) -> tuple[Finding, float, float]:
    """What a check finds, and the seconds that pass and are computed meanwhile."""
    wall, cpu = time.perf_counter(), _cpu_s()
    finding = _finding_of(run, subject)
    return finding, time.perf_counter() - wall, _cpu_s() - cpu


def _cpu_s() -> float:
    """CPU seconds of this process, and of those it started and saw end."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def _finding_of(run: Callable[[Subject], Finding], subject: Subject) -> Finding:
    try:
        return run(subject)
    except CosynthError as error:
        return Finding(Verdict.ERROR, f"The run that is audited ended: {error.sentence}")
    except (Exception, SystemExit) as error:  # the other checks are worth having, and no check ends the audit
        return Finding(Verdict.ERROR, f"The check itself failed: {type(error).__name__}: {error}")


def overall(verdicts: Sequence[Verdict]) -> Verdict:
    """Of an audit: a violation weighs most, then what could not be carried out, then what decided nothing."""
    for verdict in (Verdict.FAIL, Verdict.ERROR, Verdict.UNINFORMATIVE):
        if verdict in verdicts:
            return verdict
    return Verdict.PASS


EXIT_CODES: Mapping[Verdict, int] = {
    Verdict.PASS: 0,
    Verdict.FAIL: 1,
    Verdict.UNINFORMATIVE: 3,
    Verdict.ERROR: 4,
}
