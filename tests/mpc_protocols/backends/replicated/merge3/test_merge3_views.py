"""What a party of `merge3` sees is a function of (own keys, list sizes, u) and coins; what a peer can spoil
ends the run.

Every statistic's bound is passed by an honest run but with probability 10^-6; there are about 20 of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.merge3 import protocol
from mpc_protocols.backends.replicated.merge3.delivery import holders
from mpc_protocols.backends.replicated.sharing.boolean import BitShare, open_bits
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.errors import CosynthError, PeerLost, ProtocolAborted
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork, MemoryWire
from mpc_protocols.psu.dummies import longest_list
from mpc_protocols.wire import Wire
from runner.review.conformance.guards import Recorder
from tests.mpc_protocols.psu.merged import body_of, context_of, identifiers, merge_lists
from tests.mpc_protocols.psu.owners import Falsifying, ids, spec_of
from tests.mpc_protocols.psu.test_views import CHI_255, SIGMAS, assert_no_order


def shape(frames: list[Frame]) -> dict[tuple[str, int, int], list[tuple[int, int]]]:
    """Lengths and rounds of all messages of every channel, in order."""
    out: dict[tuple[str, int, int], list[tuple[int, int]]] = {}
    for f in frames:
        out.setdefault((f.stream, f.sender, f.receiver), []).append((f.clock, len(f.payload)))
    return out


def test_multiplicities_do_not_show() -> None:
    """Ten matches of pairs, or five identifiers that all three hold: same sizes, same u, then every message
    has the same length and round; so do contributors' owners."""
    pairs = [ids([*range(10), *range(100, 120)]), ids([*range(10), *range(200, 220)]), ids(range(300, 330))]
    triples = [ids([*range(5), *range(100 * i, 100 * i + 25)]) for i in (1, 2, 3)]
    for owners in ((0, 1, 2), (3, 1, 4)):
        one, two = (merge_lists(lists, owners, tapped=True) for lists in (pairs, triples))
        assert one.results[0].n_rows == two.results[0].n_rows == 80
        assert shape(one.frames) == shape(two.frames)


def opened_values(monkeypatch: pytest.MonkeyPatch) -> list[NDArray[np.uint64]]:
    """What P0 learns by openings, in order, from now on."""
    seen: list[NDArray[np.uint64]] = []

    def watched(trio: Trio, x: BitShare) -> NDArray[np.uint64]:
        out = open_bits(trio, x)
        if trio.me == 0:
            seen.append(out)
        return out

    monkeypatch.setattr(protocol, "open_bits", watched)
    return seen


def rank_sum(marks: NDArray[np.bool_]) -> float:
    """Standardised sum of the positions of marks: do they come in random order?"""
    n, k = len(marks), int(marks.sum())
    mean, variance = k * (n - 1) / 2, k * (n - k) * (n + 1) / 12
    return float((np.flatnonzero(marks).sum() - mean) / np.sqrt(variance))


