"""What tables over several owners' columns are made of: joints of one owner's columns, and row-wise products of them.

A table is LEFT^T RIGHT (`docs/design/vertical.md` 2): LEFT a `Joint`, RIGHT a `Factor`. Public: names only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mpc_protocols.functionality import Clique


@dataclass(frozen=True, order=True)
class Joint:
    """The joint of some columns of one owner."""

    owner: int
    columns: Clique


@dataclass(frozen=True, order=True)
class Factor:
    """The row-wise product of joints of different owners, and of all memberships if `restricted`. No part: memberships alone."""

    parts: tuple[Joint, ...]
    restricted: bool

    def steps(self) -> Iterator[Factor]:
        """The factors on the way to this one that take a secure product, itself last."""
        for count in range(1, len(self.parts) + 1):
            if count > 1 or self.restricted:
                yield Factor(self.parts[:count], self.restricted)
