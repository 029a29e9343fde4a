"""Rows of words and names, in a secret order, to the owners whose labels they bear (`merge3`).

    owner p computes     it holds two components; p + 1 sends the third: 16 bytes a row
    owner contributes    one party sends two components added up, another the third; the roles rotate

Checked, where a computing party may deviate: what an owner lacks comes from one holder and its hash from the
other one, so that two that hold it alike must lie to change it.

    owner p computes     p + 1 sends the third component, p + 2 its hash
    owner contributes    party j sends component j and the hash of component j + 1

An owner is sent the components of its own rows and nothing else. Blocks of all owners go in turn, so that no
party waits for another's window. Threat model and assumption: `merge3.protocol`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.merge3.lists import blocks
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.copies import DIGEST_BYTES, digest
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.arrays import receive_array
from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.wire import Wire

Places = NDArray[np.int64]


def holders(index: int) -> tuple[int, int, int]:
    """Towards a contributor: who sends two components of its rows, who the third, and who the union."""
    return index % 3, (index + 1) % 3, (index + 2) % 3


def hand_over(
    trio: Trio, owner: int, index: int | None, mixed: Sequence[BitShare], places: Places, checked: bool
) -> None:
    """A block of rows to an owner, as far as this party sends it. index: of a contributor, None of an owner
    that computes."""
    if index is None:
        if trio.me == (owner + 1) % 3:
            trio.send(owner, np.stack([x.next[places] for x in mixed]))
        elif checked and trio.me == (owner + 2) % 3 and len(places):
            trio.wire.send(owner, digest(np.stack([x.own[places] for x in mixed])))
    elif checked:
        trio.send(owner, np.stack([x.own[places] for x in mixed]))
        if len(places):
            trio.wire.send(owner, digest(np.stack([x.next[places] for x in mixed])))
    else:
        sum_of_two, third, _ = holders(index)
        if trio.me == sum_of_two:
            trio.send(owner, np.stack([x.own[places] ^ x.next[places] for x in mixed]))
        elif trio.me == third:
            trio.send(owner, np.stack([x.next[places] for x in mixed]))


def receive(trio: Trio, mixed: Sequence[BitShare], places: Places, checked: bool) -> Words:
    """A computing owner's block, (2, rows): words and names. Raises `ProtocolAborted` if the holders
    disagree."""
    third = trio.receive(trio.right, (2, len(places)), np.uint64)
    if checked and len(places) and bytes(trio.wire.receive(trio.left, DIGEST_BYTES)) != digest(third):
        _differ(trio.right, trio.left)
    return np.stack([x.own[places] ^ x.next[places] ^ rest for x, rest in zip(mixed, third, strict=True)])


def receive_all(wire: Wire, index: int, own: Words, checked: bool) -> Words:
    """A contributor's rows, (2, n). own: the words that it has shared, (n,).

    Raises `ProtocolAborted` if the holders of a component disagree.
    """
    received = np.zeros_like(own, shape=(2, len(own)))
    senders = range(3) if checked else holders(index)[:2]
    for block in blocks(len(own)):
        part = received[:, block]
        digests = []
        for sender in senders:
            came = receive_array(wire, sender, part.shape, np.uint64)
            part ^= came
            if checked:
                digests.append((digest(came), bytes(wire.receive(sender, DIGEST_BYTES))))
        for component, (found, _) in enumerate(digests):
            if found != digests[component - 1][1]:
                _differ(component, (component - 1) % 3)
    return received


def _differ(one: int, other: int) -> NoReturn:
    raise ProtocolAborted(
        f"Parties {one} and {other} returned different parts of this party's records: one of them did not follow the protocol; "
        "stop the run."
    )
