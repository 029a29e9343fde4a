"""Every message a peer can spoil: the run ends with one sentence that names the peer and the rule.

Messages of an owner to the other, in small runs (one block per list):
florist   0 size, 1 set, 2 questions, 3 other's set, 4 answers, then active: 5 size of U, 6 U; passive: 5 U
dh2       0 size, commitment and keys, 1 list, 2 tags or queries, 3 pool and traps, 4 answers for the other's traps, 5 answers or
          bitmap, 6 names, 7 and 8 comparison; the first of two is the first owner's
helper    0 size, 1 commitment, 2 hash; to the helper: 0 size, 1 list; from it: 0 size, 1 rows
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from mpc_protocols.errors import PeerLost, ProtocolAborted
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.psu.dh2.owner import Owner
from mpc_protocols.psu.functionality import AlignmentSpec
from mpc_protocols.psu.groups.ristretto import Ristretto255
from mpc_protocols.psu.helper import protocol as helper
from mpc_protocols.wire import Wire
from tests.mpc_protocols.psu.owners import CONTEXT, TRAPS, falsified, ids, owner, run, small_residues, spec_of

X, Y = ids(range(8)), ids(range(4, 14))
IDENTITY, NON_CANONICAL, NEGATIVE = bytes(32), b"\xff" * 32, b"\x01" + bytes(31)


def element(raw: bytes, at: int = 0) -> Callable[[bytes], bytes]:
    """Puts an element into a list."""
    return lambda payload: payload[: 32 * at] + raw + payload[32 * at + 32 :]


def doubled(width: int = 32) -> Callable[[bytes], bytes]:
    """The second entry becomes the first."""
    return lambda payload: payload[:width] * 2 + payload[2 * width :]


def placed(raw: bytes, at: int) -> Callable[[bytes], bytes]:
    """Puts bytes into a message."""
    return lambda payload: payload[:at] + raw + payload[at + len(raw) :]


def inverted(at: int) -> Callable[[bytes], bytes]:
    """Another byte, whichever is there."""
    return lambda payload: payload[:at] + bytes([payload[at] ^ 0xFF]) + payload[at + 1 :]


def shorter(payload: bytes) -> bytes:
    return payload[:-1] if len(payload) < 32 else payload[:-32]


def longer(payload: bytes) -> bytes:
    return payload + payload[:32]


def flipped(payload: bytes) -> bytes:
    return payload[:-1] + bytes([payload[-1] ^ 1])


def size(count: int) -> Callable[[bytes], bytes]:
    return lambda payload: count.to_bytes(8, "big") + payload[8:]


def fails(
    spec: AlignmentSpec,
    spoiler: int,
    words: str,
    group: Any = Ristretto255,
    **changes: Callable[[bytes], bytes],
) -> None:
    """The owner who gets the spoilt message aborts with these words; it names the other, in one sentence."""
    said: list[str] = []
    bodies: list[Callable[[Wire], Any]] = []
    for side, entries in enumerate((X, Y)):
        body = owner(spec, entries, group)
        if side == spoiler:
            bodies.append(falsified(body, 1 - side, **changes))
        else:

            def watched(wire: Wire, body: Callable[[Wire], Any] = body) -> None:
                try:
                    body(wire)
                except ProtocolAborted as error:
                    said.append(error.sentence)
                    raise

            bodies.append(watched)
    with pytest.raises((ProtocolAborted, PeerLost)):
        run(spec, bodies[0], bodies[1])
    assert len(said) == 1 and re.search(words, said[0]), said
    assert (
        re.search(rf"Party (north|south|{spoiler})\b", said[0])
        and said[0].count(".") == 1
        and said[0].endswith(".")
    )


FLORIST, DH2, PROOFS, HELPER = (spec_of(m) for m in ("florist", "dh2", "dh2+proofs", "helper"))
INVALID = "of which an element is the identity or not canonically encoded"


@pytest.mark.parametrize(
    "raw", [IDENTITY, NON_CANONICAL, NEGATIVE], ids=["identity", "non-canonical", "negative"]
)
@pytest.mark.parametrize("at", [0, 7])
@pytest.mark.parametrize(
    ("spoiler", "message"), [(0, m) for m in (1, 2, 3, 4, 6)] + [(1, m) for m in (1, 2, 3, 4, 5)]
)
def test_florist_elements(spoiler: int, message: int, raw: bytes, at: int) -> None:
    fails(FLORIST, spoiler, INVALID, **{f"m{message}": element(raw, at)})


@pytest.mark.parametrize(
    ("spoiler", "message"), [(0, m) for m in (1, 2, 3, 4, 6)] + [(1, m) for m in (1, 2, 3, 4, 5)]
)
def test_florist_lists(spoiler: int, message: int) -> None:
    fails(FLORIST, spoiler, "with duplicates", **{f"m{message}": doubled()})
    fails(FLORIST, spoiler, "bytes where", **{f"m{message}": shorter})
    fails(FLORIST, spoiler, "bytes where", **{f"m{message}": longer})


def test_florist_union() -> None:
    """A union of another size or without this party's records."""
    fails(FLORIST, 0, "smaller than a set or larger than both", m5=size(9))
    fails(FLORIST, 0, "smaller than a set or larger than both", m5=size(19))
    fails(FLORIST, 0, "bytes where", m5=size(13))
    others = Ristretto255().hash_many([b"other %d" % i for i in range(14)], bytes(32)).tobytes()
    fails(FLORIST, 1, "left records of this party out", m5=lambda payload: others)


