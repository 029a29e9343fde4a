"""Keys that no sharing was made of: opened under their dealers' masks, compared, and the largest of each family."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.gates import TrioGates, argmax
from mpc_protocols.backends.replicated.scores import masked_sign, shared_sign
from mpc_protocols.backends.replicated.scores.family_keys import largest_of_families, table_bytes
from mpc_protocols.backends.replicated.scores.masked_numbers import MaskedKeys, MaskedNumbers
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.ring import Parts, RingShare, add_public
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.argmax import losses
from mpc_protocols.engine.bitwise.bitslice import to_bits
from mpc_protocols.engine.blank import blank
from mpc_protocols.engine.latency import FAR, LATENCY_BYTES
from mpc_protocols.in_memory.blank_network import BlankNetwork
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from tests.mpc_protocols.backends.replicated.test_messages import assert_uniform
from tests.mpc_protocols.backends.replicated.trio_run import (
    deal_ring,
    parity,
    run_trio,
    spread,
    without_a_key,
)

PLACES = {"near": LATENCY_BYTES, "far": 64 * FAR}


def deal_parts(values: NDArray[Any], rng: np.random.Generator) -> list[Parts]:
    """Parts that add up to unsigned values, all three random."""
    return [Parts(share.own) for share in deal_ring(values, rng)]


def placed(body: Callable[[TrioGates, Parts], Any], parts: list[Parts], place: str, **given: Any) -> Any:
    """Results and traffic of the three, so far apart."""

    def party(trio: Trio) -> Any:
        trio.latency_bytes = PLACES[place]
        return body(TrioGates(trio), parts[trio.me])

    return run_trio(party, **given)


def without_content(parts: list[Parts]) -> list[Parts]:
    return [Parts(blank(of.shape, of.dtype)) for of in parts]


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_masked_numbers_add_up_at_every_dealer(dtype: type) -> None:
    """Another number of them for each dealer; both evaluators hold the same, and the sum is the number."""
    rng = np.random.default_rng(1)
    values = [rng.integers(0, np.iinfo(dtype).max, size, dtype=dtype) for size in (5, 0, 130)]
    parts = [deal_parts(of, rng) for of in values]

    def party(trio: Trio) -> list[NDArray[Any]]:
        numbers = MaskedNumbers(trio, [of[trio.me].own for of in parts])
        assert numbers.count == 135 and not numbers.is_open
        numbers.send()
        numbers.receive()
        assert numbers.is_open
        return numbers.addends

    results, traffic = run_trio(party)
    for dealer, value in enumerate(values):
        first, second = (results[(dealer + by) % 3][dealer] for by in (1, 2))
        np.testing.assert_array_equal(first, second)
        np.testing.assert_array_equal(results[dealer][dealer] + first, value)
    size = np.dtype(dtype).itemsize
    assert [of.rounds for of in traffic] == [1, 1, 1]
    assert sum(of.bytes_sent for of in traffic) == 2 * size * 135


@pytest.mark.parametrize("party", [0, 1, 2])
def test_what_a_party_is_sent_hangs_on_the_key_that_it_lacks(party: int) -> None:
    """With another key between the two others, whatever else is the same, everything that it receives is another."""
    parts = deal_parts(np.arange(64, dtype=np.uint32).reshape(16, 4), np.random.default_rng(0))
    base = MemoryNetwork(3)
    seen: list[list[bytes]] = []
    for number in range(2):
        frames: list[Frame] = []
        network = without_a_key(base, party) if number else MemoryNetwork(3, session_id=bytes(32))
        network.tap = frames.append
        base = network
        placed(largest_of_families, parts, "far", network=network)
        seen.append([f.payload for f in frames if f.receiver == party])
    assert len(seen[0]) == len(seen[1]) and all(a != b for a, b in zip(*seen, strict=True) if len(a) > 8)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize("count", [2, 3, 12, 40])
def test_losses_of_masked_keys(monkeypatch: pytest.MonkeyPatch, count: int, dtype: type, place: str) -> None:
    """All pairs of two rows, in several batches, of which the first alone opens; a dry run counts the same."""
    monkeypatch.setattr("mpc_protocols.engine.bitwise.argmax.PAIRS", 500)
    rng = np.random.default_rng(count)
    values = spread(2 * count, 2 ** (np.iinfo(dtype).bits - 2) - 1, rng).reshape(2, count)
    values[1, -1] = values[1, 0]
    parts = deal_parts(values.astype(dtype), rng)

    def body(gates: TrioGates, of: Parts) -> BitShare:
        return losses(gates, MaskedKeys.of(gates.trio, of))

    results, traffic = placed(body, parts, place)
    low, high = np.triu_indices(count, 1)
    np.testing.assert_array_equal(parity(results), values[:, low] < values[:, high])
    derived = placed(body, without_content(parts), place, network=BlankNetwork(3))[1]
    assert traffic == derived


FAMILIES = st.integers(2, 4).flatmap(
    lambda width: st.lists(
        st.lists(
            st.sampled_from([-(2**30), -1, 0, 1, 5, 2**30 - 1]) | st.integers(-(2**30), 2**30 - 1),
            min_size=width,
            max_size=width,
        ),
        min_size=1,
        max_size=9,
    )
)


@given(families=FAMILIES, place=st.sampled_from(list(PLACES)), wide=st.booleans(), seed=st.integers(0, 9))
def test_the_largest_of_each_family(families: list[list[int]], place: str, wide: bool, seed: int) -> None:
    """Against the ideal: ties, extremes, fewer families than dealers; and who lost to whom."""
    values, dtype = np.array(families), np.uint64 if wide else np.uint32
    parts = deal_parts(values.astype(dtype), np.random.default_rng(seed))
    results, traffic = placed(largest_of_families, parts, place)
    found = sum(largest.own for largest, _ in results)
    np.testing.assert_array_equal(found, values.max(axis=1).astype(dtype))
    low, high = np.triu_indices(values.shape[1], 1)
    np.testing.assert_array_equal(
        parity([compared for _, compared in results]), values[:, low] < values[:, high]
    )
    derived = placed(largest_of_families, without_content(parts), place, network=BlankNetwork(3))[1]
    assert traffic == derived


@pytest.mark.parametrize(("place", "rounds"), [("near", 4), ("far", 3)])
def test_families_take_the_rounds_of_a_comparison(place: str, rounds: int) -> None:
    parts = deal_parts(np.zeros((300, 3), np.uint32), np.random.default_rng(0))
    _, traffic = placed(largest_of_families, parts, place)
    assert [of.rounds for of in traffic] == [rounds] * 3
    assert table_bytes(300, 3, 4) == 4 * 300 * 3 * 8 // 3
    most, least = (of([party.bytes_sent for party in traffic]) for of in (max, min))
    assert most - least < 100


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("holder", [0, 1, 2])
@pytest.mark.parametrize("value", [0, 1, 2**31 - 1, 2**32 - 1])
def test_messages_of_masked_keys_are_uniform(value: int, holder: int, place: str) -> None:
    """Keys of one value, all of it in one party's part: every link but for the bits that pad words."""
    own = [np.full((4992, 2), value if me == holder else 0, np.uint32) for me in range(3)]
    frames: list[Frame] = []
    placed(largest_of_families, [Parts(of) for of in own], place, tap=frames.append)
    assert_uniform(frames)
    frames.clear()

    def compared(gates: TrioGates, of: Parts) -> BitShare:
        keys = MaskedKeys.of(gates.trio, of.reshape(9984))
        return gates.less(keys[:4992], keys[4992:])

    placed(compared, [Parts(of) for of in own], place, tap=frames.append)
    assert_uniform(frames)


