"""One party's end of a computation of m parties: messages to all others, random sharings without messages,
and turns.

    random bits     for every set A of m - t parties, MPyC's key of pseudorandom secret sharing gives F(k_A), which all of A can
                    draw: r = XOR_A F(k_A), and the share of r at party i is XOR_{A contains i} F(k_A) f_A(i). Any t parties miss
                    the key of the set of all others, so r is uniform to them
    known bits      the same over the sets that contain one party, its owner: r is known to the owner and to no t others
    openings        everybody to everybody, or slice by slice by way of a collector each, which is fewer bytes and a round more
    pairs' streams  pairwise keys: uniform elements that two parties know and nobody else
    zero parts      pairwise keys: the XOR over all parties is 0, and any m - 2 parties see uniform parts of the others

Keys are derived per session and stream (`engine.prg`), operations numbered: no mask is used twice. A
computation that runs beside another has a mesh of its own (`Link.fork`). Sizes are functions of public
numbers; an array of another size aborts the run.

Assumption: AES-CTR (`engine.prg`). Threat model: semi-honest, any t = ceil(m/2) - 1 parties together see
nothing of a secret (`docs/design/shamir.md` 2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mpc_protocols.backends.shamir.sharing.field import Scheme
from mpc_protocols.engine.bitwise.bitslice import UInt, Words
from mpc_protocols.engine.blank import Blank, blank
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.engine.link import Link
from mpc_protocols.engine.prg import MASK, NOISE, KeyStream, Reader, derive
from mpc_protocols.wire import Wire

_PIECE = 1 << 13
"""Words drawn at a time: with what they are added to, they stay in the second-level cache."""


def collects(size: int, parties: int, latency_bytes: int) -> bool:
    """Whether parts of so many bytes are opened by way of collectors: a round more, 2 / m of the size to each
    other party."""
    return size * (parties - 1) * (parties - 2) > latency_bytes * parties


def slices(words: int, parties: int) -> list[slice]:
    """Which of so many words each party collects."""
    ends = [words * party // parties for party in range(parties + 1)]
    return [slice(start, stop) for start, stop in pairwise(ends)]


class Mesh(Link):
    """Messages and streams of one computing party."""

    engine = "Shamir sharing"

    def __init__(self, wire: Wire, stream: str = "", latency_bytes: int = LATENCY_BYTES) -> None:
        """Raises `StudyInvalid` unless 3 to 9 parties compute."""
        self.scheme = Scheme(wire.me, wire.computing)
        super().__init__(wire, stream, latency_bytes)
        self._keys = [wire.set_key(members) for members in self.scheme.sets]
        context = (wire.session_id, stream.encode())
        self._sets = [KeyStream(derive(key, MASK, b"set", *context)) for key in self._keys]
        self._pairs = [KeyStream(derive(wire.key(peer), MASK, b"zero", *context)) for peer in self.peers]
        self._between = {
            peer: KeyStream(derive(wire.key(peer), MASK, b"pair", *context)) for peer in self.peers
        }
        self._patterns = [self._pattern(self.scheme.at_me(members)) for members in self.scheme.sets]
        self._operation = 0

    # -- openings
    # ----------------------------------------------------------------------------------------------------------

    def open_parts(self, part: Words) -> Words:
        """XOR of all parties' masked parts, revealed to all. 1 round, the size of `part` to each other party;
        or by way of collectors (`collects`): 2 rounds, a slice of m of it twice."""
        if collects(part.nbytes, self.scheme.parties, self.latency_bytes):
            return self._collected(part)
        for peer in self.peers:
            self.send(peer, part)
        self.turn()
        opened = part.copy()
        for peer in self.peers:
            opened ^= self.receive(peer, part.shape, np.uint64)
        return opened

    def _collected(self, part: Words) -> Words:
        """`open_parts`, each party adding up a slice of its own and returning it."""
        flat, places = part.reshape(-1), slices(part.size, self.scheme.parties)
        for peer in self.peers:
            self.send(peer, flat[places[peer]])
        self.turn()
        mine = flat[places[self.me]].copy()
        for peer in self.peers:
            mine ^= self.receive(peer, mine.shape, np.uint64)
        for peer in self.peers:
            self.send(peer, mine)
        self.turn()
        opened = np.empty_like(flat)
        opened[places[self.me]] = mine
        for peer in self.peers:
            place = places[peer]
            opened[place] = self.receive(peer, (place.stop - place.start,), np.uint64)
        return opened.reshape(part.shape)

    def open_parts_to(self, receiver: int, part: Words) -> Words | None:
        """XOR of all parties' masked parts, to one; None at the others. 1 round, the size of `part` from each
        other one."""
        if self.me != receiver:
            self.send(receiver, part)
            self.turn()
            return None
        self.turn()
        opened = part.copy()
        for peer in self.peers:
            opened ^= self.receive(peer, part.shape, np.uint64)
        return opened

    # -- random sharings
    # ---------------------------------------------------------------------------------------------------

    def operation(self) -> int:
        """The number of the next operation; each is used for one draw of each stream."""
        self._operation += 1
        return self._operation

    def random(self, shape: tuple[int, ...]) -> tuple[Words, list[Words]]:
        """A fresh sharing of uniform words: this party's masked part of their opening, and the planes of its
        share."""
        operation = self.operation()
        outputs = self._zeros(shape, self.scheme.planes + 1)
        _accumulate(self._sets, self._patterns, outputs, operation)
        self._add_zero(outputs[0], operation)
        return outputs[0], outputs[1:]

    def zero(self, shape: tuple[int, ...]) -> Words:
        """This party's part of a fresh XOR sharing of zeros."""
        [part] = self._zeros(shape, 1)
        self._add_zero(part, self.operation())
        return part

    def between(self, one: int, other: int, shape: tuple[int, ...], dtype: UInt) -> Any:
        """Fresh uniform elements that these two parties know and nobody else: alike at both, None at all
        others."""
        operation = self.operation()
        if self.me not in (one, other):
            return None
        return self._between[other if self.me == one else one].draw(shape, dtype, operation)

    def known_to(self, owner: int, shape: tuple[int, ...]) -> tuple[Words | None, list[Words]]:
        """A fresh sharing of uniform words that their owner knows: the words (at the owner), the planes of
        the own share."""
        operation = self.operation()
        ours = [number for number, members in enumerate(self.scheme.sets) if owner in members]
        outputs = self._zeros(shape, self.scheme.planes + 1)
        patterns = [self._patterns[number] & ~1 | (self.me == owner) for number in ours]
        _accumulate([self._sets[number] for number in ours], patterns, outputs, operation)
        return outputs[0] if self.me == owner else None, outputs[1:]

    def readers(self) -> Sharing:
        """A fresh sharing of uniform words, to be read piece by piece."""
        operation = self.operation()
        return Sharing(
            [stream.reader(operation) for stream in self._sets], self._patterns, self.scheme.planes
        )

    def release_bits(self, release: bytes) -> Callable[[tuple[int, ...]], list[Words]]:
        """Sharings of uniform words bound to a release: the same release gives the same words."""
        streams = [KeyStream(derive(key, NOISE, release)) for key in self._keys]
        drawn = 0

        def draw(shape: tuple[int, ...]) -> list[Words]:
            nonlocal drawn
            drawn += 1
            outputs = self._zeros(shape, self.scheme.planes)
            _accumulate(streams, [pattern >> 1 for pattern in self._patterns], outputs, drawn)
            return outputs

        return draw

    def _zeros(self, shape: tuple[int, ...], count: int) -> list[Words]:
        """Arrays to which streams are added."""
        return _zeros(self._sets[0].is_blank, shape, count)

    def _pattern(self, coefficient: int) -> int:
        """To which outputs a set's stream is added: bit 0 the opening's part, bit p + 1 plane p of the share."""
        return coefficient << 1 | self.scheme.opened(coefficient)

    def _add_zero(self, part: Words, operation: int) -> None:
        _accumulate(self._pairs, [1] * len(self._pairs), [part], operation)


