"""Certificates of the parties: a session's own CA, certificates in the parties' names, requests, and what a
file says.

Every session trusts its own CA or pinned fingerprints and nothing else (`session.identity`). With `make_ca`
one person (or `run` itself, on one machine) issues all certificates and so has seen all keys; with `request`
and `sign` each party's key stays with the party. The name in a certificate is the party's name in the study:
SAN DNS name and common name.

Keys are ECDSA P-256, files are PEM; keys are written with mode 0600, whole or not at all. Not thread-safe
beyond that. `cryptography` is imported by the functions: the launcher, which only passes paths, need not load
it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID

from mpc_protocols.errors import PeerIdentity
from mpc_protocols.process.foreign_text import printable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey

THROW_AWAY_DAYS = 30
"""Validity of certificates that `run` makes for itself."""

KEPT_DAYS = 365
"""Validity of certificates that people make and keep (`certs make`, `certs sign`)."""

_CERTIFICATE, _KEY = b"-----BEGIN CERTIFICATE", b"PRIVATE KEY-----"


@dataclass(frozen=True)
class Credential:
    """A certificate and its private key, PEM. A CA is one too."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "Credential(...)"


@dataclass(frozen=True)
class Facts:
    """Contents of a certificate: names it speaks for, who signed it, when it is valid (UTC), SHA-256 of its
    DER as hex."""

    names: tuple[str, ...]
    issuer: str
    not_before: datetime
    not_after: datetime
    fingerprint: str
    authority: bool


def make_ca(name: str, days: int = THROW_AWAY_DAYS) -> Credential:
    """A new CA that signs nothing but parties' certificates."""
    key = _new_key()
    subject = _subject(f"{name} session CA")
    builder = _builder(subject, subject, key.public_key(), days, key.public_key())
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    return Credential(_pem(_signed(_with_usage(builder, authority=True), key)), _key_pem(key))


def issue(ca: Credential, name: str, days: int = THROW_AWAY_DAYS) -> Credential:
    """A new key and its certificate in a party's name. Raises `PeerIdentity` if the CA cannot be read."""
    key = _new_key()
    return Credential(_certify(ca, name, key.public_key(), days), _key_pem(key))


def request(name: str) -> tuple[bytes, bytes]:
    """A new key and the request to certify it, (CSR, key) in PEM: the key stays with the party, the request
    travels."""
    key = _new_key()
    csr = x509.CertificateSigningRequestBuilder().subject_name(_subject(name)).sign(key, SHA256())
    return csr.public_bytes(Encoding.PEM), _key_pem(key)


def sign(ca: Credential, csr: bytes, name: str, days: int = KEPT_DAYS) -> bytes:
    """The certificate for a request, PEM. The name is the signer's choice: a request in another name is
    refused."""
    try:
        asked = x509.load_pem_x509_csr(csr)
        public, signed = asked.public_key(), asked.is_signature_valid
        names = [str(a.value) for a in asked.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)]
    except (ValueError, x509.InvalidVersion, UnsupportedAlgorithm):
        raise PeerIdentity(f"The certificate request for party {name} is not a PEM request.") from None
    if not signed:
        raise PeerIdentity(f"The certificate request for party {name} is not signed by its own key.")
    if names != [name]:
        raise PeerIdentity(f"The certificate request is for {names}, not for party {name}.")
    if not isinstance(public, ec.EllipticCurvePublicKey):
        raise PeerIdentity(f"The certificate request for party {name} holds another kind of key than ECDSA.")
    return _certify(ca, name, public, days)


def read(path: Path) -> Facts:
    """Facts of the first certificate in a PEM file. Raises `PeerIdentity` naming the file."""
    try:
        return facts(load(path.read_bytes())[0])
    except FileNotFoundError:
        raise PeerIdentity(f"There is no certificate {path}.") from None
    except (ValueError, OSError):
        raise PeerIdentity(f"{path} is not a PEM certificate that can be read.") from None


def load(pem: bytes) -> list[x509.Certificate]:
    """The certificates of a PEM file, one or more. Raises `ValueError` also for one whose facts cannot be
    read.

    The library reads a field when it is asked for it: what is no certificate would show where nobody looks
    for it any more.
    """
    try:
        found = x509.load_pem_x509_certificates(pem)
        for each in found:
            facts(each)
    except (
        x509.InvalidVersion,
        x509.DuplicateExtension,
        x509.UnsupportedGeneralNameType,
        UnsupportedAlgorithm,
    ) as error:
        raise ValueError(str(error)) from None
    return found


