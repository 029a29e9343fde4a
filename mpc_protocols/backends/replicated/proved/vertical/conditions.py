"""What must be 0 of an owner's columns, compared by those who hold their shares (`docs/design/malicious.md`
3.3).

The entries are 0 or 1 (`entries`). Linear in them, for each row:

    the cells of a joint, summed over the columns that an earlier joint of the owner lacks, are that joint's, summed likewise
    a joint that shares no column with an earlier one sums to the membership

Joints that were input for an earlier request are among the earlier ones, and the membership always is. So in
each row a joint is a row of zeros or has a single 1, all joints tell the same values, and all tables count
the same rows. For an honest owner the differences D are 0, and their shares are known to whoever compares
them:

    an owner p that computes      D = D_p + D_{p+1}; p-1 holds the one, p+1 the other: their hashes of D_p and -D_{p+1} are equal
    a contributor                 D = D_0 + D_1 + D_2; party j sends its left neighbour the hash of D_{j+1}, which that one
                                  compares with its own -(D_{j-1} + D_j)

so a hash tells nothing, and of any two honest parties one has compared with the other. For a contributor's
upper bits the sums are XOR. D depends on the owner's input alone, so a difference tells nothing about others.
32 bytes a comparison, 1 round for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.sharing.blame import one_of
from mpc_protocols.backends.replicated.sharing.copies import DIGEST_BYTES
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.backends.replicated.vertical.matrices import Matrix
from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import Clique

Link = tuple[Clique, Clique, Clique]
"""Two joints, the later one first, and the columns whose cells they must have alike."""


def links(joints: Sequence[Clique], known: int = 0) -> list[Link]:
    """What an owner's joints must have in common: each with earlier ones, in the order given; the first one
    with nothing.

    known: of how many joints, the first ones, this is known. Of the column sets that a joint shares with
    earlier ones the largest are enough: joints that agree on a set agree on its subsets, and the earlier ones
    agree with each other.
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
        self.owner = owner
        self._sizes, self._links = sizes, links((*known, *joints), len(known))
        self.compared = frozenset(other for _, other, _ in self._links) | frozenset(joints)
        """The joints that `add` takes."""
        self._left, self._right = owner == trio.right, owner == trio.left
        """Whether this party is the left or the right neighbour of an owner that computes."""
        self._sent = _hash()
        self._expected = _hash() if owner >= 3 else self._sent
        self.peers: tuple[int, int] | None = None
        """Who is sent this party's hash, and who sends one; None at an owner that computes."""
        if owner >= 3:
            self.peers = trio.left, trio.right
        elif trio.me != owner:
            self.peers = (3 - owner - trio.me,) * 2

    def add(self, columns: Mapping[Clique, Matrix]) -> None:
        """The next rows of all joints."""
        for link in self._links if self.peers else ():
            first, second = columns[link[0]], columns[link[1]]
            if self._left:
                self._sent.update(_bytes(self._difference(first.next, second.next, link)))
            elif self._right:
                self._sent.update(_bytes(-self._difference(first.own, second.own, link)))
            else:
                own = self._difference(first.own, second.own, link)
                following = self._difference(first.next, second.next, link)
                self._sent.update(_bytes(following))
                self._expected.update(_bytes(-(own + following)))

    def add_zero_bits(self, own: Elements, following: Elements) -> None:
        """Of a contributor: XOR-shared integers that must be 0."""
        self._sent.update(_bytes(following))
        self._expected.update(_bytes(own ^ following))

    def own_hash(self) -> bytes:
        """This party's hash."""
        return self._sent.digest()

    def expected(self) -> bytes:
        """The hash that comes from an honest party if all is as it must be."""
        return self._expected.digest()

    def _difference(self, part: Elements | None, of_other: Elements | None, link: Link) -> Elements:
        """Of a component that this party holds."""
        assert part is not None and of_other is not None
        joint, other, columns = link
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
    """Compare what everybody holds of all owners' conditions. 1 round. Raises `ProtocolAborted`, which names
    the owner."""
    compared = [(of, of.peers) for of in conditions if of.peers]
    for of, (receiver, _) in compared:
        trio.wire.send(receiver, of.own_hash())
    trio.turn()
    for of, (_, sender) in compared:
        if bytes(trio.wire.receive(sender, DIGEST_BYTES)) != of.expected():
            raise ProtocolAborted(
                f"{one_of((of.owner, sender), trio.me)}. Party {sender} says that party {of.owner} shared columns of which a "
                "row names no value or several, or other rows than before; nothing was opened of them; stop the run."
            )


def _bytes(values: NDArray[Any]) -> bytes:
    return np.ascontiguousarray(values).tobytes()


def _hash() -> blake2b:
    return blake2b(digest_size=DIGEST_BYTES, person=b"cosynth rows")
