"""Selection and noise on shares equal the integer references bit for bit, given the same random bits; laws and streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from mpc_protocols.mechanisms import gaussian, gumbel, selection
from mpc_protocols.memory_wire import MemoryNetwork
from mpc_protocols.replicated import sampling, search
from mpc_protocols.replicated.argmax import argmax
from mpc_protocols.replicated.bitslice import from_bits, to_bits, to_values
from mpc_protocols.replicated.boolean import BitShare
from mpc_protocols.replicated.ring import RingShare, centred
from mpc_protocols.replicated.search import Layout
from mpc_protocols.replicated.trio import Trio
from mpc_protocols.wire import Wire
from tests.mpc_protocols.replicated.trio_run import deal_bits, deal_ring, parity, run_trio, total

T = gumbel.THRESHOLDS


def planes_of(integers: Sequence[int], bits: int) -> NDArray[np.uint64]:
    flags = [[(value >> j) & 1 for value in integers] for j in range(bits)]
    return from_bits(np.array(flags, np.uint8).reshape(bits, len(integers)))


def injected(draws: Sequence[list[BitShare]], me: int) -> sampling.BitSource:
    """A source that hands out these dealt shares instead of a release's streams."""
    rest = list(draws)

    def draw(shape: tuple[int, ...]) -> BitShare:
        share = rest.pop(0)[me]
        assert share.shape == shape
        return share

    return draw


def chosen_uniforms(count: int, rng: np.random.Generator) -> list[int]:
    """Thresholds and their neighbours, both ends, then random numbers."""
    special = [0, (1 << 80) - 1, T[0], T[0] - 1, T[-1], T[-1] - 1, T[255], T[255] - 1, T[1000] - 1, T[1000], T[15], T[16] - 1]
    special += [T[int(j)] - int(e) for j, e in zip(rng.integers(0, 3445, count), rng.integers(0, 2, count), strict=True)]
    uniform = [int.from_bytes(rng.bytes(10), "big") for _ in range(count)]
    mixed = [s if q % 3 else u for q, (s, u) in enumerate(zip(special, uniform, strict=False))]
    return mixed[:count]


@pytest.mark.parametrize("radices", [(16, 16, 16), (64, 64)])
@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 300])
@pytest.mark.parametrize("a", [0, 1, 14])
def test_selection_equals_the_reference(monkeypatch: pytest.MonkeyPatch, radices: tuple[int, ...], count: int, a: int) -> None:
    """Both layouts; up to 320 candidates the protocol takes the second."""
    assert sampling.gumbel_layout(count).radices == (64, 64) != sampling.gumbel_layout(321).radices == (16, 16, 16)
    monkeypatch.setattr(sampling, "gumbel_layout", lambda count: Layout(radices, "tree"))
    rng = np.random.default_rng(1000 * count + a)
    for variant in range(2):
        uniforms = chosen_uniforms(count, rng)
        dithers = [int(v) for v in rng.integers(0, 1 << a, count)]
        scores = [int(u) for u in rng.integers(-5 << a, 5 << a, count)]
        if variant and count > 2:  # equal keys: the lower index must win
            for q in rng.integers(0, count, count):
                uniforms[q], dithers[q], scores[q] = (1 << 80) - 1, 0, 7 << a
        draws = [deal_bits(planes_of(uniforms, 80), rng), deal_bits(planes_of(dithers, a), rng)]
        scored = deal_ring(np.array(scores, np.int64).astype(np.uint32), rng)

        def body(trio: Trio, draws: list[list[BitShare]] = draws, scored: list[RingShare] = scored) -> tuple[RingShare, int]:
            noise = sampling.gumbel_noise(trio, injected(draws, trio.me), count, a, np.uint32)
            return noise, argmax(trio, scored[trio.me] + noise)

        results, _ = run_trio(body)
        noise = centred(total([share for share, _ in results]))
        expected = [(gumbel.invert(u) << a) + v for u, v in zip(uniforms, dithers, strict=True)]
        np.testing.assert_array_equal(noise, expected)
        assert {index for _, index in results} == {selection.reference(scores, uniforms, dithers, a)}


def test_selection_with_keys_of_64_bits() -> None:
    rng = np.random.default_rng(5)
    count, a = 70, 30
    uniforms, dithers = chosen_uniforms(count, rng), [int(v) for v in rng.integers(0, 1 << a, count)]
    scores = [int(u) for u in rng.integers(-(2**45), 2**45, count)]
    draws = [deal_bits(planes_of(uniforms, 80), rng), deal_bits(planes_of(dithers, a), rng)]
    scored = deal_ring(np.array(scores).astype(np.uint64), rng)
    results, _ = run_trio(lambda trio: argmax(
        trio, scored[trio.me] + sampling.gumbel_noise(trio, injected(draws, trio.me), count, a, np.uint64)))
    assert set(results) == {selection.reference(scores, uniforms, dithers, a)}


