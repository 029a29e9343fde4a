"""`python -m runner` that kills itself, or its run, at a chosen place: what a crash does there. For tests of
`--resume`.

    DIE_AT="north hold 3"        the process of party north ends by SIGKILL as it is about to hold its third result
    DIE_AT="north held 3"        as soon as it holds it
    DIE_AT="* held 3"            every party does
    DIE_AT="ideal held 3"        the one process of a run in the clear does

Places, in order: attempt, begun; of a release authorise, event, hold, held, learn, learnt; at the end end,
ended, release and released, counted and counters (both of the leader), settle, settled, written, finished.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from parties.budget.journal import Journal
from parties.budget.run_state import RunState
from runner.__main__ import program
from runner.party.custodian import Custodian


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
    if not said or (said[0] != party and (said[0] != "*" or party == "ideal")):
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
    _on(Journal, "events", "authorise", "event", at)
    _on(Journal, "end", "end", "ended", at)
    _on(Custodian, "settle", "settle", "settled", at)


def main() -> None:
    """Be the program."""
    install(sys.argv[sys.argv.index("--party") + 1] if "--party" in sys.argv else "ideal")
    program()


if __name__ == "__main__":
    main()
