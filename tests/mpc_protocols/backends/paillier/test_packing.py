"""Slots: what goes in comes out, masked or not, at every extreme, carries included; and the sizes are those
of the proof."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mpc_protocols.backends.paillier.packing import MESSAGE_PLAINTEXTS, SECURITY_BITS, Packing

HALF, WHOLE = 1 << 31, 1 << 32
BITS = 512
PACKING = Packing.of(BITS, 3, 1)
sizes = st.builds(Packing.of, st.sampled_from([1024, 2048, 3072]), st.integers(1, 5000), st.integers(1, 300))
EDGES = st.sampled_from([0, 1, HALF - 1, HALF, HALF + 1, WHOLE - 2, WHOLE - 1]) | st.integers(0, WHOLE - 1)
masks = st.lists(EDGES, min_size=PACKING.slots, max_size=PACKING.slots)
above = st.integers(0, (1 << BITS - 2 - 32 * PACKING.slots) - 1)
"""What a mask has above the slots."""


def number(slots: list[int], above: int = 0) -> int:
    return sum(value << 32 * slot for slot, value in enumerate([*slots, above]))


def slots_of(packing: Packing, value: int) -> NDArray[np.uint32]:
    return packing.unpack([value.to_bytes(packing.modulus_bits // 8, "little")], packing.slots).astype(
        np.uint32
    )


def opened(packing: Packing, total: int, mask: int) -> NDArray[np.uint32]:
    """The cells that both shares add up to, of a decrypted sum and its mask."""
    drawn, decrypted = slots_of(packing, mask), slots_of(packing, total)
    cells = decrypted - drawn
    packing.take_off(cells, drawn >> np.uint32(31) & ~decrypted >> np.uint32(31))
    return cells


@given(sizes, st.lists(st.integers(0, WHOLE - 1), max_size=220))
def test_what_is_packed_is_unpacked(packing: Packing, values: list[int]) -> None:
    cells = np.array(values, np.uint32)
    packed = packing.pack(cells)
    assert len(packed) == packing.count(len(cells))
    assert {len(plaintext) for plaintext in packed} <= {packing.plaintext_bytes}
    np.testing.assert_array_equal(packing.unpack(packed, len(cells)), cells)


@given(
    st.lists(EDGES.filter(lambda value: value < HALF), min_size=PACKING.slots, max_size=PACKING.slots),
    masks,
    above,
)
def test_whatever_the_mask_cells_come_out(counts: list[int], slots: list[int], above: int) -> None:
    total = number(counts) + number(slots, above)
    assert total < 1 << BITS - 1
    assert opened(PACKING, total, number(slots, above)).tolist() == counts


@pytest.mark.parametrize("carried", range(PACKING.slots))
def test_a_carry_runs_as_far_as_it_must(carried: int) -> None:
    """Masks of ones up to a slot, and a count of 1 in the lowest: each of them carries, and y = 0 is below r."""
    slots = [WHOLE - 1] * (carried + 1) + [0] * (PACKING.slots - carried - 1)
    counts = [1] + [0] * (PACKING.slots - 1)
    assert opened(PACKING, number(counts) + number(slots), number(slots)).tolist() == counts


def test_sums_of_several_plaintexts_keep_their_carries_apart() -> None:
    """A carry out of the uppermost slot is nobody's."""
    cells = np.zeros(2 * PACKING.slots + 1, np.uint32)
    PACKING.take_off(cells, np.ones(len(cells), np.uint32))
    first = [0, PACKING.slots, 2 * PACKING.slots]
    assert [place for place, value in enumerate(cells) if not value] == first
    assert set(np.delete(cells, first).tolist()) == {WHOLE - 1}


