"""Invented inputs of the kernels, the same at every party, and the comparison with what should come out.

The generator is seeded: these are nobody's data, and a benchmark repeats.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.sharing.ring import RingShare, share_own
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import UInt
from mpc_protocols.engine.latency import agree_on_delay, latency_bytes_of
from mpc_protocols.errors import CosynthError
from mpc_protocols.functionality import USUAL_LEADER
from mpc_protocols.wire import Wire


def trio_of(wire: Wire) -> Trio:
    """This party's end of a computation of three, which knows what a round is worth here (`engine.latency`)."""
    return Trio(wire, latency_bytes=latency_bytes_of(agree_on_delay(wire, USUAL_LEADER)))


def ring_of(bits: int) -> UInt:
    """The narrowest ring for numbers of so many bits."""
    return np.uint32 if bits <= 32 else np.uint64


def vector(cells: int, bits: int, seed: int) -> NDArray[np.int64]:
    """Uniform integers from -(2^(bits-1) - 1) to 2^(bits-1) - 1."""
    top = (1 << bits - 1) - 1
    return np.random.default_rng([seed, cells, bits]).integers(-top, top, cells, endpoint=True)


def counts(cells: int, rows: int, seed: int) -> NDArray[np.int64]:
    """An uneven table of counts that adds up to `rows`."""
    rng = np.random.default_rng([seed, cells, rows])
    edges = np.sort(rng.integers(0, rows, cells - 1, endpoint=True))
    return np.diff(np.concatenate(([0], edges, [rows])))


def shared(trio: Trio, values: NDArray[Any]) -> RingShare:
    """A sharing of the values with three random components: P0 inputs them, the others zeros."""
    return share_own(trio, values if trio.me == 0 else np.zeros_like(values))


def expect(bench: str, result: NDArray[Any], expected: NDArray[Any]) -> None:
    """Raise `CosynthError` unless the two are equal."""
    if result.shape != expected.shape or not np.array_equal(result, expected):
        wrong = int(np.count_nonzero(result != expected)) if result.shape == expected.shape else result.size
        raise CosynthError(
            f"The benchmark {bench} came to a wrong result: {wrong} of {expected.size} values are not plain "
            "NumPy's; its figures mean nothing, please report it."
        )
