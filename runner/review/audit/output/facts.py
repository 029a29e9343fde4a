"""An audit for machines: `audit.json`, schema 1. Its keys stay as they are."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from runner.review.audit import target
from runner.review.audit.broken_builds.mutations import Caught
from runner.review.audit.check import MAX_ALARM, Group, Profile
from runner.review.audit.driver import Result, overall
from runner.review.audit.subjects.subject import Subject
from runner.version import VERSION

SCHEMA = 1
NOT_TESTED = (
    "two computing parties that work together",
    "a computing party that departs from the protocol, beyond what group N counts",
    "what a party's own computer gives away: memory, caches, power, its administrator",
    "times: how long steps take",
    "the proofs in docs/design, on which the claims rest",
)
"""Stated in every report."""


def facts(subject: Subject, results: Sequence[Result], caught: Sequence[Caught]) -> dict[str, Any]:
    """The content of audit.json."""
    groups: dict[str, Group] = {result.group.letter: result.group for result in results}
    return {
        "schema": SCHEMA,
        "build": {"version": VERSION, "python": platform.python_version(), "machine": platform.machine()},
        "study": {
            "name": subject.study.name,
            "algorithm": subject.study.algorithm,
            "invented_rows": subject.invented,
        },
        "backends": list(subject.backends),
        "profile": subject.profile.name.lower(),
        "seed": subject.seed,
        "alarm_budget": MAX_ALARM,
        "wall_s": round(sum(result.wall_s for result in results), 3),
        "cpu_s": round(sum(result.cpu_s for result in results), 3),
        "verdict": overall([result.finding.verdict for result in results]).value,
        "groups": [
            {
                "id": letter,
                "title": group.title,
                "question": group.question,
                "verdict": overall(
                    [result.finding.verdict for result in results if result.group is group]
                ).value,
                "checks": [_check(subject, result) for result in results if result.group is group],
            }
            for letter, group in groups.items()
        ],
        "mutations": [
            {
                "id": each.name,
                "words": each.words,
                "expected": list(each.expected),
                "caught_by": list(each.caught_by),
                "seeds": each.seeds,
                "caught": each.caught,
            }
            for each in caught
        ],
        "not_tested": list(NOT_TESTED),
    }


_LENGTHS = {Profile.QUICK: ["--quick"], Profile.DEFAULT: [], Profile.DEEP: ["--deep"]}


def repeating(subject: Subject, name: str) -> str:
    """The command that repeats a check of this audit."""
    words = [
        "python",
        "-m",
        "runner",
        "audit",
        "--only",
        name,
        "--seed",
        subject.seed,
        *_LENGTHS[subject.profile],
    ]
    if name.startswith(f"{target.GROUP.letter}."):
        return shlex.join([*words, "--target", str(subject.study.path)])
    if subject.invented:
        words += ["--study", str(subject.study.path)]
    for backend in subject.backends:
        words += ["--backend", backend]
    return shlex.join(words)


def _check(subject: Subject, result: Result) -> Mapping[str, Any]:
    check, finding = result.check, result.finding
    return {
        "id": result.name,
        "claim": check.claim,
        "kind": check.kind,
        "verdict": finding.verdict.value,
        "evidence": finding.evidence,
        "figures": dict(finding.figures),
        "would_have_seen": check.sees,
        "false_alarm": check.alarm,
        "wall_s": round(result.wall_s, 3),
        "repro": repeating(subject, result.name),
    }
