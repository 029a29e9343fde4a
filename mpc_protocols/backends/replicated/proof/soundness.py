"""The chance that a deviation passes all proofs of a run (`docs/design/malicious.md` 4.4, 9.2, 9.3)."""

from __future__ import annotations

from math import log2
from typing import Final

PROVERS: Final = 3
LG_BATCH: Final = -58
"""Of one prover's proof of a batch: gates below 52 / 2^64, products of matrices below 10 / 2^64, words 1 /
(2^64 - 1)."""


def lg_chance(batches: int) -> float:
    """lg of a bound on the chance that one of so many batches passes with something wrong in it; -inf without
    any."""
    return log2(PROVERS * batches) + LG_BATCH if batches else float("-inf")
