"""Numbers that stay bits: sums, weights and comparisons equal the plain ones; noise equals that of the engine
without proofs."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.replicated.gates import TrioGates
from mpc_protocols.backends.replicated.proved import gates as proved_gates
from mpc_protocols.backends.replicated.proved.addition import add_up, carry_saved, compress
from mpc_protocols.backends.replicated.proved.conversion import in_ring
from mpc_protocols.backends.replicated.proved.gates import ProvedGates
from mpc_protocols.backends.replicated.proved.numbers import SummedNumbers, concatenated, placed
from mpc_protocols.backends.replicated.proved.slices import planes_of, values_of
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.ring import open_ring
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import from_bits, to_bits
from mpc_protocols.engine.noise.sampling import gaussian_noise, gaussian_noises, gumbel_noise
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.mechanisms.gaussian import sampler
from tests.mpc_protocols.backends.replicated.trio_run import deal_bits, deal_ring, parity, run_trio

RNG = np.random.default_rng(7)


def opened(gates: ProvedGates, numbers: SummedNumbers) -> tuple[Any, Any]:
    """This party's components of the sum."""
    single = add_up(gates, numbers).single()
    return single.own, single.next


def together(parts: list[Any]) -> Any:
    """XOR-shared integers put together."""
    for i in range(3):
        np.testing.assert_array_equal(parts[i][1], parts[(i + 1) % 3][0])
    return parts[0][0] ^ parts[1][0] ^ parts[2][0]


@pytest.mark.parametrize("planes", [7, 32, 64])
def test_integers_are_sliced_and_put_together(planes: int) -> None:
    values = RNG.integers(0, 1 << min(planes, 63), (3, 201), dtype=np.uint64)
    sliced = planes_of(values, planes)
    assert sliced.shape == (planes, 3, 4)
    assert (values_of(sliced, 201, np.uint64) == values).all()
    for vector in range(3):
        assert (to_bits(sliced[0, vector], 201) == (values[vector] & np.uint64(1))).all()


@pytest.mark.parametrize("latency", [0, 1 << 40])
@pytest.mark.parametrize("ring", [np.uint32, np.uint64])
def test_a_sum_of_everything(ring: Any, latency: int) -> None:
    """Ring shares times weights, bits with negative weights, public integers, negated and shifted."""
    x = RNG.integers(0, 1 << 20, 70).astype(ring)
    bits = RNG.integers(0, 2, (4, 70))
    weights = [1, 2, 4, -7]
    factors = RNG.integers(1, 30, 70)
    shares, planes = deal_ring(x, RNG), deal_bits(from_bits(bits), RNG)
    public = RNG.integers(-1000, 1000, 70)

    def body(trio: Trio) -> tuple[Any, Any]:
        trio.latency_bytes = latency
        gates = ProvedGates(trio)
        noise = gates.scaled(gates.weighted_sum(planes[trio.me], weights, 70, ring), -12)
        numbers = SummedNumbers.of(shares[trio.me]).plus_public(public).scaled(factors) + noise
        both = concatenated([numbers[:40], numbers.reshape(7, 10).reshape(70)[40:]])
        return opened(gates, both)

    found = together(run_trio(body)[0])
    plain = (x.astype(np.int64) + public) * factors - 12 * (np.array(weights) @ bits)
    assert (found == plain.astype(ring)).all()


@pytest.mark.parametrize("ring", [np.uint32, np.uint64])
def test_sums_of_bits_become_ring_shares(ring: Any) -> None:
    """What they are worth is the same; each two parties hold a component alike, and each one of nobody's choice."""
    bits = RNG.integers(0, 2, (3, 70))
    planes = deal_bits(from_bits(bits), RNG)

    def body(trio: Trio) -> Any:
        gates = ProvedGates(trio)
        numbers = gates.weighted_sum(planes[trio.me], [1, 6, -9], 70, ring).plus_public(np.arange(70))
        found = in_ring(gates, numbers)
        assert not gates.transcript.gates
        return found.own, found.next

    parts = run_trio(body)[0]
    for i in range(3):
        np.testing.assert_array_equal(parts[i][1], parts[(i + 1) % 3][0])
    total = parts[0][0] + parts[1][0] + parts[2][0]
    assert (total == (np.array([1, 6, -9]) @ bits + np.arange(70)).astype(ring)).all()
    for component, _ in parts:  # of 70 words of 32 bits and more two are alike with a chance below 2^-20
        assert len(set(component.tolist())) > 60


def test_segments_are_added_up_with_their_ones() -> None:
    counts = np.array([0, 1, 2, 3, 11, 0, 40])
    numbers = RNG.integers(0, 1 << 9, (int(counts.sum()), 64)).astype(np.uint64)
    ones = RNG.integers(0, 2, (int(counts.sum()), 64)).astype(np.uint64)
    planes = deal_bits(np.moveaxis(planes_of(numbers, 9), 2, 2), RNG)
    extra = deal_bits(planes_of(ones, 1)[0], RNG)

    def body(trio: Trio) -> Any:
        rounds = trio.wire.traffic().rounds
        found = compress(ProvedGates(trio), planes[trio.me], counts, 32, extra[trio.me])
        assert trio.wire.traffic().rounds == rounds + 6  # 40, 21, 11, 6, 4, 3, 2 numbers
        return found

    results = run_trio(body)[0]
    _, left, used = results[0]
    assert left.tolist() == [0, 1, 2, 2, 2, 0, 2] and used.tolist() == [0, 0, 0, 1, 9, 0, 38]
    found = values_of(parity([of for of, _, _ in results]), 64, np.uint64)
    start = at = 0
    for count, kept, added in zip(counts, left, used, strict=True):
        expected = numbers[start : start + count].sum(axis=0) + ones[start : start + added].sum(axis=0)
        assert (found[at : at + kept].sum(axis=0) == expected).all()
        start, at = start + count, at + kept


