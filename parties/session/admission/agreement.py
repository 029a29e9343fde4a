"""Agreement over fresh links, before any data moves: same study, same protocol version, same roles, one
session id (`docs/design/session.md` 4).

Each side says HELLO (study digest, protocol version, name, role, announcement, and a nonce if it computes);
each compares the other's with its own. When all have spoken, each computing party derives the session id from
all nonces, roles and announcements and CONFIRMs it, with every announcement, to everybody it is linked with;
contributors, who do not meet one another, compare what the computing parties tell them. Then each computing
party sends each other one, as KEYS, what it contributes to the keys that both share: for MPyC's pseudorandom
secret sharing and of the pair (`keys`).

Who learns what: all learn all announcements. Contributions to a key travel inside TLS to the parties that
share it. A party that tells others different nonces is caught by the CONFIRM of a third (exit 40).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from collections.abc import Callable, Container, Mapping
from typing import Any

from mpc_protocols.errors import ProtocolAborted, StudiesDiffer
from parties.session.admission.config import MAX_FACTS, SessionConfig
from parties.session.admission.keys import SharedKeys
from parties.session.transport.frames import BadFrame, Kind

NONCE = 32
MAX_NESTED = 16
"""Of lists and objects in an announcement: it is sent on inside others, and what can be read must be writable
there."""

Send = Callable[[int, Kind, bytes], None]


class Agreement:
    """The state of one party's agreement; the links feed it, `run` drives it."""

    def __init__(self, config: SessionConfig, send: Send) -> None:
        self._config, self._send = config, send
        self._nonce = secrets.token_bytes(NONCE)
        self._hellos: dict[int, dict[str, Any]] = {config.number: self._own_hello()}
        self._confirmed: dict[int, bytes] = {}
        self._expected: bytes | None = None
        self._shared = (
            SharedKeys(config.number, len(config.computing)) if config.own.role == "compute" else None
        )
        self._keys: set[int] = set()
        self._progress = asyncio.Event()
        self.session_id = b""
        self.announcements: Mapping[str, Mapping[str, object]] = {}

    def greet(self, peer: int) -> None:
        """A link is up: say hello."""
        self._send(peer, Kind.HELLO, _pack(self._hellos[self._config.number]))

    def missing(self) -> list[int]:
        """Parties that have not said hello yet."""
        return [peer for peer in self._config.peers if peer not in self._hellos]

    def undecided(self) -> list[int]:
        """Parties that have not confirmed yet."""
        return [peer for peer in self._config.peers if peer not in self._confirmed]

    def ready(self, peer: int) -> bool:
        """Whether this peer has confirmed (data may follow)."""
        return peer in self._confirmed

    def on_frame(self, peer: int, kind: Kind, payload: bytes) -> None:
        """A frame of the agreement came. Raises `StudiesDiffer`, `ProtocolAborted` or `BadFrame`."""
        seen: dict[Kind, Container[int]] = {
            Kind.HELLO: self._hellos,
            Kind.CONFIRM: self._confirmed,
            Kind.KEYS: self._keys,
        }
        if peer in seen[kind] or (kind is not Kind.HELLO and peer not in self._hellos):
            raise BadFrame(f"a {kind.name} frame out of turn")
        if kind is Kind.HELLO:
            self._hear_hello(peer, _unpack(payload))
        elif kind is Kind.CONFIRM:
            if peer >= len(self._config.computing) and len(payload):
                raise BadFrame("a CONFIRM frame with content from a contributor")
            self._confirmed[peer] = payload
            self._check_confirmed()
        else:
            if self._shared is None or peer >= len(self._config.computing):
                raise BadFrame("a KEYS frame out of turn")
            if len(payload) != self._shared.size(peer):
                raise BadFrame("a KEYS frame of the wrong size")
            self._shared.take(peer, payload)
            self._keys.add(peer)
        self._progress.set()

    async def run(self, loading: asyncio.Task[Any] | None) -> tuple[dict[int, bytes], Any]:
        """Wait until everything is agreed; the pairwise secrets and the MPyC runtime (contributors have
        neither).

        `loading` brings the runtime, which is given its keys; None for a contributor.
        """
        config = self._config
        await self._until(lambda: not self.missing())
        m = len(config.computing)
        if config.own.role == "compute":
            self._expected = self._confirmation()
            for peer in config.peers:
                self._send(peer, Kind.CONFIRM, self._expected)
            self._check_confirmed()
        else:
            for peer in config.peers:
                self._send(peer, Kind.CONFIRM, b"")
        await self._until(lambda: all(peer in self._confirmed for peer in config.peers))
        self._adopt(self._expected or self._confirmed[0])
        if loading is None or self._shared is None:
            return {}, None
        others = [peer for peer in range(m) if peer != config.number]
        for peer in others:
            self._send(peer, Kind.KEYS, self._shared.contribution(peer))
        runtime = await loading
        await self._until(lambda: self._keys.issuperset(others))
        runtime.use_prss_keys(self._shared.prss(self.session_id))
        return self._shared.pairs(self.session_id), runtime

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._progress.clear()
            await self._progress.wait()

    def _own_hello(self) -> dict[str, Any]:
        config = self._config
        hello = {
            "study": config.study_digest.hex(),
            "version": str(config.protocol),
            "name": config.me,
            "role": config.own.role,
            "facts": dict(config.facts),
        }
        if config.own.role == "compute":
            hello["nonce"] = self._nonce.hex()
        return hello

    def _hear_hello(self, peer: int, hello: dict[str, Any]) -> None:
        """Compare with our own; the sentence names who differs in what."""
        own, expected = self._hellos[self._config.number], self._config.numbered[peer]
        compute = expected.role == "compute"
        if set(hello) != {"study", "version", "name", "role", "facts"} | (
            {"nonce"} if hello.get("role") == "compute" else set()
        ):
            raise BadFrame("a HELLO frame with other fields than expected")
        facts = hello["facts"]
        if not isinstance(facts, dict) or _deeper(facts, MAX_NESTED) or len(json.dumps(facts)) > MAX_FACTS:
            raise BadFrame("a HELLO frame with an announcement that is too large")
        for what, label, remedy in (
            ("version", "protocol version", "install releases of one protocol version everywhere"),
            ("study", "study", "give all parties the same study"),
        ):
            if hello[what] != own[what]:
                raise StudiesDiffer(
                    f"Party {expected.name} has {label} {_short(hello[what])}, party {self._config.me} has "
                    f"{_short(own[what])}; {remedy}."
                )
        if hello["name"] != expected.name or hello["role"] != expected.role:
            raise StudiesDiffer(
                f"Party {expected.name} says it is {_short(hello['name'])} ({_short(hello['role'])}), party "
                f"{self._config.me} expects it to {expected.role}."
            )
        if compute and not (isinstance(hello["nonce"], str) and len(_hex(hello["nonce"])) == NONCE):
            raise BadFrame("a HELLO frame with a wrong nonce")
        self._hellos[peer] = hello

    def _confirmation(self) -> bytes:
        """What every computing party must say alike: all hellos, by name; the session id is its hash."""
        numbered = self._config.numbered
        return _pack({numbered[number].name: hello for number, hello in self._hellos.items()})

    def _check_confirmed(self) -> None:
        m = len(self._config.computing)
        told = {peer: payload for peer, payload in self._confirmed.items() if peer < m}
        expected = self._expected if self._config.own.role == "compute" else next(iter(told.values()), None)
        for peer, payload in told.items():
            if expected is not None and payload != expected:
                raise ProtocolAborted(
                    f"Party {self._config.numbered[peer].name} confirms another session than the others do."
                )

    def _adopt(self, confirmation: bytes) -> None:
        try:
            hellos = _unpack(confirmation)
        except BadFrame:
            raise ProtocolAborted(
                "The computing parties confirm a session that cannot be read; stop the run."
            ) from None
        for number, hello in self._hellos.items():
            if hellos.get(self._config.numbered[number].name) != hello:
                raise ProtocolAborted(
                    "The computing parties confirm other announcements than those made to this party."
                )
        if set(hellos) != {peer.name for peer in self._config.parties}:
            raise ProtocolAborted(
                "The computing parties confirm a session of other parties than the study's."
            )
        announced: dict[str, Mapping[str, object]] = {}
        for name, hello in sorted(hellos.items()):
            facts = hello.get("facts") if isinstance(hello, dict) else None
            if not isinstance(facts, dict):
                raise ProtocolAborted(
                    f"The computing parties confirm no announcement of party {name}; stop the run."
                )
            announced[name] = facts
        self.session_id = hashlib.sha256(b"cosynth session" + confirmation).digest()
        self.announcements = announced


def _pack(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _unpack(payload: bytes) -> dict[str, Any]:
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        raise BadFrame("a frame that is not JSON") from None
    if not isinstance(value, dict):
        raise BadFrame("a frame that is not a JSON object")
    return value


def _deeper(value: object, most: int) -> bool:
    """Whether lists and objects stand inside one another more than so often."""
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return most == 0 or any(_deeper(each, most - 1) for each in inner)


def _hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""


def _short(text: object) -> str:
    """A peer's text for a sentence: printable, short."""
    plain = "".join(c for c in str(text) if c.isprintable())
    return f"{plain[:12]}..." if len(plain) > 16 else plain
