"""Keyed streams under watch: which of them each party begins, wherever a run forks its wire. None is begun
twice.

    drawn = Streams()
    with drawn.watched():
        network.run(parties)               # threads named as `memory_wire` and `interleave` name them
    drawn.twice()

A stream is what a key gives at one operation number: the numbers are 2^36 bytes apart (`engine.prg`), so
streams that are not the same do not overlap. Two releases, rounds, attempts or forks that began the same one
would mask two messages alike. Watched are the streams of `engine.prg`, and those of transfers
(`pair.transfers.ot_extension`), which have ciphers of their own.

Two kinds are left out. A bundle's stream: with its seed it stands for a part of the counts, and whoever opens
the bundle again draws that part again. What a coin of all parties is stretched to: public coefficients, which
each role of a proof reads.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from mpc_protocols.backends.bundles import bundle
from mpc_protocols.backends.pair.transfers import ot_extension
from mpc_protocols.backends.replicated.proof import coins
from mpc_protocols.engine import prg


class Streams:
    """How often each party has begun each stream, by party, key and counter block: in all that was watched."""

    def __init__(self) -> None:
        self.begun: Counter[tuple[str, bytes, bytes]] = Counter()
        self._left_out: set[bytes] = set()
        self._lock = threading.Lock()

    def twice(self) -> list[tuple[str, int]]:
        """Of each stream that a party has begun more than once: by whom, and how often."""
        return [(party, count) for (party, _, _), count in self.begun.items() if count > 1]

    def _note(self, key: bytes, operation: int) -> None:
        party = re.split("-beside|-aside", threading.current_thread().name)[0]
        if key in self._left_out:
            return
        with self._lock:
            self.begun[party, key, prg._counter(operation)] += 1

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note all streams while the block runs."""
        note, stream, transfers = self._note, prg.KeyStream, ot_extension._Streams
        begin, draw, read, derive = stream.__init__, stream.draw, stream.reader, prg.derive
        begin_transfers, transfer = transfers.__init__, transfers.draw

        def began(self: Any, key: bytes) -> None:
            begin(self, key)
            self.watched = key

        def drew(self: Any, shape: Any, dtype: Any, operation: int) -> Any:
            found = draw(self, shape, dtype, operation)
            if found.size:
                note(self.watched, operation)
            return found

        def opened(self: Any, operation: int) -> Any:
            note(self.watched, operation)
            return read(self, operation)

        def left_out(*given: bytes) -> bytes:
            key = derive(*given)
            self._left_out.add(key)
            return key

        def began_transfers(self: Any, leaves: Any, context: bytes) -> None:
            begin_transfers(self, leaves, context)
            self.watched = hashlib.sha256(leaves.tobytes() + context).digest()

        def transferred(self: Any, words: int, operation: int) -> Any:
            note(self.watched, operation)
            return transfer(self, words, operation)

        with (
            mock.patch.object(stream, "__init__", began),
            mock.patch.object(stream, "draw", drew),
            mock.patch.object(stream, "reader", opened),
            mock.patch.object(bundle, "derive", left_out),
            mock.patch.object(coins, "derive", left_out),
            mock.patch.object(transfers, "__init__", began_transfers),
            mock.patch.object(transfers, "draw", transferred),
        ):
            yield
