"""What `dh2` costs each owner, exactly, as a function of public sizes: the protocol's messages and operations
replayed."""

from __future__ import annotations

from mpc_protocols.psu.dh2.equality import HASH_BYTES
from mpc_protocols.psu.dh2.owner import COMMITMENT_BYTES, KEYS
from mpc_protocols.psu.dh2.traps import POSITION_BYTES, SEED_BYTES, TRAPS
from mpc_protocols.psu.groups.hashing import NAME_BYTES
from mpc_protocols.psu.two_owners.cost import Cost, block_count
from mpc_protocols.psu.two_owners.exchange import COUNT_BYTES


def dh2_cost(
    first: int,
    second: int,
    union: int,
    *,
    proofs: bool = False,
    pool: int = 0,
    traps: int = TRAPS,
    element_bytes: int = 32,
    scalar_bytes: int = 32,
) -> Cost:
    """For lists of `first` and `second` entries, `pool` of them the owner's full pool, with `union` different
    ones in all."""
    total = Cost()
    sizes, common = (first, second), first + second - union
    listed = [size + traps for size in sizes]
    proof = 2 * scalar_bytes
    for side in (0, 1):
        mine, theirs, other = listed[side], listed[1 - side], sizes[1 - side]
        total.generated[side] = KEYS[side] + other - common
        total.hashes[side] = (
            mine + theirs + 2 * (pool + traps) + traps + 1
        )  # lists, tags; shown, by both; traps' tags; equality
        # own list; tags and their entries of O or queries; names given, of the other's records and of own
        # ones; equality
        total.powers[side] = mine + 2 * theirs + other + sizes[side] + 2
        opened_blocks = block_count(pool + traps)
        total.powers[side] += _proving(pool + traps, opened_blocks) + _checking(pool + traps, opened_blocks)
        total.powers[side] += traps + _proving(traps) + _checking(traps)  # tags of traps, by both
    total.powers[0] += (
        first + traps + _proving(traps) + traps
    )  # answers; entries of B's traps; queries for own ones
    total.powers[1] += first + _checking(traps)  # answers; entries of own traps
    if proofs:
        total.powers[0] += _proving(first, block_count(first))
        total.powers[1] += _checking(first, block_count(first))
    total.send(0, 1, COUNT_BYTES + COMMITMENT_BYTES + KEYS[0] * element_bytes)
    total.send(1, 0, COUNT_BYTES + COMMITMENT_BYTES + KEYS[1] * element_bytes)
    total.receive(0, 1)
    total.receive(1, 0)
    total.stream((listed[0], listed[1]), element_bytes)
    total.stream((listed[1], listed[0]), (NAME_BYTES, element_bytes))
    total.stream((pool + traps, pool + traps), POSITION_BYTES, SEED_BYTES + proof)
    total.send(0, 1, traps * (2 * element_bytes + POSITION_BYTES) + 2 * proof)
    total.send(1, 0, traps * (element_bytes + scalar_bytes + POSITION_BYTES) + proof)
    total.receive(0, 1)
    total.receive(1, 0)
    total.stream((first, 0), element_bytes, proof if proofs else 0)
    total.stream((0, -(-second // 8)), 1)
    total.stream((second, first), element_bytes)
    total.swap(element_bytes)
    total.swap(HASH_BYTES)
    return total


def _proving(count: int, proofs: int = 1) -> int:
    """Exponentiations of `dleq.prove` for so many elements in so many proofs."""
    return count + 3 * proofs


def _checking(count: int, proofs: int = 1) -> int:
    """Exponentiations of `dleq.verify`."""
    return 2 * count + 4 * proofs
