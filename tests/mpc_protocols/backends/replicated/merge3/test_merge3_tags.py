"""merge3 where the third computing party compares the two others' keyed hashes: it computes the functionality whatever
the keys, what everybody sees is a function of (own keys, list sizes, u) and coins, and what a peer can spoil ends the run.

Every statistic's bound is passed by an honest run but with probability 10^-6; there are 12 of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.merge3 import tags
from mpc_protocols.backends.replicated.merge3.keys import Keys, keys_of
from mpc_protocols.backends.replicated.merge3.public import STREAM
from mpc_protocols.backends.replicated.merge3.tags import TagParty, third_party
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.noise.permutation import permutation_of
from mpc_protocols.engine.prg import MASK, KeyStream, Reader, derive
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.psu.functionality import Context, ideal_align
from mpc_protocols.psu.randomness import permutation
from tests.mpc_protocols.backends.replicated.merge3.test_merge3_views import rank_sum, shape, spoilt
from tests.mpc_protocols.psu.merged import MEMBERS, context_of, merge_lists
from tests.mpc_protocols.psu.owners import assert_ideal, ids, spec_of
from tests.mpc_protocols.psu.test_views import CHI_255, SIGMAS, assert_no_order

PAIRS = [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)]
"""Every two of three, in either order of the study."""
EXTREMES = [0, 1, 2, 2**31, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1]
"""Keys next to one another, at both ends, and with the highest bit set."""


def from_owners(frames: Sequence[Frame], third: int) -> dict[int, NDArray[np.uint64]]:
    """What the third party receives, by owner: words of all places."""
    received: dict[int, NDArray[np.uint64]] = {}
    for owner in {0, 1, 2} - {third}:
        received[owner] = np.concatenate(
            [
                np.frombuffer(f.payload, np.uint64)
                for f in frames
                if (f.sender, f.receiver) == (owner, third) and len(f.payload) > 32
            ]
        )
    return received


def chi_of_bytes(payload: NDArray[Any]) -> float:
    """Chi-square of bytes against the uniform law."""
    counts = np.bincount(payload.view(np.uint8), minlength=256)
    expected = payload.nbytes / 256
    return float(((counts - expected) ** 2 / expected).sum())


def test_who_is_the_third() -> None:
    """Only where two computing parties own everything, and none deviates."""
    plain, deviating = spec_of("merge3"), spec_of("merge3", malicious=True)
    assert [third_party(plain, context_of(owners)) for owners in PAIRS] == [2, 2, 1, 1, 0, 0]
    for owners in ((0, 3), (3, 4), (0, 1, 2), (0, 1, 3)):
        assert third_party(plain, context_of(owners)) is None
    assert third_party(deviating, context_of((0, 1))) is None


@pytest.mark.parametrize("owners", PAIRS)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(first=st.sets(st.integers(0, 40)), second=st.sets(st.integers(0, 40)))
def test_rows_are_those_of_the_functionality(
    owners: tuple[int, int], first: set[int], second: set[int]
) -> None:
    lists = [ids(sorted(first)), ids(sorted(second, reverse=True))]
    done = merge_lists(lists, owners)
    assert len({(r.n_rows, r.digest) for r in done.results}) == 1
    assert_ideal(lists, [done.results[i] for i in owners], ideal_align(lists, spec_of("merge3")))
    assert len(done.results[3 - sum(owners)].rows) == 0


@pytest.mark.parametrize(
    "lists",
    [
        (EXTREMES, EXTREMES),
        (EXTREMES, []),
        ([], []),
        ([2**64 - 1], [2**64 - 1]),
        ([0], [1]),
        (EXTREMES[::2], EXTREMES[1::2]),
        (EXTREMES[:5], EXTREMES[3:]),
        ([7, *EXTREMES], [0]),
    ],
    ids=str,
)
def test_extreme_keys(lists: tuple[list[int], list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are compared as they are, whatever their bits: by two that compute, and by an owner beside a contributor,
    where lists are merged."""

    def given_keys(entries: Sequence[bytes], _sid: bytes, _owners: int) -> Keys:
        words = np.array([int(entry.split()[-1]) for entry in entries], np.uint64)
        order = np.argsort(words, kind="stable")
        return Keys(words[order], order)

    monkeypatch.setattr(tags, "keys_of", given_keys)
    entries = [ids(numbers) for numbers in lists]
    ideal = ideal_align(entries, spec_of("merge3"))
    for owners in ((0, 1), (2, 0), (0, 3)):
        done = merge_lists(entries, owners)
        assert_ideal(entries, [done.results[i] for i in owners], ideal)


