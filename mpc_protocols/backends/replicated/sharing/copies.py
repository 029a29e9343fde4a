"""What two parties hold alike is compared before it is used: a hash of 32 bytes from its second holder.

Where an honest party goes on with one value and another honest party with another one, a cheat may learn from
the difference what no single value would tell. Nearly every message of the engine has one sender and one
receiver, so that its content is by definition the value (`trio`). There are two exceptions:

    openings              every component is held by two parties; who lacks it gets it from one and its hash from the other
    contributors' data    a contributor sends a component, or the seed of one, to the two parties that hold it; they compare

A hash tells nothing to whoever holds what is hashed, or is to have it in the same step. Semi-honest parties
never differ; a party that does is stopped here, with both named that may have lied: the third cannot tell
which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.sharing.blame import one_of
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import UInt
from mpc_protocols.engine.blank import Blank
from mpc_protocols.errors import ProtocolAborted

DIGEST_BYTES = 32


@dataclass(frozen=True)
class Copy:
    """An array that `sender` sent to this party and, alike, to `peer`."""

    sender: int
    peer: int
    array: NDArray[Any]


def receive_missing(trio: Trio, own: NDArray[Any], following: NDArray[Any]) -> NDArray[Any]:
    """Exchange components: the one that this party lacks of a value that is opened. 1 round. Raises
    `ProtocolAborted`.

    own, following: the components it holds. The left neighbour holds `own` as its second one and sends its
    first; the right one holds `following` as its first, and its second is what this party lacks.
    """
    trio.send(trio.right, own)
    confirm(trio, trio.left, following)
    trio.turn()
    return receive_confirmed(
        trio, trio.left, trio.right, own.shape, own.dtype.type, "a value that was to be opened"
    )


def confirm(trio: Trio, receiver: int, part: NDArray[Any]) -> None:
    """Send the hash of what the receiver gets from another party; nothing where it is empty."""
    if part.size:
        trio.wire.send(receiver, digest(part))


def receive_confirmed(
    trio: Trio, sender: int, other: int, shape: int | tuple[int, ...], dtype: UInt, of: str
) -> NDArray[Any]:
    """What one party sends and another one, which holds it too, `confirm`s.

    of: a part of what it is. Raises `ProtocolAborted`.
    """
    part = trio.receive(sender, shape, dtype)
    if part.size and bytes(trio.wire.receive(other, DIGEST_BYTES)) != digest(part):
        raise ProtocolAborted(
            f"Parties {sender} and {other} sent different parts of {of}: one of them did not follow the protocol; stop the run."
        )
    return part


def same_copies(trio: Trio, copies: Sequence[Copy]) -> None:
    """Compare copies with their other holders, a hash each way. 1 round for all together. Raises
    `ProtocolAborted`."""
    for copy in copies:
        trio.wire.send(copy.peer, digest(copy.array))
    trio.turn()
    for copy in copies:
        if bytes(trio.wire.receive(copy.peer, DIGEST_BYTES)) != digest(copy.array):
            raise ProtocolAborted(
                f"{one_of((copy.sender, copy.peer), trio.me)}. Party {copy.peer} says "
                f"that party {copy.sender} sent it another copy of its data than party {trio.me} has; stop the run."
            )


def digest(array: NDArray[Any]) -> bytes:
    """The hash of an array's bytes; zeros for a blank one."""
    if isinstance(array, Blank):
        return bytes(DIGEST_BYTES)
    content = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    return blake2b(content, digest_size=DIGEST_BYTES, person=b"cosynth copy").digest()