def test_openings_are_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opened: N names, uniform, u of them marked, in no order; and the labels' multiset, in no order.
    Simulated from sizes and u, the names are uniform 63-bit numbers with u random marks, the labels a random
    arrangement: the same statistics."""
    seen = opened_values(monkeypatch)
    lists = [ids(range(300)), ids(range(100, 500)), ids(range(50, 250))]
    done = merge_lists(lists, (0, 1, 3))
    names, packed = seen
    labels = packed.view(np.uint8)[:900]
    assert np.bincount(labels).tolist() == [300, 400, 200]
    first = names & np.uint64(1) == 0
    assert first.sum() == done.results[0].n_rows == 500 and len(np.unique(names)) == len(names) == 900
    assert_no_order(names.astype(np.float64))
    assert_no_order((names[first]).astype(np.float64))
    middle = np.bincount(
        names.view(np.uint8).reshape(-1, 8)[:, 1:].reshape(-1), minlength=256
    )  # all but the mark's byte
    assert ((middle - 900 * 7 / 256) ** 2 / (900 * 7 / 256)).sum() < CHI_255
    for marks in (first, labels == 0, labels == 1, labels == 2):
        assert abs(rank_sum(marks)) < SIGMAS
    # the two shuffles are independent: where a first stands says nothing about whose row stands there
    for side in range(3):
        assert abs(np.corrcoef(first, labels == side)[0, 1]) < SIGMAS / np.sqrt(899)


@pytest.mark.parametrize("owners", [(2, 3), (3, 4)])
def test_messages_are_uniform(owners: tuple[int, int]) -> None:
    """All bytes that a party gets but the openings of labels, whose bytes hold a bit: chi-square, per
    receiver."""
    done = merge_lists([ids(range(700)), ids(range(350, 1050))], owners, tapped=True)
    for receiver in range(3):
        payload = b"".join(
            f.payload for f in done.frames if f.receiver == receiver and 32 <= len(f.payload) != 1400
        )
        counts = np.bincount(np.frombuffer(payload, np.uint8), minlength=256)
        assert len(payload) > 100_000
        assert ((counts - len(payload) / 256) ** 2 / (len(payload) / 256)).sum() < CHI_255


@pytest.mark.parametrize("owners", [(0, 1), (0, 3)])
def test_rows_are_uniform(owners: tuple[int, int]) -> None:
    """The row of the first identifier is uniform on 4 rows: chi-square below its 1 - 10^-6 quantile (30.7, 3
    degrees)."""
    counts = np.zeros(4)
    for _ in range(160):
        counts[merge_lists([ids([0, 1, 2]), ids([2, 3])], owners).results[0].rows[0]] += 1
    assert ((counts - 40) ** 2 / 40).sum() < 30.7


# Faults.


X, Y = ids(range(8)), ids(range(4, 14))


def spoilt(
    owners: tuple[int, ...],
    spoiler: int,
    receiver: int,
    changes: dict[int, Callable[[bytes], bytes]],
    lists: list[Any] | None = None,
    **spec: Any,
) -> list[str]:
    """Sentences of all parties that end with an error, the spoiler's last."""
    lists = lists or [X, Y, Y[2:]][: len(owners)]
    said: dict[int, str] = {}
    honest = body_of(spec_of("merge3", **spec), context_of(owners), lists, [Recorder()] * 12)

    def watched(wire: Wire) -> None:
        try:
            honest(
                Falsifying(wire, changes, receiver)
                if wire.me == spoiler and isinstance(wire, MemoryWire)
                else wire
            )
        except CosynthError as error:
            said[wire.me] = error.sentence
            raise

    parties = max(3, *(number + 1 for number in owners))
    with pytest.raises((ProtocolAborted, PeerLost)):
        MemoryNetwork(parties).run([watched] * parties)
    assert all(s.count(". ") == 0 and s.endswith(".") for s in said.values())
    return [said[i] for i in sorted(said, key=lambda i: i == spoiler)]


def size(count: int) -> Callable[[bytes], bytes]:
    return lambda payload: count.to_bytes(8, "big") + payload[8:]


def flipped(payload: bytes) -> bytes:
    return payload[:-1] + bytes([payload[-1] ^ 1])


@pytest.mark.parametrize("owners", [(0, 1), (2, 3), (3, 4)])
def test_announced_sizes(owners: tuple[int, int]) -> None:
    """Checked before anything is allocated; told alike to all."""
    spoiler = owners[0]
    receiver = 1 if spoiler != 1 else 2
    for count in (100_001, 2**64 - 1):
        assert any(
            f"announced a list of {count} entries where 0 to 100000 are allowed" in s
            for s in spoilt(owners, spoiler, receiver, {0: size(count)})
        )
    assert any("was told other sizes" in s for s in spoilt(owners, spoiler, receiver, {0: size(7)}))
    assert any("announced no size" in s for s in spoilt(owners, spoiler, receiver, {0: lambda p: p[:5]}))
    assert any(
        "announced a list of 7 entries where 8 to" in s
        for s in spoilt(owners, spoiler, receiver, {0: size(7)}, min_size=8)
    )


