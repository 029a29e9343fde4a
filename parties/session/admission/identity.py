"""Who is at the other end: certificates, the TLS contexts that accept only them, and sentences for what is
wrong (`docs/design/session.md` 3).

Two ways to be known: a certificate signed by the session's own CA (no system CA is ever trusted), or one
whose SHA-256 fingerprint the study pins (with or without a CA). Either way the certificate must carry the
party's name (SAN DNS name, or the common name where there is none), and the name is bound to the wire number:
whoever holds another party's certificate is refused. Before TLS each side shows its name and certificate in
the clear, in a greeting. Nothing there is believed: it lets a pinned certificate be the only trust anchor of
its own handshake, and lets a refusal say which party's certificate expired when. The TLS handshake then
proves possession of the key, and the certificate proved must be the one greeted with.

A party whose own certificate or key is not in order cannot prove anything, but it can say so: its greetings'
verdict is UNPROVEN. Whoever dialled it ends with a sentence; whoever it dialled says so and waits on, for
anybody could have said it.

Threat model: a stranger on the network. He learns party names and certificates (public in the study). Who
only reaches a port prevents nothing (`connect`, `strangers`); who can hold up or change what two parties say
to one another can prevent the session from starting, and nothing else.
"""

from __future__ import annotations

import hashlib
import re
import ssl
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from mpc_protocols.errors import PeerIdentity
from mpc_protocols.process.foreign_text import printable
from mpc_protocols.process.installation import program
from parties import certificates
from parties.session.admission.config import Peer, SessionConfig
from parties.session.transport.frames import PROTOCOL
from parties.session.transport.sockets import Disturbed

RUN, PREFLIGHT = b"cosynth\n", b"cosynth?"
"""How greetings begin: a run's, and those of `preflight`."""
GREETING = struct.Struct(
    "<8sHBBBH"
)  # magic, protocol, protected, verdict, length of name, length of certificate
MAX_CERTIFICATE = 1 << 14

GO_ON, NOT_IN_STUDY, UNPROVEN = 0, 1, 2


@dataclass(frozen=True)
class Greeting:
    """What a side says before TLS: its protocol version, its name, its certificate (DER; empty without TLS),
    and whether it will go on: in the answer, or if it cannot prove who it is."""

    protocol: int
    protected: bool
    verdict: int
    name: str
    certificate: bytes
    magic: bytes = RUN

    @property
    def called(self) -> str:
        """The name for a sentence; what is no party's name in any study stands in quotation marks."""
        return self.name if re.fullmatch(r"[\w.-]+", self.name, re.ASCII) else f"'{self.name}'"

    def pack(self) -> bytes:
        """The bytes on the wire."""
        name = self.name.encode()
        return (
            GREETING.pack(
                self.magic, self.protocol, self.protected, self.verdict, len(name), len(self.certificate)
            )
            + name
            + self.certificate
        )


@dataclass(frozen=True)
class Lapsing:
    """What lets a party in, for as long as it is valid. what: "certificate", its own, or "CA", that it rests
    on."""

    party: str
    what: str


