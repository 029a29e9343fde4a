"""What every party signs of a finished run: the hashes of its files, so that an auditor knows that all
parties hold the same.

    {"release":CONTENT,
    "signatures":{"PARTY":"HEX",...}}

CONTENT is canonical JSON on one line: format, study (the digest), run, files (SHA-256 by name), certificates
(PEM by party), ca (PEM, or null where the study pins every certificate). A signature is ECDSA (P-256,
SHA-256) by the key of the party's certificate, r and s of 32 bytes each, over FORMAT and CONTENT. The file is
that of a contributor's signed result (`runner.contributors.statement`). A party whose certificate has another
kind of key signs nothing, and is missing there.

Who learns what: nothing new; certificates were shown when the parties met. What a party sends is judged
before it is used.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from mpc_protocols.errors import PeerIdentity, ProtocolAborted, UsageError
from mpc_protocols.process.canonical_json import canonical
from parties.certificates import facts, load
from runner.contributors import statement
from runner.failures import reason
from runner.results import outdir

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

    from runner.study import Study
    from runner.study.private_file import CertificateFiles

KIND, FORMAT = "release", "cosynth-release-1"
MAX_CERTIFICATE = 1 << 16
SIGNED = (outdir.RUN, "measurements.json", "model.npz", outdir.TABLE, outdir.RESEARCH_TABLE)
"""The files that are hashed; the report is made of these."""
_HALF = 32

Gather = Callable[[str, bytes, int], Mapping[str, bytes]]
"""What every party has to say to all: (name of the exchange, own bytes, most bytes of a party) -> bytes by
party."""


@dataclass(frozen=True)
class Signed:
    """A release that was signed. signatures: by party, 64 bytes each; not verified yet."""

    study: str
    run: str
    files: Mapping[str, str]
    certificates: Mapping[str, str]
    ca: str | None
    signatures: Mapping[str, bytes]

    @property
    def content(self) -> bytes:
        """CONTENT."""
        form = {key: value for key, value in vars(self).items() if key != "signatures"}
        return canonical({"format": FORMAT, **form})

    @property
    def message(self) -> bytes:
        """What the signatures are over."""
        return FORMAT.encode() + self.content

    def to_bytes(self) -> bytes:
        """The file's content."""
        return statement.to_bytes(KIND, self.content, self.signatures)

    def check(self, party: str, pinned: str | None, authorities: str | None = None) -> None:
        """Return if the party has signed; else raise `PeerIdentity`.

        pinned: its certificate's fingerprint, if the study has it; else the CA must have issued it, or one of
        `authorities`, PEM.
        """
        if party not in self.signatures or party not in self.certificates:
            raise PeerIdentity(f"The results do not bear the signature of party {party}.")
        key = key_of(self.certificates[party], party, authorities or self.ca, pinned)
        if key is None:
            raise PeerIdentity(f"The certificate beside the signature of party {party} is not that party's.")
        if not _verifies(key, self.signatures[party], self.message):
            raise PeerIdentity(f"The signature of party {party} is not of these results.")


def hashes(folder: Path, names: tuple[str, ...]) -> dict[str, str]:
    """SHA-256 of the files that are there, by name. Raises `UsageError` for one that cannot be read."""
    try:
        return {
            name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
            for name in names
            if (folder / name).is_file()
        }
    except OSError as error:
        raise UsageError(
            f"{error.filename} cannot be read ({reason(error)}); it is to be compared."
        ) from None


def sign(
    study: Study,
    party: str,
    certs: CertificateFiles,
    digest: bytes,
    run: bytes,
    files: Mapping[str, str],
    gather: Gather,
) -> bytes:
    """This party's part: certificates go round, then signatures; returns the file. 2 exchanges. Raises
    `ProtocolAborted` for a signature of something else, `PeerIdentity`."""
    shown = gather("certificates", _plain(_file(certs.cert)).encode(), MAX_CERTIFICATE)
    authorities = None if certs.ca is None else _file(certs.ca)
    # files may hold comments or more certificates: the first is the one that the study's digest has
    ca = None if authorities is None else _plain(authorities, 1)
    content = Signed(
        digest.hex(),
        run.hex(),
        files,
        {name: pem.decode("ascii", "replace") for name, pem in shown.items()},
        ca,
        {},
    )
    signatures = gather("signatures", signature_of(certs.key, content.message), 2 * _HALF)
    # in the study's order, so that the file is the same at all
    given = {each.name: signatures[each.name] for each in study.parties if signatures[each.name]}
    signed = Signed(content.study, content.run, files, content.certificates, ca, given)
    for each in study.parties:
        if each.name not in given:
            continue
        try:
            signed.check(each.name, each.fingerprint, authorities)
        except PeerIdentity:
            raise ProtocolAborted(
                f"Party {each.name} signed other results than party {party} has, or with a certificate of somebody else; do not "
                "use the results."
            ) from None
    return signed.to_bytes()