def test_five_rounds_and_ten_bytes_an_entry() -> None:
    done = merge_lists([ids(range(3000)), ids(range(1000, 4000))], (0, 1))
    assert [t.rounds for t in done.traffic] == [5, 5, 5]
    assert all(sent == 10 * 6000 + 2 * 9 + 4 * 32 for sent in (t.bytes_sent for t in done.traffic[:2]))
    assert done.traffic[2].bytes_sent == 8 * 6000 + 2 * 8 + 4 * 32


def test_sizes_show_and_nothing_else() -> None:
    """Half of the identifiers in common at other places of the lists, or other ones: every message as long, in the same
    round."""
    one = merge_lists([ids(range(40)), ids(range(20, 60))], (0, 2), tapped=True)
    two = merge_lists(
        [ids(range(100, 140)), ids([*range(5), *range(100, 120), *range(7, 22)])], (0, 2), tapped=True
    )
    assert one.results[0].n_rows == two.results[0].n_rows == 60
    assert shape(one.frames) == shape(two.frames)


def test_the_third_sees_pairs_in_no_order() -> None:
    """What it makes of both messages: N uniform words, N - u of them twice, in random places; one message alone is
    uniform."""
    done = merge_lists([ids(range(600)), ids(range(300, 800))], (0, 1), tapped=True)
    received = from_owners(done.frames, 2)
    seen = received[0] ^ received[1]
    assert len(seen) == 1100 and chi_of_bytes(received[0]) < CHI_255 and chi_of_bytes(received[1]) < CHI_255
    distinct, first, times = np.unique(seen, return_index=True, return_counts=True)
    assert Counter(times.tolist()) == {1: 500, 2: 300} and done.results[2].n_rows == 800
    assert chi_of_bytes(distinct) < CHI_255
    assert_no_order(distinct[np.argsort(first)].astype(np.float64))
    repeated = np.isin(seen, distinct[times == 2])
    assert abs(rank_sum(repeated)) < SIGMAS
    tables = keys_of(ids(range(800)), context_of((0, 1)).salt(spec_of("merge3"), bytes(32)), 1).words
    assert not np.isin(seen, tables).any()


def test_places_and_tags_are_fresh() -> None:
    """In another run the same lists have other tags at other places."""
    seen = []
    for session in range(2):
        frames: list[Frame] = []
        network = MemoryNetwork(3, session_id=bytes([session]) * 32, tap=frames.append)
        merge_lists([ids(range(50)), ids(range(25, 75))], (0, 1), network=network)
        received = from_owners(frames, 2)
        seen.append(received[0] ^ received[1])
    assert not np.isin(seen[0], seen[1]).any()
    groups = [np.unique(words, return_inverse=True)[1] for words in seen]
    assert not np.array_equal(*groups)


def test_what_owners_receive_is_uniform() -> None:
    done = merge_lists([ids(range(4000)), ids(range(2000, 6000))], (0, 1), tapped=True)
    for owner in (0, 1):
        for sender, entries in ((1 - owner, 4000), (2, 8000)):
            payload = b"".join(
                f.payload
                for f in done.frames
                if (f.sender, f.receiver) == (sender, owner) and len(f.payload) > 32
            )
            assert len(payload) == 4 * entries and chi_of_bytes(np.frombuffer(payload, np.uint8)) < CHI_255


