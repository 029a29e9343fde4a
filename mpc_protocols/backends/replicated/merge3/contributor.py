"""The part of an owner that does not compute in `merge3`: it shares its keys, and gets its rows and the union
(`protocol`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpc_protocols.backends.replicated.merge3.delivery import holders, receive_all
from mpc_protocols.backends.replicated.merge3.keys import Keys
from mpc_protocols.backends.replicated.merge3.lists import blocks, send_list
from mpc_protocols.backends.replicated.merge3.public import (
    COUNT_BYTES,
    DIGEST_BYTES,
    announcement,
    check_size,
    table_digest,
)
from mpc_protocols.engine.arrays import receive_array
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context
from mpc_protocols.wire import Wire


def contribute(
    wire: Wire, own: Keys, kinds: Sequence[str], spec: AlignmentSpec, context: Context
) -> Alignment:
    """The part of an owner that does not compute: it shares its keys, and gets its rows and the union."""
    sid = context.salt(spec, wire.session_id)
    index = [owner.number for owner in context.owners if owner.number >= wire.computing].index(wire.me)
    size = len(own.words)
    for peer in range(3):
        wire.send(peer, announcement(own, kinds))
    send_list(wire, index, own.words)
    teller = holders(index)[2]
    tables = [bytes(wire.receive(peer, DIGEST_BYTES)) for peer in range(3)]
    counts = np.frombuffer(wire.receive(teller, COUNT_BYTES * (len(context.owners) + 1)), ">u8").tolist()
    sizes, count = counts[:-1], counts[-1]
    for side, announced in enumerate(sizes):
        check_size(spec, context, side, announced, context.name(teller))
    if sizes[context.side(wire.me) or 0] != size or not own.distinct <= count <= sum(sizes):
        raise ProtocolAborted(
            f"Party {context.name(teller)} announced a union that does not fit the sets; the alignment was "
            "stopped."
        )
    union = np.empty_like(own.words, shape=count)
    for block in blocks(count):
        union[block] = receive_array(wire, teller, len(union[block]), np.uint64)
    received = receive_all(wire, index, own.words, spec.malicious)
    table = table_digest(sid, sizes, union)
    for peer, peers_table in enumerate(tables):
        if peers_table != table:
            raise ProtocolAborted(
                f"Party {context.name(peer)} did not arrive at the same union; the alignment was stopped."
            )
    return Alignment(count, own.recognised(received, union, len(context.owners)), table)
