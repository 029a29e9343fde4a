"""What a wiretap inside every party sees of a real run of the oracle: four processes (three compute, one
contributes), TLS links.

sizes      the sequence of (direction, peer, stream, size) is the same whatever the counts are: none, the most possible, any
shares     every byte of the share-bearing messages is uniform, whatever the counts are
counts     no message of any party holds counts in plain: neither one as 64 bits nor two neighbours as 32 bits each
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tests.runner import travelling
from tests.trio import Trio

Frames = list[tuple[str, int, str, int, bytes]]
DIGEST = 32
"""Bytes of the messages by which parties compare their transcripts; they say nothing about data."""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Frames]]]:
    """Kind of table -> what each party's tap saw, by wire number."""
    trio = Trio(tmp_path_factory.mktemp("tapped"), contributors=1, tap=True)
    try:
        yield {kind: trio.run(travelling.ask, kind) for kind in travelling.KINDS}
    finally:
        trio.close()


def stream_of(name: str) -> str:
    """A stream's name within its job: `tests.trio` gives each job a stream of its own."""
    return name.partition("/job ")[2].partition("/")[2]


def test_sizes_do_not_depend_on_the_data(seen: dict[str, list[Frames]]) -> None:
    shapes = {
        kind: [
            [
                (direction, peer, stream_of(stream), len(payload))
                for direction, peer, stream, _, payload in frames
            ]
            for frames in parties
        ]
        for kind, parties in seen.items()
    }
    # each direction by itself: in which order a party's sending and receiving interleave is a matter of its
    # threads' timing
    for kind in travelling.KINDS:
        for number in range(4):
            for direction in ("sent", "received"):
                own, zeros = (
                    [frame for frame in shapes[which][number] if frame[0] == direction]
                    for which in (kind, "zeros")
                )
                assert own and own == zeros, (kind, number, direction)


def test_both_ends_see_the_same(seen: dict[str, list[Frames]]) -> None:
    for parties in seen.values():
        sent = sorted(
            (number, peer, stream, at, payload)
            for number, frames in enumerate(parties)
            for direction, peer, stream, at, payload in frames
            if direction == "sent"
        )
        received = sorted(
            (peer, number, stream, at, payload)
            for number, frames in enumerate(parties)
            for direction, peer, stream, at, payload in frames
            if direction == "received"
        )
        assert sent == received and len(sent) > 100


def shares(parties: list[Frames]) -> list[bytes]:
    """Messages that carry shares: all that followers and contributors send but the digests; the leader also
    sends its public questions and answers, which are left out with it."""
    return [
        payload
        for number in (0, 2, 3)
        for direction, _, _, _, payload in parties[number]
        if direction == "sent" and len(payload) > DIGEST
    ]


@pytest.mark.parametrize("kind", travelling.KINDS)
def test_shares_are_uniform(seen: dict[str, list[Frames]], kind: str) -> None:
    """Bytes, and their lowest and highest bits, over all share-bearing messages. False alarms: 3 x 1e-7 per
    kind."""
    data = np.frombuffer(b"".join(shares(seen[kind])), np.uint8)
    assert len(data) > 50_000
    counts = np.bincount(data, minlength=256)
    assert stats.chisquare(counts).pvalue > 1e-7
    for bit in (0, 7):
        assert stats.binomtest(int((data >> bit & 1).sum()), len(data)).pvalue > 1e-7


def test_no_message_comes_twice(seen: dict[str, list[Frames]]) -> None:
    """Tables without a single row: still no share-bearing message of 16 bytes or more repeats one on the same
    link (an opening sends the same part to both others). By chance: below 1e-30."""
    for number in (0, 2, 3):
        for peer in range(3):
            found = [
                payload
                for direction, to, _, _, payload in seen["zeros"][number]
                if direction == "sent" and to == peer and len(payload) >= 16 and len(payload) != DIGEST
            ]
            assert len(set(found)) == len(found) and (found or number in (peer, 3))


@pytest.mark.parametrize("kind", ["max", "random", "other"])
def test_no_message_holds_a_count(seen: dict[str, list[Frames]], kind: str) -> None:
    """Everybody's own counts, all partial sums of custodians and the pooled ones. By chance: below 1e-9."""
    wanted = patterns_of(kind)
    assert len(wanted) > 10
    assert not any(holds(payload, wanted) for frames in seen[kind] for payload in private(frames))
    left_out = [sum(frame[0] == "sent" for frame in frames) - len(private(frames)) for frames in seen[kind]]
    assert left_out == [0, 2, 0, 0]


def private(frames: Frames) -> list[bytes]:
    """What a party sends but the model's answers: public numbers as large as counts, which follow a
    selection's question."""
    found: list[bytes] = []
    asked: set[tuple[int, str]] = set()
    for direction, peer, stream, _, payload in frames:
        if direction != "sent":
            continue
        if (peer, stream) in asked:
            asked.remove((peer, stream))
            continue
        found.append(payload)
        if payload.startswith(b"{") and b'"step":"select"' in payload:
            asked.add((peer, stream))
    return found


def patterns_of(kind: str) -> NDArray[np.uint64]:
    """What must not be found: each count above 255 as 64 bits, each pair of neighbours as 32 bits each; 8
    bytes each."""
    tables = [travelling.table(kind, number) for number in range(4)]
    held = [
        *tables,
        sum(tables[:3]),
        sum(tables),
        tables[0] + tables[3],
        tables[1] + tables[3],
        tables[2] + tables[3],
    ]
    patterns: set[bytes] = set()
    for table in held:
        for marginal in travelling.counts_of(np.asarray(table))(travelling.CLIQUES):
            # small counts are also lengths and indices of public messages
            for count in {int(count) for count in marginal if count > 255}:
                patterns |= {count.to_bytes(8, "little"), count.to_bytes(8, "big")}
            patterns |= {
                np.array(pair, "<u4").tobytes() for pair in pairwise(marginal.tolist()) if max(pair) > 255
            }
    return np.frombuffer(b"".join(patterns), "<u8")


def holds(payload: bytes, wanted: NDArray[np.uint64]) -> bool:
    """Whether one of the 8-byte patterns is somewhere in the message."""
    if len(payload) < 8:
        return False
    windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(payload, np.uint8), 8)
    return bool(np.isin(np.ascontiguousarray(windows).view("<u8"), wanted).any())


def test_the_search_would_find_a_count() -> None:
    """The search above, on a message as a careless implementation would send it."""
    (marginal,) = travelling.counts_of(travelling.table("random", 0))([("a", "c")])
    for form in ("<i4", "<i8", ">i8"):
        payload = b"xyz" + marginal.astype(form).tobytes()
        assert holds(payload, patterns_of("random"))
