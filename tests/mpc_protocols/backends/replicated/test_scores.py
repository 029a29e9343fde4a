"""Sums of |x - c| against plaintext: every width and form, uneven thirds, bits shared once; what each role
receives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from mpc_protocols.backends.replicated.scores import bit_cache, l1_distance, masked_sign
from mpc_protocols.backends.replicated.scores.bit_cache import MAX_UNASKED, SPARSE, BitShareCache
from mpc_protocols.backends.replicated.scores.dealer import DEALERS
from mpc_protocols.backends.replicated.scores.l1_distance import DealerCells, add_l1_sums, addend_of
from mpc_protocols.backends.replicated.scores.masked_sign import packed_words
from mpc_protocols.backends.replicated.sharing import ring
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import to_planes
from mpc_protocols.engine.latency import FAR, LATENCY_BYTES
from mpc_protocols.in_memory.blank_network import BlankNetwork
from mpc_protocols.in_memory.memory_wire import Frame
from mpc_protocols.public.answers import (
    MAX_GROUP,
    MAX_RANGE,
    SPLIT,
    Answers,
    CellRange,
    DealerLayout,
    cell_ranges,
    dealer_slices,
    layouts,
)
from tests.mpc_protocols.backends.replicated.trio_run import (
    answers_of,
    blanks,
    deal_ring,
    distances,
    l1_sums,
    run_trio,
    spread,
    total,
)


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("planes", [2, 3, 4, 5, 9, 11, 17, 18, 24, 31, 32, 48, 64])
def test_absolute_sums(dtype: type, planes: int) -> None:
    if planes > np.iinfo(dtype).bits:
        pytest.skip("more planes than the ring has bits")
    rng = np.random.default_rng(planes)
    for cells in (1, 2, 3, 64, 65, 200, 1000):
        largest = 2 ** (planes - 1) - 1
        values = spread(cells, largest, rng)
        if (
            cells * largest >= 2 ** np.iinfo(dtype).bits
        ):  # a segment's sum must fit the ring, so wide cells get a segment each
            lengths = np.ones(cells, np.int64)
        else:
            lengths = np.array([cells // 2, 0, cells - cells // 2])
        shares = deal_ring(values.astype(dtype), rng)
        expected: NDArray[np.int64] = np.array(
            [np.abs(part).sum(dtype=dtype) for part in np.split(values, np.cumsum(lengths)[:-1])]
        ).astype(dtype)
        for adder in l1_distance.ADDERS:
            results, _ = run_trio(
                lambda trio, shares=shares, lengths=lengths, adder=adder: (  # type: ignore[misc]
                    distances(trio, shares[trio.me], lengths, planes, adder)
                )
            )
            np.testing.assert_array_equal(total(results), expected)


@pytest.mark.parametrize(
    "sizes", [(0, 0, 1), (1, 0, 0), (0, 1, 0), (64, 65, 1), (0, 300, 130), (700, 0, 0), (0, 0, 0)]
)
@pytest.mark.parametrize("adder", l1_distance.ADDERS)
def test_thirds_of_any_size(sizes: tuple[int, int, int], adder: masked_sign.Form) -> None:
    """Zero answers everywhere in one third, or in two; each dealer alone."""
    rng, planes = np.random.default_rng(sum(sizes)), 13
    values = [spread(size, 2 ** (planes - 1) - 1, rng) for size in sizes]
    shares = [deal_ring(part.astype(np.uint32), rng) for part in values]

    def body(trio: Trio) -> ring.RingShare:
        known = [addend_of(trio, shares[third][trio.me], third) for third in range(DEALERS)]
        quads = adder == "quads"
        bits = masked_sign.share_bits(trio, known, planes, quads)
        lengths = [np.array([size // 3, size - size // 3]) for size in sizes]
        dealer_cells = [DealerCells(*parts, quads) for parts in zip(known, bits, lengths, strict=True)]
        return l1_sums(trio, dealer_cells, planes, adder)

    results, _ = run_trio(body)
    expected = sum(
        np.array([np.abs(part[: len(part) // 3]).sum(), np.abs(part[len(part) // 3 :]).sum()])
        for part in values
    )
    np.testing.assert_array_equal(total(results), expected)


@pytest.mark.parametrize("adder", l1_distance.ADDERS)
@pytest.mark.parametrize("planes", [2, 3, 4, 5, 6, 7])
def test_all_pairs_of_operands(adder: masked_sign.Form, planes: int) -> None:
    """Every a and every b modulo 2^k, so every carry pattern: the sign is that of a + b, even where |a + b|
    is the widest."""
    a, b = (
        part.reshape(-1).astype(np.uint32) for part in np.meshgrid(np.arange(2**planes), np.arange(2**planes))
    )
    total_value = ((a + b + 2 ** (planes - 1)) % 2**planes).astype(np.int64) - 2 ** (planes - 1)
    wide = total_value.astype(np.uint32) - b  # a in the ring of 32 bits, the same modulo 2^k

    def body(trio: Trio) -> ring.RingShare:
        known = [wide if trio.me == third else b for third in range(DEALERS)]
        quads = adder == "quads"
        bits = masked_sign.share_bits(trio, known, planes, quads)
        ones = np.ones(len(a), np.int64)
        dealer_cells = [DealerCells(*parts, ones, quads) for parts in zip(known, bits, strict=True)]
        return l1_sums(trio, dealer_cells, planes, adder)

    results, _ = run_trio(body)
    np.testing.assert_array_equal(total(results), 3 * np.abs(total_value))


def test_a_sign_beyond_its_planes_is_wrong() -> None:
    """Why the bound is asserted from public numbers: one step outside, |x| jumps by 2^k
    (`docs/design/mechanisms.md` 5)."""
    values = np.array([2**8 - 1, 2**8], np.int64)
    shares = deal_ring(values.astype(np.uint32), np.random.default_rng(1))
    results, _ = run_trio(lambda trio: distances(trio, shares[trio.me], np.ones(2, np.int64), 9))
    inside, outside = ring.centred(total(results))
    assert inside == 2**8 - 1 and outside == -(2**8)


def test_segments_must_cover_their_cells() -> None:
    with pytest.raises(ValueError, match="Segments of 4 cells do not cover 5"):
        DealerCells(np.zeros(5, np.uint32), np.zeros((1, 0), np.uint32), np.array([1, 3]))


@given(st.integers(1, 400), st.integers(2, 64), st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_packing(cells: int, planes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = masked_sign.bit_rows(planes)
    rows = np.concatenate([to_planes(rng.integers(0, 2**32, cells, np.uint32), 32) for _ in range(3)])[:count]
    packed = masked_sign.pack(rows, cells)
    assert packed.shape == (masked_sign.packed_words(planes), cells)
    again = np.empty_like(rows)
    masked_sign.unpack(packed, again)
    np.testing.assert_array_equal(again, rows)


# -- cells compared again and again
# ----------------------------------------------------------------------------------------


@given(st.integers(0, 5), st.sampled_from([1, 2, 64, SPLIT - 1, SPLIT, SPLIT + 1, SPLIT + 2, 5000]))
def test_every_cell_has_one_dealer(handle: int, cells: int) -> None:
    dealer = np.full(cells, -1)
    for third, piece in dealer_slices(handle, cells, DEALERS):
        assert (dealer[piece] == -1).all()
        dealer[piece] = third
    counts = np.bincount(dealer, minlength=DEALERS)
    assert (dealer >= 0).all() and (
        counts.max() == cells if cells < SPLIT else counts.max() - counts.min() <= 1
    )


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from([1, 2, 64, SPLIT - 1, SPLIT, SPLIT + 1, 2000])),
        max_size=6,
    )
)
@settings(max_examples=40, deadline=None)
def test_dealt_order(candidates: list[tuple[int, int]]) -> None:
    """Dealer by dealer, candidate by candidate: against a plain loop; sums; and back again."""
    rng = np.random.default_rng(len(candidates))
    answers = [rng.integers(0, 2**32, length) for _, length in candidates]
    layout = DealerLayout(
        [(q, CellRange(handle, 0, length)) for q, (handle, length) in enumerate(candidates)], DEALERS
    )
    wanted = [
        answer[piece]
        for third in range(DEALERS)
        for (handle, _), answer in zip(candidates, answers, strict=True)
        for owner, piece in dealer_slices(handle, len(answer), DEALERS)
        if owner == third
    ]
    dealt = layout.by_dealer(answers)
    assert dealt.tolist() == [int(cell) for part in wanted for cell in part] and layout.size == len(dealt)
    assert [layout.places[0].start, *(place.stop for place in layout.places)] == [
        0,
        *np.cumsum(layout.counts.sum(axis=1)),
    ]
    for third, place in enumerate(layout.places):
        sums, counts = np.zeros((2, len(candidates)), np.int64)
        for q, ((handle, _), answer) in enumerate(zip(candidates, answers, strict=True)):
            owned = [
                answer[piece]
                for dealer, piece in dealer_slices(handle, len(answer), DEALERS)
                if dealer == third
            ]
            sums[q], counts[q] = sum(part.sum() for part in owned), sum(map(len, owned))
        assert layout.counts[third].tolist() == counts.tolist()
        assert layout.sums(third, dealt[place], np.int64).tolist() == sums.tolist()
    for answer, value in zip(answers, layout.by_range(dealt), strict=True):
        np.testing.assert_array_equal(answer, value)


@given(
    st.lists(
        st.integers(1, 40) | st.sampled_from([MAX_RANGE, MAX_RANGE + 1, 5 * MAX_RANGE // 2, 9 * MAX_RANGE]),
        min_size=1,
        max_size=30,
    )
)
@settings(max_examples=40, deadline=None)
def test_groups_hold_every_cell_once(lengths: list[int]) -> None:
    """In order, none too large, none that would have fitted into the one before; and sums of ranges add up to
    candidates."""
    groups = layouts(tuple(range(100, 100 + len(lengths))), tuple(lengths), DEALERS)
    flat = [
        (q, cell_range)
        for layout in groups
        for q, cell_range in zip(layout.owners, layout.ranges, strict=True)
    ]
    assert flat == [
        (q, cell_range) for q, length in enumerate(lengths) for cell_range in cell_ranges(100 + q, length)
    ]
    assert all(
        layout.size <= MAX_GROUP and 0 < cell_range.cells <= MAX_RANGE
        for layout in groups
        for cell_range in layout.ranges
    )
    assert all(one.size + other.ranges[0].cells > MAX_GROUP for one, other in pairwise(groups))
    found = np.zeros(len(lengths), np.int64)
    for layout in groups:
        ones = np.ones(layout.size, np.int64)
        found[layout.candidates] += sum(
            layout.sums(third, ones[place], np.int64) for third, place in enumerate(layout.places)
        )
    assert found.tolist() == lengths


@pytest.mark.parametrize("keep", [bit_cache.MAX_CACHED, 3 * SPLIT + 70])
@pytest.mark.parametrize("far", [False, True])
def test_selections_that_compare_other_cells_each_time(
    monkeypatch: pytest.MonkeyPatch, far: bool, keep: int
) -> None:
    """Some marginals, some cells of each, other widths in between, at times more than may be kept: the sums
    are right; a cell's bits travel once per width unless they were dropped. Far apart what is dropped is shared anew
    in another form, with quads or without."""
    forms, decide = list[bool](), bit_cache.shares_quads

    def noted(cells: int, planes: int, latency_bytes: int) -> bool:
        forms.append(decide(cells, planes, latency_bytes) and cells < 4 * SPLIT)
        return forms[-1]

    monkeypatch.setattr(bit_cache, "shares_quads", noted)
    monkeypatch.setattr(bit_cache, "MAX_UNASKED", 700)
    monkeypatch.setattr(bit_cache, "SPARSE", 2)
    monkeypatch.setattr(bit_cache, "MAX_CACHED", keep)
    rng = np.random.default_rng(3)
    sizes = {0: 5, 1: SPLIT + 1, 2: 64, 3: 3 * SPLIT, 4: 1, 7: 900}
    tables = {handle: rng.integers(0, 500, size) for handle, size in sizes.items()}
    shares = {handle: deal_ring(table.astype(np.uint32), rng) for handle, table in tables.items()}
    rounds: list[tuple[tuple[int, ...], int, Answers]] = []
    for number, (handles, planes, density) in enumerate(
        [
            ((0, 1, 2, 3, 4, 7), 10, 0.4),
            ((1, 3, 7), 10, 0.7),
            ((1, 3, 7), 10, 0.0),
            ((4, 3), 12, 1.0),
            ((3, 1), 12, 0.3),
            ((2,), 12, 1.0),
            ((0, 1, 2, 3, 4, 7), 10, 0.9),
            ((1, 2, 7), 10, 0.0),
            ((1, 2, 7), 10, 0.5),
            ((2, 3), 10, 0.5),
        ]
    ):
        answers = {h: rng.integers(1, 500, sizes[h]) * (rng.random(sizes[h]) < density) for h in handles}
        if number == 2:
            answers[7][::3] = 9  # compared in one third only
        rounds.append((handles, planes, answers_of(handles, [answers[h] for h in handles])))

    def body(trio: Trio, shares: Mapping[int, Sequence[ring.RingShare]]) -> list[ring.RingShare]:
        trio.latency_bytes = FAR if far else LATENCY_BYTES
        store, found = BitShareCache(trio), []
        for _, planes, known in rounds:
            cells = known.cells.copy()
            cells[known.layout.places[trio.me]] = 0  # a dealer does not know them
            mine = Answers(known.layout, cells, known.nonzero)
            dealer_cells, parts = store.dealer_cells(
                lambda cell_range: shares[cell_range.handle][trio.me], mine, planes
            )
            add_l1_sums(trio, dealer_cells, planes, None if far else "ripple", parts)
            found.append(ring.reshare(trio, parts))
        return found

    def blanked(trio: Trio) -> list[ring.RingShare]:
        return body(trio, {handle: blanks(of) for handle, of in shares.items()})

    results, traffic = run_trio(lambda trio: body(trio, shares))
    assert set(forms) == ({False, True} if far else {False})
    for number, (handles, _, known) in enumerate(rounds):
        expected = [
            np.abs(tables[h] - cells.astype(int)).sum()
            for h, cells in zip(handles, known.layout.by_range(known.cells), strict=True)
        ]
        np.testing.assert_array_equal(total([result[number] for result in results]), expected)
    assert run_trio(blanked, network=BlankNetwork(3))[1] == traffic
    again, cache = 0, SharedCells(monkeypatch)
    for _, planes, known in rounds:
        again += cache.compare(known, planes)
    assert again > 2 * sum(sizes.values()) if keep < bit_cache.MAX_CACHED else again


class SharedCells:
    """A dealer's bits of cells, as it notes which of them travel; the other parties are not there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._cache, self._fresh = (
            BitShareCache(cast(Any, SimpleNamespace(me=0, left=2, right=1, latency_bytes=LATENCY_BYTES))),
            0,
        )
        monkeypatch.setattr(bit_cache, "share_bits", self._share)

    def _share(
        self, trio: Trio, addends: Sequence[NDArray[Any]], planes: int, quads: bool
    ) -> list[NDArray[Any]]:
        self._fresh += sum(map(len, addends))
        return [np.zeros((packed_words(planes), len(of)), np.uint32) for of in addends]

    def compare(self, known: Answers, planes: int) -> int:
        """How many cells have their bits shared when these are compared; all that are compared are at hand."""
        before = self._fresh
        cells, _ = self._cache.dealer_cells(
            lambda of: ring.RingShare(*np.zeros((2, of.cells), np.uint32)), known, planes
        )
        assert [len(part.addend) for part in cells] == [
            int(np.count_nonzero(known.nonzero[place])) for place in known.layout.places
        ]
        return self._fresh - before

    def of(self, handle: int, flags: NDArray[np.bool_], planes: int = 9) -> int:
        """The same where these cells of one marginal are compared."""
        return self.compare(answers_of([handle], [flags.astype(int)]), planes)


