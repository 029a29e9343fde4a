"""The result that goes back to contributors: what was released, on which list, signed by the three computing
parties.

A contributor's ledger holds the whole reservation of a study until it knows what was spent. This file tells
it: the events, who took part, and the hash of the released model, so that the table that came with it can be
told from another. Each computing party signs only what it has authorised itself, with the key that the study
lists for it. Public.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.backends.bundles.sealing import SIGNATURE_BYTES, verifies
from mpc_protocols.errors import PeerIdentity, ProtocolAborted
from runner.contributors.collection import contributors_of
from runner.contributors.signed_result import Result
from runner.results.measurements import measurements_json
from runner.study.sections.waves import promise_of

if TYPE_CHECKING:
    from mpc_protocols.wire import Wire
    from runner.contributors.closing import Closing
    from runner.results.release import Release
    from runner.study import Study


def result_of(closing: Closing, run: bytes, release: Release, study: Study) -> Result:
    """The result of a run that this party has checked."""
    own, names = contributors_of(study), closing.agreed.contributors
    return Result(
        closing.collection.study.hex(),
        run.hex(),
        closing.agreed.hash.hex(),
        hashlib.sha256(release.model).hexdigest(),
        names,
        tuple(release.events),
        tuple(hashlib.sha256(own.keys[name]).hexdigest() for name in names),
        tuple(sorted(closing.custodians)),
        hashlib.sha256(measurements_json(release, study.domain).encode()).hexdigest(),
        promise_of(study.privacy, study.domain),
        "" if own.registered is None else own.registered.digest.hex(),
        tuple(wave.study for wave in own.after),
    )


def exchange(wire: Wire, closing: Closing, result: Result, earlier: Path) -> dict[str, bytes]:
    """Signatures of all three computing parties on their common result. 1 round of 64 bytes. Blocks.

    earlier: this party's file of the result, if it has finished before; one of another run or study is not
    used. Raises `ProtocolAborted` for a signature of something else, `PeerIdentity` for an own key that is
    gone.
    """
    names = list(closing.collection.receivers)
    own = _own_signature(closing, result, earlier)
    signatures = {closing.party: own}
    others = [peer for peer in range(wire.computing) if peer != wire.me]
    for peer in others:
        wire.send(peer, own)
    for peer in others:
        signature = bytes(wire.receive(peer, SIGNATURE_BYTES))
        key = closing.collection.receivers[names[peer]]
        if not verifies(key.signing, signature, result.signed):
            raise ProtocolAborted(
                f"Party {names[peer]} signed another result than this party has; do not use the results."
            )
        signatures[names[peer]] = signature
    return {name: signatures[name] for name in names}


def _own_signature(closing: Closing, result: Result, earlier: Path) -> bytes:
    """This party's signature: the one that it has given before, whose key may be deleted, else a fresh one."""
    kept, key = _earlier_signature(earlier, closing.party), closing.collection.receivers[closing.party]
    if kept is not None and verifies(key.signing, kept, result.signed):
        return kept
    try:
        return closing.inbox.signer().sign(result.signed)
    except PeerIdentity:
        if not earlier.exists():
            raise
        raise PeerIdentity(
            f"{earlier} does not hold this party's signature of the result any more; restore it from a copy."
        ) from None


def _earlier_signature(path: Path, party: str) -> bytes | None:
    try:
        return bytes.fromhex(json.loads(path.read_bytes())["signatures"][party])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
