"""How parties end of which one was sent what the protocol does not say, and what is wrong with that.

All of them are looked at, not only the first that failed: where one stops with a sentence another may end in
a traceback.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mpc_protocols.errors import CosynthError
from mpc_protocols.in_memory.memory_wire import Stuck
from mpc_protocols.wire import Wire
from runner.review.audit.check import Finding, Verdict


def noting(part: Callable[[Wire], Any], ends: dict[int, Any] | None) -> Callable[[Wire], Any]:
    """A party's part whose result, or what it raised, is put among `ends`."""

    def party(wire: Wire) -> Any:
        try:
            end = part(wire)
        except BaseException as error:
            end = error
            raise
        finally:
            if ends is not None:
                ends[wire.me] = end
        return end

    return party


def wrong_end(end: object) -> str | None:
    """What is wrong with how a party ended that was sent what the protocol does not say; None if it has a
    result, or 40 or 41."""
    if isinstance(end, CosynthError):
        return None if end.exit_code in (40, 41) else f"ends with {end.exit_code} ({end.sentence})"
    return f"ends in {type(end).__name__}" if isinstance(end, BaseException) else None


STUCK = "stuck"
"""How a run ended in which a party waited until patience ran out: that it would have waited for ever is not
judged by a clock."""


def is_stuck(ends: Mapping[int, Any]) -> bool:
    """Whether a party waited until patience ran out."""
    return any(isinstance(end, Stuck) for end in ends.values())


def unless_stuck(finding: Finding, ended: Iterable[Mapping[str, int]]) -> Finding:
    """A finding of runs that ended in so many ways; a pass only if none was stuck."""
    if finding.verdict is Verdict.PASS and any(STUCK in each for each in ended):
        words = f"In a run parties waited for one another until patience ran out. {finding.evidence}"
        return Finding(Verdict.ERROR, words, finding.figures)
    return finding


def judged_ends(ends: Mapping[int, Any], sender: int) -> tuple[str, str | None]:
    """How the parties ended but for one that sent something else, in words, and what is wrong with it."""
    stopped = None
    for party, end in sorted(ends.items()):
        if party == sender:
            continue
        if (words := wrong_end(end)) is not None:
            return "broken", f"party {party} {words}"
        if isinstance(end, CosynthError):
            stopped = f"exit {end.exit_code}"
    if is_stuck(ends):
        return STUCK, None
    return stopped or "went on", None
