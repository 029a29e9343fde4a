"""Selection and noise on shares equal the integer references bit for bit, given the same random bits; laws
and streams."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from mpc_protocols.backends.replicated.gates import TrioGates, argmax
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.ring import RingShare, add_public, centred
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.adders import Adder
from mpc_protocols.engine.bitwise.argmax import argmax_rows
from mpc_protocols.engine.bitwise.bitslice import from_bits, to_bits
from mpc_protocols.engine.interface import BitSource
from mpc_protocols.engine.noise import sampling
from mpc_protocols.engine.noise.alias import AliasTable, alias_table, draw, one_hots
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.mechanisms import gaussian, gumbel, selection
from mpc_protocols.wire import Wire
from tests.mpc_protocols.backends.replicated.trio_run import (
    deal_bits,
    deal_ring,
    parity,
    run_trio,
    to_values,
    total,
)

GUMBEL = alias_table(gumbel.THRESHOLDS, gumbel.BITS)


def planes_of(integers: Sequence[int], bits: int) -> NDArray[np.uint64]:
    flags = [[(value >> j) & 1 for value in integers] for j in range(bits)]
    return from_bits(np.array(flags, np.uint8).reshape(bits, len(integers)))


def injected(draws: Sequence[list[BitShare]], me: int) -> BitSource:
    """A source that hands out these dealt shares instead of a release's streams."""
    rest = list(draws)

    def draw(shape: tuple[int, ...]) -> BitShare:
        share = rest.pop(0)[me]
        assert share.shape == shape
        return share

    return draw


def chosen_uniforms(table: AliasTable, count: int, rng: np.random.Generator) -> list[int]:
    """Both ends, then columns' thresholds, their neighbours and ends, then random numbers."""
    rest, columns = table.rest_bits, len(table.thresholds)
    special = [0, (1 << rest + table.index_bits) - 1]
    for column in [int(c) for c in rng.integers(0, columns, count)]:
        cut = table.thresholds[column]
        special += [
            column << rest | min(max(y, 0), (1 << rest) - 1) for y in (cut, cut - 1, 0, (1 << rest) - 1)
        ]
    uniform = [int.from_bytes(rng.bytes(10), "big") >> 80 - rest - table.index_bits for _ in range(count)]
    return [special[q] if q % 3 else uniform[q] for q in range(count)]


def ordered(table: AliasTable, uniforms: Sequence[int]) -> list[int]:
    """The uniform numbers that the mechanisms' references take to the same values."""
    return [table.table_order(u) for u in uniforms]


@pytest.mark.parametrize("adder", ["tree", "ripple"])
@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 300])
@pytest.mark.parametrize("a", [0, 1, 14])
def test_selection_equals_the_reference(
    monkeypatch: pytest.MonkeyPatch, adder: Adder, count: int, a: int
) -> None:
    monkeypatch.setattr(sampling, "noise_adder", lambda *sizes: adder)
    rng = np.random.default_rng(1000 * count + a)
    for variant in range(2):
        uniforms = chosen_uniforms(GUMBEL, count, rng)
        dithers = [int(v) for v in rng.integers(0, 1 << a, count)]
        scores = [int(u) for u in rng.integers(-5 << a, 5 << a, count)]
        if variant and count > 2:  # equal keys: the lower index must win
            for q in rng.integers(0, count, count):
                uniforms[q], dithers[q], scores[q] = uniforms[0], 0, 70 << a
        draws = [deal_bits(planes_of(uniforms, 80), rng), deal_bits(planes_of(dithers, a), rng)]
        scored = deal_ring(np.array(scores, np.int64).astype(np.uint32), rng)

        def body(
            trio: Trio, draws: list[list[BitShare]] = draws, scored: list[RingShare] = scored
        ) -> tuple[RingShare, int]:
            noise = sampling.gumbel_noise(TrioGates(trio), injected(draws, trio.me), count, a, np.uint32)
            return noise, argmax(TrioGates(trio), scored[trio.me] + noise)

        results, _ = run_trio(body)
        noise = centred(total([share for share, _ in results]))
        expected = [
            (gumbel.invert(u) << a) + v for u, v in zip(ordered(GUMBEL, uniforms), dithers, strict=True)
        ]
        np.testing.assert_array_equal(noise, expected)
        assert {index for _, index in results} == {
            selection.reference(scores, ordered(GUMBEL, uniforms), dithers, a)
        }