def facts(certificate: x509.Certificate) -> Facts:
    """Facts of a parsed certificate."""
    try:
        authority = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        authority = False
    return Facts(
        names=tuple(map(printable, names_of(certificate))),
        issuer=printable(certificate.issuer.rfc4514_string()),
        not_before=certificate.not_valid_before_utc,
        not_after=certificate.not_valid_after_utc,
        fingerprint=hashlib.sha256(certificate.public_bytes(Encoding.DER)).hexdigest(),
        authority=authority,
    )


def names_of(certificate: x509.Certificate) -> list[str]:
    """The names a certificate speaks for: SAN DNS names, else its common names."""
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        names: list[str] = []
    else:
        names = extension.value.get_values_for_type(x509.DNSName)
    return names or [
        str(a.value) for a in certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    ]


def check_private(key: Path) -> None:
    """Raise `PeerIdentity` if other users of this machine can read the key: they could be this party. A certificate
    in its place, which is public, is refused for what it is by who loads it."""
    try:
        mode = key.stat().st_mode
        if _CERTIFICATE in (text := key.read_bytes()) and _KEY not in text:
            return
    except OSError:  # said elsewhere, with what is to be done about it
        return
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise PeerIdentity(
            f"{key} can be read by other users of this machine, who could pass for this party; chmod 600 it, or run "
            "with --insecure-key where nobody else is."
        )


def fingerprint(path: Path) -> str:
    """SHA-256 of a certificate file's first certificate, 64 hexadecimal digits."""
    return read(path).fingerprint


def write(directory: Path, name: str, credential: Credential, with_key: bool = True) -> tuple[Path, Path]:
    """Write NAME.crt and NAME.key (mode 0600) into a directory, each whole or not at all; the two paths."""
    directory.mkdir(parents=True, exist_ok=True)
    cert, key = directory / f"{name}.crt", directory / f"{name}.key"
    if with_key:
        write_file(key, credential.key, 0o600)
    write_file(cert, credential.certificate, 0o644)
    return cert, key


def write_file(path: Path, content: bytes, mode: int) -> None:
    """Write a file whole or not at all, never readable by more than `mode` says, not even for a moment."""
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def make_all(
    directory: Path,
    names: list[str],
    days: int = THROW_AWAY_DAYS,
    ca_name: str = "cosynth",
    keep_ca_key: bool = False,
) -> Path:
    """A new CA and a certificate for every name, written as ca.crt, NAME.crt, NAME.key; the path of ca.crt.

    The CA's key is thrown away unless `keep_ca_key` (then ca.key): nobody can add a party later.
    """
    ca = make_ca(ca_name, days)
    path, _ = write(directory, "ca", ca, with_key=keep_ca_key)
    for name in names:
        write(directory, name, issue(ca, name, days))
    return path


def _new_key() -> EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public: EllipticCurvePublicKey,
    days: int,
    authority: EllipticCurvePublicKey,
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))  # clocks differ
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority), critical=False)
    )


def _with_usage(builder: x509.CertificateBuilder, authority: bool) -> x509.CertificateBuilder:
    return builder.add_extension(
        x509.KeyUsage(
            digital_signature=not authority,
            key_cert_sign=authority,
            crl_sign=authority,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        ),
        critical=True,
    )


def _certify(ca: Credential, name: str, public: EllipticCurvePublicKey, days: int) -> bytes:
    try:
        issuer = x509.load_pem_x509_certificate(ca.certificate)
        key = load_pem_private_key(ca.key, password=None)
    except (ValueError, TypeError):
        raise PeerIdentity(
            "The CA's certificate or key cannot be read: unencrypted PEM is expected."
        ) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != issuer.public_key():
        raise PeerIdentity("The CA's key does not belong to its certificate.")
    builder = _builder(_subject(name), issuer.subject, public, days, key.public_key())
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
        critical=False,
    )
    if name.isascii():  # a DNS name is ASCII; other names stand in the common name alone
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    return _pem(_signed(_with_usage(builder, authority=False), key))


def _signed(builder: x509.CertificateBuilder, key: EllipticCurvePrivateKey) -> x509.Certificate:
    return builder.sign(key, SHA256())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)


def _key_pem(key: EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
