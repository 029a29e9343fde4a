"""The private equality test: what it says, what each message looks like, and that a party that waits has one
guess."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.psu.dh2.equality import equal
from mpc_protocols.psu.groups.group import Group
from mpc_protocols.psu.groups.hashing import digest
from mpc_protocols.psu.groups.ristretto import Ristretto255
from mpc_protocols.psu.randomness import system
from mpc_protocols.psu.two_owners.exchange import Exchange
from mpc_protocols.wire import Wire
from tests.mpc_protocols.psu.owners import CONTEXT, run, small_residues, spec_of

SPEC = spec_of("dh2")


def honest(value: bytes, group: Callable[[], Group] = Ristretto255) -> Callable[[Wire], bool]:
    return lambda wire: equal(Exchange(wire, CONTEXT, SPEC), group(), value, system)


@pytest.mark.parametrize("group", [Ristretto255, small_residues], ids=["ristretto255", "residues"])
def test_equal_and_unequal(group: Callable[[], Group]) -> None:
    for first, second in ((b"", b""), (b"a", b"a"), (b"a", b"b"), (b"a", b""), (bytes(32), bytes(31))):
        assert run(SPEC, honest(first, group), honest(second, group)).results == [first == second] * 2  # type: ignore[comparison-overlap]


def test_messages_are_fresh() -> None:
    """The same values in the same session: no message of one run occurs in another, nor is one sent back."""
    runs = [run(SPEC, honest(b"value"), honest(b"value"), session_id=bytes(32)) for _ in range(2)]
    payloads = [frame.payload for done in runs for frame in done.frames]
    assert len(set(payloads)) == len(payloads) == 8


def waiting(
    side: int, guess: bytes, candidates: list[bytes], answered: dict[str, Any], reflect: bool = False
) -> Callable[[Wire], None]:
    """A party that sends nothing before it has seen the other's message, and then tries all candidates for
    the other's value."""

    def body(wire: Wire) -> None:
        exchange, group = Exchange(wire, CONTEXT, SPEC), Ristretto255()
        domain = digest(b"psu equality", exchange.sid)
        secret = group.random_exponents(1)[0]
        theirs = exchange.receive(32)
        blinded = (
            bytes(theirs) if reflect else group.power(group.hash_many([guess], domain), secret).tobytes()
        )
        exchange.send(blinded)
        shown = bytes(exchange.receive(32))
        both = (blinded, bytes(theirs)) if side == 0 else (bytes(theirs), blinded)
        # all that can be made of what was sent and of the candidates' hashes with the exponents it knows
        elements = np.concatenate(
            [group.parse(theirs), group.parse(blinded), group.hash_many([*candidates, guess], domain)]
        )
        keys = [
            row.tobytes()
            for exponent in (1, secret, secret * secret % group.order, *group.inverses([secret]))
            for row in group.power(elements, exponent)
        ]
        hashes = [digest(b"psu equal", exchange.sid, bytes([1 - side]), *both, key) for key in keys]
        answered["recognised"] = shown in hashes
        key = keys[hashes.index(shown)] if shown in hashes else bytes(32)
        exchange.send(shown if reflect else digest(b"psu equal", exchange.sid, bytes([side]), *both, key))

    return body


@pytest.mark.parametrize("side", [0, 1])
def test_a_party_that_waits_has_one_guess(side: int) -> None:
    """Right: it knows, and passes. Wrong: it cannot tell which of its candidates is right, though that one is
    among them, and it is noticed. Sending back what came does not pass."""
    candidates = [b"candidate %d" % i for i in range(20)]
    for guess in range(3):
        answered: dict[str, Any] = {}
        bodies: list[Callable[[Wire], Any]] = [honest(candidates[0])] * 2
        bodies[side] = waiting(side, candidates[guess], candidates, answered)
        passed = run(SPEC, bodies[0], bodies[1]).results[1 - side]
        assert passed == answered["recognised"] == (guess == 0)
    bodies[side] = waiting(side, candidates[0], candidates, answered, reflect=True)
    assert run(SPEC, bodies[0], bodies[1]).results[1 - side] is False and not answered["recognised"]  # type: ignore[comparison-overlap]


@pytest.mark.parametrize("raw", [bytes(32), b"\xff" * 32], ids=["identity", "non-canonical"])
def test_invalid_elements_are_refused(raw: bytes) -> None:
    def sends(wire: Wire) -> None:
        Exchange(wire, CONTEXT, SPEC).swap(raw)

    with pytest.raises(
        ProtocolAborted, match="sent an element to compare by of which an element is the identity"
    ):
        run(SPEC, honest(b"a"), sends)
