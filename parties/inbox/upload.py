"""An upload of a bundle to a party's drop box (`drop_box`): what a contributor signs for it, and the
contributor's side.

    PUT /bundle HTTP/1.1
    Content-Length: ...
    Cosynth-Contributor: clinic
    Cosynth-Digest: SHA-256 of the bundle, hex
    Cosynth-Signature: by the contributor's Ed25519 key, hex, over magic, the study's digest, this digest, the length and
                         the party's name
    Expect: 100-continue

So the box knows whose upload it is, how long it is and that it is meant for this party and study before it
takes in a byte of it, and asks for the body only then. The answer is a JSON object: "outcome", or "error", a
sentence.

Threat model: whoever is on the line sees neither, for this is TLS 1.3; of the party that answers only its
certificate is believed. The bundle itself is sealed and signed (`mpc_protocols.backends.bundles`), so that a
box that is not the party's learns who takes part, and no count. The signature says nothing else anywhere: its
magic is of no other message.
"""

from __future__ import annotations

import hashlib
import json
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import h11

from mpc_protocols.errors import PeerIdentity, PeerUnreachable, ProtocolAborted

PATH = b"/bundle"
CONTRIBUTOR, DIGEST, SIGNATURE = b"cosynth-contributor", b"cosynth-digest", b"cosynth-signature"
_MAGIC = b"cosynth-upload-1\n"
TIMEOUT_S = 60.0
MAX_ANSWER = 1 << 16
CHUNK = 1 << 16


@dataclass(frozen=True)
class Upload:
    """What the head of a request says. digest: SHA-256 of the bundle, 32 bytes. length: its bytes."""

    contributor: str
    digest: bytes
    length: int

    def signed(self, study: bytes, party: str) -> bytes:
        """What the contributor signs for a party's box. study: its digest, 32 bytes."""
        return _MAGIC + study + self.digest + self.length.to_bytes(8, "big") + party.encode()


@dataclass(frozen=True)
class Box:
    """Where a party's drop box is. expected: whose certificate is to be shown there, as `tls` checks it."""

    party: str
    host: str
    port: int
    tls: ssl.SSLContext
    expected: str


def client_tls(ca: Path | None) -> ssl.SSLContext:
    """TLS 1.3 with whom this authority, or one that this machine trusts, has certified. Raises `PeerIdentity`
    for a bad file."""
    try:
        context = ssl.create_default_context(cafile=ca)
    except OSError as error:
        raise PeerIdentity(
            f"{ca} is no certificate of an authority ({error.strerror or error.args[0]})."
        ) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def send(box: Box, content: bytes, study: bytes, contributor: str, sign: Callable[[bytes], bytes]) -> str:
    """Deliver a bundle; what became of it, "accepted" or "known". Blocks for TIMEOUT_S without news at most.

    Raises `PeerUnreachable`, `PeerIdentity` (its certificate), `ProtocolAborted` (it refuses, and says why).
    """
    place = f"the drop box of party {box.party} at {box.host}:{box.port}"
    upload = Upload(contributor, hashlib.sha256(content).digest(), len(content))
    head = h11.Request(
        method="PUT",
        target=PATH,
        headers=[
            (b"Host", f"{box.host}:{box.port}".encode()),
            (b"Content-Length", str(upload.length).encode()),
            (CONTRIBUTOR, contributor.encode()),
            (DIGEST, upload.digest.hex().encode()),
            (SIGNATURE, sign(upload.signed(study, box.party)).hex().encode()),
            (b"Expect", b"100-continue"),
            (b"Connection", b"close"),
        ],
    )
    try:
        with (
            socket.create_connection((box.host, box.port), TIMEOUT_S) as plain,
            box.tls.wrap_socket(plain, server_hostname=box.expected) as link,
        ):
            status, answer = _exchange(link, head, content)
    except ssl.SSLCertVerificationError as error:
        raise PeerIdentity(
            f"At {box.host}:{box.port} is not {box.expected} ({error.verify_message}); check the address, and `ca` in "
            "the private file."
        ) from None
    except OSError as error:
        raise PeerUnreachable(
            f"The bundle did not reach {place} ({error.strerror or type(error).__name__}); send it again."
        ) from None
    except h11.RemoteProtocolError:
        raise ProtocolAborted(f"What answers as {place} does not speak HTTP; check the address.") from None
    outcome, said = _read(answer)
    if status == 200 and outcome:
        return outcome
    raise ProtocolAborted(
        f"It was refused by {place} (status {status}): {(said or 'no reason was given').rstrip('.')}."
    )


def _exchange(link: ssl.SSLSocket, head: h11.Request, content: bytes) -> tuple[int, bytes]:
    """The status and the body of the answer. The bundle goes only once the box has asked for it."""
    connection = h11.Connection(h11.CLIENT)
    link.sendall(connection.send(head) or b"")
    status, answer = 0, b""
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(link.recv(CHUNK))
        elif isinstance(event, h11.InformationalResponse) and connection.our_state is h11.SEND_BODY:
            link.sendall(connection.send(h11.Data(data=content)) or b"")
            link.sendall(connection.send(h11.EndOfMessage()) or b"")
        elif isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data):
            answer += event.data
            if len(answer) > MAX_ANSWER:
                return status, b""
        elif isinstance(event, h11.EndOfMessage):
            return status, answer
        elif isinstance(event, h11.ConnectionClosed):
            raise OSError(0, "it ended the connection")


def _read(answer: bytes) -> tuple[str, str]:
    """Outcome and error of an answer, each "" if it is not there; of a stranger's words only what can be
    shown."""
    try:
        form = json.loads(answer)
        words = [form.get(key, "") for key in ("outcome", "error")]
    except (ValueError, AttributeError, RecursionError):
        return "", ""
    outcome, said = (
        "".join(filter(str.isprintable, word))[:500] if isinstance(word, str) else "" for word in words
    )
    return outcome if outcome in ("accepted", "known") else "", said