def test_selection_with_keys_of_64_bits() -> None:
    rng = np.random.default_rng(5)
    count, a = 70, 30
    uniforms, dithers = chosen_uniforms(GUMBEL, count, rng), [int(v) for v in rng.integers(0, 1 << a, count)]
    scores = [int(u) for u in rng.integers(-(2**45), 2**45, count)]
    draws = [deal_bits(planes_of(uniforms, 80), rng), deal_bits(planes_of(dithers, a), rng)]
    scored = deal_ring(np.array(scores).astype(np.uint64), rng)
    results, _ = run_trio(
        lambda trio: argmax(
            TrioGates(trio),
            scored[trio.me]
            + sampling.gumbel_noise(TrioGates(trio), injected(draws, trio.me), count, a, np.uint64),
        )
    )
    assert set(results) == {selection.reference(scores, ordered(GUMBEL, uniforms), dithers, a)}


@pytest.mark.parametrize("count", [1, 2, 3, 64, 65, 130])
def test_arg_max_of_equal_and_extreme_keys(count: int) -> None:
    rng = np.random.default_rng(count)
    extremes = rng.choice([-(2**30), 2**30 - 1], count)
    for keys in (np.zeros(count), rng.integers(-1, 2, count), extremes, np.arange(count)[::-1] - 5):
        shares = deal_ring(keys.astype(np.int64).astype(np.uint32), rng)
        results, _ = run_trio(lambda trio, shares=shares: argmax(TrioGates(trio), shares[trio.me]))  # type: ignore[misc]
        assert set(results) == {int(np.argmax(keys))}


