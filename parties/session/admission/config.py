"""What a session needs to know before it starts: who takes part, where, as what, and by which certificate
(`docs/design/session.md` 3, `docs/reference/study-file.md`).

Everything here is public except the key file's content, which is only read by the TLS library. Checked where
it is built, so that a study that cannot be run is refused before a socket is opened.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from mpc_protocols.errors import StudyInvalid
from parties.addresses import is_loopback
from parties.session.transport.way_in import WayIn

MAX_PARTIES = 64
MAX_FACTS = 16 << 10
"""Most bytes of a party's announcement, as JSON."""


def _is_everywhere(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return host in ("", "*")


@dataclass(frozen=True)
class Peer:
    """One party as the study names it. `fingerprint`: SHA-256 of its certificate, hex; colons and case do not
    matter."""

    name: str
    host: str
    port: int
    role: Literal["compute", "contribute"] = "compute"
    fingerprint: str | None = None

    def __post_init__(self) -> None:
        if not (self.name.isprintable() and 0 < len(self.name.encode()) <= 64):
            raise StudyInvalid(f"Party name {self.name!r}: 1 to 64 bytes of printable text are expected.")
        if self.role not in ("compute", "contribute"):
            raise StudyInvalid(f"Party {self.name}: role is 'compute' or 'contribute', not {self.role!r}.")
        if not 0 < self.port < 65536:
            raise StudyInvalid(f"Party {self.name}: port {self.port} is not between 1 and 65535.")
        if self.fingerprint is not None:
            plain = self.fingerprint.replace(":", "").lower()
            if not re.fullmatch("[0-9a-f]{64}", plain):
                raise StudyInvalid(
                    f"Party {self.name}: a fingerprint is the SHA-256 of a certificate, 64 hexadecimal digits."
                )
            object.__setattr__(self, "fingerprint", plain)

    @property
    def address(self) -> str:
        """Host and port as people write them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class SessionConfig:
    """One party's view of a session.

    me: this party's name. parties: all, in the study's order. study_digest: 32 bytes that all must hold
    alike; protocol: the protocol version, which must be the same at all, too. listen: where this computing
    party listens if not at its address in the study (one address, never all). cert, key, ca: PEM files; `ca`
    may be missing if every party is pinned by its fingerprint. insecure_loopback: no TLS, loopback addresses
    only. insecure_key: go on with a key file that other users can read. facts: what this party announces to
    all (small, public, JSON). connect_s: how long to wait until all have come and agreed; silence_s: how long
    a peer may be silent; answer_s: how long this party waits for a message, or for room for one, of a peer
    that is alive, once all have assembled (None: for ever); deadline_s: how long all of it may take from then
    on (None: for ever), or what gives it once local work is done; closing_s: how long to wait at the end for
    parties that are alive but not done. way_in: what stands between sockets and links, for programs that
    embed the session.
    """

    me: str
    parties: tuple[Peer, ...]
    study_digest: bytes
    protocol: int
    listen: tuple[str, int] | None = None
    cert: Path | None = None
    key: Path | None = None
    ca: Path | None = None
    insecure_loopback: bool = False
    insecure_key: bool = False
    facts: Mapping[str, object] = field(default_factory=dict)
    connect_s: float = 120.0
    silence_s: float = 10.0
    answer_s: float | None = None
    deadline_s: float | Callable[[], float] | None = None
    closing_s: float = 600.0
    way_in: WayIn | None = None

    def __post_init__(self) -> None:
        names = [peer.name for peer in self.parties]
        if len(set(names)) < len(names):
            raise StudyInvalid(f"Party names must differ: {', '.join(names)}.")
        if self.me not in names:
            raise StudyInvalid(f"Party {self.me} is not in the study; its parties are {', '.join(names)}.")
        if len(names) > MAX_PARTIES:
            raise StudyInvalid(f"{len(names)} parties; at most {MAX_PARTIES} are possible.")
        computing = self.computing
        if len(computing) < 2:
            raise StudyInvalid("At least two parties must compute.")
        taken: dict[tuple[str, int], str] = {}
        for peer in computing:
            other = taken.setdefault((peer.host, peer.port), peer.name)
            if other != peer.name:
                raise StudyInvalid(f"Parties {other} and {peer.name} have the same address {peer.address}.")
        if len(self.study_digest) != 32:
            raise StudyInvalid(f"The study's digest has {len(self.study_digest)} bytes instead of 32.")
        if self.listen is not None and not 0 < self.listen[1] < 65536:
            raise StudyInvalid(f"listen: port {self.listen[1]} is not between 1 and 65535.")
        if self.own.role == "compute" and _is_everywhere(self.listening[0]):
            raise StudyInvalid(
                f"Party {self.me} would listen on all interfaces ({self.listening[0]!r}); name one address."
            )
        for name, seconds in (
            ("connect_s", self.connect_s),
            ("silence_s", self.silence_s),
            ("closing_s", self.closing_s),
            ("answer_s", self.answer_s),
            ("deadline_s", None if callable(self.deadline_s) else self.deadline_s),
        ):
            if seconds is not None and not 0 < seconds <= 1e6:
                raise StudyInvalid(f"{name} = {seconds}: a positive number of seconds is expected.")
        try:
            size = len(json.dumps(dict(self.facts)))
        except (TypeError, ValueError):
            raise StudyInvalid("A party's announcement must be plain JSON.") from None
        if size > MAX_FACTS:
            raise StudyInvalid(f"A party's announcement has {size} bytes; at most {MAX_FACTS} are possible.")
        self._check_protection()

    def _check_protection(self) -> None:
        if self.insecure_loopback:
            where = [peer.host for peer in self.parties] + ([self.listen[0]] if self.listen else [])
            outside = [host for host in where if not is_loopback(host)]
            if outside:
                raise StudyInvalid(
                    f"The study's tls = 'insecure-loopback' is only for one machine; {outside[0]} is not a loopback address."
                )
            return
        if self.cert is None or self.key is None:
            raise StudyInvalid(
                f"Party {self.me} needs a certificate and a key (cert, key); see `certs make`."
            )
        if self.ca is None:
            missing = [peer.name for peer in self.parties if peer.fingerprint is None]
            if missing:
                raise StudyInvalid(
                    f"Without a CA file (ca) every party must be pinned; party {missing[0]} has no fingerprint."
                )

    @property
    def computing(self) -> tuple[Peer, ...]:
        """Computing parties, in the study's order."""
        return tuple(peer for peer in self.parties if peer.role == "compute")

    @property
    def numbered(self) -> tuple[Peer, ...]:
        """Parties by wire number: those that compute first, then contributors, each in the study's order."""
        return self.computing + tuple(peer for peer in self.parties if peer.role == "contribute")

    @property
    def number(self) -> int:
        """This party's wire number."""
        return [peer.name for peer in self.numbered].index(self.me)

    @property
    def own(self) -> Peer:
        """This party."""
        return self.numbered[self.number]

    @property
    def listening(self) -> tuple[str, int]:
        """Where this party listens, if it computes."""
        return self.listen or (self.own.host, self.own.port)

    @property
    def peers(self) -> tuple[int, ...]:
        """Numbers of the parties this one has a link with: contributors have none among themselves."""
        m, me = len(self.computing), self.number
        return tuple(p for p in range(len(self.parties)) if p != me and (p < m or me < m))

    @property
    def dials(self) -> tuple[int, ...]:
        """The links this party opens: always the later number to the earlier. The rest it waits for."""
        return tuple(p for p in self.peers if p < self.number)
