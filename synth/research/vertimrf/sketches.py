"""`encoder = "fm"`: Flajolet-Martin sketches as VertiMRF prints them (Zhao and others, VLDB 2024). THERE IS
NO PRIVACY CLAIM.

    keys       t = 2,000 hash keys, common to all owners and columns, unknown to the leader if it owns nothing
    hash       H_h(row) geometric, P(H > a) = 2^-a: leading zeros of a keyed stream, at most 54
    sketch     of the rows with value v of a column: the largest of their hashes, of k_p geometric phantoms, and a_min
               eps' = eps_1 / (4 sqrt(t d ln(1/delta))),  eps_1 = 0.4 epsilon,  d columns
               k_p = ceil(1 / (e^eps' - 1)),  a_min = ceil(log2(1 / (1 - e^-eps')))
    estimate   of a cell: rows less the size of the union of the complements, whose maxima are maxima of sketches; its size by
               maximum likelihood, P(max of k <= a) = (1 - 2^-a)^k, floored at a_min, less the phantoms

The printed theorem treats sketches that share one hidden hash as independent. They are not: where the largest
hash of all rows beats all phantoms, every column has one value whose sketch equals the maximum, and these
values are that person's row. About t n / (n + k_p sum u) rows can be read so (`readable_rows`,
`docs/design/algorithms.md` 11); `cosynth audit B` does it.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from mpc_protocols.functionality import Event
from synth.research.vertimrf.bins import encoded_sizes
from synth.research.vertimrf.joint import Estimate

if TYPE_CHECKING:
    from synth.research.vertimrf.plan import EncodedPlan

KEYS = 2000
ENCODING_SHARE = 0.4
"""Of epsilon, as in the paper's experiments."""
HASH_BITS = 53
MAX_HASH = HASH_BITS + 1
BLOCK = 16
"""Keys at a time."""
STANDARD_DEVIATION = 1.03
"""Of the estimated size of a union, relative, times sqrt(t)."""
_STEPS = 128  # of the likelihood's grid, for each factor of two


class Sketches:
    """The encoder of a plan. phantoms: k_p. floor: a_min."""

    keyed = True

    def __init__(self, plan: EncodedPlan, randomness: Callable[[int], bytes] = secrets.token_bytes) -> None:
        self._plan, self._randomness = plan, randomness
        self._sizes = encoded_sizes(plan.domain.sizes)
        budget = plan.budget
        encoding = ENCODING_SHARE * budget.epsilon
        each = encoding / (4 * math.sqrt(KEYS * max(1, len(plan.domain)) * math.log(1 / budget.delta)))
        self.phantoms = math.ceil(1 / math.expm1(each))
        self.floor = math.ceil(math.log2(-1 / math.expm1(-each)))

    def events(self) -> tuple[Event, ...]:
        """What the printed theorem would have them cost is taken from the budget; it does not hold, and the
        events say so."""
        owners = [told for columns in self._plan.split if (told := [c for c in columns if c in self._sizes])]
        return tuple(
            Event(
                "sketches",
                self._plan.encoding_rho / len(owners),
                Fraction(0),
                {"columns": told, "keys": KEYS, "phantoms": self.phantoms, "claim": "none"},
            )
            for told in owners
        )

    def readable_rows(self, rows: int) -> float:
        """The mean number of keys under which a person's hash is the largest of all, phantoms included: rows
        that can be read."""
        return KEYS * rows / max(1, rows + self.phantoms * sum(self._sizes.values()))

    def length(self, columns: Sequence[str], rows: int) -> int:
        """Of an owner's encoding, exactly."""
        return KEYS * sum(self._sizes[name] for name in columns if name in self._sizes)

    def encode(self, codes: Mapping[str, NDArray[Any]], key: bytes) -> bytes:
        """The sketches of an owner's columns: uint8 (t, sum of its sizes). codes: (n,) each. key: the
        owners'."""
        told = [name for name in codes if name in self._sizes]
        width = sum(self._sizes[name] for name in told)
        found = np.full((KEYS, width), self.floor, np.uint8)
        rows = len(next(iter(codes.values())))
        layout = _layout([(codes[name], self._sizes[name]) for name in told])
        for start in range(0, KEYS if rows else 0, BLOCK):
            stop = min(start + BLOCK, KEYS)
            hashes = np.stack([row_hashes(key, number, rows) for number in range(start, stop)])
            for order, starts, places in layout:
                largest = np.maximum.reduceat(hashes[:, order], starts, axis=1)
                found[start:stop, places] = np.maximum(found[start:stop, places], largest)
        return np.maximum(found, self._phantom_maxima(found.shape)).tobytes()

    def estimates(
        self, split: Sequence[Sequence[str]], encodings: Sequence[memoryview], rows: int
    ) -> list[Estimate]:
        """Every pair across owners. Raises ValueError for a sketch that no hash gives."""
        complements: list[dict[str, NDArray[np.uint8]]] = []
        for columns, payload in zip(split, encodings, strict=True):
            told = [name for name in columns if name in self._sizes]
            sketch = np.frombuffer(payload, np.uint8).reshape(KEYS, -1)
            if sketch.size and not (
                self.floor <= int(sketch.min()) and int(sketch.max()) <= max(MAX_HASH, self.floor)
            ):
                raise ValueError("A sketch is larger than any hash, or below its floor.")
            ends = np.cumsum([self._sizes[name] for name in told]).astype(int)
            parts = np.split(sketch, ends[:-1], axis=1) if told else []
            complements.append(
                {name: _largest_of_others(part) for name, part in zip(told, parts, strict=True)}
            )
        found = []
        for first, second in combinations(complements, 2):
            for a, x in first.items():
                for b, y in second.items():
                    found.append(self._pair((a, b), x, y, rows))
        return found

    def _pair(
        self, columns: tuple[str, str], x: NDArray[np.uint8], y: NDArray[np.uint8], rows: int
    ) -> Estimate:
        maxima = np.maximum(x[:, :, None], y[:, None, :]).reshape(KEYS, -1)
        sizes = union_sizes(maxima.T, self.floor)
        shape = x.shape[1], y.shape[1]
        counts = rows - (sizes - self.phantoms * (sum(shape) - 2))
        variance = float(np.square(STANDARD_DEVIATION * sizes).mean()) / KEYS
        return Estimate(columns, np.maximum(counts, 0.0).reshape(shape), variance)

    def _phantom_maxima(self, shape: tuple[int, int]) -> NDArray[np.uint8]:
        """The largest of k_p geometric variables, by inversion."""
        words = np.frombuffer(self._randomness(8 * shape[0] * shape[1]), "<u8")
        uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**HASH_BITS
        largest = np.ceil(-np.log2(-np.expm1(np.log(uniform) / self.phantoms)))
        return np.clip(largest, 1, MAX_HASH).astype(np.uint8).reshape(shape)