def test_florist_in_the_papers_group() -> None:
    width = small_residues().element_bytes
    for raw in (bytes(width), (1).to_bytes(width, "big"), b"\xff" * width):
        fails(
            FLORIST,
            0,
            "of which an element is 0, 1, not below the prime",
            group=small_residues,
            m1=lambda payload, raw=raw: raw + payload[width:],  # type: ignore[misc]
        )


@pytest.mark.parametrize(
    "raw", [IDENTITY, NON_CANONICAL, NEGATIVE], ids=["identity", "non-canonical", "negative"]
)
@pytest.mark.parametrize("spoiler", [0, 1])
def test_dh2_elements(raw: bytes, spoiler: int) -> None:
    """Lists are committed to, so a spoilt one is told from its commitment first; answers for traps are
    proven. A spoilt query may be one for a trap."""
    fails(DH2, spoiler, "sent a list other than it had committed to", m1=element(raw))
    fails(DH2, spoiler, f"sent public keys {INVALID}", m0=placed(raw, 40))
    fails(DH2, spoiler, "traps with a proof that does not hold", m4=element(raw))
    fails(DH2, spoiler, f"sent names {INVALID}", m6=element(raw, 1))
    fails(DH2, spoiler, f"sent an element to compare by {INVALID}", m7=element(raw))
    if spoiler == 0:
        fails(DH2, 0, f"sent answers {INVALID}", m5=element(raw, 7))
        fails(PROOFS, 0, "sent answers whose proof does not hold", m5=element(raw, 7))
    else:
        fails(DH2, 1, f"sent queries {INVALID}|sent queries that leave out traps", m2=element(raw))


@pytest.mark.parametrize("raw", [IDENTITY, NON_CANONICAL], ids=["identity", "non-canonical"])
@pytest.mark.parametrize("spoiler", [0, 1])
def test_dh2_committed_elements(raw: bytes, spoiler: int) -> None:
    """A party that commits to an invalid list, or to one with duplicates."""

    class Invalid(Owner):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            self.own_list[0] = list(raw)

    class Doubled(Owner):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            self.own_list[0] = self.own_list[1]

    for kind, words in ((Invalid, f"sent a list {INVALID}"), (Doubled, "sent a list with duplicates")):
        bodies: list[Any] = [X, Y]
        bodies[spoiler] = lambda wire, kind=kind: kind(
            wire, (X, Y)[spoiler], DH2, CONTEXT, Ristretto255(), traps=TRAPS
        ).run()
        with pytest.raises(ProtocolAborted, match=words):
            run(DH2, *bodies)