@dataclass(frozen=True)
class Identity:
    """This party's own certificate, checked. magic: how the greetings begin that it sends and answers.

    doubt: what is wrong with the certificate, if anything: then this party only tells the others so
    (`handshake.prove`).
    """

    config: SessionConfig
    certificate: bytes
    magic: bytes = RUN
    doubt: str = ""
    _contexts: dict[tuple[str, bool, bool], ssl.SSLContext] = field(
        default_factory=dict, repr=False, compare=False
    )
    _expire: dict[Lapsing, datetime] = field(default_factory=dict, repr=False, compare=False)
    """When what was proved ends: each party's certificate, this one's too, and the CA that it rests on."""
    _began: tuple[datetime, float] = field(
        default_factory=lambda: (datetime.now(UTC), time.monotonic()), repr=False, compare=False
    )
    """When the session began, by the clock, and by one that nobody sets."""

    def greeting(self, verdict: int = GO_ON) -> Greeting:
        """This party's greeting."""
        verdict = UNPROVEN if self.doubt else verdict
        return Greeting(
            PROTOCOL, not self.config.insecure_loopback, verdict, self.config.me, self.certificate, self.magic
        )

    def context(self, peer: Peer, shown: bytes, server: bool) -> ssl.SSLContext:
        """The context of handshakes with a peer that showed this certificate: TLS 1.3, both sides
        authenticated.

        What is shown decides only whether it is the one that is pinned, so there are two contexts a peer and
        side; each is made once, for whoever greets as a party of the study is answered with one.
        """
        key = (peer.name, server, self.pinned(peer, shown))
        context = self._contexts.get(key)
        if context is None:
            context = self._contexts[key] = self._new_context(peer, shown, server)
        return context

    def _new_context(self, peer: Peer, shown: bytes, server: bool) -> ssl.SSLContext:
        config = self.config
        assert config.cert is not None and config.key is not None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # names are checked by `verify`: parties are not host names
        context.verify_mode = ssl.CERT_REQUIRED
        if server:
            context.num_tickets = 0
        context.load_cert_chain(config.cert, config.key)
        try:
            if not self.pinned(peer, shown):
                pass  # no anchor at all: the handshake fails, and its alert tells the peer
            elif config.ca is not None:
                context.load_verify_locations(cafile=config.ca)
            else:
                context.load_verify_locations(cadata=shown)
                context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        except (ssl.SSLError, ValueError):
            raise PeerIdentity(f"The certificate shown by party {peer.name} cannot be read.") from None
        return context

    def pinned(self, peer: Peer, shown: bytes) -> bool:
        """Whether the certificate shown is the one the study pins, if it pins one."""
        return peer.fingerprint is None or hashlib.sha256(shown).hexdigest() == peer.fingerprint

    def verify(self, peer: Peer, shown: bytes, tls: ssl.SSLObject) -> None:
        """After the handshake: the certificate proved is the one shown, pinned if the study pins, and names
        this party."""
        proved = tls.getpeercert(binary_form=True)
        if proved is None or proved != shown or not self.pinned(peer, proved):
            raise PeerIdentity(f"Party {peer.name} proved another certificate than the one expected of it.")
        decoded: Mapping[str, Any] = tls.getpeercert() or {}
        names = names_in(decoded)
        if peer.name not in names:
            raise PeerIdentity(
                f"The certificate presented for party {peer.name} belongs to {quoted(names)}: "
                f"party {peer.name} must use a certificate in its own name."
            )
        end = ssl.cert_time_to_seconds(decoded["notAfter"])
        self._expire[Lapsing(peer.name, "certificate")] = datetime.fromtimestamp(end, UTC)
        if self.config.ca is not None:
            known = _certificates(self.config.ca, "CA file", self.config.me)
            self._expire[Lapsing(peer.name, "CA")] = _end_of_ca(x509.load_der_x509_certificate(proved), known)

    def expired(self) -> Lapsing | None:
        """What was valid when the session began and is not now, though the clock were set back meanwhile."""
        began, at = self._began
        now = max(datetime.now(UTC), began + timedelta(seconds=time.monotonic() - at))
        return next((each for each, end in self._expire.items() if end < now), None)


def names_in(certificate: Mapping[str, Any]) -> list[str]:
    """The names a verified certificate (as `ssl` decodes it) speaks for: SAN DNS names, else the common name."""
    alternative = certificate.get("subjectAltName", ())
    names = [value for kind, value in alternative if kind == "DNS"]
    if names:
        return names
    subject = certificate.get("subject", ())
    return [value for part in subject for kind, value in part if kind == "commonName"]


def quoted(names: list[str]) -> str:
    """Names for a sentence."""
    return " and ".join(f"'{printable(name)}'" for name in names[:3]) or "nobody"


def own_identity(config: SessionConfig) -> Identity:
    """Read and check this party's own certificate, key and CA. Raises `PeerIdentity` with the file and what
    is wrong."""
    if config.insecure_loopback:
        return Identity(config, b"")
    assert config.cert is not None and config.key is not None
    chain = _certificates(config.cert, "certificate", config.me)
    certificate = chain[0]
    check_dates(certificate, f"The certificate of party {config.me} ({config.cert})")
    names = certificates.names_of(certificate)
    if config.me not in names:
        raise PeerIdentity(
            f"The certificate {config.cert} belongs to {quoted(names)}, not to party {config.me}."
        )
    _check_key(config.cert, config.key, config.me)
    if not config.insecure_key:
        certificates.check_private(config.key)
    der = _der(certificate)
    if config.own.fingerprint not in (None, hashlib.sha256(der).hexdigest()):
        raise PeerIdentity(
            f"The certificate {config.cert} is not the one whose fingerprint the study gives for party "
            f"{config.me}."
        )
    if config.ca is not None:
        _check_ca(config.ca, config.cert, chain, config.me)
    ends = {Lapsing(config.me, "certificate"): certificate.not_valid_after_utc}
    if config.ca is not None:
        known = _certificates(config.ca, "CA file", config.me)
        ends[Lapsing(config.me, "CA")] = min(
            [_end_of_ca(chain[-1], known), *(between.not_valid_after_utc for between in chain[1:])]
        )
    return Identity(config, der, _expire=ends)


def own_identity_or_doubt(config: SessionConfig) -> Identity:
    """`own_identity`; if it raises, an identity that tells the others so."""
    try:
        return own_identity(config)
    except PeerIdentity as error:
        return Identity(config, b"", doubt=error.sentence)


