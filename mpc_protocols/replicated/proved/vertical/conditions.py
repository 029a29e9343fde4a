"""What must be 0 of an owner's columns, compared by those who hold their shares (`docs/design/malicious.md` 3.3).

The entries are 0 or 1 (`entries`). Linear in them, for each row:

    the cells of a joint, summed over the columns that an earlier joint of the owner lacks, are that joint's, summed likewise
    a joint that shares no column with an earlier one sums to the membership

Joints that were input for an earlier request are among the earlier ones, and the membership always is.
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
from typing import Any

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


def links(joints: Sequence[Clique], known: int = 0) -> list[Link]:
    """What an owner's joints must have in common: each with earlier ones, in the order given; the first one with nothing.

    known: of how many joints, the first ones, this is known. Of the column sets that a joint shares with earlier ones the largest
    are enough: joints that agree on a set agree on its subsets, and the earlier ones agree with each other.
    """
    found: list[Link] = []
    for place, joint in enumerate(joints):
        common: dict[frozenset[str], Clique] = {}
        for other in joints[: place if place >= known else 0]:
            common.setdefault(frozenset(joint) & frozenset(other), other)
        for columns, other in common.items():
            if not any(columns < more for more in common):
                found.append((joint, other, tuple(name for name in joint if name in columns)))
    return found


class Conditions:
    """What one party has to compare about one owner's columns, block by block of rows."""

    def __init__(
        self,
        trio: Trio,
        owner: int,
        joints: Sequence[Clique],
        sizes: Mapping[str, int],
        known: Sequence[Clique] = (),
    ) -> None:
        """joints: that the owner inputs. known: that it has input before, of which all this is known."""
        self._trio, self.owner = trio, owner
        self._sizes, self._links = sizes, links((*known, *joints), len(known))
        self.compared = frozenset(other for _, other, _ in self._links) | frozenset(joints)
        """The joints that `add` takes."""
        self._sent, self._expected = (
            blake2b(digest_size=DIGEST_BYTES, person=b"cosynth rows") for _ in range(2)
        )

    def add(self, columns: Mapping[Clique, Matrix]) -> None:
        """The next rows of all joints."""
        for joint, other, shared in self._links:
            first, second = columns[joint], columns[other]
            self._compare(
                self._difference(first.own, joint, second.own, other, shared, self._holds(first=True)),
                self._difference(first.next, joint, second.next, other, shared, self._holds(first=False)),
            )

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

    def _holds(self, first: bool) -> bool:
        """Whether this party has to compare its first component, or its second one."""
        return self.owner >= 3 or self.owner == (self._trio.left if first else self._trio.right)

    def _difference(
        self,
        part: Elements | None,
        joint: Clique,
        of_other: Elements | None,
        other: Clique,
        columns: Clique,
        wanted: bool,
    ) -> Elements | None:
        if not wanted:
            return None
        assert part is not None and of_other is not None
        return self._summed(part, joint, columns) - self._summed(of_other, other, columns)

    def _summed(self, part: Elements, joint: Clique, columns: Clique) -> Elements:
        """A component of a joint's cells, summed over all but these columns, which then stand in this order."""
        cells = part.reshape(len(part), *(self._sizes[name] for name in joint))
        axes = tuple(axis for axis, name in enumerate(joint, start=1) if name not in columns)
        left = [name for name in joint if name in columns]
        summed = cells.sum(axis=axes, dtype=part.dtype) if axes else cells
        order = [0, *(1 + left.index(name) for name in columns)]
        flat: Elements = summed.transpose(order).reshape(len(part), -1)
        return flat


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
