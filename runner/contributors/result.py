"""The result that goes back to contributors: what was released, on which list, signed by the three computing parties.

A contributor's ledger holds the whole reservation of a study until it knows what was spent. This file tells it: the events, who
took part, and the hash of the released model, so that the table that came with it can be told from another. Each computing party
signs only what it has authorised itself, with the key that the study lists for it. Public.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_protocols.bundles.sealing import SIGNATURE_BYTES, verifies
from mpc_protocols.errors import PeerIdentity, ProtocolAborted, StudiesDiffer, UsageError
from mpc_protocols.functionality import Event
from runner.study.hashing import canonical

if TYPE_CHECKING:
    from mpc_protocols.wire import Wire
    from parties.inbox.collection import Collection
    from runner.contributors.closing import Closing
    from runner.results.release import Release

FORMAT = "cosynth-result-1"
MAX_BYTES = 64 << 20


@dataclass(frozen=True)
class Result:
    """study, run, list, model: hex of hashes. contributors: who took part. events: what was released, with what each costs."""

    study: str
    run: str
    list: str
    model: str
    contributors: tuple[str, ...]
    events: tuple[Event, ...]

    @classmethod
    def of(cls, closing: Closing, run: bytes, release: Release) -> Result:
        """Of a run that this party has checked."""
        return cls(
            closing.collection.study.hex(),
            run.hex(),
            closing.agreed.hash.hex(),
            hashlib.sha256(release.model).hexdigest(),
            closing.agreed.contributors,
            tuple(release.events),
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
        return FORMAT.encode() + canonical(self.to_form())

    def to_bytes(self, signatures: Mapping[str, bytes]) -> bytes:
        """The file's content."""
        signed = {name: signature.hex() for name, signature in signatures.items()}
        return json.dumps({"result": self.to_form(), "signatures": signed}, indent=1).encode() + b"\n"


def exchange(wire: Wire, closing: Closing, result: Result, earlier: Path) -> dict[str, bytes]:
    """Signatures of all three computing parties on their common result. 1 round of 64 bytes. Blocks.

    earlier: this party's file of the result, if it has finished before. Raises `ProtocolAborted` for a signature of something
    else, `PeerIdentity` for an own key that is gone.
    """
    names = list(closing.collection.receivers)
    own = _earlier(earlier, closing.party) if earlier.exists() else closing.inbox.signer().sign(result.signed)
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


def read(path: Path, collection: Collection) -> Result:
    """A result that all three computing parties of this study have signed.

    Raises `UsageError` (no such file), `StudiesDiffer` (another study's), `PeerIdentity` (not signed by all three).
    """
    try:
        with path.open("rb") as file:
            form = json.loads(file.read(MAX_BYTES))
        told, signatures = form["result"], form["signatures"]
        if told["format"] != FORMAT:
            raise ValueError
        result = Result(
            str(told["study"]),
            str(told["run"]),
            str(told["list"]),
            str(told["model"]),
            tuple(map(str, told["contributors"])),
            tuple(
                Event(str(each["what"]), Fraction(each["rho"]), Fraction(each["beta"]), dict(each["detail"]))
                for each in told["events"]
            ),
        )
        signed = {str(name): bytes.fromhex(text) for name, text in signatures.items()}
    except OSError as error:
        raise UsageError(f"The result {path} cannot be read ({error.strerror}).") from None
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
        raise UsageError(f"{path} is not the signed result of a run over bundles (result.json).") from None
    if result.study != collection.study.hex():
        raise StudiesDiffer(f"The result {path} is of another study, or of another version of the program.")
    for name, key in collection.receivers.items():
        if name not in signed or not verifies(key.signing, signed[name], result.signed):
            raise PeerIdentity(
                f"The result {path} does not bear the signature of party {name}; ask for the file anew."
            )
    return result


def _earlier(path: Path, party: str) -> bytes:
    try:
        return bytes.fromhex(json.loads(path.read_bytes())["signatures"][party])
    except (OSError, ValueError, KeyError, TypeError):
        raise PeerIdentity(f"{path} cannot be read any more; restore it from a copy.") from None