def test_comparisons_of_numbers_that_are_added_up() -> None:
    left, right = RNG.integers(-(1 << 29), 1 << 29, (2, 300))
    right[:50] = left[:50]
    shares = [deal_ring(of.astype(np.uint32), RNG) for of in (left, right)]

    def body(trio: Trio) -> BitShare:
        gates = ProvedGates(trio)
        both = [add_up(gates, SummedNumbers.of(of[trio.me])) for of in shares]
        return gates.less(*both)

    assert (to_bits(parity(run_trio(body)[0]), 300) == (left < right)).all()
    with pytest.raises(ValueError, match="added up"):
        SummedNumbers.of(shares[0][0]).single()


@pytest.mark.parametrize("forms", list(itertools.product([add_up, carry_saved], repeat=2)))
@pytest.mark.parametrize("latency", [0, 1 << 40])
def test_comparisons_of_numbers_in_two_parts(forms: Any, latency: int) -> None:
    """Also of one in one part with one in two, equal ones, and those whose difference just fits."""
    left, right = RNG.integers(-(1 << 29), 1 << 29, (2, 300))
    right[:50], left[50:52], right[50:52] = left[:50], [1 << 30, -(1 << 30)], [-(1 << 30) + 1, 1 << 30]
    shares = [deal_ring(of.astype(np.uint32), RNG) for of in (left, right)]

    def body(trio: Trio) -> BitShare:
        trio.latency_bytes = latency
        gates = ProvedGates(trio)
        both = [form(gates, SummedNumbers.of(of[trio.me])) for form, of in zip(forms, shares, strict=True)]
        assert [len(of.parts) for of in both] == [1 + (form is carry_saved) for form in forms]
        return gates.less(*both)

    assert (to_bits(parity(run_trio(body)[0]), 300) == (left < right)).all()


@pytest.mark.parametrize("look_up", ["multiplied out", "bilinear"])
@pytest.mark.parametrize("kind", ["gumbel", "gaussian", "summed", "narrow", "wide", "mixed"])
def test_noise_is_that_of_the_engine_without_proofs(
    kind: str, look_up: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given the same random bits, integer by integer: the distribution is the ideal one. "summed": with
    lookups as sums of products, as without proofs."""
    if kind == "summed":
        monkeypatch.setattr(ProvedGates, "look_up", None)
    monkeypatch.setattr(proved_gates, "worth_a_form", lambda *_: look_up == "bilinear")
    first, second = (MemoryNetwork(3, session_id=bytes(32)) for _ in range(2))
    second.share_keys(first)

    def noise(gates: Any) -> Any:
        source = gates.release_bits(b"release")
        if kind == "gumbel":
            return gumbel_noise(gates, source, 9, 5, np.uint32)
        if kind == "mixed":
            kinds = [(sampler(Fraction(s)), n) for s, n in ((4, 3), (120**2, 2), (9, 70))]
            return gaussian_noises(gates, source, kinds, np.uint32)
        sigma2 = {
            "gaussian": Fraction(25),
            "summed": Fraction(9),
            "narrow": Fraction(1, 4),
            "wide": Fraction(300**2),
        }[kind]
        return gaussian_noise(gates, source, sampler(sigma2), 200 if kind == "narrow" else 20, np.uint32)

    def with_proofs(trio: Trio) -> Any:
        gates = ProvedGates(trio)
        found = opened(gates, noise(gates))
        gates.verify()
        assert not gates.transcript.gates
        return found

    plain, _ = run_trio(lambda trio: open_ring(trio, noise(TrioGates(trio))), network=first)
    found, _ = run_trio(with_proofs, network=second)
    assert (together(found) == plain[0]).all() and len(set(plain[0].tolist())) > 1


def test_lookups_of_many_draws_are_proved_as_forms() -> None:
    """And of few not; the widest table, of 2^12 columns, takes the most."""
    sizes = [(8, 16), (32, 32), (64, 64)]
    assert [proved_gates.worth_a_form(1 << 14, *of) for of in sizes] == [True] * 3
    assert [proved_gates.worth_a_form(1 << 10, *of) for of in sizes] == [False] * 3
    assert not proved_gates.worth_a_form(1 << 20, 128, 128)  # more than there are rows


def test_many_products_are_proved_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proved_gates, "MAX_UNPROVED", 64 * 5)
    words = deal_bits(RNG.integers(0, 2**63, (4, 2), dtype=np.uint64), RNG)

    def body(trio: Trio) -> tuple[int, int]:
        gates = ProvedGates(trio)
        for _ in range(2):
            gates.and_bits(words[trio.me][:2], words[trio.me][2:])
        rounds = trio.wire.traffic().rounds
        return rounds, gates.transcript.gates

    assert run_trio(body)[0] == [(2 + 7, 0)] * 3


def test_weights_that_do_not_fit_are_refused() -> None:
    bits = BitShare(*np.zeros((2, 2, 1), np.uint64))
    with pytest.raises(ValueError, match="3 weights"):
        placed(bits, [1, 2, 4], 5, np.uint32)
    numbers = placed(bits, [1, 2], 5, np.uint32).scaled(-1)
    with pytest.raises(ValueError, match="negative"):
        numbers.scaled(2)
    with pytest.raises(ValueError, match="one sign"):
        placed(bits, [1, 2], 2, np.uint32).scaled(np.array([1, -1]))
