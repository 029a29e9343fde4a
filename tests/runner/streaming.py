"""`python -m runner` of a party that writes down, as it ends, which keyed streams it has begun and how often, into
streams.json of its folder. For `test_streams_of_processes.py`.

A key stands there as a hash of it. AGAIN="north": party north begins every third stream of masks a second time.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import runner.__main__
from mpc_protocols.engine.prg import KeyStream
from runner.review.audit.subjects.in_memory.streams import Streams

main = runner.__main__.main


def _again() -> None:
    """Masks that are drawn once more, now and then."""
    draw = KeyStream.draw

    def twice(self: KeyStream, shape: Any, dtype: Any, operation: int) -> Any:
        if operation % 3 == 1:
            draw(self, shape, dtype, operation)
        return draw(self, shape, dtype, operation)

    KeyStream.draw = twice  # type: ignore[method-assign]


def watched(arguments: Sequence[str] | None, embedded: Mapping[str, object] | None) -> int:
    """Be the party, and tell."""
    streams, begun = Streams(), Counter[str]()
    with streams.watched():
        if os.environ.get("AGAIN", "") in sys.argv:
            _again()
        code = main(arguments, embedded)
    for (_, key, counter), count in streams.begun.items():
        begun[f"{hashlib.sha256(b'test' + key).hexdigest()[:24]} {counter.hex()}"] += count
    Path("streams.json").write_text(json.dumps(begun))
    return code


if __name__ == "__main__":
    runner.__main__.main = watched  # type: ignore[assignment]
    runner.__main__.program()
