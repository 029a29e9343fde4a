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
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_protocols.backends.bundles.sealing import SIGNATURE_BYTES, verifies
from mpc_protocols.errors import PeerIdentity, ProtocolAborted, UsageError
from mpc_protocols.functionality import Event
from mpc_protocols.public.rationals import rational
from runner.contributors import statement
from runner.contributors.collection import contributors_of
from runner.results.outputs import measurements_json
from runner.study.hashing import canonical
from runner.study.sections.waves import promise_of

if TYPE_CHECKING:
    from mpc_protocols.wire import Wire
    from runner.contributors.closing import Closing
    from runner.results.release import Release
    from runner.study import Study

KIND, FORMAT = "result", "cosynth-result-2"


@dataclass(frozen=True)
class Result:
    """study, run, list, model: hex of hashes. contributors: who took part. events: what was released, with
    what each costs.

    For a study that comes after this one (`runner.study.sections.waves`): keys: SHA-256 of each contributor's
    key, hex. custodians: computing parties whose own tables were in it. measurements: SHA-256 of
    measurements.json, hex. promise: `promise_of`. registered, after: digests of registered columns and of
    earlier waves' studies.
    """

    study: str
    run: str
    list: str
    model: str
    contributors: tuple[str, ...]
    events: tuple[Event, ...]
    keys: tuple[str, ...] = ()
    custodians: tuple[str, ...] = ()
    measurements: str = ""
    promise: Mapping[str, Any] = field(default_factory=dict)
    registered: str = ""
    after: tuple[str, ...] = ()

    @classmethod
    def of(cls, closing: Closing, run: bytes, release: Release, study: Study) -> Result:
        """Of a run that this party has checked."""
        own, names = contributors_of(study), closing.agreed.contributors
        return cls(
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

    def to_form(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "format": FORMAT,
            "study": self.study,
            "run": self.run,
            "list": self.list,
            "model": self.model,
            "contributors": list(self.contributors),
            "keys": list(self.keys),
            "custodians": list(self.custodians),
            "measurements": self.measurements,
            "promise": dict(self.promise),
            "registered": self.registered,
            "after": list(self.after),
            "events": [
                {
                    "what": event.what,
                    "rho": str(event.rho),
                    "beta": str(event.beta),
                    "detail": dict(event.detail),
                }
                for event in self.events
            ],
        }

    @property
    def signed(self) -> bytes:
        """What signatures are over."""
        return signed(canonical(self.to_form()))

    def to_bytes(self, signatures: Mapping[str, bytes]) -> bytes:
        """The file's content (`runner.contributors.statement`)."""
        return statement.to_bytes(KIND, canonical(self.to_form()), signatures)


def signed(content: bytes) -> bytes:
    """What signatures of a result's canonical JSON are over."""
    return FORMAT.encode() + content


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


def parse(path: Path, content: bytes) -> Result:
    """The result whose canonical JSON this is. Call it once the signatures are verified. path: its file, for
    the sentence.

    Raises `UsageError`.
    """
    try:
        told = json.loads(content)
        if told["format"] != FORMAT:
            raise ValueError
        return Result(
            str(told["study"]),
            str(told["run"]),
            str(told["list"]),
            str(told["model"]),
            tuple(map(str, told["contributors"])),
            tuple(
                Event(str(each["what"]), rational(each["rho"]), rational(each["beta"]), dict(each["detail"]))
                for each in told["events"]
            ),
            tuple(map(str, told["keys"])),
            tuple(map(str, told["custodians"])),
            str(told["measurements"]),
            dict(told["promise"]),
            str(told["registered"]),
            tuple(map(str, told["after"])),
        )
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
        raise UsageError(f"{path} is signed and still no result that this version can read.") from None


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
