"""The protocols in a program of one's own (`docs/howto/protocols.md`): three ways to start `program(party,
*arguments)`.

    in_one_process(program, ..)     three threads of this process: to learn and to test. It protects nobody from this process
    as_party(program, .., me=..)    this process is one of three; the others run the same on their machines, over mutual TLS 1.3
    beside_mpyc(mpc, program, ..)   among the protocols of an MPyC program that has started

The program is the same, and so are the protocols. `party` is a `ThreeParties`. With epsilon and delta, every
party keeps an account of its own: a release that does not fit is refused before it is opened. The account
lasts as long as the program; it is no ledger.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from mpc_protocols.errors import UsageError
from mpc_protocols.functionality import unobserved
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.toolkit.three_parties import PARTIES, ThreeParties
from mpc_protocols.wire import Wire
from parties.session import Peer, SessionConfig, SessionWire, run_session
from parties.session.mpyc_wire import run_beside
from runner.version import PROTOCOL
from synth.budget.accounting import Accountant, Budget

T = TypeVar("T")

_BETA_SHARE = 100
"""All samplers together may take the hundredth part of delta, ..."""
_MIN_BETA = Fraction(1, 1 << 56)
"""... or so much: of a large epsilon, less is then counted on (`synth.budget.accounting.calibrate`)."""

_MAX_S = 10_000_000
"""The longest that may be waited: a third of a year."""


def in_one_process(
    program: Callable[..., T],
    arguments: Sequence[Sequence[object]] = ((), (), ()),
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    patience_s: float = 60.0,
) -> list[T]:
    """Run `program(party, *arguments[number])` three times, each party a thread of this process: what each
    returned, by number.

    THIS PROTECTS NOBODY from this process, which holds all data and all shares; the protocols and their
    messages are those of three processes. patience_s: how long a party waits while nobody computes. epsilon,
    delta: as `as_party`. Raises what a party raised first; `UsageError`.
    """
    if not _is_list(arguments) or len(arguments) != PARTIES or not all(map(_is_list, arguments)):
        raise UsageError(
            "Each of the three parties needs a list of arguments, of what its program is called with after the party; give "
            "[[], [], []] for none."
        )
    _check_seconds(patience_s=patience_s)
    bodies = [_body(program, own, _budget(epsilon, delta)) for own in arguments]
    return MemoryNetwork(PARTIES, PARTIES, patience_s=patience_s).run(bodies)


def as_party(
    program: Callable[..., T],
    *arguments: object,
    me: str,
    parties: Mapping[str, str],
    purpose: str,
    cert: str | Path | None = None,
    key: str | Path | None = None,
    ca: str | Path | None = None,
    insecure_loopback: bool = False,
    epsilon: float | None = None,
    delta: float | None = None,
    connect_s: float = 120.0,
    patience_s: float = 3600.0,
) -> T:
    """Be the party `me` of three, and run `program(party, *arguments)`: what it returned. Call it in the main
    thread.

    parties: of all three, "host:port" by name, in one order everywhere, which numbers them 0, 1, 2; each
    listens at its address. purpose: a public text that says what the program is for: parties that were
    started for other purposes, budgets or parties do not connect. cert, key, ca: PEM files as of `cosynth
    certs make`; insecure_loopback: no TLS, for addresses of this machine only. epsilon, delta: the most that
    this program may release together, or nothing private is released. connect_s: how long the others are
    waited for at the start; patience_s: how long a message of one that is alive.

    Raises `UsageError`, `StudyInvalid` (parties, addresses), `PeerUnreachable` (within connect_s),
    `PeerIdentity`, `StudiesDiffer`, `PeerLost`, `ProtocolAborted`, `Interrupted`, and what the program
    raised; the others then stop as well, and learn which kind of reason it was (its data did not fit; budget
    refused), not the sentence.
    """
    if threading.current_thread() is not threading.main_thread():
        raise UsageError(
            "A party runs in the main thread of its process, where Ctrl-C arrives; call as_party there."
        )
    if not isinstance(parties, Mapping) or len(parties) != PARTIES:
        raise UsageError(
            "The protocols run between exactly three parties: give the address of each by its name."
        )
    _check_seconds(connect_s=connect_s, patience_s=patience_s)
    peers = tuple(Peer(name, *_address(name, address)) for name, address in parties.items())
    budget = _budget(epsilon, delta)
    limits = None if budget is None else (Fraction(budget.epsilon), Fraction(budget.delta))  # 1 is 1.0
    agreed = repr(("cosynth protocols", purpose, list(parties.items()), limits))
    config = SessionConfig(
        me=me,
        parties=peers,
        study_digest=hashlib.sha256(agreed.encode()).digest(),
        protocol=PROTOCOL,
        cert=None if cert is None else Path(cert),
        key=None if key is None else Path(key),
        ca=None if ca is None else Path(ca),
        insecure_loopback=insecure_loopback,
        connect_s=connect_s,
        answer_s=patience_s,
    )
    body = _body(program, arguments, budget)

    def assembled(wire: SessionWire) -> T:
        wire.all_assembled()  # the program begins to send: whoever stops from now on says of which kind its reason is
        return body(wire)

    return run_session(config, assembled, unobserved)


def beside_mpyc(
    mpc: Any,
    program: Callable[..., T],
    *arguments: object,
    epsilon: float | None = None,
    delta: float | None = None,
    patience_s: float = 600.0,
) -> Coroutine[Any, Any, T]:
    """Run `program(party, *arguments)` among the protocols of a started MPyC program: `await beside_mpyc(mpc,
    program)`.

    Called alike and in the same order at all three parties of MPyC (-M3, threshold 1), whose connections and
    keys it uses; party `i` is MPyC's party i. What these protect and what not:
    `parties/session/mpyc_wire.py`. Without TLS (--ssl) it runs between loopback addresses only. patience_s:
    how long a silent party is waited for. epsilon, delta: as `as_party`, for this call alone.

    Raises `UsageError`, `PeerIdentity`, `ProtocolAborted`, `PeerLost`, and what the program raised.
    """
    _check_seconds(patience_s=patience_s)
    return run_beside(mpc, _body(program, arguments, _budget(epsilon, delta)), patience_s)


def _body(
    program: Callable[..., T], arguments: Sequence[object], budget: Budget | None
) -> Callable[[Wire], T]:
    """Raises `UsageError`."""
    if not callable(program):
        raise UsageError(
            f"A program is a function of a party, got an object of type {type(program).__name__}."
        )

    def body(wire: Wire) -> T:
        return program(ThreeParties(wire, None if budget is None else Accountant(budget)), *arguments)

    return body


def _budget(epsilon: float | None, delta: float | None) -> Budget | None:
    """Raises `UsageError`."""
    if epsilon is None and delta is None:
        return None
    numbers = [x for x in (epsilon, delta) if isinstance(x, int | float) and not isinstance(x, bool)]
    if len(numbers) < 2 or not (0 < numbers[0] <= 1000 and 0 < numbers[1] < 1):
        raise UsageError(
            f"A budget is an epsilon of at most 1000 and a delta between 0 and 1, got epsilon {epsilon!r} and delta {delta!r}."
        )
    whole = Fraction(numbers[1]) / _BETA_SHARE
    exact = whole / (1 + math.ceil(math.exp(min(numbers[0], 700))))
    share = max(exact, min(whole, _MIN_BETA))
    return Budget.of(numbers[0], numbers[1], share)


def _check_seconds(**limits: float) -> None:
    """Raises `UsageError`."""
    for name, value in limits.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 < value <= _MAX_S:
            raise UsageError(
                f"{name} is a number of seconds above 0 and up to {_MAX_S:,}, got {value!r:.60}."
            )


def _is_list(value: object) -> bool:
    """Of arguments: a text is a sequence too, and none of arguments."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _address(name: str, address: str) -> tuple[str, int]:
    if not isinstance(name, str) or not isinstance(address, str):
        raise UsageError(f"Names and addresses of parties are texts, got {name!r:.60} and {address!r:.60}.")
    host, _, port = address.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or len(port) > 5:
        raise UsageError(f"Party {name} needs an address as host:port, got {address!r:.100}.")
    return host.removeprefix("[").removesuffix("]"), int(port)
