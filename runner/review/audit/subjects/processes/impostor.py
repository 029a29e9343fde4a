"""A stranger that knocks at a party's port, or waits at one that the study names: a greeting in somebody's
name, and whatever certificate it has.

It speaks the session's own formats (`docs/design/session.md` 3), so that what refuses it is what should.
"""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from parties import certificates
from parties.session.admission.identity import GREETING, Greeting
from parties.session.transport import frames

PATIENCE_S = 60.0


@dataclass(frozen=True)
class Attempt:
    """One knock. words: who it is. expected: of the party's reason, some words; empty if it gives none.
    claimed: the name.

    certificate, cert, key: files of the certificate that is shown in the greeting, and that proved in the
    handshake. plain: bytes instead of all that. highest: the newest version of TLS that it speaks.
    """

    words: str
    expected: str
    claimed: str = ""
    certificate: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    version: int = frames.PROTOCOL
    highest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
    plain: bytes = b""


def knock(port: int, attempt: Attempt, host: str = "127.0.0.1") -> bool:
    """Whether the party lets it in: sends a frame of a session that has begun."""
    with socket.create_connection((host, port), timeout=PATIENCE_S) as sock:
        try:
            if attempt.plain:
                sock.sendall(attempt.plain)
                return False
            shown = (
                b""
                if attempt.certificate is None
                else ssl.PEM_cert_to_DER_cert(attempt.certificate.read_text())
            )
            sock.sendall(Greeting(attempt.version, True, 0, attempt.claimed, shown).pack())
            head = _exactly(sock, GREETING.size)
            *_, named, certified = GREETING.unpack(head)
            _exactly(sock, named + certified)
            return _begins(sock, attempt)
        except (OSError, EOFError):  # the other side hangs up: an error of TLS is one of these
            return False


def _begins(sock: socket.socket, attempt: Attempt) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = attempt.highest
    if attempt.cert is not None and attempt.key is not None:
        context.load_cert_chain(attempt.cert, attempt.key)
    with context.wrap_socket(sock) as tls:
        header = frames.parse(_exactly(tls, frames.HEADER.size))
        return header.kind not in (frames.Kind.ABORT, frames.Kind.BYE)


def _exactly(sock: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        piece = sock.recv(size - len(received))
        if not piece:
            raise EOFError
        received += piece
    return received


class Impostor(threading.Thread):
    """Listens where a party should, and answers whoever dials it. believed: somebody has gone on with it,
    past the handshake."""

    def __init__(self, port: int, guise: Attempt) -> None:
        super().__init__(daemon=True)
        self._guise = guise
        self.believed = False
        self._server = socket.create_server(("127.0.0.1", port))

    def __enter__(self) -> Impostor:
        self.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._server.close()

    def run(self) -> None:
        """Answer one after another; none goes on for long with whom it does not believe."""
        while True:
            try:
                sock, _ = self._server.accept()
            except OSError:  # closed
                return
            with sock, suppress(OSError, EOFError):
                sock.settimeout(PATIENCE_S)
                self._answer(sock)

    def _answer(self, sock: socket.socket) -> None:
        guise = self._guise
        assert guise.certificate is not None and guise.cert is not None
        *_, named, certified = GREETING.unpack(_exactly(sock, GREETING.size))
        _exactly(sock, named + certified)
        shown = ssl.PEM_cert_to_DER_cert(guise.certificate.read_text())
        sock.sendall(Greeting(guise.version, True, 0, guise.claimed, shown).pack())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(guise.cert, guise.key)
        with context.wrap_socket(sock, server_side=True) as tls:
            self.believed |= frames.parse(_exactly(tls, frames.HEADER.size)).kind is frames.Kind.HELLO


def unreadable(certificate: Path) -> Path:
    """The same certificate, said to be of a version that does not exist, beside it."""
    der = ssl.PEM_cert_to_DER_cert(certificate.read_text())
    version, none = b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x05"
    assert der.count(version) == 1
    found = certificate.with_suffix(".odd.crt")
    found.write_text(ssl.DER_cert_to_PEM_cert(der.replace(version, none)))
    return found


def expired(credentials: Path, folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate of the parties' own CA that ended yesterday, and its key."""
    ca = certificates.Credential((credentials / "ca.crt").read_bytes(), (credentials / "ca.key").read_bytes())
    made = certificates.issue(ca, name)
    old = x509.load_pem_x509_certificate(made.certificate)
    end = datetime.now(UTC) - timedelta(days=1)
    builder = x509.CertificateBuilder(
        issuer_name=old.issuer,
        subject_name=old.subject,
        public_key=old.public_key(),
        serial_number=old.serial_number,
        not_valid_before=end - timedelta(days=30),
        not_valid_after=end,
        extensions=list(old.extensions),
    )
    signer = load_pem_private_key(ca.key, None)
    assert isinstance(signer, EllipticCurvePrivateKey)
    certificate = builder.sign(signer, SHA256())
    return certificates.write(
        folder, name, certificates.Credential(certificate.public_bytes(Encoding.PEM), made.key)
    )


def attempts(own: Path, root: Path, claimed: str) -> list[Attempt]:
    """All that tries to be the party that is claimed, or nobody.

    own: the parties' certificates. root: a folder, in which "foreign" has the certificates of another CA.
    """
    foreign, late = root / "foreign", root / "late"
    old, old_key = expired(own, late, claimed)
    strange, own_key = foreign / f"{claimed}.crt", foreign / f"{claimed}.key"
    right, other = own / f"{claimed}.crt", own / "west.crt"
    return [
        Attempt("another protocol's bytes", "", plain=b"GET / HTTP/1.1\r\nHost: north\r\n\r\n" * 10),
        Attempt("zeros", "", plain=bytes(100_000)),
        Attempt("a greeting of another version", "speaks version 9", claimed, right, version=9),
        Attempt("a name that is no party's", "no party nobody", "nobody"),
        Attempt("no certificate", "no certificate", claimed, right),
        Attempt("a certificate of a CA that the system trusts", "not signed by", claimed, strange, strange, own_key),
        Attempt("another party's certificate", "belongs to 'west'", claimed, other, other, own / "west.key"),
        Attempt("a certificate other than the one shown", "another certificate", claimed, right, other, own / "west.key"),
        Attempt("an expired certificate", "expired on", claimed, old, old, old_key),
        Attempt("a certificate that cannot be read", "cannot be read", claimed, unreadable(strange), strange, own_key),
        Attempt("an older TLS", "", claimed, right, right, own / f"{claimed}.key", highest=ssl.TLSVersion.TLSv1_2),
    ]  # fmt: skip
