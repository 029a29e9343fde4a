"""Numbers opened to two evaluators under a mask that their dealer knows, so that what depends on the mask is dealt in
the same round (`docs/design/engine.md` 2.10).

A comparison with a dealer (`dealer`) needs x = a + b, a known to the dealer t and b to both evaluators. Of a sharing
it has them, but a sharing of what was only summed (`sharing.ring.Parts`) takes a round of its own, after which
the dealer learns a and may share its bits. Here a is fixed beforehand instead: with x = x_t + x_{t+1} + x_{t+2},
party i holding x_i,

    a = x_t + F(k_t) + F(k_{t+1})                                             at the dealer, without a message
    x_{t+1} - F(k_{t+1})   goes to t+2,     x_{t+2} - F(k_t)   goes to t+1     b is the sum of the two

    rounds: 1, that in which the bits of a are dealt; sent: two elements a number and dealer

Who learns what: nothing. The dealer receives no message. The first evaluator t+1 lacks k_t and the second t+2
lacks k_{t+1}, so what each receives is uniform to it, and with it b. Every stream belongs to one dealer's numbers and is
used once; a number that several dealers deal for has another mask with each. Threat model and assumption: `trio`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.scores.dealer import DEALERS
from mpc_protocols.backends.replicated.sharing.ring import Parts
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt


class MaskedNumbers:
    """The numbers of each dealer at one party, before and after they are opened to their evaluators."""

    def __init__(self, trio: Trio, parts: Sequence[Elements]) -> None:
        """parts: of the numbers of each dealer, this party's, of any shapes."""
        self._trio = trio
        mine, first, second = trio.me, trio.left, trio.right
        operations = [trio.operation() for _ in range(DEALERS)]
        own, left, right = (parts[t] for t in (mine, first, second))
        dtype = own.dtype.type
        self.addends = list(parts)
        """By dealer: a, once it is opened b. Those of dealers that this party evaluates for are undefined before."""
        self.addends[mine] = own + trio.own_mask(own.shape, dtype, operations[mine])
        self.addends[mine] += trio.next_mask(own.shape, dtype, operations[mine])
        self._to_right = left - trio.own_mask(left.shape, dtype, operations[first])
        self._to_left = right - trio.next_mask(right.shape, dtype, operations[second])
        self.is_open = False

    @property
    def count(self) -> int:
        """Of all dealers."""
        return sum(addends.size for addends in self.addends)

    def send(self) -> None:
        """Open what the others lack; in the same step as what is dealt."""
        self._trio.send(self._trio.right, self._to_right)
        self._trio.send(self._trio.left, self._to_left)

    def receive(self) -> None:
        """The other half of `send`."""
        trio = self._trio
        for dealer, sent, other in (
            (trio.left, self._to_right, trio.right),
            (trio.right, self._to_left, trio.left),
        ):
            self.addends[dealer] = sent + trio.receive(other, sent.shape, sent.dtype.type)
        self.is_open = True


class MaskedKeys:
    """An array of numbers that all three dealers deal for, as the operands of comparisons take it."""

    def __init__(self, numbers: MaskedNumbers, positions: NDArray[np.intp]) -> None:
        """positions: in each dealer's numbers, which are alike."""
        self.numbers, self.positions = numbers, positions

    @classmethod
    def of(cls, trio: Trio, keys: Parts) -> MaskedKeys:
        """Of parts of any shape."""
        flat = keys.own.reshape(-1)
        return cls(MaskedNumbers(trio, [flat] * DEALERS), np.arange(len(flat)).reshape(keys.shape))

    @property
    def dtype(self) -> UInt:
        return self.numbers.addends[0].dtype.type

    @property
    def shape(self) -> tuple[int, ...]:
        return self.positions.shape

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, index: Any) -> MaskedKeys:
        return MaskedKeys(self.numbers, self.positions[index])

    def reshape(self, *shape: int) -> MaskedKeys:
        return MaskedKeys(self.numbers, self.positions.reshape(shape))
