"""What reads bytes that others wrote: messages of a peer, and files that are handed round. Each with bytes
that it takes.

Not here is what a test or another check gives hostile bytes to: greetings and links (`tests/parties/session`,
`audit --target`), messages of a run and of an alignment (F.messages, P.changed), tables
(`tests/parties/data`).
"""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import sys
import warnings
import zipfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from io import BytesIO
from pathlib import Path

import numpy as np

from mpc_protocols.backends.bundles import bundle
from mpc_protocols.backends.bundles.sealing import SIGNATURE_BYTES
from mpc_protocols.errors import CosynthError
from mpc_protocols.functionality import SUM, Event, Question
from mpc_protocols.public import steps
from mpc_protocols.public.cohorts.steps import CohortStep, parse
from parties import certificates
from parties.budget import journal
from parties.budget.run_state import RunState
from parties.session.admission.agreement import Agreement
from parties.session.admission.config import Peer, SessionConfig
from parties.session.transport import codec, frames
from runner.party.resume.resumption import FACT, Offer
from runner.results import outdir, release, signatures
from runner.study import load
from synth.algorithms.flaim import questions
from synth.domain import Domain
from synth.mrf import Model

Read = Callable[[bytes], object]
NAMES = ("north", "south")
DOMAIN = Domain.from_spec({"file": {"a": 3, "b": 4}})
_ID = bytes(32)
BOMB = 384 << 20
"""Bytes that an archive of a thousandth of them unpacks to."""


@dataclass(frozen=True)
class Reader:
    """What reads bytes of others. allowed: what it may raise. valid: bytes that it takes. cost: in units of
    the cheapest.

    hostile: bytes made for it alone, besides those that every reader is given.
    """

    name: str
    read: Read
    allowed: tuple[type[Exception], ...]
    valid: tuple[bytes, ...]
    cost: int = 1
    hostile: tuple[bytes, ...] = ()


def _frame(content: bytes) -> object:
    found = frames.parse(content[: frames.HEADER.size].ljust(frames.HEADER.size, b"\0"))
    if found.length > frames.CHUNK or found.total > frames.MAX_MESSAGE or found.depth > frames.MAX_DEPTH:
        raise OverflowError(
            f"a frame of {found.length} bytes of {found.total} in round {found.depth} is let in"
        )
    return found


def _agreement(me: str) -> Agreement:
    peers = tuple(Peer(name, "127.0.0.1", 7101 + number) for number, name in enumerate(NAMES))
    config = SessionConfig(me, peers, _ID, 1, insecure_loopback=True, facts={"rows": [1, {"most": 2}]})
    return Agreement(config, lambda *given: None)


def _hello() -> bytes:
    said: list[bytes] = []
    south = _agreement(NAMES[1])
    south._send = lambda peer, kind, payload: said.append(payload)
    south.greet(0)
    return said[0]


def _nested_hellos() -> tuple[bytes, ...]:
    """Lists in lists, to any depth that Python can read: what is read must be sent on inside other JSON."""
    plain = _hello().replace(b'{"most":2}', b"%s")
    return tuple(plain % (b"[" * depth + b"]" * depth) for depth in range(1, sys.getrecursionlimit()))


def _hear(content: bytes) -> object:
    """As a party that has heard this confirms what all have said."""
    north = _agreement(NAMES[0])
    north.on_frame(1, frames.Kind.HELLO, content)
    return north._confirmation()


def _offer(content: bytes) -> object:
    try:
        facts = json.loads(content)
    except (ValueError, RecursionError):  # the session reads announcements
        raise frames.BadFrame("no JSON") from None
    return Offer.from_facts(NAMES[1], facts.get(FACT) if isinstance(facts, dict) else facts)


def _bundle() -> bytes:
    day = datetime(2030, 1, 1, tzinfo=UTC)
    header = bundle.Header(_ID, _ID, 6, "clinic", _ID, _ID, NAMES, day, day)
    parts: dict[bundle.Letter, bytes] = {"a": b"seed", "b": b"counts"}
    digests = (hashlib.sha256(parts["a"]).digest(), hashlib.sha256(parts["b"]).digest())
    return bundle.Bundle(header.to_bytes(), digests, bytes(SIGNATURE_BYTES), parts).to_bytes()


def _question() -> bytes:
    return CohortStep(
        SUM,
        Question(b"which?", 3, 2, 4),
        (3, 4),
        sigma2=Fraction(5, 2),
        cliques=(("a", "b"),),
        among=(0, 2),
        event=Event("sum", Fraction(1, 50), Fraction(0), {"sigma2": "5/2"}),
    ).to_bytes()


def _release() -> bytes:
    made = release.Release(
        np.array([[0, 3], [2, 1]], np.uint8),
        Model(DOMAIN.sizes, 2.0, {("a",): np.zeros(3), ("b",): np.zeros(4)}).to_bytes(),
        (),
        (),
        2.5,
        7,
        (Event("total", Fraction(1, 50), Fraction(0), {"sigma2": "25/1"}),),
    )
    return made.to_bytes(DOMAIN)


def _journal(path: Path) -> bytes:
    book = journal.Journal(path, journal.Header(_ID, _ID, NAMES[0], "1"))
    book.events([(Event("total", Fraction(1, 50), Fraction(0), {"sigma2": "25/1"}), _ID)])
    book.opened(1)
    book.end(0)
    return path.read_bytes()


def _state(folder: Path) -> bytes:
    with closing(RunState.create(folder, _ID, _ID, NAMES[0], "1")) as state:
        state.attempt(_ID)
        state.hold(0, _ID, lambda: b"some shares")
        state.learn(0, _ID, np.arange(3))
        return state.path.read_bytes()