def read(path: Path) -> Signed:
    """A file of signatures; nothing is verified yet. Raises `UsageError`."""
    try:
        _, content, signatures = statement.read([path], {KIND: FORMAT})
        form: dict[str, Any] = json.loads(content)
        if form.pop("format") != FORMAT:
            raise ValueError
        signed = Signed(**form, signatures=signatures)
        texts = [signed.study, signed.run, *signed.files.values(), *signed.certificates.values()]
        if not all(isinstance(text, str) for text in [*texts, signed.ca or ""]) or signed.content != content:
            raise ValueError
        return signed
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, UsageError):
        raise UsageError(f"{path} is not a file of signatures of this version, or it was altered.") from None


def fingerprint_of(pem: str) -> str:
    """SHA-256 of the first certificate in hex. Raises `PeerIdentity`."""
    return facts(_loaded(pem)[0]).fingerprint


def _file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        raise PeerIdentity(f"The certificate {path} cannot be read any more; put it back.") from None


def _plain(pem: str, most: int | None = None) -> str:
    """The certificates of a file, as they are written without anything else; at most so many."""
    return b"".join(each.public_bytes(Encoding.PEM) for each in _loaded(pem)[:most]).decode("ascii")


def _loaded(pem: str) -> list[Any]:
    try:
        return load(pem.encode())
    except ValueError:
        raise PeerIdentity("A certificate beside the signatures is none that can be read.") from None


def key_of(pem: str, party: str, ca: str | None, pinned: str | None) -> EllipticCurvePublicKey | None:
    """The key of a certificate, or of a chain from it to the CA, that speaks for the party; else None."""
    chain = _loaded(pem)
    shown = facts(chain[0])
    if pinned is not None:
        trusted = shown.fingerprint == pinned
    else:
        ends = [] if ca is None else _loaded(ca)
        trusted = any(_leads([*chain, *([end] if end != chain[-1] else [])]) for end in ends)
    try:
        key = chain[0].public_key()
    except (ValueError, UnsupportedAlgorithm):
        return None
    return key if trusted and party in shown.names and isinstance(key, ec.EllipticCurvePublicKey) else None


def _leads(chain: Sequence[Any]) -> bool:
    """Whether each certificate was issued by the one after it, and those that issue may."""
    return all(_issued(one, by) for one, by in pairwise(chain)) and all(
        _may_issue(by, below) for below, by in enumerate(chain[1:])
    )


def _issued(certificate: Any, authority: Any) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _may_issue(certificate: Any, below: int) -> bool:
    """Whether it is a CA's, with room for so many CAs below it: a party that has a certificate could else
    issue others' with its own key (RFC 5280, 4.2.1.9 and 4.2.1.3)."""
    try:
        found = certificate.extensions
        limits = found.get_extension_for_class(x509.BasicConstraints).value
    except (x509.ExtensionNotFound, ValueError):
        return False
    try:
        signs = found.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    except x509.ExtensionNotFound:
        signs = True
    return bool(limits.ca and signs and (limits.path_length is None or below <= limits.path_length))


def signature_of(key_file: Path, message: bytes) -> bytes:
    """64 bytes; none, if the key is of another kind."""
    try:
        key = load_pem_private_key(key_file.read_bytes(), None)
    except (OSError, ValueError, TypeError):
        raise PeerIdentity(f"The key {key_file} cannot be read any more; put it back.") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.key_size != 8 * _HALF:
        return b""
    r, s = utils.decode_dss_signature(key.sign(message, ec.ECDSA(SHA256())))
    return r.to_bytes(_HALF, "big") + s.to_bytes(_HALF, "big")


def _verifies(key: EllipticCurvePublicKey, signature: bytes, message: bytes) -> bool:
    r, s = int.from_bytes(signature[:_HALF], "big"), int.from_bytes(signature[_HALF:], "big")
    try:
        key.verify(utils.encode_dss_signature(r, s), message, ec.ECDSA(SHA256()))
    except (InvalidSignature, ValueError):
        return False
    return True
