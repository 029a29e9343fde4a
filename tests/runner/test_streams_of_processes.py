"""Keyed streams of whole runs between processes, each with its own files: whatever was made ahead, for a step that came or
one that did not, no stream is begun twice, and nobody else has begun those of two.

The audit's V.streams looks at runs in one process (`docs/design/audit.md`)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.runner import small
from tests.runner.folders import Folders

MOSAIC = [
    ('algorithm = "aim"', 'algorithm = "mosaic"'),
    ("[aim]\nrounds = 3", "[mosaic]\nrounds = 9\nbatch = 3"),
]
PAIR = [('backend = "replicated"', 'backend = "pair"')]
PROOFS = [('backend = "replicated"', 'backend = "replicated"\nsecurity = "malicious"')]


def begun(directory: Path, parties: int, changes: list[tuple[str, str]]) -> list[Counter[str]]:
    """Of each party of a run, the streams it has begun and how often."""
    folders = Folders.make(directory, small.write(directory / "study", parties=parties, changes=changes))
    for folder in folders:
        folder.module = "tests.runner.streaming"
    ends = folders.run()
    assert all(end.code == 0 for end in ends.values()), ends
    return [Counter(json.loads((folder / "streams.json").read_text())) for folder in folders]


def twice(streams: list[Counter[str]]) -> list[str]:
    return [stream for own in streams for stream, count in own.items() if count > 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parties", "changes", "holders"),
    [
        (3, [], {2}),
        pytest.param(3, MOSAIC, {2}, marks=pytest.mark.campaign),
        (2, [*PAIR, *MOSAIC], {1}),
        pytest.param(3, PROOFS, {2, 3}, marks=pytest.mark.campaign),
    ],
    ids=["aim", "mosaic in batches", "two parties", "proofs"],
)
def test_no_stream_is_begun_twice_and_each_is_of_two_at_most(
    tmp_path: Path, parties: int, changes: list[tuple[str, str]], holders: set[int]
) -> None:
    """Masks and noise of three parties are of two, who begin the same. Two parties have none in common: what one sends in a
    transfer is not what the other can read. With proofs, counts are shared by seeds that the third holds as well."""
    streams = begun(tmp_path, parties, changes)
    assert min(map(len, streams)) > 40 and twice(streams) == []
    count = Counter(Counter(stream for own in streams for stream in own).values())
    assert set(count) == holders and 20 * count[3] < count.total()


@pytest.mark.slow
def test_a_stream_that_is_begun_again_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGAIN", "north")
    assert twice(begun(tmp_path, 2, PAIR))
