"""Certificates: what is issued is accepted by OpenSSL for what it is meant for; files are private and whole."""

from __future__ import annotations

import base64
import hashlib
import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtensionOID

from mpc_protocols.errors import PeerIdentity
from mpc_protocols.process.foreign_text import printable
from parties import certificates
from parties.certificates import Credential


def handshake(
    ca: Path, server: tuple[Path, Path], client: tuple[Path, Path]
) -> tuple[dict[str, object], dict[str, object]]:
    """TLS 1.3 with both certificates checked against one CA, in memory; what each side learned about the
    other."""
    ends = []
    bios = [ssl.MemoryBIO() for _ in range(2)]
    for is_server, (cert, key) in ((True, server), (False, client)):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        context.load_cert_chain(cert, key)
        context.load_verify_locations(ca)
        ends.append(context.wrap_bio(bios[is_server], bios[not is_server], server_side=is_server))
    done = [False, False]
    for _ in range(6):
        for number in (1, 0):
            try:
                ends[number].do_handshake()
                done[number] = True
            except ssl.SSLWantReadError:
                pass
    assert done == [True, True]
    return ends[0].getpeercert() or {}, ends[1].getpeercert() or {}  # type: ignore[return-value]


def test_issued_certificates_serve_both_sides_under_strict_rules(tmp_path: Path) -> None:
    ca = certificates.make_all(tmp_path, ["north", "south"])
    seen_by_server, seen_by_client = handshake(
        ca, (tmp_path / "north.crt", tmp_path / "north.key"), (tmp_path / "south.crt", tmp_path / "south.key")
    )
    assert seen_by_server["subjectAltName"] == (("DNS", "south"),)
    assert seen_by_client["subjectAltName"] == (("DNS", "north"),)


def test_a_verifier_must_know_basic_constraints_and_key_usage_and_nothing_more() -> None:
    ca = certificates.make_ca("study")
    for made in (ca, certificates.issue(ca, "north")):
        found = x509.load_pem_x509_certificate(made.certificate).extensions
        names = {one.oid for one in found if one.critical}
        assert names == {ExtensionOID.BASIC_CONSTRAINTS, ExtensionOID.KEY_USAGE}


def test_a_request_signed_elsewhere_works_with_the_key_that_stayed(tmp_path: Path) -> None:
    ca = certificates.make_ca("study")
    ca_file, _ = certificates.write(tmp_path, "ca", ca, with_key=False)
    csr, key = certificates.request("north")
    assert b"PRIVATE KEY" not in csr
    north = certificates.write(tmp_path, "north", Credential(certificates.sign(ca, csr, "north"), key))
    south = certificates.write(tmp_path, "south", certificates.issue(ca, "south"))
    handshake(ca_file, north, south)
    assert not (tmp_path / "ca.key").exists()