def row_hashes(key: bytes, number: int, rows: int) -> NDArray[np.uint8]:
    """H of each row under one of the keys: 1 plus the leading zeros of 53 bits, P(H > a) = 2^-a."""
    stream = hashlib.sha256(key + b"sketch" + number.to_bytes(4, "big")).digest()[:16]
    encryptor = Cipher(algorithms.AES(stream), modes.CTR(bytes(16))).encryptor()
    words = np.frombuffer(encryptor.update(bytes(8 * rows)), "<u8") >> np.uint64(11)
    return (MAX_HASH - np.frexp(words.astype(np.float64))[1]).astype(np.uint8)


def union_sizes(maxima: NDArray[np.uint8], floor: int) -> NDArray[np.float64]:
    """How many geometric variables had these maxima, by maximum likelihood: (cells, t) -> (cells,), on a
    grid, refined by a parabola."""
    values = np.arange(floor, MAX_HASH + 1)
    table = np.stack([(maxima == value).sum(axis=1) for value in values], axis=1).astype(np.float64)
    exponents = np.arange(0.0, 40.0, 1 / _STEPS)
    sizes = np.exp2(exponents)
    below = np.log1p(-np.exp2(-values.astype(np.float64)))
    likelihood = below[:, None] * sizes
    likelihood[1:] += np.log(-np.expm1((below[:-1] - below[1:])[:, None] * sizes))
    fit = table @ np.maximum(likelihood, -1e12)
    best = np.clip(fit.argmax(axis=1), 1, len(sizes) - 2)
    each = np.arange(len(best))
    left, middle, right = fit[each, best - 1], fit[each, best], fit[each, best + 1]
    bend = left - 2 * middle + right
    shift = np.where(bend < 0, (left - right) / np.where(bend < 0, 2 * bend, 1), 0.0)
    found: NDArray[np.float64] = np.exp2(exponents[best] + np.clip(shift, -1, 1) / _STEPS)
    return found


def _largest_of_others(sketch: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Per key and value the maximum over all other values: the sketch of the rows without the value."""
    return np.stack(
        [np.delete(sketch, value, axis=1).max(axis=1) for value in range(sketch.shape[1])], axis=1
    )


def _layout(
    columns: Sequence[tuple[NDArray[Any], int]],
) -> list[tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]]:
    """Of each column: rows in the order of its codes, where each code that occurs begins, and its place among
    all sketches."""
    found, before = [], 0
    for codes, size in columns:
        order = np.argsort(codes, kind="stable")
        present, starts = np.unique(codes[order], return_index=True)
        found.append((order, starts.astype(np.intp), before + present.astype(np.intp)))
        before += size
    return found