@given(st.integers(0, (1 << BITS) - 2), masks, above, st.integers(0, PACKING.slots - 1))
def test_whatever_a_contributor_sends_a_record_moves_its_cell_by_one(
    lie: int, slots: list[int], above: int, touched: int
) -> None:
    """And no other, unless what is decrypted is at one of two places, then the next ones, by one."""
    n = (1 << BITS) - 1
    mask = number(slots, above)
    before, after = ((lie + record + mask) % n for record in (0, 1 << 32 * touched))
    if after < before:
        return  # the record decides about the wrap at n
    moved = opened(PACKING, after, mask) - opened(PACKING, before, mask)
    assert moved[touched] == 1 and not moved[:touched].any() and set(moved.tolist()) <= {0, 1}
    for slot in range(touched, PACKING.slots - 1):
        at = slots_of(PACKING, before)[slot]
        if at not in (HALF - 1, WHOLE - 1):
            assert not moved[slot + 1 :].any()
            break


@pytest.mark.parametrize("at", [HALF - 1, WHOLE - 1])
def test_of_all_masks_of_a_slot_two_let_a_record_move_the_next_cell(at: int) -> None:
    """At y = 2^31 - 1 the one whose uppermost bit is 1, at 2^32 - 1 the one where it is 0."""
    for upper in (0, 1):
        drawn = HALF * upper + 5
        lie = (at - drawn) % WHOLE
        mask = number([drawn, 7])
        moved = opened(PACKING, lie + 1 + mask, mask) - opened(PACKING, lie + mask, mask)
        assert moved.tolist()[:3] == [1, int(upper == (at == HALF - 1)), 0]


def test_masks_are_uniform() -> None:
    """Of 8,000 masks each bit is set in about half: within 7.1 standard deviations, false alarms 6e-10 in
    all; none above."""
    packed = PACKING.masks(8000)
    numbers = [int.from_bytes(mask, "little") for mask in packed]
    assert max(numbers) < 1 << BITS - 2 and len(set(numbers)) == 8000
    bits = np.unpackbits(
        np.frombuffer(b"".join(packed), np.uint8).reshape(8000, -1), axis=1, bitorder="little"
    )
    assert (np.abs(bits[:, : BITS - 2].sum(axis=0, dtype=np.int64) - 4000) < 318).all()


@pytest.mark.parametrize("bits", [1022, 1023, 1024, 1025])
def test_masks_have_all_bits_of_their_range(bits: int) -> None:
    """The uppermost bit of 60 masks: none is ever above, and all are 0 with a chance of 2^-60."""
    numbers = [int.from_bytes(mask, "little") for mask in Packing.of(bits, 1, 1).masks(60)]
    assert max(numbers).bit_length() == bits - 2


def test_the_documented_sizes() -> None:
    packing = Packing.of(3072, 64, 1)
    assert (packing.slots, packing.count(262_144)) == (94, 2789)
    assert Packing.of(3072, 160, 8).slots == 94 and Packing.of(3072, 5000, 1000).slots == 93


@given(st.integers(1, 5000))
def test_distances_of_all_sharings_add_up_to_a_trillionth(cliques: int) -> None:
    """Sharing s of C cliques is within C 2^(32 K) / 2^(|n| - 2) of its masks."""
    total = sum(
        Fraction(cliques << 32 * Packing.of(3072, cliques, sharing).slots, 1 << 3070)
        for sharing in range(1, 65)
    )
    assert total <= Fraction(1, 1 << SECURITY_BITS)


@given(sizes)
def test_a_sum_with_its_mask_stays_below_n(packing: Packing) -> None:
    counts, mask = number([HALF - 1] * packing.slots), (1 << packing.modulus_bits - 2) - 1
    assert counts + mask < 1 << packing.modulus_bits - 1


@pytest.mark.parametrize("plaintexts", [1, MESSAGE_PLAINTEXTS, MESSAGE_PLAINTEXTS + 1])
def test_messages_cover_all_cells_in_order(plaintexts: int) -> None:
    packing = Packing.of(1024, 9, 1)
    cells = plaintexts * packing.slots - 1
    places = list(packing.messages(cells))
    assert [cell for place in places for cell in range(place.start, place.stop)] == list(range(cells))
    assert sum(packing.count(place.stop - place.start) for place in places) == packing.count(cells)
