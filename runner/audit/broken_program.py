"""`python -m runner.audit.broken_program MUTATION ARGUMENT...`: `python -m runner` of a build that is broken on purpose.

What party processes run while a mutation of processes is audited (`runner.audit.deployment`).
"""

from __future__ import annotations

import sys
from typing import NoReturn

from runner.__main__ import program
from runner.audit.mutations import IN_PROCESSES


def main() -> NoReturn:
    """Run the command line of the broken build."""
    name = sys.argv.pop(1)
    with IN_PROCESSES[name]():
        program()


if __name__ == "__main__":
    main()
