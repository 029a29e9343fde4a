"""A party's part in merge3: that of a computing party, with proofs or without, an owner's, or joining by tags."""

from __future__ import annotations

from collections.abc import Sequence

from mpc_protocols.backends.replicated.merge3.contributor import contribute
from mpc_protocols.backends.replicated.merge3.keys import keys_of
from mpc_protocols.backends.replicated.merge3.protocol import ComputingParty
from mpc_protocols.backends.replicated.merge3.proved import ProvedComputingParty
from mpc_protocols.backends.replicated.merge3.public import STREAM, check_keys, common_salt
from mpc_protocols.backends.replicated.merge3.tags import TagParty, third_party
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context
from mpc_protocols.wire import Wire


def align(
    wire: Wire, entries: Sequence[bytes] | None, kinds: Sequence[str], spec: AlignmentSpec, context: Context
) -> Alignment:
    """One party's part. entries: an owner's canonical identifiers and dummies, kinds: its key columns' types;
    None without data.

    Raises `ProtocolAborted` (a size that is not allowed, columns of different types, parties that were told
    different things).
    """
    salt, stream = context.salt(spec, wire.session_id), wire.fork(STREAM)
    third = third_party(spec, context)
    if third is not None:
        return TagParty(stream, entries, kinds, spec, context, third).run()
    if spec.malicious:
        salt = common_salt(stream, context, salt)
    own = None if entries is None else keys_of(entries, salt, len(context.owners))
    if spec.malicious and own is not None:
        check_keys(own, spec)
    if wire.me < wire.computing:
        if spec.malicious:
            return ProvedComputingParty(stream, own, kinds, spec, context).run()
        return ComputingParty(stream, own, kinds, spec, context).run()
    if own is None:
        raise ValueError(f"Party {wire.me} neither computes nor owns anything.")
    return contribute(stream, own, kinds, spec, context)