def test_bits_are_shared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cells, size = SharedCells(monkeypatch), SPARSE * MAX_UNASKED
    few, more = np.zeros((2, size), bool)
    few[5], more[4:6] = True, True
    assert [cells.of(0, few), cells.of(0, more), cells.of(1, few)] == [1, 1, 1]
    assert cells.of(0, np.ones(size, bool)) == size - 2
    assert cells.of(0, more) == 0 and cells.of(0, few, 8) == 1


def test_what_does_not_fit_beside_the_others_drops_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bit_cache, "MAX_CACHED", 100)
    cells, ones = SharedCells(monkeypatch), [np.ones(size, bool) for size in (60, 40, 1)]
    assert [cells.of(handle, ones[handle]) for handle in (0, 1, 0, 1)] == [60, 40, 0, 0]
    assert [cells.of(handle, ones[handle]) for handle in (2, 1, 0, 1)] == [1, 40, 60, 40]


def test_a_selection_of_two_groups_shares_its_bits_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of all pairs of 200 columns."""
    cells, ones = SharedCells(monkeypatch), np.ones(MAX_GROUP, bool)
    assert [cells.of(handle, ones) for handle in (0, 1, 0, 1)] == [MAX_GROUP, MAX_GROUP, 0, 0]


def test_cells_are_found_where_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """More groups in turn than are kept, and another width in between, which drops them."""
    cells, ones = SharedCells(monkeypatch), np.ones(7, bool)
    turns = [*range(bit_cache.MAX_FOUND + 2), 0, 1, bit_cache.MAX_FOUND + 1]
    assert [cells.of(handle, ones) for handle in turns] == [7] * (bit_cache.MAX_FOUND + 2) + [0] * 3
    assert cells.of(1, ones, 8) == 7 and cells.of(0, ones, 8) == 7 and cells.of(0, ones) == 7


def test_a_dense_or_small_marginal_shares_all_its_bits_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cells, size = SharedCells(monkeypatch), SPARSE * MAX_UNASKED
    assert cells.of(0, np.arange(size) < MAX_UNASKED) == size and cells.of(0, np.ones(size, bool)) == 0
    assert (
        cells.of(1, np.arange(size) < MAX_UNASKED - 1) == MAX_UNASKED - 1
        and cells.of(1, np.arange(size) < MAX_UNASKED + 1) == 2
    )
    assert (
        cells.of(2, np.zeros(MAX_UNASKED, bool)) == MAX_UNASKED
        and cells.of(3, np.zeros(MAX_UNASKED + 1, bool)) == 0
    )


# -- what each role sees
# ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dealer", range(DEALERS))
@pytest.mark.parametrize("adder", l1_distance.ADDERS)
def test_a_dealer_receives_nothing_and_evaluators_uniform_bytes(dealer: int, adder: masked_sign.Form) -> None:
    """One third only, its values all alike; the final reshare apart. Chi-square of each link; false alarms:
    1e-9 each."""
    cells, planes, frames = 20_000, 20, list[Frame]()
    known = np.full(cells, 1, np.uint32)

    def body(trio: Trio) -> None:
        sizes = [cells if third == dealer else 0 for third in range(DEALERS)]
        parts = [known[:size] for size in sizes]
        quads = adder == "quads"
        bits = masked_sign.share_bits(trio, parts, planes, quads)
        dealer_cells = [
            DealerCells(*found, np.array([size]), quads)  # type: ignore[arg-type, call-arg]
            for *found, size in zip(parts, bits, sizes, strict=True)
        ]
        l1_sums(trio, dealer_cells, planes, adder)

    run_trio(body, tap=frames.append)
    links: dict[tuple[int, int], list[bytes]] = {}
    for frame in frames:
        links.setdefault((frame.sender, frame.receiver), []).append(frame.payload)
    reshared = {(i, (i - 1) % 3): 4 for i in range(3)}
    sizes = {link: sum(map(len, payloads)) - reshared.get(link, 0) for link, payloads in links.items()}
    first, second = (dealer + 1) % 3, (dealer - 1) % 3
    assert {link for link, size in sizes.items() if size} == {
        (dealer, first),
        (first, second),
        (second, first),
    }
    for payloads in links.values():
        content = np.frombuffer(b"".join(payloads), np.uint8)
        if len(content) > 4:
            assert stats.chisquare(np.bincount(content, minlength=256)).pvalue > 1e-9
            words = np.frombuffer(b"".join(p for p in payloads if len(p) % 8 == 0), np.uint64)
            assert len(np.unique(words)) == len(words)  # no mask twice; by chance below 1e-9


@pytest.mark.parametrize("adder", l1_distance.ADDERS)
def test_selections_that_compare_the_same_cells_share_no_mask(adder: masked_sign.Form) -> None:
    """Bits shared once and used in three equal selections: no word travels twice, and the XOR of any two
    messages of a length is uniform, which it were not if one mask met two selections. False alarms: 1e-9
    each."""
    cells, planes, frames = 2 * SPLIT, 12, list[Frame]()
    answers = answers_of([0], [np.full(cells, 9)])
    shares = deal_ring(np.full(cells, 7, np.uint32), np.random.default_rng(5))

    def body(trio: Trio) -> None:
        trio.latency_bytes = FAR if adder == "quads" else LATENCY_BYTES
        bits = BitShareCache(trio)
        for _ in range(3):
            dealer_cells, _ = bits.dealer_cells(lambda cell_range: shares[trio.me], answers, planes)
            l1_sums(trio, dealer_cells, planes, adder)

    run_trio(body, tap=frames.append)
    for link in {(frame.sender, frame.receiver) for frame in frames}:
        sent = [
            frame.payload
            for frame in frames
            if (frame.sender, frame.receiver) == link and len(frame.payload) % 8 == 0
        ]
        words = np.frombuffer(b"".join(sent), np.uint64)
        assert len(np.unique(words)) == len(words)
        long = [np.frombuffer(payload, np.uint8) for payload in sent if len(payload) >= 2048]
        for place, one in enumerate(long):
            for other in long[:place]:
                if len(one) == len(other):
                    assert stats.chisquare(np.bincount(one ^ other, minlength=256)).pvalue > 1e-9
