"""The first step of `merge3` at a computing party: sizes and types of the owners' lists, the same at all three.
Nothing is allocated for a list before its size is known to be allowed."""

from __future__ import annotations

from collections.abc import Sequence

from mpc_protocols.backends.replicated.merge3.keys import Keys
from mpc_protocols.backends.replicated.merge3.public import COUNT_BYTES, STREAM, announcement, check_size
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.psu.functionality import AlignmentSpec, Context
from mpc_protocols.psu.groups.hashing import digest
from mpc_protocols.psu.identifiers.normalise import KINDS
from mpc_protocols.wire import Wire

MAX_COLUMNS = 255


class AnnouncedParty:
    """One of the three. sizes: of all owners, in their order, once they are announced."""

    def __init__(
        self, wire: Wire, own: Keys | None, kinds: Sequence[str], spec: AlignmentSpec, context: Context
    ) -> None:
        """own, kinds: an owner's list and its key columns' types; None without data."""
        self.wire, self.own, self.kinds, self.spec, self.context = wire, own, kinds, spec, context
        self.sid = context.salt(spec, wire.session_id)
        self.trio = Trio(wire, STREAM)
        self.side = context.side(wire.me)

    def announce(self) -> None:
        """Sizes and types of all owners, checked before anything is allocated; the same at all three."""
        mine = b"" if self.own is None else announcement(self.own, self.kinds)
        if self.own is not None:
            for peer in (self.trio.left, self.trio.right):
                self.wire.send(peer, mine)
        announcements = [
            mine
            if side == self.side
            else bytes(self.wire.receive_up_to(owner.number, COUNT_BYTES + MAX_COLUMNS))
            for side, owner in enumerate(self.context.owners)
        ]
        self.sizes = [self._size(side, payload) for side, payload in enumerate(announcements)]
        self._check_kinds([payload[COUNT_BYTES:] for payload in announcements])
        self.announced = digest(b"psu merge3 sizes", self.sid, *announcements)
        self.compare(self.announced, "was told other sizes or column types")

    def compare(self, value: bytes, what: str) -> None:
        """Raise `ProtocolAborted` unless the other two hold the same 32 bytes."""
        other = self.trio.differing(value)
        if other is not None:
            raise ProtocolAborted(f"Party {self.context.name(other)} {what}; the alignment was stopped.")

    def _size(self, side: int, payload: bytes) -> int:
        """An announced size that is allowed."""
        if len(payload) < COUNT_BYTES:
            raise ProtocolAborted(
                f"Party {self.context.owners[side].name} announced no size; the alignment was stopped."
            )
        count = int.from_bytes(payload[:COUNT_BYTES], "big")
        check_size(self.spec, self.context, side, count, self.context.owners[side].name)
        return count

    def _check_kinds(self, codes: Sequence[bytes]) -> None:
        """All owners hold the same types in their key columns: a number never equals a text that looks like
        it."""
        first = self.context.owners[0].name
        for owner, code in zip(self.context.owners, codes, strict=True):
            if len(code) != len(codes[0]) or any(kind >= len(KINDS) for kind in code):
                raise ProtocolAborted(
                    f"Party {owner.name} announced other key columns than party {first}; the alignment was "
                    "stopped."
                )
        for column, kinds in enumerate(zip(*codes, strict=True)):
            found = [
                (KINDS[kind], owner.name) for kind, owner in zip(kinds, self.context.owners, strict=True)
            ]
            typed = [pair for pair in found if pair[0] != "untyped"]
            for kind, name in typed[1:]:
                if kind != typed[0][0]:
                    raise ProtocolAborted(
                        f"Key column {column + 1} of the alignment holds {kind} at party {name} and "
                        f"{typed[0][0]} at party {typed[0][1]}; give all the same type."
                    )
