"""`audit --target STUDY`: attacks from outside on a deployment that waits on this machine, with nothing but
its study.

Strangers at the ports of its parties: other certificates in their names, bytes of other protocols, half
greetings, replays of what the parties themselves say, many at once. Loopback only: nobody is attacked but who
runs here. What is found is what any stranger could do who reaches a port; the parties' files are not touched.

A party that has met all others does not listen any more, and one that has not been started does not yet: then
the attack says nothing about it.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from mpc_protocols.errors import UsageError
from parties import certificates
from parties.addresses import is_loopback
from parties.session.admission.identity import GREETING, MAX_CERTIFICATE, PREFLIGHT, Greeting
from parties.session.transport import frames
from runner.review.audit.check import Check, Finding, Group, Profile, Verdict, judged
from runner.review.audit.groups.hostile import mutated
from runner.review.audit.subjects.processes.impostor import Attempt, knock
from runner.review.audit.subjects.subject import Subject
from runner.study import Study

ANSWER_S = 30.0
GARBAGE = {Profile.QUICK: 100, Profile.DEFAULT: 400, Profile.DEEP: 10_000}
FLOOD_S = {Profile.QUICK: 3.0, Profile.DEFAULT: 10.0, Profile.DEEP: 60.0}
SOCKETS, RATE = 200, 500
"""Open at a time; a second."""


@dataclass(frozen=True)
class Port:
    """Where a party listens. said: its own answer to a greeting. others: names of the other parties."""

    name: str
    host: str
    number: int
    others: tuple[str, ...]
    said: bytes = b""


def check_target(study: Study) -> None:
    """Raise `UsageError` unless all parties of the study are on this machine."""
    for party in study.parties:
        if not is_loopback(party.host):
            raise UsageError(
                f"--target attacks deployments on this machine only, and party {party.name} of {study.path} is at "
                f"{party.address}; give each party a loopback address."
            )


def _answer(port: Port, claimed: str) -> bytes:
    """What a party answers to a greeting in somebody's name; empty if it does not."""
    with suppress(OSError), socket.create_connection((port.host, port.number), timeout=ANSWER_S) as sock:
        sock.sendall(Greeting(frames.PROTOCOL, True, 0, claimed, b"").pack())
        received = b""
        while len(received) < GREETING.size + MAX_CERTIFICATE and (piece := sock.recv(1 << 14)):
            received += piece
            if len(received) >= GREETING.size and len(received) >= GREETING.size + sum(
                GREETING.unpack(received[: GREETING.size])[-2:]
            ):
                return received
    return b""


def waiting(study: Study) -> list[Port]:
    """The parties that listen and answer."""
    check_target(study)
    names = [party.name for party in study.parties]
    found = []
    for party in study.parties:
        port = Port(party.name, party.host, party.port, tuple(name for name in names if name != party.name))
        said = next((said for name in port.others if (said := _answer(port, name))), b"")
        if said:
            found.append(replace(port, said=said))
    return found


def _nobody(study: Study) -> Finding:
    at = ", ".join(f"{party.name} at {party.address}" for party in study.parties)
    return Finding(
        Verdict.UNINFORMATIVE, f"No party waits for others ({at}): start one or some of them, not all."
    )


def _deaf(ports: list[Port], after: str) -> list[str]:
    """Parties that answer no more."""
    return [
        f"Party {port.name} answers no greeting any more after {after}."
        for port in ports
        if not any(_answer(port, name) for name in port.others)
    ]


@contextmanager
def _strange(names: tuple[str, ...]) -> Iterator[Path]:
    """A folder with certificates of a CA that nobody trusts, in these names."""
    with TemporaryDirectory(prefix="cosynth-audit-") as folder:
        certificates.make_all(Path(folder), list(names))
        yield Path(folder)


def identity(subject: Subject) -> Finding:
    """Try to be let in as each other party, in several guises."""
    ports = waiting(subject.study)
    if not ports:
        return _nobody(subject.study)
    problems, tried = [], 0
    with _strange(tuple(party.name for party in subject.study.parties)) as folder:
        for port in ports:
            for name in port.others:
                cert, key = folder / f"{name}.crt", folder / f"{name}.key"
                guises = [
                    Attempt("no certificate", "", name),
                    Attempt("a certificate of another CA", "", name, cert, cert, key),
                    Attempt("a certificate that is not shown", "", name, None, cert, key),
                    Attempt("a greeting of another version", "", name, cert, cert, key, version=9),
                    Attempt("an older TLS", "", name, cert, cert, key, highest=ssl.TLSVersion.TLSv1_2),
                    Attempt("a name that is no party's", "", f"{name}-2", cert, cert, key),
                ]
                for guise in guises:
                    tried += 1
                    if knock(port.number, guise, port.host):
                        problems.append(f"Party {port.name} let somebody in as {name} with {guise.words}.")
    problems += _deaf(ports, f"{tried} attempts to be let in")
    return judged(
        problems,
        f"{tried} attempts at {len(ports)} parties ({', '.join(port.name for port in ports)}): nobody was let in, and all "
        "answer the next one.",
        {"attempts": tried, "parties": [port.name for port in ports]},
    )


