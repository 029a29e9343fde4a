"""What all parties of `merge3` know alike: sizes, the salt of the keys, the union's digest; and what a list
may be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpc_protocols.backends.replicated.merge3.keys import Keys
from mpc_protocols.backends.replicated.proof.coins import toss
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.psu.dummies import list_size, longest_list
from mpc_protocols.psu.functionality import AlignmentSpec, Context
from mpc_protocols.psu.groups.hashing import digest
from mpc_protocols.psu.identifiers.normalise import KINDS
from mpc_protocols.wire import Wire

STREAM = "align"
COUNT_BYTES, DIGEST_BYTES = 8, 32


def check_size(spec: AlignmentSpec, context: Context, side: int, count: int, teller: str) -> None:
    """Abort unless the study allows an owner a list of `count` entries; before anything is allocated for it."""
    fixed = list_size(spec, side, len(context.owners))
    least, most = (
        (spec.min_size, longest_list(spec, len(context.owners))) if fixed is None else (fixed, fixed)
    )
    if not least <= count <= most:
        raise ProtocolAborted(
            f"Party {teller} announced a list of {count} entries where {least} to {most} are allowed; "
            "the alignment was stopped."
        )


def common_salt(wire: Wire, context: Context, sid: bytes) -> bytes:
    """A salt of the keys that no party can choose: a common coin, which contributors hear from all three.

    The run's own one depends on nonces, and a party that sends its own last could try many for one by which
    two identifiers that it thinks of would get one key.
    """
    if wire.me < wire.computing:
        coin = toss(Trio(wire.fork("salt"), STREAM + "/salt"), sid)
        for owner in context.owners:
            if owner.number >= wire.computing:
                wire.send(owner.number, coin)
    else:
        coin, *others = (bytes(wire.receive(peer, DIGEST_BYTES)) for peer in range(3))
        if others != [coin, coin]:
            raise ProtocolAborted(
                "The computing parties told this one different salts: one of them did not follow the protocol; stop the run."
            )
    return digest(b"psu merge3 salt", sid, coin)


def check_keys(own: Keys, spec: AlignmentSpec) -> None:
    """Abort, before anything is sent, if two of this owner's identifiers have one key."""
    if spec.adjacency == "replace" and own.distinct < len(own.words):
        raise ProtocolAborted(
            "Two identifiers of this party were taken for one, by chance; start the run again."
        )


def largest_group(spec: AlignmentSpec, owners: int) -> int:
    """Entries of all lists that may have one key: where a party may deviate, an owner may enter any key as
    often as a dummy."""
    each = 2 if spec.malicious and spec.adjacency == "add-remove" else 1
    return max(2, each * owners)


def announcement(own: Keys, kinds: Sequence[str]) -> bytes:
    """An owner's first message."""
    return len(own.words).to_bytes(COUNT_BYTES, "big") + bytes(KINDS.index(kind) for kind in kinds)


def table_digest(sid: bytes, sizes: Sequence[int], union: Words) -> bytes:
    """32 bytes, equal exactly if sizes and union are."""
    return digest(b"psu union", sid, np.array(sizes, ">u8").tobytes(), union.data)
