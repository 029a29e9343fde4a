"""The three parties agree on the bundles of their run: the intersection of what they hold.

    each to both others   hash of its own list, 32 bytes; when it has theirs, the list: 32 bytes a bundle, ascending

2 rounds. The list of a party is fixed before it sees another's, so that nobody chooses whom to leave out by who is there; a party
can leave out whom it likes in advance, which harms nobody's privacy (who takes part is public, and a bundle runs once).

Who learns what: which bundles the others hold. Nothing of their content.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from mpc_protocols.engine.prg import binding
from mpc_protocols.errors import ProtocolAborted
from parties.inbox.store import AgreedList

if TYPE_CHECKING:
    from mpc_protocols.wire import Wire

HASH = 32


def agree(wire: Wire, held: Mapping[bytes, str], enrolled: int, names: Collection[str]) -> AgreedList:
    """The bundles that all computing parties hold. Blocks.

    held: this party's, hash and contributor. enrolled: the most bundles there can be. names: of the computing parties, in order.
    Raises `ProtocolAborted` for a list that is none, or not the one announced.
    """
    others = [peer for peer in range(wire.computing) if peer != wire.me]
    own = b"".join(sorted(held))
    for peer in others:
        wire.send(peer, binding(b"inbox", own))
    announced = {peer: bytes(wire.receive(peer, HASH)) for peer in others}
    for peer in others:
        wire.send(peer, own)
    common = set(held)
    for peer in others:
        told = bytes(wire.receive_up_to(peer, HASH * enrolled))
        entries = [told[at : at + HASH] for at in range(0, len(told), HASH)]
        if len(told) % HASH or entries != sorted(set(entries)) or binding(b"inbox", told) != announced[peer]:
            raise ProtocolAborted(
                f"Party {list(names)[peer]} sent a list of bundles that is not the one it announced; nothing is added up."
            )
        common &= set(entries)
    return AgreedList({name: held[name] for name in sorted(common)})
