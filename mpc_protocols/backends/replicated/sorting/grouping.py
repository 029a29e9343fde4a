"""Groups of equal neighbours in a sorted list of shared words: who repeats whom, and one name for each group
(`docs/design/psu.md` 2.2, step 3).

    repeats   r_t = [word_t = word_{t-1}], bit by bit but for public positions to ignore (a label in the word); r_0 = 0
    spread    name_t = the name of the first of t's group: name_t <- r_t ? name_{t-d} : name_t and r_t <- r_t & r_{t-d}
              for d = 1, 2, 4, .. until d reaches the longest group possible

Flags are shared words of ones or zeros, as a mask needs them; what travels of a flag is one bit.

    repeats   6 rounds a batch, 7.9 bytes a word          spread   1 round a batch and doubling, 8 bytes a word (and a bit)

Threat model, masking and assumption: `trio`. The number of words and the longest group are public; nothing is
opened.
"""

from __future__ import annotations

import numpy as np

from mpc_protocols.backends.replicated.sharing.bit_gates import TrioBitGates
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sorting.comparison import equal
from mpc_protocols.engine.bitwise.bits import concatenate
from mpc_protocols.engine.bitwise.bitslice import Words

BATCH = 1 << 17
"""Words of one batch."""


def repeats(gates: TrioBitGates, words: BitShare, ignored: int = 0, limit: int = BATCH) -> BitShare:
    """Shape (n,): words of ones where a word equals the one before it but for the bits set in `ignored`, else
    of zeros."""
    flags = [BitShare(*(np.zeros(min(1, len(words)), np.uint64) for _ in range(2)))]
    for start in range(1, len(words), limit):
        stop = min(start + limit, len(words))
        flags.append(
            equal(gates, filled(words[start:stop]), filled(words[start - 1 : stop - 1]), ignored)[
                : stop - start
            ]
        )
    return concatenate(flags)


def spread(
    gates: TrioBitGates, names: BitShare, repeated: BitShare, longest: int, limit: int = BATCH
) -> BitShare:
    """Shape (n,) each: every name replaced by that of the first of its group, of at most `longest` members."""
    own, following = names.own.copy(), names.next.copy()
    flags, distance = repeated, 1
    while distance < min(longest, len(names)):
        for stop in range(len(own), distance, -limit):  # from the end: what lies before is still as it was
            here = slice(max(distance, stop - limit), stop)
            before = slice(here.start - distance, here.stop - distance)
            change = gates.and_bits(
                flags[here], BitShare(own[here] ^ own[before], following[here] ^ following[before])
            )
            own[here] ^= change.own
            following[here] ^= change.next
        if 2 * distance < min(longest, len(names)):
            flags = _and_with_earlier(gates, flags, distance)
        distance *= 2
    return BitShare(own, following)


def _and_with_earlier(gates: TrioBitGates, flags: BitShare, distance: int) -> BitShare:
    """Flags AND the flags `distance` places before; none that near the beginning. 1 round, a bit a flag."""
    count = len(flags) - distance
    z = gates.and_bits(packed(flags[distance:]), packed(flags[:count]))
    return BitShare(
        *(np.concatenate((np.zeros(distance, np.uint64), _masks(part, count))) for part in (z.own, z.next))
    )


def packed(flags: BitShare) -> BitShare:
    """Words of ones or zeros to bits, in whole words."""
    size = -(-len(flags) // 64) * 8

    def component(words: Words) -> Words:
        bits = np.packbits((words & np.uint64(1)).astype(np.uint8))
        out = np.zeros_like(bits, shape=size)
        out[: len(bits)] = bits
        return out.view(np.uint64)

    return BitShare(component(flags.own), component(flags.next))


def _masks(bits: Words, count: int) -> Words:
    """The inverse of `packed` for one component."""
    return -np.unpackbits(bits.view(np.uint8))[:count].astype(np.uint64)


def filled(words: BitShare) -> BitShare:
    """Zeros after the end, up to a multiple of 64."""
    missing = -len(words) % 64
    if not missing:
        return words
    return BitShare(
        np.concatenate((words.own, np.zeros(missing, np.uint64))),
        np.concatenate((words.next, np.zeros(missing, np.uint64))),
    )
