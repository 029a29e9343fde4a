"""Sums by cell through secret orders of the rows: against plaintext, sizes, uniformity of all that is
received, faults."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2

from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.backends.replicated.vertical.group_by import GroupBySum, sums_by_cell
from mpc_protocols.backends.replicated.vertical.matrices import Matrix
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.vertical.layout import Layout
from mpc_protocols.vertical.ordered_sums import OwnerShuffle, arrange
from mpc_protocols.vertical.records import ABSENT
from mpc_protocols.wire import Wire
from tests.mpc_protocols.backends.replicated.trio_run import deal_ring, run_trio

RINGS = [np.uint16, np.uint32]


def by_cell(cells: NDArray[np.int64], weights: NDArray[Any], count: int) -> NDArray[Any]:
    sums = np.zeros((count, weights.shape[1]), weights.dtype)
    for cell, row in zip(cells, weights, strict=True):
        if cell != ABSENT:
            sums[cell] += row
    return sums


def run(
    cells: NDArray[np.int64],
    weights: NDArray[Any],
    layout: Layout,
    owner: int,
    helper: int,
    tap: Any = None,
    seed: int = 0,
) -> NDArray[Any]:
    """One asked of a computing owner on a random sharing of the weights; the parts added up."""
    shares = deal_ring(weights, np.random.default_rng(seed))

    def body(trio: Trio) -> NDArray[Any]:
        matrix = Matrix((layout.rows, layout.columns), shares[trio.me].own, shares[trio.me].next)
        asked = GroupBySum(owner, helper, layout, matrix, cells if trio.me == owner else None)
        return sums_by_cell(trio, [asked], weights.dtype.type)[0]

    parts, _ = run_trio(body, tap=tap)
    return parts[0] + parts[1] + parts[2]


@given(
    st.integers(0, 2**32),
    st.integers(0, 300),
    st.integers(1, 200),
    st.integers(1, 4),
    st.sampled_from(RINGS),
    st.sampled_from([(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]),
    st.sampled_from(["any", "absent", "one", "last"]),
)
def test_sums_equal_the_plain_ones(
    seed: int, rows: int, count: int, columns: int, dtype: type, roles: tuple[int, int], kind: str
) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, np.iinfo(dtype).max, (rows, columns), dtype=dtype, endpoint=True)
    cells = {
        "any": rng.integers(ABSENT, count, rows),
        "absent": np.full(rows, ABSENT),
        "one": np.zeros(rows),
        "last": np.full(rows, count - 1),
    }[kind].astype(np.int64)
    layout = Layout(rows, count, columns, np.dtype(dtype).itemsize)
    np.testing.assert_array_equal(
        run(cells, weights, layout, *roles, seed=seed), by_cell(cells, weights, count)
    )


@given(st.integers(0, 2**32), st.integers(0, 400), st.integers(1, 60), st.integers(1, 300))
def test_every_cell_gets_blocks_of_its_own(seed: int, rows: int, count: int, columns: int) -> None:
    """pi is a permutation; a cell's blocks hold its rows and rows beyond the table only; the last blocks are
    different."""
    rng = np.random.default_rng(seed)
    cells = np.where(rng.random(rows) < rng.random(), rng.integers(0, count, rows), ABSENT)
    layout = Layout(rows, count, columns, 2)
    arrangement, starts, last = arrange(cells, layout)
    assert sorted(arrangement.tolist()) == list(range(layout.places))
    assert (np.diff(last) > 0).all() and int(last[-1]) < layout.blocks
    ends = (last + 1) * layout.block
    np.testing.assert_array_equal(starts[1:], ends[:-1])
    for cell in range(count):
        inside = arrangement[starts[cell] : ends[cell]]
        assert sorted(inside[inside < rows].tolist()) == np.flatnonzero(cells == cell).tolist()


def test_a_wide_joint_costs_about_a_column_and_an_index() -> None:
    """45,000 rows, 256 cells: 1.1 elements and 1.1 indices a row, where one-hot columns would be 256
    elements."""
    places, masked, answers = Layout(45_000, 256, 1, 2).transfers()
    assert places + masked + answers < 1.2 * 45_000 * 4
    places, masked, answers = Layout(45_000, 256, 40, 2).transfers()
    assert places + masked + answers < 1.5 * 45_000 * 2 * 41


@pytest.mark.parametrize("case", ["sorted", "one cell", "none held"])
def test_what_travels_is_uniform(case: str) -> None:
    """Places (to Q) and masked rows (to Q and O) of the most regular data: each place and each byte as often
    as any other.

    400 runs of 8 places and 2 choices: chi-square of where the first row goes, of the last cell's choice, and
    of all bytes of the masked messages, each at a false alarm of 1e-9.
    """
    layout = Layout(6, 2, 1, 2)
    cells = {
        "sorted": np.array([0, 0, 0, 1, 1, 1]),
        "one cell": np.zeros(6, np.int64),
        "none held": np.full(6, ABSENT),
    }[case]
    weights = np.ones((6, 1), np.uint16)
    first: Counter[int] = Counter()
    chosen: Counter[int] = Counter()
    octets: Counter[int] = Counter()
    for _ in range(400):
        frames: list[Frame] = []
        run(cells.astype(np.int64), weights, layout, 0, 2, frames.append)
        sent = {(frame.sender, frame.receiver): frame.payload for frame in frames}
        assert set(sent) == {(0, 1), (2, 1), (1, 0)}  # H receives nothing
        places = np.frombuffer(sent[0, 1], np.uint16)
        assert (
            sorted(places[: layout.places]) == list(range(layout.places))
            and len(set(places[layout.places :])) == 2
        )
        first[int(places[0])] += 1
        chosen[int(places[-1])] += 1
        octets.update(sent[2, 1] + sent[1, 0])
    for counter, values in ((first, layout.places), (chosen, layout.blocks), (octets, 256)):
        expected = sum(counter.values()) / values
        assert sum((counter[value] - expected) ** 2 / expected for value in range(values)) < chi2.isf(
            1e-9, values - 1
        )


@pytest.mark.parametrize("bad", [0, -1])
def test_a_place_that_does_not_exist_stops_the_run(monkeypatch: pytest.MonkeyPatch, bad: int) -> None:
    """The owner names a place beyond the rows, or a block beyond the blocks."""
    original = OwnerShuffle.__init__

    def lying(self: OwnerShuffle, *arguments: Any) -> None:
        original(self, *arguments)
        self.places[bad] = 60_000

    monkeypatch.setattr(OwnerShuffle, "__init__", lying)
    with pytest.raises(ProtocolAborted, match="place beyond"):
        run(np.zeros(9, np.int64), np.ones((9, 1), np.uint16), Layout(9, 3, 1, 2), 0, 2)


@pytest.mark.parametrize("owner", [0, 1, 2])
def test_an_order_that_repeats_a_place_is_refused(monkeypatch: pytest.MonkeyPatch, owner: int) -> None:
    """The owner counts its first row 300 times: in what it sends, in what it knows itself, and in the masks."""
    original = OwnerShuffle.__init__

    def greedy(self: OwnerShuffle, *arguments: Any) -> None:
        original(self, *arguments)
        for array in (self.places, self._arrangement, self._rows):
            array[1:300] = array[0]

    layout, weights = Layout(300, 1, 1, 4), np.arange(7, 307, dtype=np.uint32).reshape(-1, 1)
    cells = np.zeros(300, np.int64)
    assert int(run(cells, weights, layout, owner, (owner + 1) % 3)[0, 0]) == int(weights.sum())
    monkeypatch.setattr(OwnerShuffle, "__init__", greedy)
    with pytest.raises(ProtocolAborted, match=f"Party {owner} named a place of a shuffle twice"):
        run(cells, weights, layout, owner, (owner + 1) % 3)


def test_a_block_that_is_chosen_twice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    original = OwnerShuffle.__init__

    def lying(self: OwnerShuffle, *arguments: Any) -> None:
        original(self, *arguments)
        self.places[-1] = self.places[-2]

    monkeypatch.setattr(OwnerShuffle, "__init__", lying)
    with pytest.raises(ProtocolAborted, match="named a place of a shuffle twice"):
        run(np.zeros(9, np.int64), np.ones((9, 1), np.uint16), Layout(9, 3, 1, 2), 0, 2)


def test_jobs_that_make_no_sense() -> None:
    matrix, layout = Matrix((4, 1), None, None), Layout(4, 2, 1, 2)
    for owner, helper in ((0, 0), (0, 3)):
        with pytest.raises(ValueError):
            GroupBySum(owner, helper, layout, matrix)
    with pytest.raises(ValueError):
        GroupBySum(0, 1, Layout(5, 2, 1, 2), matrix)

    def body(wire: Wire) -> Any:
        return sums_by_cell(Trio(wire), [GroupBySum(0, 1, layout, matrix, None)], np.uint16)

    with pytest.raises(ValueError, match="cell of every row"):
        MemoryNetwork(3).run([body] * 3)
