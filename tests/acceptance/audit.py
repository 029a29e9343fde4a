"""The whole audit of this build, and every broken build found, those of processes too; minutes long, run by hand:

.venv/bin/python -m tests.acceptance.audit
"""

from __future__ import annotations

import sys

from runner.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["audit", "--mutations"]))
