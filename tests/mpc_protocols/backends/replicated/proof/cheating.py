"""A party that deviates, for tests: its wire alters what it sends, and every party's outcome is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.replicated.proof.bit_products.products import prove
from mpc_protocols.backends.replicated.proof.transcript import Transcript
from mpc_protocols.backends.replicated.proof.verdict import Finding
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.errors import PeerLost, ProtocolAborted
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.wire import Wire
from runner.review.audit.subjects.in_memory.arena import apart

Alter = Callable[[int, int, bytes], bytes | None]
"""(number of the message, receiver, payload) to what is sent instead; None: the payload itself."""


class CheatingWire:
    """A wire whose sends go through `alter`; forks count on."""

    def __init__(self, wire: Any, alter: Alter, counter: list[int] | None = None) -> None:
        self._wire, self._alter = wire, alter
        self.counter = [0] if counter is None else counter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wire, name)

    def send(self, peer: int, payload: bytes | bytearray | memoryview) -> None:
        self.counter[0] += 1
        altered = self._alter(self.counter[0], peer, bytes(payload))
        self._wire.send(peer, payload if altered is None else altered)

    def fork(self, name: str) -> CheatingWire:
        return CheatingWire(self._wire.fork(name), self._alter, self.counter)


def flipped(payload: bytes, byte: int = 0, bit: int = 0) -> bytes:
    """The payload with one bit flipped."""
    altered = bytearray(payload)
    altered[byte % len(altered)] ^= 1 << bit
    return bytes(altered)


def message_bit(number: int, byte: int) -> Alter:
    """The message of that number differs by a bit of that byte."""
    return lambda count, peer, payload: flipped(payload, byte) if count == number else None


def found_by_verifiers(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, bool]]:
    """What every left verifier will find: whether the tag matches, whether the equation holds."""
    found: list[tuple[bool, bool]] = []
    original = Finding.of

    def record(matches: bool, holds: bool) -> Any:
        found.append((matches, holds))
        return original(matches, holds)

    monkeypatch.setattr(Finding, "of", staticmethod(record))
    return found


def check_ended(name: str, honest: Sequence[str]) -> None:
    """One of the two honest parties has stopped, and the other does not go on alone, but after a verdict that
    only one heard: then the other one's next message never comes."""
    assert any(said != "proved" for said in honest), honest
    if "verdict" not in name:
        assert all(said != "proved" for said in honest), honest


def check_tag_keys(runs: Sequence[Any], batches: int) -> None:
    """Each batch's tag of a prover has a key of its own, which the left verifier has and the right one cannot
    draw. runs: that were heard."""
    places = [(run, prover, batch) for run in runs for prover in range(3) for batch in range(batches)]
    keys = [run.tag_keys[prover][2 * batch] for run, prover, batch in places]
    assert len(set(keys)) == len(keys) == 3 * len(runs) * batches
    for key, (run, prover, batch) in zip(keys, places, strict=True):
        left, right = (prover - 1) % 3, (prover + 1) % 3
        assert key == run.tag_keys[left][2 * batch + 1]
        assert key in run.drawable[prover] and key in run.drawable[left]
        assert key not in run.drawable[right]


def outcomes(
    body: Callable[[Any], Any],
    cheat: int | None = None,
    alter: Alter | None = None,
    tap: Callable[[Frame], None] | None = None,
    network: MemoryNetwork | None = None,
    parties: int | None = None,
) -> list[Any]:
    """What the parties end with: a value, or the sentence with which they stopped. parties: that take part,
    all by default."""
    network = network or MemoryNetwork(3, tap=tap)

    def party(wire: Wire) -> Any:
        try:
            return body(CheatingWire(wire, alter) if alter and wire.me == cheat else wire)
        except (ProtocolAborted, PeerLost) as error:
            return error.sentence

    idle = network.parties - (network.parties if parties is None else parties)
    with apart(0):
        ends = network.run([party] * (network.parties - idle) + [lambda _: None] * idle)
    return ends[: network.parties - idle]


def multiplied(
    trio: Trio,
    transcript: Transcript,
    words: int,
    entries: int = 1,
    spoil: Callable[[Words], None] | None = None,
    zero: bool = False,
    factors: tuple[BitShare, BitShare] | None = None,
) -> None:
    """A message of products of random shared bits, noted; spoil: alters this party's part before it is sent.

    zero: whether all shares of the second factors are 0. factors: to multiply these, of shape (entries,
    words), instead.
    """

    def random() -> BitShare:
        operation = trio.operation()
        shape = (entries, words)
        return BitShare(
            trio.own_mask(shape, np.uint64, operation), trio.next_mask(shape, np.uint64, operation)
        )

    x, y = factors or (random(), random())
    operation = trio.operation()
    if zero:
        y = y ^ y
    own, following = (mask(words, np.uint64, operation) for mask in (trio.own_mask, trio.next_mask))
    part = np.bitwise_xor.reduce((x.own & (y.own ^ y.next)) ^ (x.next & y.own), axis=0) ^ own ^ following
    if spoil is not None:
        spoil(part)
    transcript.product(x, y, own, following, trio.pass_left(part))


def proved(
    sizes: list[tuple[int, int]], variables: int, cheat: int | None = None, **spoil: Any
) -> Callable[[Any], str]:
    """A body that multiplies batches of (words, entries) and proves them; spoil: as for `multiplied`, at the
    party `cheat`."""

    def body(wire: Any) -> str:
        trio, transcript = Trio(wire), Transcript()
        for number, (words, entries) in enumerate(sizes):
            own = spoil.get("spoil") if trio.me == cheat and number == 0 else None
            multiplied(trio, transcript, words, entries, own)
        prove(trio, transcript, variables)
        return "proved"

    return body
