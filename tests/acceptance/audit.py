"""The whole audit of this build, and every broken build found, those of processes too; minutes long, run by
hand:

.venv/bin/python -m tests.acceptance.audit [--deep]

Deep it takes hours; the same in parts: `cosynth audit --deep --only C.faults --part 1/6`, and so on, and
`cosynth audit --deep --mutations --part 1/6`.
"""

from __future__ import annotations

import sys

from runner.__main__ import main

if __name__ == "__main__":
    deep = sys.argv[1:]
    sys.exit(main(["audit", *deep]) or main(["audit", *deep, "--mutations"]))
