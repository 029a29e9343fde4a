"""An audit at a terminal: a line as soon as a check has ended, and its evidence where it is bad."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from runner.audit.broken_builds.mutations import Caught
from runner.audit.check import Verdict
from runner.audit.driver import Result, overall

WORDS = {
    Verdict.PASS: "passes",
    Verdict.FAIL: "VIOLATION",
    Verdict.UNINFORMATIVE: "says nothing",
    Verdict.ERROR: "ERROR",
}
SENTENCES = {
    Verdict.PASS: "No violation found; what each check would have seen stands beside it. A pass is no proof.",
    Verdict.FAIL: "This build violates what it claims.",
    Verdict.UNINFORMATIVE: "No violation found, and at least one check decided nothing.",
    Verdict.ERROR: "No violation found, and at least one check could not be carried out.",
}


def line(result: Result) -> str:
    """One check."""
    first = (
        f"{result.name:18} {WORDS[result.finding.verdict]:13} {result.wall_s:6.1f} s  {result.check.claim}"
    )
    if result.finding.verdict is Verdict.PASS:
        return first
    return first + "\n" + textwrap.indent(textwrap.fill(result.finding.evidence, 100), " " * 20)


def mutation(each: Caught) -> str:
    """One broken build."""
    how = (
        f"found by {', '.join(each.caught_by)}" if each.found else f"NOT FOUND by {', '.join(each.expected)}"
    )
    return f"{each.name:6} {each.words}: {how}"


def last(results: Sequence[Result]) -> str:
    """What the whole audit comes to."""
    verdicts = [result.finding.verdict for result in results]
    return f"\n{len(results)} checks: {verdicts.count(Verdict.PASS)} pass. {SENTENCES[overall(verdicts)]}"