@pytest.mark.parametrize("planes", [2, 3, 5, 9, 17, 32, 64])
@pytest.mark.parametrize("form", ["tree", "quads", "wide"])
def test_every_form_of_a_sign(monkeypatch: pytest.MonkeyPatch, form: Any, planes: int) -> None:
    monkeypatch.setattr(shared_sign, "sign_form", lambda *_: form)
    rng, dtype = np.random.default_rng(planes), np.uint64 if planes > 32 else np.uint32
    values = spread(300, 2 ** (planes - 1) - 1, rng)
    shares = deal_ring(values.astype(dtype), rng)
    results, traffic = run_trio(lambda trio: shared_sign.shared_signs(trio, shares[trio.me], planes))
    np.testing.assert_array_equal(to_bits(parity(results), 300), values < 0)
    rounds, sent = shared_sign.sign_cost(300, planes, form)
    assert max(of.rounds for of in traffic) == rounds
    assert abs(sum(of.bytes_sent for of in traffic) - 3 * sent) < 3 * 8 * planes


@pytest.mark.parametrize("planes", [2, 3, 4, 5])
def test_wide_chunks_of_all_operands(monkeypatch: pytest.MonkeyPatch, planes: int) -> None:
    """Every a and every b, in chunks of every number."""
    a, b = np.divmod(np.arange(1 << 2 * planes, dtype=np.uint32), 1 << planes)
    top = 1 << planes - 1
    for chunks in range(1, planes):
        size, larger = divmod(planes - 1, chunks)
        runs = ((0, chunks - larger, size), ((chunks - larger) * size, larger, size + 1))
        split = tuple(run for run in runs if run[1])
        monkeypatch.setattr(masked_sign, "wide_chunks", lambda low, split=split: split)
        monkeypatch.setattr(shared_sign, "sign_form", lambda *_: "wide")
        masked_sign.steps.cache_clear()
        for dealer in range(3):
            components = {dealer: a, (dealer + 1) % 3: 0 * a, (dealer + 2) % 3: b}
            signs, _ = run_trio(partial(_signs_of, components, planes))
            assert ((to_bits(parity(signs), len(a)) == 1) == ((a + b) % (2 * top) >= top)).all()
    masked_sign.steps.cache_clear()


def _signs_of(components: dict[int, NDArray[Any]], planes: int, trio: Trio) -> BitShare:
    share = RingShare(components[trio.me], components[(trio.me + 1) % 3])
    return shared_sign.shared_signs(trio, share, planes)


def test_wide_chunks_cover_all_planes_once() -> None:
    for low in range(1, 64):
        planes = [
            first + chunk * size + place
            for first, several, size in masked_sign.wide_chunks(low)
            for chunk in range(several)
            for place in range(size)
        ]
        assert planes == list(range(low))
    assert masked_sign.wide_chunks(31) == ((0, 5, 5), (25, 1, 6)) and masked_sign.wide_rows(32) == 218


@pytest.mark.parametrize("place", PLACES)
def test_arg_max_of_parts(place: str) -> None:
    """One candidate, ties, and a public number added to what no sharing was made of."""
    for keys in ([4], [7, 7], [0, 3, 3, 1], list(range(30))):
        parts = deal_parts(np.array(keys, np.uint32), np.random.default_rng(len(keys)))
        bias = np.array([-2 * key for key in keys])

        def body(gates: TrioGates, of: Parts, bias: NDArray[Any] = bias) -> tuple[int, int]:
            return argmax(gates, of), argmax(gates, add_public(gates.trio, of, bias))

        results, _ = placed(body, parts, place)
        assert results == [(int(np.argmax(keys)), int(np.argmin(keys)))] * 3