@pytest.mark.parametrize("kept", [1448, 29])
def test_arg_max_in_several_batches_of_pairs(monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    """Whether the positions of all pairs are kept or made block by block."""
    monkeypatch.setattr("mpc_protocols.engine.bitwise.argmax.MAX_KEPT", kept)
    monkeypatch.setattr("mpc_protocols.engine.bitwise.argmax.PAIRS", 100)
    monkeypatch.setattr("mpc_protocols.engine.bitwise.argmax._LOSSES", 1)
    rng = np.random.default_rng(3)
    keys = rng.integers(-4, 5, (7, 30))
    shares = deal_ring(keys.astype(np.uint32), rng)
    results, _ = run_trio(lambda trio: argmax_rows(TrioGates(trio), shares[trio.me]))
    for found in results:
        np.testing.assert_array_equal(found, keys.argmax(axis=1))


def test_losers_open_to_random_words() -> None:
    """What is opened of 999 losers, beaten once or often, has no word twice and half its bits set (5 sigma)."""
    rng = np.random.default_rng(4)
    shares = deal_ring(np.repeat(np.arange(500, dtype=np.uint32), 2), rng)
    frames: list[Frame] = []
    results, _ = run_trio(
        lambda trio: argmax_rows(TrioGates(trio), shares[trio.me].reshape(1, -1)), tap=frames.append
    )
    assert {int(found[0]) for found in results} == {998}
    parts = {frame.sender: frame.payload for frame in frames if len(frame.payload) == 16 * 1000}
    opened = np.bitwise_xor.reduce([np.frombuffer(part, np.uint64) for part in parts.values()])
    assert len(set(opened.tolist())) == 2 * 999 + 1 and np.flatnonzero(opened == 0).tolist() == [
        2 * 998,
        2 * 998 + 1,
    ]
    ones = int(np.bitwise_count(opened).sum())
    assert abs(ones - 64 * 999) < 5 * (64 * 999 / 2) ** 0.5


@pytest.mark.parametrize("widths", [(1,), (2, 1), (3, 3), (6, 5), (4, 7)])
def test_one_hot_vectors(widths: tuple[int, ...]) -> None:
    rng = np.random.default_rng(9)
    numbers = [[int(v) for v in rng.integers(0, 1 << width, 130)] for width in widths]
    shares = [deal_bits(planes_of(values, width), rng) for values, width in zip(numbers, widths, strict=True)]
    results, _ = run_trio(lambda trio: one_hots(TrioGates(trio), [share[trio.me] for share in shares]))
    for position, values in enumerate(numbers):
        vector = to_bits(parity([result[position] for result in results]), 130)
        np.testing.assert_array_equal(vector, np.arange(len(vector))[:, np.newaxis] == np.array(values))


TABLES = [
    (30,),
    (0, 0, 64),
    (10, 10, 40),
    (1, 2, 3, 4, 5, 6, 63),
    (8, 16, 24, 32, 40, 48, 56),
    tuple(range(13, 26)),
]


@pytest.mark.parametrize("adder", ["ripple", "tree"])
@pytest.mark.parametrize("thresholds", TABLES)
def test_draws_are_those_of_the_sorted_table(adder: Adder, thresholds: tuple[int, ...]) -> None:
    """Every uniform number: the draw is the number of thresholds that its image under a bijection reaches."""
    table = alias_table(thresholds, 6)
    assert sorted(ordered(table, range(64))) == list(range(64))
    shares = deal_bits(planes_of([*range(64), 5], 6), np.random.default_rng(7))
    results, _ = run_trio(lambda trio: draw(TrioGates(trio), shares[trio.me], table, adder))
    found = to_values(parity(results), 65)
    np.testing.assert_array_equal(
        found, [sum(t <= table.table_order(u) for t in thresholds) for u in [*range(64), 5]]
    )


@pytest.mark.parametrize(
    "table",
    [
        GUMBEL,
        *(
            alias_table(half.thresholds, gaussian.BITS)
            for sigma2 in (1, 10_000, 10**6)
            for _, half in gaussian.sampler(Fraction(sigma2)).parts
        ),
    ],
)
def test_columns_hold_the_masses_of_the_table(table: AliasTable) -> None:
    """Integer for integer: what the columns give to each value is what the sorted table gives it."""
    for thresholds, bits in [
        (gumbel.THRESHOLDS, 80),
        *(
            (half.thresholds, 64)
            for sigma2 in (1, 10_000, 10**6)
            for _, half in gaussian.sampler(Fraction(sigma2)).parts
        ),
    ]:
        if alias_table(thresholds, bits) is table:
            break
    gets = [0] * len(table.aliases)
    for column, (cut, alias) in enumerate(zip(table.thresholds, table.aliases, strict=True)):
        assert 0 <= cut < 1 << table.rest_bits
        gets[column] += cut
        gets[alias] += (1 << table.rest_bits) - cut
    masses = np.diff(np.array([0, *thresholds, 1 << bits], dtype=object)).tolist()
    assert gets == masses + [0] * (len(gets) - len(masses))


def test_draws_take_all_their_bits() -> None:
    shares = deal_bits(np.zeros((6, 1), np.uint64), np.random.default_rng(0))
    with pytest.raises(ValueError, match="7 uniform bits"):
        run_trio(lambda trio: draw(TrioGates(trio), shares[trio.me], alias_table((1, 2, 3), 7), "tree"))


SIGMAS = [Fraction(1, 64), Fraction(1, 4), Fraction(1), Fraction(100), Fraction(10_000), Fraction(10**6)]


@pytest.mark.parametrize("sigma2", SIGMAS)
@pytest.mark.parametrize(
    ("count", "adder"), [(1, "tree"), (65, "ripple"), (1000, "tree"), (20_000, "ripple")]
)
def test_gaussian_noise_equals_the_reference(
    monkeypatch: pytest.MonkeyPatch, sigma2: Fraction, count: int, adder: Adder
) -> None:
    monkeypatch.setattr(sampling, "noise_adder", lambda *sizes: adder)
    sampler = gaussian.sampler(sigma2)
    rng = np.random.default_rng(count)
    draws, uniforms, signs = [], [], []
    for _, half in sampler.parts:
        table = alias_table(half.thresholds, gaussian.BITS)
        drawn = chosen_uniforms(table, count, rng)
        sign = rng.integers(0, 2, count)
        uniforms.append(ordered(table, drawn))
        signs.append(sign)
        draws.append(
            deal_bits(planes_of([u | int(s) << 64 for u, s in zip(drawn, sign, strict=True)], 65), rng)
        )
    results, _ = run_trio(
        lambda trio: sampling.gaussian_noise(
            TrioGates(trio), injected(draws, trio.me), sampler, count, np.uint32
        )
    )
    expected = gaussian.reference_array(sampler, np.array(uniforms, np.uint64), np.array(signs, np.uint8))
    np.testing.assert_array_equal(centred(total(results)), expected)


def test_batches_do_not_change_the_noise_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many batches: every cell still follows the reference of its own bits."""
    monkeypatch.setattr(sampling, "NOISE_BATCH", 64)
    sampler = gaussian.sampler(Fraction(4))
    table = alias_table(sampler.parts[0][1].thresholds, gaussian.BITS)
    results, _ = run_trio(lambda trio: _with_bits(trio, sampler, 200))
    shares, bits = [r[0] for r in results], [r[1] for r in results]
    opened = [parity([b[i] for b in bits]) for i in range(len(bits[0]))]
    assert [planes.shape[1] for planes in opened] == [1, 1, 1, 1]
    uniforms = ordered(table, [int(u) for planes in opened for u in to_values(planes[:64], 64)])[:192]
    signs = np.concatenate([to_bits(planes[64], 64) for planes in opened])[:192]
    expected = gaussian.reference_array(
        sampler, np.array([uniforms], np.uint64), signs[np.newaxis].astype(np.uint8)
    )
    np.testing.assert_array_equal(centred(total(shares))[:192], expected)


def _with_bits(trio: Trio, sampler: gaussian.Sampler, count: int) -> tuple[RingShare, list[BitShare]]:
    """Noise from a release's streams, and the bits it was made of."""
    source, seen = TrioGates(trio).release_bits(b"release"), []

    def draw(shape: tuple[int, ...]) -> BitShare:
        seen.append(source(shape))
        return seen[-1]

    return sampling.gaussian_noise(TrioGates(trio), draw, sampler, count, np.uint32), seen


# -- laws
# ----------------------------------------------------------------------------------------------------------------


def goodness_of_fit(values: NDArray[np.int64], sigma2: float) -> float:
    """p-value of a chi-square against the discrete Gaussian, both tails one cell of at least 10 expected
    draws: of a tail of 0.3, four draws, which come in one run of 3,000, would be taken for another law."""
    reach = int(12 * sigma2**0.5) + 2
    support = np.arange(-reach, reach + 1)
    law = np.exp(-(support**2) / (2 * sigma2))
    expected = law / law.sum() * len(values)
    beyond = np.array([expected[np.abs(support) > k].sum() for k in range(reach + 1)])
    central = np.abs(support) <= np.flatnonzero(beyond >= 10).max()
    counts = np.bincount(np.clip(values, -reach, reach) + reach, minlength=2 * reach + 1)
    observed = np.r_[counts[central], counts[~central].sum()]
    wanted = np.r_[expected[central], expected[~central].sum()]
    return float(stats.chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue)


def draw_noise(sigma2: Fraction, count: int) -> NDArray[np.int64]:
    sampler = gaussian.sampler(sigma2)
    results, _ = run_trio(
        lambda trio: sampling.gaussian_noise(
            TrioGates(trio), TrioGates(trio).release_bits(b"law"), sampler, count, np.uint32
        )
    )
    return centred(total(results))


@pytest.mark.parametrize("sigma", [1, 10])
def test_secure_gaussian_has_its_law(sigma: int) -> None:
    """100,000 samples; false alarm 1e-6 per sigma."""
    assert goodness_of_fit(draw_noise(Fraction(sigma**2), 100_000), sigma**2) > 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [1, 10, 100])
