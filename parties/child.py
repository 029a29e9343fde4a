"""A process of this program that answers through its pipes.

It is sent requests on its standard input and answers on its standard output; what it would say of itself goes
nowhere, for it could quote a record.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

_PACKAGES = Path(__file__).resolve().parents[1]


def start_child(program: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a program that finds this one's packages wherever it runs. Raises `OSError`."""
    paths = (str(_PACKAGES), os.environ.get("PYTHONPATH"))
    return subprocess.Popen(
        program,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )
