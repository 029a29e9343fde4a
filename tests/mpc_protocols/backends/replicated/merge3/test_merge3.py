"""merge3 computes the functionality, for any number and role of owners; noise, events and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpc_protocols.backends.replicated.merge3 import counted, lists, protocol, tags
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.in_memory.memory_wire import MemoryWire
from mpc_protocols.psu.functionality import ideal_align
from tests.mpc_protocols.psu.merged import context_of, merge_lists
from tests.mpc_protocols.psu.owners import assert_ideal, ids, spec_of
from tests.mpc_protocols.psu.test_protocols import OVERLAPS, sets

ROLES = [
    (0, 1),
    (2, 0),
    (1, 3),
    (3, 4),
    (0, 1, 2),
    (2, 3, 0),
    (4, 3, 5),
    (0, 1, 2, 3),
    (1, 4, 3, 0, 2),
    (0, 3, 4, 5, 6, 7),
    (3, 4, 5, 6, 7, 8, 9),
    (0, 1, 2, 3, 4, 5, 6, 7),
]
"""Wire numbers of the owners: from 3 on they contribute."""


@pytest.mark.parametrize("sizes", OVERLAPS)
@pytest.mark.parametrize("owners", [(0, 1), (2, 3), (4, 3)])
def test_every_overlap_of_two(sizes: tuple[int, int, int], owners: tuple[int, int]) -> None:
    lists = sets(*sizes)
    done = merge_lists(lists, owners)
    assert len({(r.n_rows, r.digest) for r in done.results}) == 1
    assert_ideal(lists, [done.results[i] for i in owners], ideal_align(lists, spec_of("merge3")))


@pytest.mark.parametrize("owners", ROLES, ids=str)
def test_any_owners(owners: tuple[int, ...]) -> None:
    """Unequal sizes, some common to all, some to a few, an empty list; parties without data hold the same
    table."""
    rng = np.random.default_rng(owners)
    for most in (0, 1, 4, 120):
        lists = [
            ids(rng.permutation(most + most // 2)[:size].tolist())
            for size in rng.integers(0, most, len(owners), endpoint=True).tolist()
        ]
        done = merge_lists(lists, owners)
        assert len({(r.n_rows, r.digest) for r in done.results}) == 1
        assert_ideal(lists, [done.results[i] for i in owners], ideal_align(lists, spec_of("merge3")))
        assert all(len(r.rows) == 0 and r.events == () for i, r in enumerate(done.results) if i not in owners)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sets(st.integers(0, 90)), min_size=2, max_size=8), st.randoms(use_true_random=False))
def test_random_sets(chosen: list[set[int]], shuffle: object) -> None:
    lists = []
    for numbers in map(sorted, chosen):
        shuffle.shuffle(numbers)  # type: ignore[attr-defined]
        lists.append(ids(numbers))
    done = merge_lists(lists, range(len(lists)))
    assert_ideal(lists, done.results[: len(lists)], ideal_align(lists, spec_of("merge3")))


@pytest.mark.parametrize("owners", ROLES, ids=str)
@pytest.mark.parametrize("block", [7, 1 << 18])
def test_cost_is_exact(owners: tuple[int, ...], block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes, messages and rounds of every party, also when lists take many blocks."""
    for module in (lists, protocol, tags):
        monkeypatch.setattr(module, "BLOCK", block)
    rng = np.random.default_rng(owners)
    entries = [
        ids(rng.permutation(200)[:size].tolist()) for size in rng.integers(0, 100, len(owners)).tolist()
    ]
    done = merge_lists(entries, owners)
    sizes = [len(e) for e in entries]
    expected, _ = counted.merge3_cost(context_of(owners), spec_of("merge3"), sizes, done.results[0].n_rows)
    assert [t.bytes_sent for t in done.traffic] == expected.sent
    assert [t.messages_sent for t in done.traffic] == expected.messages
    assert [t.rounds for t in done.traffic] == expected.clocks


@pytest.mark.parametrize("message", range(6))
def test_a_contributor_that_sends_two_parties_different_copies_is_named(
    monkeypatch: pytest.MonkeyPatch, message: int
) -> None:
    """Of the seed of a component (four messages) or of its masked keys (two): before they are merged."""
    original, count, announcements = MemoryWire.send, 0, 3

    def send(self: MemoryWire, peer: int, payload: Any) -> None:
        nonlocal count
        changed = bytearray(payload)
        if self.me == 3:
            changed[0] ^= count == announcements + message
            count += 1
        original(self, peer, bytes(changed))

    monkeypatch.setattr(MemoryWire, "send", send)
    with pytest.raises(ProtocolAborted, match="says that party 3 sent it another copy"):
        merge_lists([ids(range(20)), ids(range(10, 30))], (0, 3))