@pytest.mark.parametrize("count", [1, 2, 3, 64, 65, 130])
def test_arg_max_of_equal_and_extreme_keys(count: int) -> None:
    rng = np.random.default_rng(count)
    extremes = rng.choice([-(2**30), 2**30 - 1], count)
    for keys in (np.zeros(count), rng.integers(-1, 2, count), extremes, np.arange(count)[::-1] - 5):
        shares = deal_ring(keys.astype(np.int64).astype(np.uint32), rng)
        results, _ = run_trio(lambda trio, shares=shares: argmax(trio, shares[trio.me]))  # type: ignore[misc]
        assert set(results) == {int(np.argmax(keys))}


@pytest.mark.parametrize("adder", ["ripple", "tree"])
@pytest.mark.parametrize("radices", [(16,), (2, 2, 2, 2), (4, 4), (2, 8), (8, 2)])
def test_search_counts_thresholds(adder: search.Adder, radices: tuple[int, ...]) -> None:
    """Every uniform number against tables of every size that the radices allow, also with equal thresholds."""
    rng = np.random.default_rng(7)
    for size in range(8, 16):
        table = tuple(sorted(int(t) for t in rng.integers(0, 64, size)))
        uniforms = [*range(64), 5]
        shares = deal_bits(planes_of(uniforms, 6), rng)
        results, _ = run_trio(lambda trio, shares=shares, table=table: search.search(  # type: ignore[misc]
            trio, shares[trio.me], table, Layout(radices, adder)))
        found = to_values(parity(results), len(uniforms))
        np.testing.assert_array_equal(found, [sum(t <= u for t in table) for u in uniforms])


def test_layouts_are_checked() -> None:
    with pytest.raises(ValueError, match="powers of two"):
        Layout((3,), "tree")
    shares = deal_bits(np.zeros((6, 1), np.uint64), np.random.default_rng(0))
    with pytest.raises(ValueError, match="thresholds"):
        run_trio(lambda trio: search.search(trio, shares[trio.me], (1, 2, 3), Layout((16,), "tree")))


SIGMAS = [Fraction(1, 64), Fraction(1, 4), Fraction(1), Fraction(100), Fraction(10_000), Fraction(10**6)]


