"""`python -m runner` that kills itself, or its run, at a chosen place: what a crash does there. For tests of `--resume`.

    DIE_AT="north hold 3"        the process of party north ends by SIGKILL as it is about to hold its third result
    DIE_AT="north held 3"        as soon as it holds it
    DIE_AT="* held 3"            every party does

Places: attempt, event, hold, held, learn, learnt, release, released, counted (before counters are handed out), settle, written.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from parties.budget.journal import Journal
from parties.budget.run_state import RunState


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _on(cls: type, name: str, before: str, after: str, at: Callable[[str], None]) -> None:
    method = getattr(cls, name)

    def wrapped(self: Any, *arguments: Any, **more: Any) -> Any:
        at(before)
        result = method(self, *arguments, **more)
        at(after)
        return result

    setattr(cls, name, wrapped)


def install(party: str) -> None:
    """Have this process end where the environment says."""
    said = os.environ.get("DIE_AT", "").split()
    if not said or said[0] not in (party, "*"):
        return
    place, left = said[1], int(said[2])

    def at(reached: str) -> None:
        nonlocal left
        if reached == place:
            left -= 1
            if left == 0:
                _die()

    _on(RunState, "attempt", "attempt", "begun", at)
    _on(RunState, "hold", "hold", "held", at)
    _on(RunState, "learn", "learn", "learnt", at)
    _on(RunState, "keep_release", "release", "released", at)
    _on(RunState, "keep_counters", "counted", "counters", at)
    _on(RunState, "finish", "written", "finished", at)
    _on(Journal, "event", "authorise", "event", at)
    _on(Journal, "end", "end", "ended", at)


if __name__ == "__main__":
    if "--party" in sys.argv:
        install(sys.argv[sys.argv.index("--party") + 1])
    from runner.__main__ import main

    sys.exit(main())
