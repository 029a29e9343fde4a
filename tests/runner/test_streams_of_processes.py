"""Keyed streams of whole runs between processes: whatever was made ahead, for a step that came or one that did not, no byte
of a stream is read twice, and what two parties have in common both read, as far, for the same.

Keys of noise name the release that they are for, so that a hash that two parties have in common is of one step. The audit's
V.streams looks at runs in one process (`docs/design/audit.md`)."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.runner import small
from tests.runner.folders import Folders

MOSAIC = [
    ('algorithm = "aim"', 'algorithm = "mosaic"'),
    ("[aim]\nrounds = 3", "[mosaic]\nrounds = 9\nbatch = 3"),
]
PAIR = [('backend = "replicated"', 'backend = "pair"')]
PROOFS = [('backend = "replicated"', 'backend = "replicated"\nsecurity = "malicious"')]


@dataclass
class Stream:
    """What a party has read of one."""

    purpose: str
    ranges: list[tuple[int, int]] = field(default_factory=list)
    readers: set[str] = field(default_factory=set)
    leaves: set[str] = field(default_factory=set)

    @property
    def is_read_again(self) -> bool:
        """Whether some byte is."""
        return any(start < stop for (_, stop), (start, _) in pairwise(sorted(self.ranges)))

    @property
    def bytes_read(self) -> list[tuple[int, int]]:
        """Which ones, whatever the pieces."""
        joined: list[tuple[int, int]] = []
        for start, stop in sorted(self.ranges):
            if joined and start <= joined[-1][1]:
                start, stop = joined[-1][0], max(stop, joined.pop()[1])
            joined.append((start, stop))
        return joined

    @property
    def use(self) -> tuple[str, list[tuple[int, int]], set[str]]:
        """For what it is, and what was read of it by which modules: the same at all who have it."""
        return self.purpose, self.bytes_read, self.readers


Streams = dict[str, Stream]


def streams_of(told: dict[str, Any]) -> Streams:
    """From what a process wrote down."""
    streams: Streams = {}
    for name, purpose, start, stop, reader in told["reads"]:
        stream = streams.setdefault(name, Stream(purpose))
        stream.ranges.append((start, stop))
        stream.readers.add(reader)
    for name, leaves in told["leaves"].items():
        streams[name].leaves = set(leaves)
    return streams


def run(directory: Path, parties: int, changes: list[tuple[str, str]]) -> list[Streams]:
    """Of each party of a run."""
    folders = Folders.make(directory, small.write(directory / "study", parties=parties, changes=changes))
    for folder in folders:
        folder.module = "tests.runner.streaming"
    ends = folders.run()
    assert all(end.code == 0 for end in ends.values()), ends
    return [streams_of(json.loads((folder / "streams.json").read_text())) for folder in folders]


def again(parties: Iterable[Streams]) -> list[str]:
    return [name for streams in parties for name, stream in streams.items() if stream.is_read_again]


def holders(parties: list[Streams]) -> dict[str, Counter[tuple[int, ...]]]:
    """By purpose, how many streams which parties have."""
    found: dict[str, Counter[tuple[int, ...]]] = defaultdict(Counter)
    for name, stream in {name: stream for own in parties for name, stream in own.items()}.items():
        who = tuple(party for party, own in enumerate(parties) if name in own)
        found[stream.purpose][who] += 1
    return found


def apart(parties: list[Streams]) -> list[str]:
    """Streams whose use is not the same at all who have them."""
    return [
        name
        for one, other in combinations(parties, 2)
        for name in one.keys() & other.keys()
        if one[name].use != other[name].use
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "public"),
    [
        ([], set()),
        pytest.param(MOSAIC, set(), marks=pytest.mark.campaign),
        pytest.param(PROOFS, {"input conditions", "input signs", "point"}, marks=pytest.mark.campaign),
    ],
    ids=["aim", "mosaic in batches", "proofs"],
)
def test_masks_and_noise_of_three_are_read_once_by_two(
    tmp_path: Path, changes: list[tuple[str, str]], public: set[str]
) -> None:
    """public: what coins of all three are stretched to."""
    parties = run(tmp_path, 3, changes)
    assert again(parties) == [] and apart(parties) == []
    found = holders(parties)
    assert found.keys() == {"mask", "noise"} | public
    for purpose, counts in found.items():
        assert set(counts) == ({(0, 1, 2)} if purpose in public else {(0, 1), (0, 2), (1, 2)})
    assert min(found["mask"].values()) > 40 and min(found["noise"].values()) >= 3


@pytest.mark.slow
def test_transfers_of_two_are_read_once_and_as_far_by_both(tmp_path: Path) -> None:
    """Noise is each one's own. Of a transfer's keys the one who chooses lacks one, so the stream is another's to it: that
    which has all other keys."""
    parties = run(tmp_path, 2, [*PAIR, *MOSAIC])
    assert again(parties) == []
    found = holders(parties)
    assert found.keys() == {"noise", "transfers"}
    assert all(set(counts) == {(0,), (1,)} for counts in found.values())
    first, second = ([one for one in own.values() if one.leaves] for own in parties)
    assert len(first) == len(second) > 40
    for one in first:
        (other,) = (other for other in second if one.leaves & other.leaves)
        assert len(one.leaves - other.leaves) == 1 and one.bytes_read == other.bytes_read


@pytest.mark.slow
def test_a_stream_that_is_read_again_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGAIN", "north")
    north, south = run(tmp_path, 2, PAIR)
    assert again([north]) and not again([south])


def test_bytes_that_overlap_are_read_again_and_pieces_are_not() -> None:
    reads = [["a 1", "mask", 8, 16, "x"], ["a 1", "mask", 0, 8, "x"], ["a 2", "mask", 0, 8, "x"]]
    pieces = streams_of({"reads": reads, "leaves": {}})
    assert again([pieces]) == []
    assert again([streams_of({"reads": [*reads, ["a 1", "mask", 15, 17, "y"]], "leaves": {}})]) == ["a 1"]
    whole = [["a 1", "mask", 0, 16, "x"], ["a 2", "mask", 0, 8, "x"]]
    assert apart([pieces, streams_of({"reads": whole, "leaves": {}})]) == []
    for other in (["a 2", "noise", 0, 8, "x"], ["a 2", "mask", 0, 9, "x"], ["a 2", "mask", 0, 8, "y"]):
        assert apart([pieces, streams_of({"reads": [whole[0], other], "leaves": {}})]) == ["a 2"]