@pytest.mark.parametrize("sigma2", SIGMAS)
@pytest.mark.parametrize("count", [1, 65, 1000, 20_000])
def test_gaussian_noise_equals_the_reference(monkeypatch: pytest.MonkeyPatch, sigma2: Fraction, count: int) -> None:
    """All layouts: single level for one cell, radices and trees in between, ripple for many (forced by cheap rounds)."""
    if count == 20_000:
        monkeypatch.setattr(search, "ROUND_BYTES", 1)
    sampler = gaussian.sampler(sigma2)
    rng = np.random.default_rng(count)
    draws, uniforms, signs = [], [], []
    for _, table in sampler.parts:
        special = [0, 2**64 - 1] + [t - e for t in table.thresholds for e in (0, 1)]
        drawn = [int(u) for u in rng.integers(0, 2**64 - 1, count, dtype=np.uint64, endpoint=True)]
        drawn[: len(special)] = special[:count]
        sign = rng.integers(0, 2, count)
        uniforms.append(drawn)
        signs.append(sign)
        draws.append(deal_bits(planes_of([u | int(s) << 64 for u, s in zip(drawn, sign, strict=True)], 65), rng))
    layouts = [search.layout_for(table.bound, 64, -(-count // 64)) for _, table in sampler.parts]
    assert all(count <= 64 * search.batch_words(layout, 64) for layout in layouts)
    if count == 20_000:
        assert all(layout.adder == "ripple" for layout in layouts)
    results, _ = run_trio(lambda trio: sampling.gaussian_noise(trio, injected(draws, trio.me), sampler, count, np.uint32))
    expected = gaussian.reference_array(sampler, np.array(uniforms, np.uint64), np.array(signs, np.uint8))
    np.testing.assert_array_equal(centred(total(results)), expected)


def test_batches_do_not_change_the_noise_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many batches: every cell still follows the reference of its own bits."""
    monkeypatch.setattr(search, "_BATCH_WORDS", 1)
    sampler = gaussian.sampler(Fraction(4))
    results, _ = run_trio(lambda trio: _with_bits(trio, sampler, 200))
    shares, bits = [r[0] for r in results], [r[1] for r in results]
    opened = [parity([b[i] for b in bits]) for i in range(len(bits[0]))]
    assert [planes.shape[1] for planes in opened] == [1, 1, 1, 1]
    uniforms = np.concatenate([to_values(planes[:64], 64) for planes in opened])[:192]
    signs = np.concatenate([to_bits(planes[64], 64) for planes in opened])[:192]
    expected = gaussian.reference_array(sampler, uniforms[np.newaxis], signs[np.newaxis].astype(np.uint8))
    np.testing.assert_array_equal(centred(total(shares))[:192], expected)


def _with_bits(trio: Trio, sampler: gaussian.Sampler, count: int) -> tuple[RingShare, list[BitShare]]:
    """Noise from a release's streams, and the bits it was made of."""
    source, seen = sampling.release_bits(trio, b"release"), []

    def draw(shape: tuple[int, ...]) -> BitShare:
        seen.append(source(shape))
        return seen[-1]

    return sampling.gaussian_noise(trio, draw, sampler, count, np.uint32), seen


# -- laws ----------------------------------------------------------------------------------------------------------------


def goodness_of_fit(values: NDArray[np.int64], sigma2: float) -> float:
    """p-value of a chi-square against the discrete Gaussian; cells with fewer than 10 expected are pooled into the tails."""
    reach = int(12 * sigma2**0.5) + 2
    support = np.arange(-reach, reach + 1)
    law = np.exp(-(support**2) / (2 * sigma2))
    expected = law / law.sum() * len(values)
    central = np.abs(support) <= np.abs(support[expected >= 10]).max()
    counts = np.bincount(np.clip(values, -reach, reach) + reach, minlength=2 * reach + 1)
    observed = np.r_[counts[central], counts[~central].sum()]
    wanted = np.r_[expected[central], expected[~central].sum()]
    return float(stats.chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue)


def draw_noise(sigma2: Fraction, count: int) -> NDArray[np.int64]:
    sampler = gaussian.sampler(sigma2)
    results, _ = run_trio(lambda trio: sampling.gaussian_noise(
        trio, sampling.release_bits(trio, b"law"), sampler, count, np.uint32))
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


def test_secure_selection_is_the_exponential_mechanism() -> None:
    """20,000 runs: chi-square against softmax(u / (64 * 2^a)), from which the exact law differs by < 0.1 %; false alarm 1e-6.

    The noise of all runs is sampled on shares in one batch; the arg max is taken on the opened keys, as the reference does (that
    the arg max on shares agrees is tested bit for bit above).
    """
    runs, scores, a = 20_000, np.array([0, 60, 120, -200]), 1
    results, _ = run_trio(lambda trio: sampling.gumbel_noise(
        trio, sampling.release_bits(trio, b"law"), runs * len(scores), a, np.uint32))
    keys = centred(total(results)).reshape(runs, len(scores)) + scores
    counts = np.bincount(keys.argmax(axis=1), minlength=len(scores))
    law = np.exp(scores / (64.0 * 2**a))
    assert stats.chisquare(counts, law / law.sum() * runs).pvalue > 1e-6


# -- streams -------------------------------------------------------------------------------------------------------------


def noise_words(network: MemoryNetwork, release: bytes) -> list[NDArray[np.uint64]]:
    results = network_run(network, lambda wire: [sampling.release_bits(Trio(wire), release)((5, 40)).own])
    return [result[0] for result in results]


def test_a_release_repeats_its_noise_and_nothing_else_does() -> None:
    """Same keys, same release: the same words, also in another attempt (session id); any changed byte changes every word."""
    first, second = MemoryNetwork(3), MemoryNetwork(3)
    second.share_keys(first)
    third = MemoryNetwork(3)
    base = noise_words(first, b"release 1")
    for again, other in zip(base, noise_words(second, b"release 1"), strict=True):
        np.testing.assert_array_equal(again, other)
    for changed in (noise_words(first, b"release 2"), noise_words(second, b"release 1\0"), noise_words(third, b"release 1")):
        assert all((a != b).all() for a, b in zip(base, changed, strict=True))  # 600 words: a chance of 3e-17 each time


def test_every_attempt_and_stream_and_operation_masks_afresh() -> None:
    """No mask word occurs twice over two attempts with the same keys, two streams, three operations and both kinds of draw."""
    first, second = MemoryNetwork(3), MemoryNetwork(3)
    second.share_keys(first)
    words: list[int] = []
    for network in (first, second):
        for stream in ("", "beside"):
            def party(wire: Wire, stream: str = stream) -> list[NDArray[np.uint64]]:
                trio = Trio(wire, stream)
                masks = [trio.own_mask(50, np.uint64, trio.operation()) for _ in range(2)]
                return [*masks, trio.zero_bits(50), trio.noise_streams(b"r")[0].draw(50, np.uint64, 1)]

            results = network_run(network, party)
            for result in results:
                words += [int(word) for array in result[:3] for word in array]
                if network is first and stream == "":  # noise follows the release, not the attempt
                    words += [int(word) for word in result[3]]
    assert len(set(words)) == len(words) == 1950  # of 64 bits: a chance of about 1e-13


def network_run(network: MemoryNetwork, party: Callable[[Wire], list[NDArray[np.uint64]]]) -> list[list[NDArray[np.uint64]]]:
    """Run again on a network whose parties have ended: fresh channels, the same keys and session."""
    again = MemoryNetwork(3, session_id=network.session_id)
    again.share_keys(network)
    return again.run([party] * 3)