def _check_key(cert: Path, key: Path, me: str) -> None:
    _read(key, "key", me)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password=lambda: "")
    except ssl.SSLError as error:
        if "MISMATCH" in (error.reason or ""):
            raise PeerIdentity(
                f"The key {key} does not belong to the certificate {cert} of party {me}."
            ) from None
        raise PeerIdentity(
            f"The key {key} of party {me} cannot be read: an unencrypted PEM file is expected."
        ) from None


def _check_ca(ca: Path, cert: Path, chain: list[x509.Certificate], me: str) -> None:
    authorities = _certificates(ca, "CA file", me)
    if len(chain) > 1:
        return
    issuers = [authority for authority in authorities if _issued(chain[0], authority)]
    if not issuers:
        raise PeerIdentity(f"The certificate {cert} of party {me} is not signed by the CA in {ca}.")
    check_dates(issuers[-1], f"The CA of party {me} ({ca})")


def _end_of_ca(certificate: x509.Certificate, authorities: Sequence[x509.Certificate]) -> datetime:
    """Until when a CA in the file vouches for a certificate: the last of those that issued it, or, where an
    authority between them did, of all."""
    issuers = [authority for authority in authorities if _issued(certificate, authority)]
    return max(authority.not_valid_after_utc for authority in issuers or authorities)


def _issued(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except Exception:  # the library raises a handful of types for "no"
        return False
    return True


def _read(path: Path, what: str, me: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise PeerIdentity(f"The {what} of party {me} is missing: {path} does not exist.") from None
    except OSError as error:
        raise PeerIdentity(
            f"The {what} of party {me}, {path}, cannot be read: {error.strerror}; correct its path in the private file."
        ) from None


def _certificates(path: Path, what: str, me: str) -> list[x509.Certificate]:
    try:
        return certificates.load(_read(path, what, me))
    except ValueError:
        raise PeerIdentity(f"The {what} of party {me}, {path}, holds no PEM certificate.") from None


def _der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.DER)


def check_dates(certificate: x509.Certificate, what: str) -> None:
    """Raise `PeerIdentity` if the certificate is not valid now."""
    now = datetime.now(UTC)
    if certificate.not_valid_after_utc < now:
        raise PeerIdentity(f"{what} expired on {certificate.not_valid_after_utc:%Y-%m-%d}; issue a new one.")
    if certificate.not_valid_before_utc > now:
        raise PeerIdentity(
            f"{what} is valid from {certificate.not_valid_before_utc:%Y-%m-%d} only; check the clocks."
        )


def ended(expired: Lapsing) -> PeerIdentity:
    """A certificate has expired while the run was under way."""
    return PeerIdentity(
        f"The {expired.what} of party {expired.party} has expired while the run was under way, so nothing more is released; "
        "issue a new one."
    )


def explain(config: SessionConfig, peer: Peer, shown: bytes, error: ssl.SSLError) -> NoReturn:
    """Turn a failed handshake into a sentence that names the party and the reason.

    Raises `PeerIdentity` where a certificate is the reason, `Disturbed` where none is.
    """
    reason = error.reason or "no reason given"
    if refuses(error):
        raise refused(config, peer.name) from None
    if "DID_NOT_RETURN" in reason:
        raise PeerIdentity(f"Party {peer.name} presented no certificate.") from None
    if isinstance(error, ssl.SSLCertVerificationError):
        _check_shown_dates(peer, shown)
        trust = f"the CA in {config.ca}" if config.ca else "anybody this party knows"
        raise PeerIdentity(
            f"The certificate of party {peer.name} is not signed by {trust} ({error.verify_message})."
        ) from None
    raise Disturbed(f"the TLS handshake was disturbed: {reason}") from None


def _check_shown_dates(peer: Peer, shown: bytes) -> None:
    try:
        check_dates(x509.load_der_x509_certificate(shown), f"The certificate of party {peer.name}")
    except (ValueError, x509.InvalidVersion):
        raise PeerIdentity(f"The certificate of party {peer.name} cannot be read.") from None


def refuses(error: ssl.SSLError) -> bool:
    """Whether this is the peer's alert that it does not accept a certificate (other alerts are about bytes
    that it got)."""
    reason = error.reason or ""
    return "ALERT" in reason and any(
        word in reason for word in ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED")
    )


def refused(config: SessionConfig, name: str) -> PeerIdentity:
    """The peer does not accept this party's certificate."""
    return PeerIdentity(
        f"Party {name} refused the certificate {config.cert} of party {config.me}: "
        f"wrong CA, expired, or not in this party's name; compare both with `{program()} certs show`."
    )
