"""`encoder = "fo"`: every code of every row as a randomised response (VertiMRF's frequency oracle), with
accounting that holds.

    a column of k values (bins, above 4)     n responses at rho_j, equal for all columns         `mechanisms.randomised_response`
    on the wire                              bit planes of the responses: ceil(n / 8) bytes for each of the bits of k - 1

The counts of two columns are estimated from their responses by the inverse of the transition matrix,
unbiased. Claim: everything sent is (epsilon, delta)-DP under "replace", also towards the leader and the other
owners; who is in the data is public.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Event
from mpc_protocols.mechanisms.randomised_response import Response, cell_variance, unmixed
from synth.research.vertimrf.bins import encoded_sizes
from synth.research.vertimrf.joint import Estimate
from synth.research.vertimrf.plan import RESPONSES

if TYPE_CHECKING:
    from synth.research.vertimrf.plan import EncodedPlan


class Responses:
    """The encoder of a plan. randomness: the owner's own."""

    keyed = False

    def __init__(self, plan: EncodedPlan, randomness: Callable[[int], bytes] = secrets.token_bytes) -> None:
        self._plan, self._randomness = plan, randomness
        self._sizes = encoded_sizes(plan.domain.sizes)
        each = plan.encoding_rho / max(1, len(self._sizes))
        self.responses = {column: Response.at(size, each) for column, size in self._sizes.items()}

    def events(self) -> tuple[Event, ...]:
        """One for each owner that has something to tell."""
        return tuple(
            Event(
                RESPONSES,
                sum((self.responses[column].rho for column in told), Fraction(0)),
                Fraction(0),
                {"columns": told, "keep": [str(self.responses[c].keep) for c in told]},
            )
            for columns in self._plan.split
            if (told := [column for column in columns if column in self._sizes])
        )

    def length(self, columns: Sequence[str], rows: int) -> int:
        """Of an owner's encoding, exactly."""
        return sum(_planes(self._sizes[name]) * -(-rows // 8) for name in columns if name in self._sizes)

    def encode(self, codes: Mapping[str, NDArray[Any]], key: bytes) -> bytes:
        """The responses of an owner's columns. codes: (n,) each, below `encoded_sizes`."""
        found = []
        for column in (name for name in codes if name in self._sizes):
            told = self.responses[column].perturb(codes[column], self._randomness)
            found += [np.packbits((told >> bit) & 1).tobytes() for bit in range(_planes(self._sizes[column]))]
        return b"".join(found)

    def estimates(
        self, split: Sequence[Sequence[str]], encodings: Sequence[memoryview], rows: int
    ) -> list[Estimate]:
        """Every pair across owners. Raises ValueError for a response that its column does not have."""
        told = [
            self._decode(columns, payload, rows) for columns, payload in zip(split, encodings, strict=True)
        ]
        found = []
        for first, second in combinations(told, 2):
            for a, x in first.items():
                for b, y in second.items():
                    pair = self.responses[a], self.responses[b]
                    shape = self._sizes[a], self._sizes[b]
                    cells = np.bincount(x.astype(np.intp) * shape[1] + y, minlength=shape[0] * shape[1])
                    counts = unmixed(cells.reshape(shape), pair)
                    found.append(Estimate((a, b), counts, cell_variance(rows, pair)))
        return found

    def _decode(self, columns: Sequence[str], payload: memoryview, rows: int) -> dict[str, NDArray[np.uint8]]:
        width, found, at = -(-rows // 8), dict[str, NDArray[np.uint8]](), 0
        for column in (name for name in columns if name in self._sizes):
            codes = np.zeros(rows, np.uint8)
            for bit in range(_planes(self._sizes[column])):
                plane = np.frombuffer(payload[at : at + width], np.uint8)
                codes |= np.unpackbits(plane, count=rows) << bit
                at += width
            if rows and int(codes.max()) >= self._sizes[column]:
                raise ValueError("A response is a value that its column does not have.")
            found[column] = codes
        return found


def _planes(size: int) -> int:
    return (size - 1).bit_length()