def test_secure_gaussian_has_its_law_in_a_million_samples(sigma: int) -> None:
    """10^6 samples; false alarm 1e-6 per sigma."""
    assert goodness_of_fit(draw_noise(Fraction(sigma**2), 1_000_000), sigma**2) > 1e-6


def test_the_goodness_of_fit_notices_a_wrong_law() -> None:
    values = np.rint(np.random.default_rng(0).normal(0, 10.2, 100_000)).astype(np.int64)
    assert goodness_of_fit(values, 100) < 1e-6


def selections(runs: int, scores: NDArray[np.int64], a: int, release: bytes) -> NDArray[np.int64]:
    """Opened positions of many secure selections: noise drawn on shares, arg max on shares, only the index
    opened."""

    def body(trio: Trio) -> NDArray[np.int64]:
        noise = sampling.gumbel_noise(
            TrioGates(trio), TrioGates(trio).release_bits(release), runs * len(scores), a, np.uint32
        )
        return argmax_rows(TrioGates(trio), add_public(trio, noise, np.tile(scores, runs)).reshape(runs, -1))

    results, _ = run_trio(body)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    return results[0]


@pytest.mark.parametrize("a", [0, 1, 6])
def test_secure_selection_has_its_exact_law(a: int) -> None:
    """20,000 secure selections: chi-square against the law of `docs/design/mechanisms.md` 1.2; false alarm
    1e-6 for each of three grids.

    The law given the dither, (1/gamma) ln(C_q / C_{q-1}) in tie order, averaged over all dithers of four
    candidates (a <= 1), or the exponential mechanism, from which it differs by less than 0.1 % (a = 6).
    """
    runs, scores = 20_000, np.array([0, 60, 120, -200]) << max(a - 1, 0)
    counts = np.bincount(selections(runs, scores, a, b"law %d" % a), minlength=len(scores))
    law = dithered_law(scores, a) if a <= 1 else np.exp(scores / (64.0 * 2**a))
    assert stats.chisquare(counts, law / law.sum() * runs).pvalue > 1e-6


