"""`python -m runner.review.audit.broken_builds.broken_program MUTATION ARGUMENT...`: `python -m runner` of a
broken build.

What party processes run while a mutation of processes is audited
(`runner.review.audit.subjects.processes.deployment`).
"""

from __future__ import annotations

import sys
from typing import NoReturn

from runner.__main__ import program
from runner.review.audit.broken_builds.faults.processes import IN_PROCESSES


def main() -> NoReturn:
    """Run the command line of the broken build."""
    name = sys.argv.pop(1)
    with IN_PROCESSES[name]():
        program()


if __name__ == "__main__":
    main()
