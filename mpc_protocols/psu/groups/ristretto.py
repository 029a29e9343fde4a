"""ristretto255 (RFC 9496) through `rbcl`'s libsodium, over all cores.

A group of prime order 2^252 + 27742317777372353535851937790883648493 with canonical 32-byte encodings;
hash-to-group is RFC 9380 appendix B: expand_message_xmd with SHA-512 to 64 bytes, then the map of RFC 9496
4.3.4. libsodium multiplies in constant time. It refuses non-canonical and negative encodings and results
equal to the identity; `is_valid_point` accepts the identity, which `check` therefore tests on its own
(`docs/design/psu.md` 1.4).

The library's functions are called with addresses into flat buffers: no object per element, 0.3 us of Python
per call against 47 us of curve arithmetic, during which ctypes releases the interpreter lock, so threads use
all cores (1.8x on two). `rbcl` unpacks the library into a temporary file of 2.8 MB per process and leaves it
there: it is removed once loaded. Exponents live in Python integers for the time of a run; they are dropped
with it and cannot be wiped reliably.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice, repeat

import numpy as np
from numpy.typing import NDArray
from rbcl import _sodium  # type: ignore[import-untyped]

from mpc_protocols.psu.groups.group import Elements, Group, InvalidElement
from mpc_protocols.psu.groups.hashing import expander

WORK_ITEM = 1024
"""Elements per piece of work of a thread."""
DOMAIN = b"cosynth-psu-v1-ristretto255_XMD:SHA-512_R255MAP_RO_"


if os.path.dirname(_sodium._name) == tempfile.gettempdir():  # and never a library of the system's
    with suppress(OSError):
        os.unlink(_sodium._name)


def _function(name: str, pointers: int) -> Callable[..., int]:
    """A libsodium function of `pointers` addresses; an object of its own, so that rbcl's prototypes stay as
    they are."""
    function = _sodium[name]
    function.argtypes = [ctypes.c_void_p] * pointers
    function.restype = ctypes.c_int
    return function  # type: ignore[no-any-return]


_multiply = _function("crypto_scalarmult_ristretto255", 3)
_multiply_base = _function("crypto_scalarmult_ristretto255_base", 2)
_add = _function("crypto_core_ristretto255_add", 3)
_from_hash = _function("crypto_core_ristretto255_from_hash", 2)
_valid = _function("crypto_core_ristretto255_is_valid_point", 1)


def _addresses(rows: NDArray[np.uint8]) -> range:
    """Addresses of the rows of a contiguous (n, width) array."""
    start, width = rows.ctypes.data, rows.shape[1]
    return range(start, start + width * len(rows), width)


class Ristretto255(Group):
    """ristretto255 on `threads` threads (by default as many as this process may use cores)."""

    name = "ristretto255"
    order = 2**252 + 27742317777372353535851937790883648493
    element_bytes = 32
    generator = bytes.fromhex("e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76")

    def __init__(self, threads: int | None = None) -> None:
        super().__init__()
        self.threads = threads or len(os.sched_getaffinity(0))

    def hash_many(self, entries: Sequence[bytes], sid: bytes) -> Elements:
        expand = expander(DOMAIN + sid, 64)
        out = self.rows(len(entries))
        waiting: Iterator[bytes] = iter(entries)
        for start in range(0, len(entries), 16 * WORK_ITEM):
            uniform = np.frombuffer(b"".join(map(expand, islice(waiting, 16 * WORK_ITEM))), np.uint8).reshape(
                -1, 64
            )
            self._map(uniform, out[start : start + len(uniform)])
        self.operations.hashes += len(entries)
        return out

    def power(self, elements: Elements, exponent: int) -> Elements:
        scalar = np.frombuffer(self._scalar(exponent), np.uint8)
        return self._multiply(elements, repeat(scalar.ctypes.data))

    def power_each(self, elements: Elements, exponents: Sequence[int]) -> Elements:
        if len(exponents) != len(elements):
            raise ValueError(f"{len(exponents)} exponents were given for {len(elements)} elements.")
        scalars = self._scalars(exponents)
        return self._multiply(elements, _addresses(scalars))

    def generate(self, exponents: Sequence[int]) -> Elements:
        scalars = self._scalars(exponents)
        out = self.rows(len(scalars))
        targets, sources = _addresses(out), _addresses(scalars)
        self._spread(len(out), lambda part: any(map(_multiply_base, targets[part], sources[part])))
        self.operations.generated += len(out)
        return out

    def product(self, elements: Elements) -> Elements:
        source = self._rows(elements)
        sums = np.zeros((-(-len(source) // WORK_ITEM), 32), np.uint8)  # 32 zero bytes encode the identity
        places, addresses = _addresses(sums), _addresses(source)

        def fold(part: slice) -> bool:
            place = places[part.start // WORK_ITEM]
            return any(map(_add, repeat(place), repeat(place), addresses[part]))

        if self._spread(len(source), fold):
            raise InvalidElement("a factor is no canonical encoding of a group element")
        total = np.zeros((1, 32), np.uint8)
        any(map(_add, repeat(total.ctypes.data), repeat(total.ctypes.data), places))
        self.operations.products += len(source)
        return total

    def check(self, elements: Elements) -> None:
        source = self._rows(elements)
        addresses = _addresses(source)
        if not source.any(axis=1).all() or self._spread(
            len(source), lambda part: not all(map(_valid, addresses[part]))
        ):
            raise InvalidElement("an element is the identity or not canonically encoded")

    def _map(self, uniform: NDArray[np.uint8], out: Elements) -> None:
        targets, sources = _addresses(out), _addresses(uniform)
        self._spread(len(out), lambda part: any(map(_from_hash, targets[part], sources[part])))

    def _multiply(self, elements: Elements, scalars: range | repeat[int]) -> Elements:
        source = self._rows(elements)
        out = self.rows(len(source))
        targets, sources = _addresses(out), _addresses(source)

        def work(part: slice) -> bool:
            factors = scalars if isinstance(scalars, repeat) else scalars[part]
            return any(map(_multiply, targets[part], factors, sources[part]))

        if self._spread(len(source), work):
            raise InvalidElement("an element is the identity or not canonically encoded")
        self.operations.powers += len(source)
        return out

    def _scalar(self, exponent: int) -> bytes:
        if not 0 < exponent < self.order:
            raise ValueError("An exponent must lie between 1 and the group's order minus 1.")
        return exponent.to_bytes(32, "little")

    def _scalars(self, exponents: Sequence[int]) -> NDArray[np.uint8]:
        return np.frombuffer(b"".join(map(self._scalar, exponents)), np.uint8).reshape(-1, 32)

    def _rows(self, elements: Elements) -> Elements:
        if elements.ndim != 2 or elements.shape[1] != 32 or elements.dtype != np.uint8:
            raise InvalidElement("elements are not rows of 32 bytes")
        return np.ascontiguousarray(elements)

    def _spread(self, count: int, work: Callable[[slice], bool]) -> bool:
        """Run `work` on slices of 0 .. count - 1, in parallel; whether any of them returned True (a refusal)."""
        parts = [slice(start, min(start + WORK_ITEM, count)) for start in range(0, count, WORK_ITEM)]
        if self.threads == 1 or len(parts) < 2:
            return any(map(work, parts))
        with ThreadPoolExecutor(min(self.threads, len(parts)), "ristretto") as pool:
            return any(list(pool.map(work, parts)))
