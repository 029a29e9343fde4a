"""The largest of many keys: a tournament of fours (`docs/design/mechanisms.md` 1.5).

All pairs of n keys are n^2 / 2 comparisons. Of many keys the largest of every four is found first, on shares (`family_keys`),
then the largest of every four of these, and so on, until those that are left are compared in pairs and the largest of them is
opened (`engine.bitwise.argmax`). Which key it stems from is opened last: of all keys below it, each with what it, and those
that it is the largest of, have lost within their fours. So the two numbers that are opened are the index in two digits.

    rounds   of a level those of its comparisons (near 4, far apart 3), 5 for those left, 1 for the key below
    sent     of a level some 37 bytes a key and party with keys of 32 bits; of 20,000 keys, four levels, 1.0 MB by a party

How many levels: the least rounds * latency_bytes + bytes, alike at all parties. Of equal keys the lowest position wins, for
a four is consecutive keys. Where four do not divide them, the last key stands for those that lack, and loses every tie.

Threat model and assumption: `dealer`. Who learns what: the index, all three.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mpc_protocols.backends.replicated.scores.family_keys import largest_of_families, table_bytes
from mpc_protocols.backends.replicated.scores.masked_numbers import MaskedKeys
from mpc_protocols.backends.replicated.scores.shared_sign import sign_cost, sign_form
from mpc_protocols.engine.bitwise.argmax import NO_CANDIDATE, PAIRS, argmax_rows, loss_vectors
from mpc_protocols.engine.bitwise.bits import on_parts
from mpc_protocols.errors import ProtocolAborted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.backends.replicated.gates import TrioGates
    from mpc_protocols.backends.replicated.sharing.boolean import BitShare
    from mpc_protocols.backends.replicated.sharing.ring import Parts

WIDTH = 4
"""Keys of which the largest is found on shares. Of three and of two there are more levels; five have tables twice as large."""
COMPUTED = 3
"""What computing one comparison is worth in bytes: a quarter of a microsecond."""


def comparison_cost(pairs: int, element: int, latency_bytes: int) -> int:
    """Of so many comparisons of `element` bytes: rounds * latency_bytes, bytes sent by each party, and
    COMPUTED for each."""
    form = sign_form(min(pairs, PAIRS), 8 * element, latency_bytes)
    rounds, sent = sign_cost(pairs, 8 * element, form)
    return -(-pairs // PAIRS) * rounds * latency_bytes + sent + COMPUTED * pairs


class Tournament(NamedTuple):
    """cost: as of `comparison_cost`, without the opening of who is the largest of those that are left. levels: before those are
    compared in pairs; 0 if all are."""

    cost: int
    levels: int


@lru_cache(maxsize=1024)
def tournament(count: int, element: int, latency_bytes: int) -> Tournament:
    """The cheapest one of so many keys of `element` bytes; of more than PAIRS pairs it has a level."""
    found: list[Tournament] = []
    before = level = 0
    while True:
        pairs = count * (count - 1) // 2
        if pairs <= PAIRS:
            below = latency_bytes if level else 0
            found.append(Tournament(before + comparison_cost(pairs, element, latency_bytes) + below, level))
        if count <= WIDTH:
            return min(found)
        count, level = -(-count // WIDTH), level + 1
        before += comparison_cost(count * (WIDTH * (WIDTH - 1) // 2), element, latency_bytes)
        before += table_bytes(count, WIDTH, element)


def argmax_by_fours(gates: TrioGates, keys: Parts, levels: int) -> int:
    """Open the position of the largest of the keys, shape (n,), n > 1, read as signed ring elements, after so many levels, at
    least one. Raises `ProtocolAborted` if they open to no candidate."""
    lost: list[tuple[int, BitShare]] = []
    for _ in range(levels):
        count = len(keys)
        places = np.minimum(np.arange(-(-count // WIDTH) * WIDTH), count - 1)
        keys, compared = largest_of_families(gates, keys[places].reshape(-1, WIDTH))
        lost.append((count, loss_vectors(gates, compared, WIDTH)))
    winner = int(argmax_rows(gates, MaskedKeys.of(gates.trio, keys.reshape(1, -1)))[0])
    return _below(gates, lost, winner)


def _below(gates: TrioGates, lost: list[tuple[int, BitShare]], winner: int) -> int:
    """Open which key the winner of the last level stems from. lost: of each level, how many keys it has, and
    [key lost to another one of its four], uint8 of shape (fours, WIDTH, WIDTH - 1)."""
    stems, losses = np.array([winner]), None
    for count, within in reversed(lost):
        of_fours = within[stems].reshape(len(stems) * WIDTH, WIDTH - 1)
        losses = of_fours if losses is None else on_parts(_with_losses, losses, of_fours)
        stems = np.minimum(np.repeat(WIDTH * stems, WIDTH) + np.tile(np.arange(WIDTH), len(stems)), count - 1)
    assert losses is not None
    [is_winner] = gates.zero_rows((1, len(stems)), [(slice(None), losses.reshape(1, *losses.shape))])
    if not is_winner.any():
        raise ProtocolAborted(NO_CANDIDATE)
    return int(stems[is_winner.argmax()])


def _with_losses(above: NDArray[Any], own: NDArray[Any]) -> NDArray[Any]:
    """Losses of every key, behind those of the one that it is one of four below: (keys, losses)."""
    return np.concatenate((np.repeat(above, WIDTH, axis=0), own), axis=1)
