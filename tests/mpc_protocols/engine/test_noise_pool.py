"""Noise made ahead: how much is made and when; every row goes into one release, none into two."""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.engine.noise import pools
from mpc_protocols.engine.noise.pool import GAUSSIAN_ROWS, GROWTH, NoisePool, PoolModel
from mpc_protocols.functionality import MarginalOracle
from tests.mpc_protocols.backends.replicated.test_oracle import serve
from tests.mpc_protocols.backends.replicated.trio_run import total
from tests.worlds.tables import PARTS, counter


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 300), st.booleans()), max_size=40),
    st.sampled_from([0, 50, 1000]),
)
def test_what_is_made_covers_what_is_taken_and_not_much_more(
    asked: list[tuple[str, int, bool]], most: int
) -> None:
    model, left, used, before = PoolModel(most), 0, 0, ""
    for kind, count, expected in asked:
        if expected:
            lacks = model.lacking(kind, count)
            assert model.fill(kind, count) == lacks
            if lacks:
                left, used = (left, used) if kind == before else (0, 0)
                left, before = left + lacks, kind
                assert left == min(GROWTH * count, most)
            assert model.lacking(kind, count) == 0
        if kind != before:
            left = used = 0
        lacks = model.shortfall(kind, count)
        assert model.take(kind, count) == lacks
        assert lacks == 0 or lacks >= count > left
        assert lacks <= max(count, min(most, GROWTH * used))
        left, used, before = (lacks or left) - count, used + count, kind
        assert left >= 0 and (most or left == 0)


def test_twenty_like_releases_need_four_makings() -> None:
    model = PoolModel(1024)
    made = [model.take("kind", 100) for _ in range(20)]
    assert [(number, rows) for number, rows in enumerate(made) if rows] == [
        (0, 100),
        (1, 400),
        (5, 1024),
        (15, 1024),
    ]


def test_a_stock_is_filled_with_just_what_it_lacks() -> None:
    def rows(count: int) -> RingShare:
        return RingShare(np.arange(count, dtype=np.uint32), np.zeros(count, np.uint32))

    pool: NoisePool[Any] = NoisePool(1000)
    assert pool.take(1, 5, rows(5)).own.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="20 fresh rows"):
        pool.take(1, 5, None)
    pool = NoisePool(1000)
    pool.take(1, 5, rows(5))
    assert [pool.take(1, 5, rows(20)).own[0], *(pool.take(1, 5, None).own[0] for _ in range(3))] == list(
        range(0, 20, 5)
    )
    with pytest.raises(ValueError, match="100 fresh rows"):
        pool.take(1, 5, rows(7))


F = Fraction


def made_by(
    monkeypatch: pytest.MonkeyPatch, body: Callable[[MarginalOracle], Any], name: str
) -> tuple[Any, list[NDArray[Any]]]:
    """What `body` returned, and the rows of every making of a run, put together from the three parties'
    shares."""
    seen: dict[int, list[RingShare]] = {0: [], 1: [], 2: []}
    original, lock = getattr(pools, name), threading.Lock()

    def spy(gates: Any, *arguments: Any) -> RingShare:
        rows: RingShare = original(gates, *arguments)
        with lock:
            seen[gates.trio.me].append(rows)
        return rows

    with monkeypatch.context() as patch:
        patch.setattr(pools, name, spy)
        patch.setattr("mpc_protocols.engine.step.latency_bytes_of", lambda delay_us: LATENCY_BYTES)
        result, _ = serve(body, PARTS)
    return result, [total(list(shares)) for shares in zip(*seen.values(), strict=True)]


