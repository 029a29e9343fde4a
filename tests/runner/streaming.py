"""`python -m runner` of a party that writes down, as it ends, what it has read of which keyed stream, into streams.json
of its folder. For `test_streams_of_processes.py`.

    reads     [stream, purpose of its key, first byte, last byte + 1, module that asked], where a stream is a key's hash
              and an operation
    leaves    of a stream of transfers: hashes of the keys of its first block, each with the operation

AGAIN="north": party north reads every third stream of masks a second time, for something else.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import mpc_protocols.engine.prg

Prg: Any = mpc_protocols.engine.prg
MAKERS = (Prg.__name__, __name__, "mpc_protocols.backends.replicated.sharing.trio")
"""Modules that read for others."""


def _hash(*secrets: bytes) -> str:
    return hashlib.sha256(b"test of streams" + b"".join(secrets)).hexdigest()[:24]


def _reader() -> str:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_globals["__name__"] in MAKERS:
        frame = frame.f_back
    return "" if frame is None else frame.f_globals["__name__"]


class Noted:
    """What this process reads."""

    def __init__(self) -> None:
        self.reads: list[tuple[str, str, int, int, str]] = []
        self.leaves: dict[str, list[str]] = {}
        self._purposes: dict[bytes, str] = {}
        self._lock = threading.Lock()

    def _note(self, key: bytes, operation: int, start: int, size: int) -> None:
        reader = _reader()
        with self._lock:
            purpose = self._purposes.get(key, "")
            self.reads.append((f"{_hash(key)} {operation}", purpose, start, start + size, reader))

    def derived(self) -> None:
        """Note what keys are derived for, whoever has imported `derive` already."""
        derive = Prg.derive

        def noted(key: bytes, purpose: bytes, *context: bytes) -> bytes:
            made: bytes = derive(key, purpose, *context)
            self._purposes[made] = purpose.decode()
            return made

        for module in tuple(sys.modules.values()):
            if getattr(module, "derive", None) is derive:
                module.derive = noted  # type: ignore[attr-defined]

    def streams(self) -> None:
        """Note reads of streams."""
        stream, note = Prg.KeyStream, self._note
        begin, draw, read = stream.__init__, stream.draw, stream.read

        def began(self: Any, key: bytes) -> None:
            begin(self, key)
            self.watched = key

        def drew(self: Any, shape: Any, dtype: Any, operation: int) -> Any:
            found = draw(self, shape, dtype, operation)
            if found.size and not self.is_blank:  # one without content: for counting
                note(self.watched, operation, 0, found.nbytes)
            return found

        def has_read(self: Any, operation: int, position: int, out: Any) -> None:
            read(self, operation, position, out)
            note(self.watched, operation, position, out.nbytes)

        stream.__init__, stream.draw, stream.read = began, drew, has_read

    def transfers(self) -> None:
        """Note reads of the streams of transfers, which have ciphers of their own."""
        from mpc_protocols.backends.pair.transfers import ot_extension

        streams: Any = ot_extension._Streams
        draw, noted = streams.draw, self

        def drew(self: Any, words: int, operation: int) -> Iterator[Any]:
            key = hashlib.sha256(self._seeds.tobytes() + self._context).digest()
            noted._purposes[key] = "transfers"
            noted._note(key, operation, 0, 8 * words)
            bound = self._context + operation.to_bytes(8, "big")
            first = [_hash(leaf.tobytes(), bound) for leaf in self._seeds[: self.leaves]]
            noted.leaves[f"{_hash(key)} {operation}"] = sorted(first)
            return draw(self, words, operation)

        streams.draw = drew


def _again() -> None:
    """Masks that are read once more, now and then."""
    draw = Prg.KeyStream.draw

    def twice(self: Any, shape: Any, dtype: Any, operation: int) -> Any:
        if operation % 3 == 1:
            draw(self, shape, dtype, operation)
        return draw(self, shape, dtype, operation)

    Prg.KeyStream.draw = twice


def main() -> None:
    """Be the party, and tell."""
    noted = Noted()
    noted.derived()
    noted.streams()
    noted.transfers()
    if os.environ.get("AGAIN", "") in sys.argv:
        _again()
    import runner.__main__

    main = runner.__main__.main

    def told(arguments: Sequence[str] | None, embedded: Mapping[str, object] | None) -> int:
        code = main(arguments, embedded)
        Path("streams.json").write_text(json.dumps({"reads": noted.reads, "leaves": noted.leaves}))
        return code

    runner.__main__.main = told  # type: ignore[assignment]
    runner.__main__.program()


if __name__ == "__main__":
    main()