@pytest.mark.parametrize("spoiler", [0, 1])
def test_dh2_messages(spoiler: int) -> None:
    """Every other check of a message."""
    others = Ristretto255().hash_many([b"other %d" % i for i in range(30)], bytes(32)).tobytes()
    fails(DH2, spoiler, "sent a list other than it had committed to", m0=inverted(8))
    fails(DH2, spoiler, "could not show the pool and the traps", m3=flipped)
    fails(DH2, spoiler, "could not show the pool and the traps", m3=doubled(4))
    fails(DH2, spoiler, "could not show the pool and the traps", m3=placed(b"\xff" * 4, 0))
    fails(DH2, spoiler, "could not show the pool and the traps", m3=placed(bytes(32), 4 * TRAPS))
    fails(DH2, spoiler, "traps with a proof that does not hold", m4=element(others[:32], 1))
    places = 2 * 32 * TRAPS + (128 if spoiler == 0 else 64)
    fails(
        DH2,
        spoiler,
        "places that repeat or lie outside",
        m4=lambda p: p[:places] + p[places : places + 4] * 2 + p[places + 8 :],
    )
    fails(DH2, spoiler, "places that repeat or lie outside", m4=placed(b"\xff" * 4, places))
    fails(DH2, spoiler, "sent names with duplicates", m6=doubled())
    fails(DH2, spoiler, "did not arrive at the same union", m6=element(others[:32]))
    fails(DH2, spoiler, "did not arrive at the same union", m7=element(others[:32]))
    fails(DH2, spoiler, "did not arrive at the same union", m8=flipped)
    if spoiler == 0:
        fails(DH2, 0, "sent tags with duplicates", m2=doubled(16))
        fails(DH2, 0, "sent tags that leave out traps", m2=lambda p: others[: len(p)])
        fails(DH2, 0, "traps with a proof that does not hold", m4=placed(others[:32], 32 * TRAPS + 64))
        fails(PROOFS, 0, "sent answers whose proof does not hold", m5=flipped)
        fails(PROOFS, 0, "sent answers whose proof does not hold", m5=element(others[:32]))
    else:
        fails(DH2, 1, "sent queries with duplicates", m2=doubled())
        fails(DH2, 1, "sent queries that leave out traps", m2=lambda p: others[: len(p)])
        for blind in (bytes(32), b"\xff" * 32, b"\1" + bytes(31)):
            fails(DH2, 1, "sent queries that leave out traps", m4=placed(blind, 32 * TRAPS + 64))
        fails(DH2, 1, "claimed more common records than there can be", m5=lambda p: b"\xff" * len(p))
        fails(
            DH2, 1, "claimed more common records than there can be", m5=lambda p: p[:-1] + bytes([p[-1] | 1])
        )
    for message in range(9):
        fails(DH2, spoiler, "bytes where", **{f"m{message}": shorter})
        fails(DH2, spoiler, "bytes where", **{f"m{message}": longer})


@pytest.mark.parametrize("spec", [FLORIST, DH2, HELPER], ids=["florist", "dh2", "helper"])
def test_announced_sizes(spec: AlignmentSpec) -> None:
    """Checked before anything is allocated for them."""
    fails(spec, 0, "announced a list of 100001 entries where 0 to 100000 are allowed", m0=size(100_001))
    fails(spec, 0, "announced a list of 18446744073709551615 entries", m0=size(2**64 - 1))
    least = spec_of(spec.method, min_size=8)
    fails(least, 0, "announced a list of 7 entries where 8 to", m0=size(7))


def through_helper(
    words: str, *, of_owner: dict[str, Any] | None = None, of_helper: dict[str, Any] | None = None
) -> None:
    first = owner(HELPER, X)
    serve: Callable[[Wire], Any] = lambda wire: helper.serve(wire, HELPER, CONTEXT)  # noqa: E731
    bodies = [
        falsified(first, 2, **of_owner) if of_owner else first,
        owner(HELPER, Y),
        falsified(serve, 0, **of_helper) if of_helper else serve,
    ]
    with pytest.raises(ProtocolAborted, match=words) as said:
        MemoryNetwork(3).run(bodies)
    assert said.value.sentence.count(".") == 1


def test_helper() -> None:
    """What an owner may send the helper, and the helper an owner."""
    through_helper("north announced a list of 100001 entries", of_owner={"m0": size(100_001)})
    through_helper("north sent a list with duplicates", of_owner={"m1": doubled(16)})
    through_helper("bytes where", of_owner={"m1": lambda p: p[:-16]})
    through_helper("east announced a union that does not fit", of_helper={"m0": size(9)})
    through_helper("east announced a union that does not fit", of_helper={"m0": size(19)})
    through_helper("east sent rows that repeat", of_helper={"m1": doubled(4)})
    through_helper(
        "east sent rows that repeat or lie outside", of_helper={"m1": lambda p: b"\xff" * 4 + p[4:]}
    )
    through_helper("did not arrive at the same size of the union|sent rows that", of_helper={"m0": size(13)})


@pytest.mark.parametrize("method", ["florist", "dh2", "helper"])
def test_a_peer_that_leaves(method: str) -> None:
    """In every flight: the other ends with PeerLost, nobody hangs."""
    spec = spec_of(method)

    class Left(Exception):
        pass

    def leave(payload: bytes) -> bytes:
        raise Left

    for message in range({"florist": 6, "dh2": 9, "helper": 3}[method]):
        with pytest.raises(Left):
            run(spec, falsified(owner(spec, X), 1, **{f"m{message}": leave}), Y)