class Sharing:
    """One sharing of uniform words, read in pieces."""

    def __init__(self, readers: Sequence[Reader], patterns: Sequence[int], planes: int) -> None:
        self._readers, self._patterns, self._planes = readers, patterns, planes

    def next(self, shape: tuple[int, ...]) -> list[Words]:
        """The planes of the own share of the next words."""
        outputs = _zeros(self._readers[0].is_blank, shape, self._planes)
        drawn = np.empty(shape, np.uint64)
        for reader, pattern in zip(self._readers, self._patterns, strict=True):
            reader.fill(drawn)
            _add(drawn, pattern >> 1, outputs)
        return outputs


def _zeros(blanks: bool, shape: tuple[int, ...], count: int) -> list[Words]:
    return [blank(shape, np.uint64) if blanks else np.zeros(shape, np.uint64) for _ in range(count)]


def _accumulate(
    streams: Sequence[KeyStream], patterns: Sequence[int], outputs: Sequence[Words], operation: int
) -> None:
    """Add each stream of an operation to the outputs that its pattern names; outputs are contiguous and
    alike."""
    if isinstance(outputs[0], Blank):
        return
    flat = [output.reshape(-1) for output in outputs]
    size = len(flat[0])
    if size <= _PIECE:
        for stream, pattern in zip(streams, patterns, strict=True):
            _add(stream.draw(size, np.uint64, operation), pattern, flat)
        return
    readers = [stream.reader(operation) for stream in streams]
    drawn = np.empty(_PIECE, np.uint64)
    for start in range(0, size, _PIECE):
        piece = [output[start : start + _PIECE] for output in flat]
        words = drawn[: len(piece[0])]
        for reader, pattern in zip(readers, patterns, strict=True):
            reader.fill(words)
            _add(words, pattern, piece)


def _add(words: Words, pattern: int, outputs: Sequence[Words]) -> None:
    for number, output in enumerate(outputs):
        if pattern >> number & 1:
            output ^= words
