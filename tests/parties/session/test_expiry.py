"""What has been valid when parties met, and is not any more: certificates, and the CAs that they rest on."""

from __future__ import annotations

import ssl
import time
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mpc_protocols.errors import PeerIdentity
from parties import certificates
from parties.session import SessionWire
from parties.session.admission import identity
from parties.session.admission.identity import Identity, Lapsing, ended, own_identity
from parties.session.party import Party
from tests.trio import configs, session_config


def met(folder: Path, ca_days: int, days: int) -> Identity:
    """Of party north, once it has met party south; both certificates by one CA."""
    ca = certificates.make_ca("short", ca_days)
    certificates.write(folder, "ca", ca)
    for name in ("north", "south"):
        certificates.write(folder, name, certificates.issue(ca, name, days))
    config = session_config(configs(folder, computing=2)[0])
    own = own_identity(config)
    der = ssl.PEM_cert_to_DER_cert((folder / "south.crt").read_text())
    peer = next(each for each in config.parties if each.name == "south")
    own.verify(peer, der, _proved(folder / "south.crt", der))
    return own


def _proved(path: Path, der: bytes) -> Any:
    """A handshake in which this certificate was proved."""
    decoded = ssl._ssl._test_decode_cert(str(path))  # type: ignore[attr-defined]
    return SimpleNamespace(getpeercert=lambda binary_form=False: der if binary_form else decoded)


def in_days(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    class Later(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(UTC) + timedelta(days=days)

    monkeypatch.setattr(identity, "datetime", Later)


@pytest.mark.parametrize(("ca_days", "days", "what"), [(10, 30, "CA"), (30, 10, "certificate")])
def test_what_ends_first_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ca_days: int, days: int, what: str
) -> None:
    own = met(tmp_path, ca_days, days)
    in_days(monkeypatch, 9)
    assert own.expired() is None
    in_days(monkeypatch, 11)
    assert own.expired() == Lapsing("north", what)
    peers = {each for each in own._expire if each.party == "south"}
    assert peers == {Lapsing("south", "certificate"), Lapsing("south", "CA")}
    assert own._expire[Lapsing("south", what)] < datetime.now(UTC) + timedelta(days=11)


def test_a_clock_that_is_set_back_gives_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = met(tmp_path, 30, 10)
    in_days(monkeypatch, -5)
    assert own.expired() is None
    passed = time.monotonic() + 11 * 86_400
    monkeypatch.setattr(identity, "time", SimpleNamespace(monotonic=lambda: passed))
    assert own.expired() == Lapsing("north", "certificate")


def test_an_old_authority_beside_the_one_that_issued_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = met(tmp_path, 30, 30)
    both = certificates.make_ca("old", 2).certificate + (tmp_path / "ca.crt").read_bytes()
    (tmp_path / "ca.crt").write_bytes(both)
    own = own_identity(own.config)
    in_days(monkeypatch, 9)
    assert own.expired() is None


def test_a_wire_says_before_a_release_what_has_expired() -> None:
    party = Party(0, ("north", "south"), 2, SimpleNamespace())  # type: ignore[arg-type]
    wire = SessionWire(party)
    wire.check_valid()
    party.lapse = lambda: ended(Lapsing("south", "CA"))
    with pytest.raises(PeerIdentity, match="The CA of party south has expired while the run was under way"):
        wire.check_valid()
