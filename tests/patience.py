"""How long tests wait. No test is decided by a clock: what must happen is waited for until it does.

Where promptness is the claim, the alternative is made so slow that it cannot be what ended the wait: a killed
party is noticed "at once" if its peers hear of it although silence_s is PATIENCE_S.
"""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 500.0
"""Less than pytest's limit for a test, so that the test itself says what it has waited for."""


def eventually(condition: Callable[[], object]) -> bool:
    """Whether the condition becomes true; False means that it never will."""
    until = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True
