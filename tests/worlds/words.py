"""Uniform words, from the operating system."""

from __future__ import annotations

import secrets

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]


def random_words(*shape: int) -> Words:
    """Of this shape."""
    return np.frombuffer(secrets.token_bytes(8 * int(np.prod(shape))), np.uint64).reshape(shape)
