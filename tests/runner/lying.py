"""`python -m runner` of a contributor whose counts are impossible: what another program could send. For tests
of `bad_input`.

LIAR="east"     party east sends -1 rows in the first cell of every marginal, and the lacking ones in the next cell
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from mpc_protocols.engine.inputs import contribution
from runner.__main__ import program

counted = contribution.local_cells


def _below_zero(*arguments: Any) -> Any:
    found = []
    for cells in counted(*arguments):
        cells[1] += cells[0] + np.uint32(1)
        cells[0] = np.iinfo(np.uint32).max
        found.append(cells)
    return found


def main() -> None:
    """Be the program."""
    if "--party" in sys.argv and sys.argv[sys.argv.index("--party") + 1] == os.environ.get("LIAR"):
        contribution.local_cells = _below_zero  # type: ignore[assignment]
    program()


if __name__ == "__main__":
    main()