def test_every_row_goes_into_one_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise of all releases in their order is the rows of all makings in theirs, without those that were
    dropped."""
    sigmas = [Fraction(10_000)] * 9 + [Fraction(20_000)] * 2 + [Fraction(10_000)]
    cliques = [("a", "b", "c"), ("a",), ("b", "c")] * 4

    def body(oracle: MarginalOracle) -> list[NDArray[np.int64]]:
        handles = oracle.prepare(cliques[:3])
        return [oracle.measure([handles[n % 3]], sigma2)[0] for n, sigma2 in enumerate(sigmas)]

    opened, makings = made_by(monkeypatch, body, "gaussian_noise")
    exact = counter(np.concatenate(PARTS))(cliques)
    model, rows, at, expected = PoolModel(GAUSSIAN_ROWS), iter(makings), 0, []
    current = np.zeros(0, np.int64)
    for sigma2, cells in zip(sigmas, exact, strict=True):
        if model.take(sigma2, len(cells)):
            current, at = next(rows).view(np.int32).astype(np.int64), 0
        expected.append(current[at : at + len(cells)])
        at += len(cells)
    assert next(rows, None) is None and len(makings) == 5
    for noisy, cells, noise in zip(opened, exact, expected, strict=True):
        np.testing.assert_array_equal(noisy - cells, noise)
    flat = np.concatenate(opened) - np.concatenate(exact)
    assert (
        len(np.unique(flat)) > len(flat) / 2
    )  # at sigma 100 and 141 equal values are rare; repeated noise would halve them


def test_expected_noise_goes_into_one_release_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made beside a selection, for the most that it may pick; what is left serves later ones, what was
    expected in vain is dropped, and what another variance takes is made for it."""
    cliques, cells = [("a", "b"), ("c", "d"), ("b", "c")], [12, 10, 20]
    asked: list[tuple[Fraction | None, Fraction, int]] = [
        (F(10_000), F(10_000), 2),
        (F(10_000), F(10_000), 1),
        (F(20_000), F(20_000), 2),
    ]
    asked += [(F(20_000), F(10_000), 2), (None, F(10_000), 1), (F(10_000), F(10_000), 2)]

    def body(oracle: MarginalOracle) -> list[tuple[list[int], list[NDArray[np.int64]]]]:
        handles = oracle.prepare(cliques)
        oracle.total(F(1, 64))
        opened = []
        for expected, sigma2, picks in asked:
            if expected:
                oracle.expect(expected)
            guesses = [np.full(n, 90.0) for n in cells]
            picked = oracle.select(handles, guesses, [F(1)] * 3, [F(0)] * 3, F(1, 100), picks)
            opened.append((picked, oracle.measure([handles[q] for q in picked], sigma2)))
        return opened

    opened, makings = made_by(monkeypatch, body, "gaussian_noise")
    exact = counter(np.concatenate(PARTS))(cliques)
    model, rows = PoolModel(GAUSSIAN_ROWS), iter(makings[1:])
    model.take(F(1, 64), 1)
    stock: NDArray[np.int64] = np.zeros(0, np.int64)

    def made(count: int) -> NDArray[np.int64]:
        found: NDArray[np.int64] = next(rows).view(np.int32).astype(np.int64)
        assert len(found) == count
        return found

    for (expected, sigma2, picks), (picked, noisy) in zip(asked, opened, strict=True):
        if expected:
            most, kept = (20, 32)[picks - 1], expected == model.kind
            if added := model.fill(expected, most):
                stock = np.concatenate((stock if kept else stock[:0], made(added)))
        counts = np.concatenate([exact[q] for q in picked])
        if fresh := model.take(sigma2, len(counts)):
            stock = made(fresh)
        np.testing.assert_array_equal(np.concatenate(noisy) - counts, stock[: len(counts)])
        stock = stock[len(counts) :]
    assert next(rows, None) is None


