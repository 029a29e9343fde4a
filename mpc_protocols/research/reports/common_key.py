"""A key of the owners, which parties that own nothing do not learn: commit, then reveal.

    owner i -> every other owner     H(tag, session, i, r_i)       r_i 32 uniform bytes
    owner i -> every other owner     r_i
    all                              key = H(tag, session, r_1, r_2, ..)

Nobody can choose r_i after having seen another's, so the key is uniform if one owner's r_i is, whatever the
others send. An opening that does not fit its commitment ends the run. Who learns what: every owner the key;
anybody else nothing (the messages travel between owners alone). Threat model: owners that follow the
protocol; one that deviates can end the run and nothing else.

Cost: 2 rounds, 64 bytes from each owner to each other one. Owners that have no connection cannot do it:
`StudyInvalid`.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence

from mpc_protocols.errors import ProtocolAborted, StudyInvalid
from mpc_protocols.wire import Wire

BYTES = 32


def check_links(owners: Sequence[int], computing: int) -> None:
    """Raise `StudyInvalid` unless every two owners are connected: one of them computes."""
    if sum(owner >= computing for owner in owners) > 1:
        raise StudyInvalid(
            "The owners draw a common key, and two owners that do not compute have no connection; let all owners but one compute."
        )


def common_key(wire: Wire, owners: Sequence[int]) -> bytes:
    """The key, at an owner. wire: a stream of its own. Raises `ProtocolAborted`, `StudyInvalid`."""
    check_links(owners, wire.computing)
    others = [owner for owner in owners if owner != wire.me]
    parts = {wire.me: secrets.token_bytes(BYTES)}
    for owner in others:
        wire.send(owner, _hash(b"commitment", wire.session_id, wire.me.to_bytes(4, "big"), parts[wire.me]))
    commitments = {owner: bytes(wire.receive(owner, BYTES)) for owner in others}
    for owner in others:
        wire.send(owner, parts[wire.me])
    for owner in others:
        parts[owner] = bytes(wire.receive(owner, BYTES))
        if (
            _hash(b"commitment", wire.session_id, owner.to_bytes(4, "big"), parts[owner])
            != commitments[owner]
        ):
            raise ProtocolAborted(
                f"Party {owner} opened its commitment to the owners' key to something else; the run was stopped."
            )
    return _hash(b"key", wire.session_id, *(parts[owner] for owner in sorted(parts)))


def _hash(*parts: bytes) -> bytes:
    state = hashlib.sha256(b"cosynth owners' key")
    for part in parts:
        state.update(len(part).to_bytes(4, "big") + part)
    return state.digest()
