"""Slots: what goes in comes out, masked or not, at every extreme; and the widths are those of the proof."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_protocols.paillier.packing import MESSAGE_PLAINTEXTS, SECURITY_BITS, Packing

sizes = st.builds(
    Packing.of,
    st.sampled_from([1024, 2048, 3072]),
    st.integers(1, 1 << 40),
    st.integers(1, 5000),
    st.integers(1, 300),
)


@given(sizes, st.lists(st.integers(0, 2**32 - 1), max_size=120))
def test_what_is_packed_is_unpacked(packing: Packing, values: list[int]) -> None:
    cells = np.array(values, np.uint32)
    packed = packing.pack(cells)
    assert len(packed) == packing.count(len(cells))
    assert {len(plaintext) for plaintext in packed} <= {packing.plaintext_bytes}
    np.testing.assert_array_equal(packing.unpack(packed, len(cells)), cells)


@given(sizes)
def test_full_slots_with_the_largest_masks_neither_carry_nor_reach_n(packing: Packing) -> None:
    bound = (
        1 << packing.slot_bits - SECURITY_BITS - 2
    ) - 1  # at least 2^b - 1: the width has 42 bits more than b
    mask = (1 << packing.slot_bits - 1) - 1
    total = sum(bound + mask << packing.slot_bits * slot for slot in range(packing.slots))
    assert total < 1 << packing.modulus_bits - 1
    unpacked = packing.unpack([total.to_bytes(packing.plaintext_bytes, "little")], packing.slots)
    assert set(unpacked.tolist()) == {(bound + mask) % 2**32}


def test_masks_fill_half_a_slot() -> None:
    """Of 8,000 masks each bit but the highest is set in about half: within 5.6 standard deviations, false alarms 2e-6 in all."""
    packing = Packing(3072, 74)
    packed = packing.masks(-(-8000 // packing.slots))
    numbers = [int.from_bytes(plaintext, "little") for plaintext in packed]
    masks = [number >> 74 * slot & (1 << 74) - 1 for number in numbers for slot in range(packing.slots)][
        :8000
    ]
    assert all(number < 1 << 74 * packing.slots for number in numbers)
    assert max(masks) < 1 << 73 and len(set(masks)) == 8000
    for bit in range(73):
        assert abs(sum(mask >> bit & 1 for mask in masks) - 4000) < 251


def test_the_documented_width() -> None:
    packing = Packing.of(3072, 10 << 22, 160, 1)
    assert (packing.slot_bits, packing.slots, packing.count(262_144)) == (76, 40, 6554)


@given(st.integers(1, 1 << 40), st.integers(1, 5000))
def test_distances_of_all_sharings_add_up_to_a_trillionth(row_cap: int, cliques: int) -> None:
    total = sum(
        cliques * Fraction(row_cap, 1 << Packing.of(3072, row_cap, cliques, sharing).slot_bits - 1)
        for sharing in range(1, 65)
    )
    assert total <= Fraction(1, 1 << SECURITY_BITS)


@pytest.mark.parametrize("plaintexts", [1, MESSAGE_PLAINTEXTS, MESSAGE_PLAINTEXTS + 1])
def test_messages_cover_all_cells_in_order(plaintexts: int) -> None:
    packing = Packing(1024, 67)
    cells = plaintexts * packing.slots - 1
    places = list(packing.messages(cells))
    assert [cell for place in places for cell in range(place.start, place.stop)] == list(range(cells))
    assert sum(packing.count(place.stop - place.start) for place in places) == packing.count(cells)