def test_key_columns() -> None:
    said = spoilt((0, 1), 2, 0, {}, lists=[identifiers(X), identifiers(Y, "integer")])
    assert any(
        "Key column 1 of the alignment holds integer at party south and text at party north" in s
        for s in said
    )
    assert any("announced other key columns" in s for s in spoilt((0, 1), 0, 2, {0: lambda p: p + b"\x01"}))
    assert any(
        "announced other key columns" in s for s in spoilt((0, 1), 0, 2, {0: lambda p: p[:-1] + b"\x09"})
    )
    done = merge_lists([identifiers(X), identifiers(Y, "untyped"), identifiers(X)], (0, 1, 2))
    assert done.results[0].n_rows == 14


def test_shortened_messages() -> None:
    """Any message of a computing owner to its neighbours, too short or too long: nobody goes on."""
    for number in (1, 2, 3, 10, 30):
        for change in (lambda p: p[:-1], lambda p: p + b"\0"):
            assert any("bytes where" in s for s in spoilt((0, 3), 0, 2, {number: change}))


def test_what_contributors_are_told() -> None:
    """Messages of the teller (P2) to the first contributor: digest, sizes and u, the union. Of another party:
    digest, rows."""
    teller, other = holders(0)[2], holders(0)[0]
    said = spoilt((3, 0), teller, 3, {1: lambda p: p[:-8] + (9).to_bytes(8, "big")})
    assert any("announced a union that does not fit" in s or "bytes where" in s for s in said)
    assert any(
        "announced a union that does not fit" in s
        for s in spoilt((3, 0), teller, 3, {1: lambda p: p[:-8] + (1 << 60).to_bytes(8, "big")})
    )
    assert any("announced a union that does not fit" in s for s in spoilt((3, 0), teller, 3, {1: size(5)}))
    assert any(
        "Party east announced a list of 18446744073709551615 entries where 0 to 100000 are allowed" in s
        for s in spoilt((3, 0), teller, 3, {1: size(2**64 - 1)})
    )
    assert any("did not arrive at the same union" in s for s in spoilt((3, 0), teller, 3, {2: flipped}))
    assert any("Party north did not arrive" in s for s in spoilt((3, 0), other, 3, {0: flipped}))
    assert any("did not return this party's own records" in s for s in spoilt((3, 0), other, 3, {1: flipped}))


def test_a_computing_owner_gets_its_own_records() -> None:
    """The last message of its right neighbour holds what it lacks of its rows."""
    done = merge_lists([X, Y], (0, 3), tapped=True)
    last = sum(f.sender == 1 and f.receiver == 0 and f.stream == "/align" for f in done.frames) - 1
    assert any("did not return this party's own records" in s for s in spoilt((0, 3), 1, 0, {last: flipped}))


@pytest.mark.parametrize(("owners", "leaver"), [((0, 3), 1), ((0, 3), 2), ((3, 4), 4), ((0, 3), 0)])
def test_a_peer_that_leaves(owners: tuple[int, int], leaver: int) -> None:
    """At any of its messages: the others end, nobody hangs."""

    class LeftError(Exception):
        pass

    def leave(payload: bytes) -> bytes:
        raise LeftError

    receiver = 1 if leaver > 2 else (leaver - 1) % 3
    honest = body_of(spec_of("merge3"), context_of(owners), [X, Y], [Recorder()] * 5)
    parties = max(3, *(number + 1 for number in owners))
    for number in (0, 1, 2) if leaver > 2 else (0, 1, 2, 5, 20, 50):

        def body(wire: Wire, number: int = number) -> Any:
            leaving = wire.me == leaver and isinstance(wire, MemoryWire)
            return honest(Falsifying(wire, {number: leave}, receiver) if leaving else wire)  # type: ignore[arg-type]

        with pytest.raises(LeftError):
            MemoryNetwork(parties).run([body] * parties)


def test_limits_follow_from_the_study() -> None:
    """With noise the longest list allowed is the longest that an honest owner can make."""
    noisy = spec_of("merge3", adjacency="add-remove", max_size=100)
    assert any(
        f"where 0 to {longest_list(noisy, 2)} are allowed" in s
        for s in spoilt((0, 1), 0, 1, {0: size(1 << 40)}, adjacency="add-remove", max_size=100)
    )
