"""What must be 0 of an owner's columns, compared by those who hold their shares (`docs/design/malicious.md` 3.3).

The entries are 0 or 1 (`entries`). Linear in them, for each row:

    the cells of a joint, summed over the columns that an earlier joint of the owner lacks, are that joint's, summed likewise
    a joint that shares no column with an earlier one sums to the membership
    the membership is that of the owner's first input of the run

So in each row a joint is a row of zeros or has a single 1, all joints tell the same values, and all tables count the same rows.
For an honest owner the differences D are 0, and their shares are known to whoever compares them:

    an owner p that computes      D = D_p + D_{p+1}; p-1 holds the one, p+1 the other: their hashes of D_p and -D_{p+1} are equal
    a contributor                 D = D_0 + D_1 + D_2; party j sends its left neighbour the hash of D_{j+1}, which that one
                                  compares with its own -(D_{j-1} + D_j)

so a hash tells nothing, and of any two honest parties one has compared with the other. For a contributor's upper bits the sums
are XOR. D depends on the owner's input alone, so a difference tells nothing about others. 32 bytes a comparison, 1 round for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import Clique
from mpc_protocols.replicated.sharing.copies import DIGEST_BYTES
from mpc_protocols.replicated.sharing.trio import Trio
from mpc_protocols.replicated.vertical.matrices import Matrix

Link = tuple[Clique, Clique, Clique]
"""Two joints, the later one first, and the columns whose cells they must have alike."""
MEMBERSHIP: Final[Clique] = ()


def links(joints: Sequence[Clique]) -> list[Link]:
    """What an owner's joints must have in common: each with earlier ones, in the order given; the first one with nothing.

    Of the column sets that a joint shares with earlier ones the largest are enough: joints that agree on a set agree on its
    subsets, and the earlier ones agree with each other.
    """
    found: list[Link] = []
    for place, joint in enumerate(joints):
        common: dict[frozenset[str], Clique] = {}
        for other in joints[:place]:
            common.setdefault(frozenset(joint) & frozenset(other), other)
        for columns, other in common.items():
            if not any(columns < more for more in common):
                found.append((joint, other, tuple(name for name in joint if name in columns)))
    return found


class Conditions:
    """What one party has to compare about one owner's columns, block by block of rows."""

    def __init__(self, trio: Trio, owner: int, joints: Sequence[Clique], sizes: Mapping[str, int]) -> None:
        """joints: of the owner's columns, in the order in which their cells stand side by side."""
        self._trio, self.owner = trio, owner
        self._sizes, self._links = sizes, links(joints)
        self._joints, ends = {}, 0
        for joint in joints:
            width = self._width(joint)
            self._joints[joint] = slice(ends, ends + width)
            ends += width
        self._first = joints[0]
        self._sent, self._expected = (
            blake2b(digest_size=DIGEST_BYTES, person=b"cosynth rows") for _ in range(2)
        )

    def add(self, columns: Matrix) -> Matrix:
        """The next rows of all joints. Returns the owner's membership, (rows, 1)."""
        parts = [None if part is None else self._differences(part) for part in (columns.own, columns.next)]
        self._compare(*parts)
        return Matrix(
            (columns.shape[0], 1),
            *(None if part is None else self._membership(part) for part in (columns.own, columns.next)),
        )

    def add_zeros(self, zeros: Matrix) -> None:
        """Further numbers that must be 0, such as a membership less the first one."""
        self._compare(zeros.own, zeros.next)

    def add_zero_bits(self, own: Elements, following: Elements) -> None:
        """Of a contributor: XOR-shared integers that must be 0."""
        self._sent.update(_bytes(following))
        self._expected.update(_bytes(own ^ following))

    def messages(self) -> list[tuple[int, bytes]]:
        """To whom this party sends which hash."""
        trio = self._trio
        if self.owner >= 3:
            return [(trio.left, self._sent.digest())]
        if trio.me == self.owner:
            return []
        return [(trio.left if trio.left != self.owner else trio.right, self._sent.digest())]

    def hold(self, said: Mapping[int, bytes]) -> int | None:
        """The party whose hash differs from this one's; None if none does. said: what others have sent."""
        trio = self._trio
        if self.owner < 3 and trio.me == self.owner:
            return None
        peer = trio.right if self.owner >= 3 or trio.right != self.owner else trio.left
        expected = self._expected if self.owner >= 3 else self._sent
        return None if said[peer] == expected.digest() else peer

    def senders(self) -> list[int]:
        """Who sends this party a hash."""
        trio = self._trio
        if self.owner >= 3:
            return [trio.right]
        if trio.me == self.owner:
            return []
        return [trio.right if trio.right != self.owner else trio.left]

    def _compare(self, own: Elements | None, following: Elements | None) -> None:
        if self.owner >= 3:
            assert own is not None and following is not None
            self._sent.update(_bytes(following))
            self._expected.update(_bytes(-(own + following)))
        elif self._trio.right == self.owner:
            assert following is not None
            self._sent.update(_bytes(following))
        elif self._trio.left == self.owner:
            assert own is not None
            self._sent.update(_bytes(-own))

    def _membership(self, part: Elements) -> Elements:
        membership: Elements = part[:, self._joints[self._first]].sum(axis=1, dtype=part.dtype, keepdims=True)
        return membership

    def _differences(self, part: Elements) -> Elements:
        found = [
            self._summed(part, joint, columns) - self._summed(part, other, columns)
            for joint, other, columns in self._links
        ]
        return np.concatenate(found, axis=1) if found else np.zeros((len(part), 0), part.dtype)

    def _summed(self, part: Elements, joint: Clique, columns: Clique) -> Elements:
        """A component of a joint's cells, summed over all but these columns, which stand in its order."""
        cells = part[:, self._joints[joint]].reshape(len(part), *(self._sizes[name] for name in joint))
        axes = tuple(axis for axis, name in enumerate(joint, start=1) if name not in columns)
        left = [name for name in joint if name in columns]
        summed = cells.sum(axis=axes, dtype=part.dtype) if axes else cells
        order = [0, *(1 + left.index(name) for name in columns)]
        flat: Elements = summed.transpose(order).reshape(len(part), -1)
        return flat

    def _width(self, joint: Clique) -> int:
        return int(np.prod([self._sizes[name] for name in joint], dtype=np.int64))


def compare(trio: Trio, conditions: Sequence[Conditions]) -> None:
    """Compare what everybody holds of all owners' conditions. 1 round. Raises `ProtocolAborted`, which names the owner."""
    for of in conditions:
        for peer, digest in of.messages():
            trio.wire.send(peer, digest)
    trio.turn()
    for of in conditions:
        said = {peer: bytes(trio.wire.receive(peer, DIGEST_BYTES)) for peer in of.senders()}
        if (other := of.hold(said)) is not None:
            raise ProtocolAborted(
                f"Party {of.owner} shared columns of which a row names no value or several, or other rows than before, or party "
                f"{other} or {trio.me} says so falsely; nothing was opened of them; stop the run."
            )


def _bytes(values: NDArray[Any]) -> bytes:
    return np.ascontiguousarray(values).tobytes()
