"""From sums modulo 2^16 of few rows to 2^32, by a lookup in place of a carry (`docs/design/vertical.md` 3).

Of a count x below 7/8 of 2^16 each party has a part, modulo 2^16. Every third cell has another dealer t; with the numbers
opened to its two evaluators under a mask that the dealer knows (`scores.masked_numbers`), x = a + b - 2^16 o, a known to
the dealer and b to both others. Let i and j be the three top bits of a and b. a + b lies from i + j to i + j + 2, in eighths
of 2^16; if i + j is 7 it lies from 7 to 9, but not below 8, since x would be it. So

    o = [i + j >= 7] = g_0 + sum over v = 1 .. 7 of [i = v] (g_v - g_0)          g_v = [j >= 7 - v]

The dealer inputs the seven [i = v] in the round of the opening, as F(k_t), which the second evaluator has, and the rest,
modulo 2^16, to the first; both know every g_v. What comes out are parts of x modulo 2^32, without another message.

Rounds: 1. Sent: 6 bytes a count and party; 2^16 o is known modulo 2^32 if o is modulo 2^16. Threat model and assumption:
`trio`; who learns what: nothing. What the first evaluator receives of [i = v] is masked by a stream whose key it lacks,
used once. A count beyond LIFTED_ROWS comes out wrong, silently: who calls sums fewer rows.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mpc_protocols.backends.replicated.scores.masked_numbers import MaskedNumbers
from mpc_protocols.backends.replicated.scores.shared_sign import layout
from mpc_protocols.backends.replicated.sharing.ring import Parts
from mpc_protocols.backends.replicated.sharing.trio import Trio

_BITS, _LOW = np.uint32(16), np.uint16(13)
_VALUES = np.arange(1, 8, dtype=np.uint16)[:, np.newaxis]
LIFTED_ROWS: Final = 7 * (1 << 13) - 1
"""Rows whose counts can be lifted, whatever they are."""


def lifted(trio: Trio, counts: Parts) -> Parts:
    """Parts modulo 2^32 of the counts up to LIFTED_ROWS of which `counts`, of shape (n,), are parts modulo 2^16.
    1 round."""
    places, mine, first, second = layout(len(counts)), trio.me, trio.left, trio.right
    opening = MaskedNumbers(trio, [counts.own[place] for place in places])
    operation = trio.operation()
    known = opening.addends[mine]
    chosen = (known >> _LOW == _VALUES).astype(np.uint16)
    trio.send(trio.right, chosen - trio.own_mask(chosen.shape, np.uint16, operation))
    opening.send()
    trio.turn()
    shapes = [(len(_VALUES), place.stop - place.start) for place in places]
    shares = {
        first: trio.receive(trio.left, shapes[first], np.uint16),
        second: trio.next_mask(shapes[second], np.uint16, operation),
    }
    opening.receive()
    parts = {mine: known.astype(np.uint32)}
    for dealer, share in shares.items():
        evaluated = opening.addends[dealer]
        top = evaluated >> _LOW
        differs = (top < 7) & (top + _VALUES >= 7)
        overflow = (share * differs).sum(axis=0, dtype=np.uint16)
        parts[dealer] = np.uint32(0) - (overflow.astype(np.uint32) << _BITS)
        if dealer == first:
            parts[dealer] += evaluated.astype(np.uint32) - ((top == 7).astype(np.uint32) << _BITS)
    return Parts(np.concatenate([parts[dealer] for dealer in range(len(places))]))