def _credentials(folder: Path) -> list[Reader]:
    """What reads certificates and requests; hostile bytes inside the PEM, which little else gets through."""
    made = folder / "certificates"
    certificates.make_all(made, [NAMES[0]], keep_ca_key=True)
    ca = certificates.Credential((made / "ca.crt").read_bytes(), (made / "ca.key").read_bytes())
    request, _ = certificates.request(NAMES[0])

    def inside(read: Callable[[str], object], kind: str) -> Read:
        def reader(content: bytes) -> object:
            lines = base64.encodebytes(content).decode()
            with warnings.catch_warnings(action="ignore"):  # of a field that is odd, and that nobody asks for
                return read(f"-----BEGIN {kind}-----\n{lines}-----END {kind}-----\n")

        return reader

    def from_file(pem: str) -> object:
        path = folder / "a.crt"
        path.write_text(pem)
        return certificates.read(path)

    def signer(pem: str) -> object:
        return signatures.key_of(pem, NAMES[0], ca.certificate.decode(), None)

    def sign(pem: str) -> object:
        return certificates.sign(ca, pem.encode(), NAMES[0])

    shown = ssl.PEM_cert_to_DER_cert((made / f"{NAMES[0]}.crt").read_text())
    asked = base64.b64decode(b"".join(request.splitlines()[1:-1]))
    sentence, cost = (CosynthError,), 20
    return [
        Reader("a certificate", inside(from_file, "CERTIFICATE"), sentence, (shown,), cost),
        Reader("a signer's certificate", inside(signer, "CERTIFICATE"), sentence, (shown,), cost),
        Reader("a request", inside(sign, "CERTIFICATE REQUEST"), sentence, (asked,), cost),
    ]


_LONG_LINES = (b"x = a" + b" " * 100_000 + b"!", b"x" + b"=a " * 30_000)
"""TOML that cannot be parsed, with a line in which a search for what was meant could go back and forth."""


def _bomb(model: bytes) -> bytes:
    """The archive of a model whose potentials are as many zeros as fill a memory, compressed."""
    out = BytesIO()
    with zipfile.ZipFile(BytesIO(model)) as plain, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.npy", plain.read("header.npy"))
        with archive.open("potentials.npy", "w") as member:
            shape = {"descr": "<f8", "fortran_order": False, "shape": (BOMB // 8,)}
            np.lib.format.write_array_header_1_0(member, shape)
            for _ in range(BOMB >> 20):
                member.write(bytes(1 << 20))
    return out.getvalue()


def readers(study: Path, folder: Path) -> list[Reader]:
    """All of them. study: a file of a study that is valid. folder: for what they read from files."""

    def file(name: str, read: Callable[[Path], object]) -> Read:
        path = folder / name

        def reader(content: bytes) -> object:
            path.write_bytes(content)
            return read(path)

        return reader

    def reopened(path: Path) -> object:
        with closing(RunState.reopen(path, _ID, NAMES[0])) as state:
            return state.results

    total = steps.TotalStep(0, Fraction(5, 2)).to_bytes()
    measure = steps.MeasureStep(1, (0, 1), (Fraction(1, 3), Fraction(2))).to_bytes()
    header = frames.Header(5, frames.Kind.DATA, 1, 2, 3, 5).pack()
    asked = questions.Asked("choose", 2, (("a",), ("a", "b")), 40, b"model", b"truth").to_bytes()
    offer = json.dumps({FACT: Offer(_ID, 2, _ID, _ID, (2, _ID, _ID)).to_facts()}).encode()
    model = Model(DOMAIN.sizes, 5.0, {("a", "b"): np.zeros(12)}).to_bytes()
    mpyc = (
        codec.dumps([1, {"a": (2, b"x")}]),
        codec.dumps(np.arange(6).reshape(2, 3)),
        codec.dumps(np.array([1 << 70], object)),
    )
    sentence, frame = (CosynthError,), (frames.BadFrame, CosynthError)
    return [
        Reader("a frame's header", _frame, frame, (header, frames.control(frames.Kind.PING))),
        Reader("MPyC's messages", codec.loads, sentence, mpyc),
        Reader("a step", steps.parse, sentence, (total, measure)),
        Reader("a party's first word", _hear, frame, (_hello(),), 20, _nested_hellos()),
        Reader("an interrupted run", _offer, frame, (offer,), 4),
        Reader("a question to clients", parse, sentence, (_question(),)),
        Reader("a client's question", questions.parse, sentence, (asked,)),
        Reader("a bundle", lambda content: bundle.parse(content).header, sentence, (_bundle(),), 4),
        Reader("a model", Model.from_bytes, sentence, (model,), 20, (_bomb(model),)),
        Reader(
            "a release",
            lambda content: release.parse(memoryview(content), DOMAIN, 2, NAMES[1]),
            sentence,
            (_release(),),
            20,
        ),
        Reader("a journal", file("a.jsonl", journal.read), sentence, (_journal(folder / "b.jsonl"),), 20),
        Reader("a state", file("a.state", reopened), sentence, (_state(folder),), 20),
        *_credentials(folder),
        Reader(
            "a run.json",
            lambda content: outdir.finished(folder) if (folder / outdir.RUN).write_bytes(content) else None,
            sentence,
            (b'{"parties": [], "privacy": {}}',),
            20,
        ),
        Reader("a study", file("a.toml", load), sentence, (study.read_bytes(),), 100, _LONG_LINES),
    ]