def test_requests_that_are_not_signed() -> None:
    ca = certificates.make_ca("study")
    csr, _ = certificates.request("north")
    with pytest.raises(PeerIdentity, match=r"is for .*north.*, not for party south"):
        certificates.sign(ca, csr, "south")
    with pytest.raises(PeerIdentity, match="not a PEM request"):
        certificates.sign(ca, b"garbage", "north")
    lines = csr.decode().splitlines()
    middle = lines[len(lines) // 2]
    changed = csr.replace(middle.encode(), middle.swapcase().encode())
    with pytest.raises(PeerIdentity):
        certificates.sign(ca, changed, "north")
    with pytest.raises(PeerIdentity, match="does not belong"):
        certificates.issue(Credential(ca.certificate, certificates.make_ca("other").key), "north")


def test_facts(tmp_path: Path) -> None:
    ca = certificates.make_all(tmp_path, ["north"], days=30)
    facts, authority = certificates.read(tmp_path / "north.crt"), certificates.read(ca)
    assert facts.names == ("north",) and not facts.authority and authority.authority
    assert timedelta(days=29) < facts.not_after - datetime.now(UTC) <= timedelta(days=30)
    assert facts.not_before < datetime.now(UTC)
    shown = ssl.PEM_cert_to_DER_cert((tmp_path / "north.crt").read_text())
    assert (
        facts.fingerprint
        == certificates.fingerprint(tmp_path / "north.crt")
        == hashlib.sha256(shown).hexdigest()
    )
    with pytest.raises(PeerIdentity, match="There is no certificate"):
        certificates.read(tmp_path / "absent.crt")
    with pytest.raises(PeerIdentity, match="is not a PEM certificate"):
        certificates.read(tmp_path / "north.key")


def test_a_name_outside_ascii_stands_in_the_common_name(tmp_path: Path) -> None:
    certificates.make_all(tmp_path, ["Ärzte"])
    assert certificates.read(tmp_path / "Ärzte.crt").names == ("Ärzte",)


def test_keys_are_private_and_files_whole(tmp_path: Path) -> None:
    certificates.make_all(tmp_path, ["north"], keep_ca_key=True)
    for name in ("north", "ca"):
        assert stat.S_IMODE((tmp_path / f"{name}.key").stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ca.crt", "ca.key", "north.crt", "north.key"]
    target = tmp_path / "folder"
    target.mkdir()
    with pytest.raises(OSError):
        certificates.write_file(target, b"x", 0o600)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert "PRIVATE" not in repr(certificates.issue(certificates.make_ca("x"), "y"))


def test_a_strangers_certificate_commands_no_terminal(tmp_path: Path) -> None:
    """`certs show` and sentences print names out of files that somebody sent."""
    name = "north\x1b[2J\x07\u202e"
    certificate, _ = certificates.write(
        tmp_path, "stranger", certificates.issue(certificates.make_ca(name), name)
    )
    found = certificates.read(certificate)
    assert all(
        text.isprintable() and text.startswith(("north", "CN=north")) for text in (*found.names, found.issuer)
    )
    assert printable("nördlich 1") == "nördlich 1"


def unreadable(der: bytes) -> tuple[bytes, bytes]:
    """A certificate whose issuer cannot be read, and one whose key is on a curve that nobody knows: both are
    parsed at first."""
    name, curve = b"\x55\x04\x03", b"\x2a\x86\x48\xce\x3d\x03\x01"
    text, number = name + b"\x0c", name + b"\x02"
    assert text in der and curve in der
    return der.replace(text, number, 1), der.replace(curve + b"\x07", curve + b"\x09")


def test_what_shows_late_to_be_no_certificate_is_refused_at_once(tmp_path: Path) -> None:
    """The library reads a field when it is asked for it."""
    certificates.make_all(tmp_path, ["north"], keep_ca_key=True)
    issuer, curve = unreadable(ssl.PEM_cert_to_DER_cert((tmp_path / "north.crt").read_text()))
    path = tmp_path / "odd.crt"
    path.write_text(ssl.DER_cert_to_PEM_cert(issuer))
    with pytest.raises(PeerIdentity, match=r"odd.crt is not a PEM certificate that can be read"):
        certificates.read(path)
    path.write_text(ssl.DER_cert_to_PEM_cert(curve))
    assert certificates.read(path).names == ("north",)  # as far as it goes
    ca = Credential((tmp_path / "ca.crt").read_bytes(), (tmp_path / "ca.key").read_bytes())
    request, _ = certificates.request("north")
    lines = base64.b64decode(b"".join(request.splitlines()[1:-1]))
    for odd in unreadable(lines):
        coded = base64.encodebytes(odd).decode()
        pem = f"-----BEGIN CERTIFICATE REQUEST-----\n{coded}-----END CERTIFICATE REQUEST-----\n"
        with pytest.raises(PeerIdentity, match="The certificate request for party north"):
            certificates.sign(ca, pem.encode(), "north")