def test_an_owner_cannot_take_off_what_covers_the_other_s_rows() -> None:
    """Rows come covered by a stream of the third party and the other owner: with its own streams of any operation an owner
    finds what is no row."""
    frames: list[Frame] = []
    network = MemoryNetwork(3, session_id=bytes(32), tap=frames.append)
    union = merge_lists([ids(range(400)), ids(range(200, 600))], (0, 1), network=network).results[2].n_rows
    for owner in (0, 1):
        (payload,) = (
            f.payload for f in frames if (f.sender, f.receiver) == (2, owner) and len(f.payload) > 32
        )
        rows = np.frombuffer(payload, np.uint32)
        for peer in (1 - owner, 2):
            stream = KeyStream(derive(network.key(owner, peer), MASK, bytes(32), STREAM.encode()))
            for operation in range(1, 9):
                assert (rows ^ stream.draw(len(rows), np.uint32, operation) >= union).mean() > 0.9
        other = KeyStream(derive(network.key(1 - owner, 2), MASK, bytes(32), STREAM.encode()))
        assert (rows ^ other.draw(len(rows), np.uint32, 4) < union).all()


@pytest.mark.parametrize("who", ["owners", "third"])
def test_either_permutation_makes_rows_uniform(who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row of the first identifier is uniform on 4 rows, whatever the third party numbers, and whatever the owners
    order: chi-square below its 1 - 10^-6 quantile (30.7, 3 degrees)."""

    def fixed(count: int, *_: Any) -> NDArray[np.int64]:
        return np.arange(count)

    def of_places_only(count: int, reader: Reader) -> NDArray[np.int64]:
        return permutation_of(count, reader) if count == 5 else fixed(count)

    if who == "owners":
        monkeypatch.setattr(tags, "permutation", fixed)
    else:
        monkeypatch.setattr(tags, "permutation_of", of_places_only)
    counts = np.zeros(4)
    for _ in range(160):
        counts[merge_lists([ids([0, 1, 2]), ids([2, 3])], (0, 1)).results[0].rows[0]] += 1
    assert ((counts - 40) ** 2 / 40).sum() < 30.7


def test_the_third_does_not_know_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that it numbers first, those of repeated tags, are anywhere in the owners' table."""
    numbered: list[NDArray[np.int64]] = []

    def kept(count: int) -> NDArray[np.int64]:
        numbered.append(permutation(count))
        return numbered[-1]

    monkeypatch.setattr(tags, "permutation", kept)
    done = merge_lists([ids(range(600)), ids(range(300, 800))], (0, 1), tapped=True)
    received = from_owners(done.frames, 2)
    _, times = np.unique(received[0] ^ received[1], return_counts=True)
    by_third, by_owners = np.zeros(800, bool), np.zeros(800, bool)
    by_third[numbered[0][times == 2]] = True
    by_owners[done.results[0].rows[300:]] = True
    assert by_third.sum() == by_owners.sum() == 300
    assert abs(np.corrcoef(by_third, by_owners)[0, 1]) < SIGMAS / np.sqrt(799)


def test_every_stream_is_for_one_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream of an operation is opened once at a party, and covers towards two owners are of different keys."""
    opened: list[tuple[int, str, int]] = []
    readers = {"own_reader": Trio.own_reader, "next_reader": Trio.next_reader}
    for side in readers:

        def watched(trio: Trio, operation: int, side: str = side) -> Reader:
            opened.append((trio.me, side, operation))
            return readers[side](trio, operation)

        monkeypatch.setattr(Trio, side, watched)
    for owners in PAIRS:
        opened.clear()
        merge_lists([ids(range(30)), ids(range(10, 40))], owners)
        assert len(opened) == len(set(opened)) == 2 * 4 + 2
        third = 3 - sum(owners)
        assert {side for me, side, _ in opened if me == third} == {"own_reader", "next_reader"}


@pytest.mark.parametrize("padded", [False, True])
def test_planted_pairs_look_like_matches(padded: bool) -> None:
    """With private sizes nobody is told which repetitions an owner planted: every repeated tag occurs twice."""
    done = merge_lists(
        [ids(range(40)), ids(range(20, 60))],
        (0, 1),
        tapped=True,
        adjacency="add-remove",
        size_epsilon=Fraction(2),
        size_delta=Fraction(1, 1000),
        pad_to=(45, 50) if padded else None,
    )
    received = from_owners(done.frames, 2)
    times = Counter(Counter((received[0] ^ received[1]).tolist()).values())
    assert set(times) == {1, 2} and times[1] + times[2] == done.results[2].n_rows and times[2] >= 20


# Faults.

X, Y = ids(range(8)), ids(range(4, 14))


def test_shortened_messages() -> None:
    """Any message, too short or too long: nobody goes on."""
    for spoiler, receiver, count in ((0, 2, 4), (0, 1, 4), (2, 0, 4), (2, 1, 4)):
        for number in range(1 if spoiler == 0 else 0, count):
            for change in (lambda p: p[:-1], lambda p: p + b"\0"):
                assert any("bytes where" in s for s in spoilt((0, 1), spoiler, receiver, {number: change}))


@pytest.mark.parametrize("union", [0, 7, 19, 2**40, 2**64 - 1])
def test_a_union_that_does_not_fit(union: int) -> None:
    """Told by the third party to one owner: before anything is allocated for it."""
    said = spoilt((0, 1), 2, 0, {1: lambda _: union.to_bytes(8, "big")})
    assert any("Party east returned rows that do not fit this party's records" in s for s in said)


def test_unions_that_differ() -> None:
    said = spoilt((0, 1), 2, 0, {1: lambda _: (15).to_bytes(8, "big")})
    assert any("did not arrive at the same union" in s for s in said)


def test_rows_outside_the_table_or_twice() -> None:
    """All rows of an owner altered alike lie outside; rows of two entries that are equal do not fit two keys."""

    def high(payload: bytes) -> bytes:
        return (np.frombuffer(payload, "<u4") ^ np.uint32(1 << 31)).tobytes()

    for receiver in (0, 1):
        said = spoilt((0, 1), 2, receiver, {2: high})
        assert any("Party east returned rows that do not fit" in s for s in said)
    words = np.array([5, 6, 6, 9], np.uint64)
    party = TagParty.__new__(TagParty)
    party.sizes, party.third, party.context = [4, 4], 2, context_of((0, 1))
    for found in ([0, 1, 0, 3], [0, 0, 0, 2], [0, 1, 1, 5]):
        with pytest.raises(ProtocolAborted, match="Party east returned rows that do not fit"):
            party._rows(Keys(words, np.arange(4)), np.array(found), 5)


def test_a_key_of_an_owner_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tags are of a key that the two owners have and the third has not, for each pair another."""
    keys: dict[tuple[int, ...], set[bytes]] = {}
    for pair in ((0, 1), (0, 2)):
        found: set[bytes] = set()

        def watched(entries: Sequence[bytes], key: bytes, owners: int, found: set[bytes] = found) -> Keys:
            found.add(key)
            return keys_of(entries, key, owners)

        monkeypatch.setattr(tags, "keys_of", watched)
        merge_lists([X, Y], pair, network=MemoryNetwork(3, session_id=bytes(32)))
        keys[pair] = found
    assert all(len(found) == 1 for found in keys.values()) and keys[0, 1] != keys[0, 2]
    public = Context(bytes(range(32)), MEMBERS[:2], None, MEMBERS[:3]).salt(spec_of("merge3"), bytes(32))
    assert public not in keys[0, 1] and public[:16] not in keys[0, 1]