def test_noise_that_a_measurement_begins_goes_into_one_release_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn with the noise of the first measurement, or begun by a later one: what is left serves later ones, and where
    one of several may come, what the others were to take is dropped."""
    cliques = [("a",), ("b",), ("a", "b"), ("b", "c")]
    likely, other = F(10_000), F(20_000)
    asked: list[tuple[Fraction | list[Fraction], list[int], list[tuple[Fraction, int]]]] = [
        ([F(1, 64), F(1, 63)], [0, 1], [(likely, 12)]),
        (likely, [2], [(likely, 20)]),
        (likely, [3], [(likely, 20), (other, 20)]),
        (other, [3], [(likely, 4)]),
        (likely, [0], []),
    ]

    def body(oracle: MarginalOracle) -> list[NDArray[np.int64]]:
        handles, opened = oracle.prepare(cliques), []
        for number, (sigma2, places, told) in enumerate(asked):
            if number:
                guesses = [np.full(n, 90.0) for n in (12, 20)]
                oracle.select(handles[2:], guesses, [F(1)] * 2, [F(0)] * 2, F(1, 100))
            for of, counts in told:
                oracle.expect_counts(of, counts)
            opened.append(np.concatenate(oracle.measure([handles[q] for q in places], sigma2)))
        return opened

    opened, makings = made_by(monkeypatch, body, "gaussian_noises")
    exact = counter(np.concatenate(PARTS))(cliques)
    drawn = [rows.view(np.int32).astype(np.int64) for rows in makings]
    columns = len(exact[0]) + len(exact[1])
    # 12 and a quarter of the likely kind, of which 12 are taken; 20 and a quarter with what is left; then 20 of either, and
    # these are enough from then on
    assert [len(rows) for rows in drawn] == [columns + 15, 25 - 3, 20 - 5 + 20]
    stock = np.concatenate((drawn[0][columns:], drawn[1], drawn[2][:15]))
    noise = [stock[:12], stock[12:32], drawn[2][15:], stock[32 : 32 + len(exact[0])]]
    for (_, places, _), noisy, taken in zip(asked[1:], opened[1:], noise, strict=True):
        np.testing.assert_array_equal(noisy - np.concatenate([exact[q] for q in places]), taken)


def test_selections_draw_from_the_stock_and_change_it_with_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise is made for the 1st, the 2nd (with that of three more), and when another epsilon moves the grid."""

    def body(oracle: MarginalOracle) -> list[int]:
        handles = oracle.prepare([("a", "b"), ("c", "d"), ("b", "c")])
        guesses = [np.full(cells, 90.0) for cells in (12, 10, 20)]
        return [
            oracle.select(handles, guesses, [Fraction(1)] * 3, [Fraction(0)] * 3, epsilon)[0]
            for epsilon in [Fraction(1, 100)] * 5 + [Fraction(8, 100)] * 2
        ]

    chosen, makings = made_by(monkeypatch, body, "gumbel_noise")
    assert [len(rows) for rows in makings] == [3, 12, 3, 12]
    assert set(chosen) <= {0, 1, 2}


def test_values_drawn_ahead_get_the_grid_of_the_first_selection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn beside counts, they serve selections until they run out; values that are too few are left, and no
    selection draws from them after another made its own."""

    def body(oracle: MarginalOracle, expected: int) -> list[int]:
        columns, handles = (oracle.prepare(of) for of in ([("a",)], [("a", "b"), ("c", "d"), ("b", "c")]))
        oracle.expect_keys(expected)
        oracle.measure(columns, Fraction(1, 64))
        guesses = [np.full(cells, 90.0) for cells in (12, 10, 20)]
        return [
            oracle.select(handles, guesses, [Fraction(1)] * 3, [Fraction(0)] * 3, Fraction(1, 100))[0]
            for _ in range(4)
        ]

    for expected, ahead, made in ((9, [9], [36]), (3, [3], [12]), (2, [], [3, 12])):
        for name, lengths in (("dithered", ahead), ("gumbel_noise", made)):
            chosen, makings = made_by(monkeypatch, lambda oracle, n=expected: body(oracle, n), name)  # type: ignore[misc]
            assert [len(rows) for rows in makings] == lengths and set(chosen) <= {0, 1, 2}
