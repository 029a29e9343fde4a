"""Rows read off sketches: the attack on schemes that publish several sketches of overlapping sets under one
hidden hash.

Under each key look at the largest value of all sketches of all columns. If in every column exactly one
value's sketch reaches it, the person with that hash has these values: they are claimed as a row. Nothing but
the sketches and the public sizes is needed (`docs/design/algorithms.md` 11).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from synth.research.vertimrf.bins import encoded_sizes
from synth.research.vertimrf.sketches import KEYS

Sketch = NDArray[np.uint8]
"""All sketches of all columns: (keys, sum of the columns' sizes)."""


def read_off(sketches: Sketch, sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """The rows claimed, one for each key that gives one. sizes: how many values are told of each column."""
    if min(sizes) < 2:
        raise ValueError("A column of a single value is not sketched.")
    largest = sketches.max(axis=1, keepdims=True)
    claimed, clear, start = [], np.ones(len(sketches), bool), 0
    for size in sizes:
        reached = sketches[:, start : start + size] == largest
        clear &= reached.sum(axis=1) == 1
        claimed.append(reached.argmax(axis=1))
        start += size
    return [tuple(row) for row in np.stack(claimed, axis=1)[clear].tolist()]


def sketches_in(message: bytes, columns: Sequence[str], sizes: Mapping[str, int]) -> Iterator[Sketch]:
    """Whatever in a message could be an owner's sketches of these columns: the end of it, if its bytes could
    be hashes.

    sizes: of the study's columns. A message too short for as many keys has none.
    """
    width = sum(encoded_sizes({name: sizes[name] for name in columns}).values())
    if width and len(message) >= KEYS * width:
        found = np.frombuffer(message, np.uint8)[-KEYS * width :].reshape(KEYS, width)
        if found.min() > 0 and found.max() <= 64:
            yield found