def replays(subject: Subject) -> Finding:
    """Say to each party what the parties themselves say, certificates and all, without their keys."""
    ports = waiting(subject.study)
    if not ports:
        return _nobody(subject.study)
    problems, tried = [], 0
    with _strange(tuple(party.name for party in subject.study.parties)) as folder:
        for port in ports:
            for origin in ports:
                head = GREETING.unpack(origin.said[: GREETING.size])
                name = origin.said[GREETING.size :][: head[-2]].decode()
                shown = folder / f"shown-{origin.name}.crt"
                shown.write_text(ssl.DER_cert_to_PEM_cert(origin.said[GREETING.size + head[-2] :]))
                guises = [
                    Attempt("and no key", "", name, shown),
                    Attempt(
                        "and another key", "", name, shown, folder / f"{name}.crt", folder / f"{name}.key"
                    ),
                ]
                for guise in guises:
                    tried += 1
                    if knock(port.number, guise, port.host):
                        problems.append(
                            f"Party {port.name} let somebody in with the greeting of {origin.name} {guise.words}."
                        )
    problems += _deaf(ports, f"{tried} replays")
    return judged(
        problems,
        f"{tried} greetings of parties replayed without their keys: nobody was let in.",
        {"attempts": tried},
    )


def garbage(subject: Subject) -> Finding:
    """Greetings that are nearly valid, and bytes that are none."""
    ports = waiting(subject.study)
    if not ports:
        return _nobody(subject.study)
    rng, count = subject.generator("garbage"), GARBAGE[subject.profile]
    for number in range(count):
        port = ports[number % len(ports)]
        whole = Greeting(frames.PROTOCOL, True, 0, port.others[0], bytes(600))
        valid = whole.pack() if number % 4 else replace(whole, magic=PREFLIGHT).pack()
        with suppress(OSError), socket.create_connection((port.host, port.number), timeout=ANSWER_S) as sock:
            sock.sendall(mutated(valid, rng))
    return judged(
        _deaf(ports, f"{count} greetings that were nearly valid"),
        f"{count} greetings that were nearly valid: all parties answer the next one.",
        {"greetings": count},
    )


def flood(subject: Subject) -> Finding:
    """Many strangers at once with nothing, half a greeting, garbage, or what a party has said; greet each
    party in between."""
    ports = waiting(subject.study)
    if not ports:
        return _nobody(subject.study)
    seconds, tried, made, slowest, problems = FLOOD_S[subject.profile], 0, 0, 0.0, list[str]()
    whole = Greeting(frames.PROTOCOL, True, 0, ports[0].others[0], bytes(600)).pack()
    words = [b"", whole[:20], whole[: len(whole) // 2], whole, whole + bytes(300), b"GET / HTTP/1.1\r\n\r\n"]
    words += [port.said for port in ports]
    began = time.monotonic()
    with ExitStack() as stack:
        open_ones: list[socket.socket] = []
        while (elapsed := time.monotonic() - began) < seconds:
            if tried > elapsed * RATE:
                time.sleep(0.002)
                continue
            port = ports[tried % len(ports)]
            with suppress(OSError):
                sock = stack.enter_context(
                    socket.create_connection((port.host, port.number), timeout=ANSWER_S)
                )
                made += 1
                sock.sendall(words[tried // len(ports) % len(words)])
                open_ones.append(sock)
            if len(open_ones) > SOCKETS:
                open_ones.pop(0).close()
            tried += 1
            if tried % RATE == 0:
                once = time.monotonic()
                problems += _deaf(ports, f"{made} strangers, {len(open_ones)} of them still there")
                slowest = max(slowest, time.monotonic() - once)
    problems += _deaf(ports, f"{made} strangers that have left")
    return judged(
        problems,
        f"{made} strangers in {seconds:g} s, up to {SOCKETS} at a time: all parties answered greetings in between (the slowest "
        f"in {slowest:.2f} s) and afterwards.",
        {"connections": made, "slowest_s": slowest},
    )


GROUP = Group(
    "X",
    "A deployment from outside",
    "What can a stranger do who reaches the ports of this deployment?",
    (
        Check(
            "identity",
            "Nobody is let in who has no certificate and key of a party.",
            "fault",
            "A party let in with another CA's certificate, none, another version, an older TLS, a name that is no party's.",
            identity,
        ),
        Check(
            "replays",
            "What a party says in the clear lets nobody else in.",
            "fault",
            "A certificate that is believed because it is shown.",
            replays,
        ),
        Check(
            "garbage",
            "Bytes of strangers end no start.",
            "fault",
            "A party that ends, or listens no more, after a greeting that is nearly valid.",
            garbage,
        ),
        Check(
            "flood",
            "Many strangers at once keep nobody from being heard.",
            "fault",
            "A party that answers no greeting while 200 strangers hold connections and 500 a second come.",
            flood,
        ),
    ),
)
