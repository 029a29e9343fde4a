"""Carrying out an audit: the checks that are asked for, one after the other, and what they come to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mpc_protocols.errors import CosynthError, UsageError
from runner.audit.check import Check, Finding, Group, Profile, Verdict
from runner.audit.subjects.subject import Subject
from runner.study.table import nearest


@dataclass(frozen=True)
class Result:
    """A check that was carried out. cpu_s: of this process; other processes that it started come on top."""

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
    """The checks of an audit. asked: letters of groups, none for all. only: names of checks, whatever their profile.

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


def carry_out(subject: Subject, checks: Sequence[tuple[Group, Check]]) -> Iterator[Result]:
    """Run the checks, in order; a check that cannot be carried out is an error of the harness, and the others go on."""
    for group, check in checks:
        wall, cpu = time.perf_counter(), time.process_time()
        finding = _found(check.run, subject)
        yield Result(group, check, finding, time.perf_counter() - wall, time.process_time() - cpu)


def _found(run: Callable[[Subject], Finding], subject: Subject) -> Finding:
    try:
        return run(subject)
    except CosynthError as error:
        return Finding(Verdict.ERROR, f"The run that is audited ended: {error.sentence}")
    except Exception as error:  # the other checks are worth having
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
