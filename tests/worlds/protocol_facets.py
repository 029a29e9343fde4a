"""What the protocol version covers, as values that can be compared: formats on the wire, inputs of hashes,
sizes of messages.

    python -m tests.worlds.protocol_facets      # writes them anew, once `runner.version.PROTOCOL` is raised

Each facet is a value of JSON, short enough to read in a difference; what is long is hashed. Nothing is drawn
at random.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from mpc_protocols.backends.bundles import bundle
from mpc_protocols.psu.functionality import VERSION as PSU_VERSION
from parties.session.admission import agreement, identity
from parties.session.admission.config import Peer, SessionConfig
from parties.session.transport import codec, frames
from runner.contributors import signed_result, void
from runner.contributors.courier import study_files
from runner.forecast.predict import forecast
from runner.results import release, signatures
from runner.study import Study, hashing, load
from runner.study.claim import claim_of
from runner.version import PROTOCOL
from synth.mrf import storage

ROOT = Path(__file__).resolve().parents[2]
RECORDED = Path(__file__).with_name("protocol_facets.json")
HORIZONTAL, VERTICAL = "three_custodians", "two_owners"
ROWS = 2000

Facet = Callable[[], Any]


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _study(example: str, *changes: tuple[str, str]) -> Study:
    """An example as it stands, or with other words in it."""
    path = ROOT / "examples" / example / "study.toml"
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return Study.from_toml(text, base=path.parent) if changes else load(path)


def link() -> Any:
    """How frames and greetings look, and the sizes that a peer accepts."""
    greeting = identity.Greeting(frames.PROTOCOL, True, identity.UNPROVEN, "north", b"certificate")
    header = frames.Header(5, frames.Kind.DATA, 2, 3, 4, 5)
    return {
        "format": frames.PROTOCOL,
        "greeting": greeting.pack().hex(),
        "check": identity.PREFLIGHT.hex(),
        "header": header.pack().hex(),
        "kinds": {kind.name: [int(kind), frames.MAX_PAYLOAD[kind]] for kind in frames.Kind},
        "credit": frames.credit(1 << 40).hex(),
        "abort": frames.abort(40, 2).hex(),
        "most": [frames.CHUNK, frames.MAX_MESSAGE, frames.FRAME_COST, frames.WINDOW, frames.MAX_DEPTH],
    }


def hello() -> Any:
    """What a party says first: its keys and their types (the nonce differs each time), and what the session's
    id is made of."""
    parties = tuple(Peer(name, "127.0.0.1", 7101 + number) for number, name in enumerate(("north", "south")))
    config = SessionConfig("north", parties, bytes(32), PROTOCOL, insecure_loopback=True, facts={"rows": 1})
    said: list[bytes] = []
    agreement.Agreement(config, lambda peer, kind, payload: said.append(payload)).greet(1)
    told = json.loads(said[0])
    return {
        "keys": {key: type(value).__name__ for key, value in told.items()},
        "bytes": len(said[0]) - len(str(PROTOCOL)),
        "nonce": agreement.NONCE,
        "most": [agreement.MAX_NESTED],
    }


def values() -> Any:
    """Plain data and arrays as the codec writes them."""
    told = {
        "text": "é",
        "list": [1, -(2**70), 0.5, True, None, b"\0\xff", ("a", 2)],
        "codes": np.arange(6, dtype=np.uint8).reshape(2, 3),
        "counts": np.array([-1, 1 << 40], dtype=np.int64),
        "shares": np.array([1, 2**32 - 1], dtype=np.uint32),
    }
    return {name: codec.dumps(value).hex() for name, value in told.items()}


def formats() -> Any:
    """The names of formats that go from party to party, or under signatures."""
    return {
        "study": hashing.FORMAT,
        "study files": study_files.FORMAT,
        "release": signatures.FORMAT,
        "signed": list(signatures.SIGNED),
        "result": signed_result.FORMAT,
        "void": void.FORMAT,
        "bundle": bundle.MAGIC.decode(),
        "bundle bytes": [bundle.file_bytes(1000), sorted(bundle.part_bytes(1000).values())],
        "models": [storage.FORMAT, storage.WITH_LEVELS, storage.WITH_ZEROS],
        "joining": PSU_VERSION.decode(),
        "release's parts": sorted(field.name for field in fields(release.Release)),
    }


def digests() -> Any:
    """The digest of the examples, but for the protocol version itself: what is hashed of a study, and how."""
    return {
        example: hashing.digest_of(
            hashing.agreed_tree(_study(example)), "0", {"north": None, "south": "ab" * 32}, "cd" * 32
        ).hex()
        for example in (HORIZONTAL, VERTICAL)
    }


def claims() -> Any:
    """Sentences of run.json, which all parties write alike and sign."""
    return {example: _sha(claim_of(_study(example)).encode()) for example in (HORIZONTAL, VERTICAL)}


def _traffic(example: str, *changes: tuple[str, str]) -> Facet:
    """Rounds and bytes of a run, by a dry run: another message, or another size of one, shows here.

    Not the leader's bytes: it also sends the result, whose compressed size follows the noise.
    """

    def facet() -> Any:
        study = _study(example, *changes)
        foretold = forecast(study, ROWS)
        sent = {one.name: one.bytes_sent for one in foretold.parties if one.name != study.leader.name}
        return {"rounds": foretold.rounds, "sent": sent}

    return facet


BACKEND = 'backend = "replicated"'
FACETS: dict[str, Facet] = {
    "link": link,
    "hello": hello,
    "values": values,
    "formats": formats,
    "digests": digests,
    "claims": claims,
    "traffic of replicated": _traffic(HORIZONTAL),
    "traffic of replicated, malicious": _traffic(HORIZONTAL, (BACKEND, f'{BACKEND}\nsecurity = "malicious"')),
    "traffic of shamir": _traffic(HORIZONTAL, (BACKEND, 'backend = "shamir"')),
    "traffic of pair": _traffic(HORIZONTAL, (BACKEND, 'backend = "pair"')),
    "traffic of two owners": _traffic(VERTICAL),
}


def record() -> None:
    """Write what holds now. Refuses (`SystemExit`) to change what is recorded of a protocol version that
    stays the same."""
    now = {name: facet() for name, facet in FACETS.items()}
    before = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else None
    if before is not None and before["protocol"] == PROTOCOL:
        changed = [name for name, value in before["facets"].items() if now.get(name) != value]
        if changed:
            raise SystemExit(f"{', '.join(changed)}: changed; raise PROTOCOL in runner/version.py first.")
    content = {"protocol": PROTOCOL, "facets": now}
    RECORDED.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record()