def dithered_law(scores: NDArray[np.int64], a: int) -> NDArray[np.float64]:
    """Probabilities of the positions: mean over z of the grid law with ties broken by (z, position)."""
    gamma, grid, count = 1 / 64, 1 << a, len(scores)
    law = np.zeros(count)
    for dither in itertools.product(range(grid), repeat=count):
        shifted = scores + np.array(dither)
        steps, rest = shifted // grid, shifted % grid
        order = sorted(range(count), key=lambda q: (-rest[q], q))  # ties go to the larger rest
        weights = np.exp(gamma * steps[order])
        sums = [math.exp(gamma) * weights[:j].sum() + weights[j:].sum() for j in range(count + 1)]
        for j, q in enumerate(order):
            law[q] += math.log(sums[j + 1] / sums[j]) / gamma / grid**count
    return law


def test_the_chi_square_of_selections_notices_a_wrong_law() -> None:
    """Scores that differ by 8 units on one candidate of four (an epsilon wrong by 13 %) do not pass for the
    same law."""
    runs, scores = 20_000, np.array([0, 60, 120, -200])
    counts = np.bincount(selections(runs, scores + np.array([0, 0, 8, 0]), 0, b"wrong"), minlength=4)
    assert stats.chisquare(counts, dithered_law(scores, 0) * runs).pvalue < 1e-6


# -- streams
# -------------------------------------------------------------------------------------------------------------


def noise_words(network: MemoryNetwork, release: bytes) -> list[NDArray[np.uint64]]:
    results = network_run(network, lambda wire: [TrioGates(Trio(wire)).release_bits(release)((5, 40)).own])
    return [result[0] for result in results]


def test_a_release_repeats_its_noise_and_nothing_else_does() -> None:
    """Same keys, same release: the same words, also in another attempt (session id); any changed byte changes
    every word."""
    first, second = MemoryNetwork(3), MemoryNetwork(3)
    second.share_keys(first)
    third = MemoryNetwork(3)
    base = noise_words(first, b"release 1")
    for again, other in zip(base, noise_words(second, b"release 1"), strict=True):
        np.testing.assert_array_equal(again, other)
    for changed in (
        noise_words(first, b"release 2"),
        noise_words(second, b"release 1\0"),
        noise_words(third, b"release 1"),
    ):
        assert all(
            (a != b).all() for a, b in zip(base, changed, strict=True)
        )  # 600 words: a chance of 3e-17 each time


def test_every_attempt_and_stream_and_operation_masks_afresh() -> None:
    """No mask word occurs twice over two attempts with the same keys, two streams, three operations and both
    kinds of draw."""
    first, second = MemoryNetwork(3), MemoryNetwork(3)
    second.share_keys(first)
    words: list[int] = []
    for network in (first, second):
        for stream in ("", "beside"):

            def party(wire: Wire, stream: str = stream) -> list[NDArray[np.uint64]]:
                trio = Trio(wire).fork(stream) if stream else Trio(wire)
                masks = [trio.own_mask(50, np.uint64, trio.operation()) for _ in range(2)]
                return [*masks, trio.zero_bits(50), trio.noise_streams(b"r")[0].draw(50, np.uint64, 1)]

            results = network_run(network, party)
            for result in results:
                words += [int(word) for array in result[:3] for word in array]
                if network is first and stream == "":  # noise follows the release, not the attempt
                    words += [int(word) for word in result[3]]
    assert len(set(words)) == len(words) == 1950  # of 64 bits: a chance of about 1e-13


def network_run(
    network: MemoryNetwork, party: Callable[[Wire], list[NDArray[np.uint64]]]
) -> list[list[NDArray[np.uint64]]]:
    """Run again on a network whose parties have ended: fresh channels, the same keys and session."""
    again = MemoryNetwork(3, session_id=network.session_id)
    again.share_keys(network)
    return again.run([party] * 3)
