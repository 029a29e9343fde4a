"""An audit at a terminal: a line as soon as a check has ended, and its evidence where it is bad."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence

from runner.review.audit.broken_builds.mutations import Caught
from runner.review.audit.check import Verdict
from runner.review.audit.driver import Result, overall

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
    if not each.is_noticed:
        how = f"NOT FOUND by {', '.join(each.expected)}"
        if each.caught:
            how = f"FOUND WITH {each.caught} OF {each.seeds} SEEDS ONLY, by {', '.join(each.caught_by)}"
    else:
        how = f"found by {', '.join(each.caught_by)}" + (f", {each.seeds} seeds" if each.seeds > 1 else "")
    return f"{each.name:6} {each.wall_s:6.1f} s  {each.words}: {how}"


def progress(check: str, done: int, of: int, words: str) -> None:
    """How far a campaign is, on standard error: after each percent, and whenever something was found."""
    if words or done == of or 100 * done // of > 100 * (done - 1) // of:
        print(f"{check}: {done} of {of}{f': {words}' if words else ''}", file=sys.stderr, flush=True)


def last_of_broken(caught: Sequence[Caught]) -> str:
    """What the broken builds come to."""
    found = sum(each.is_noticed for each in caught)
    return f"{found} of {len(caught)} broken builds found" + (
        f", with each of {caught[0].seeds} seeds." if caught[0].seeds > 1 else "."
    )


def last(results: Sequence[Result]) -> str:
    """What the whole audit comes to."""
    verdicts = [result.finding.verdict for result in results]
    return f"\n{len(results)} checks: {verdicts.count(Verdict.PASS)} pass. {SENTENCES[overall(verdicts)]}"
