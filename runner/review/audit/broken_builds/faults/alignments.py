"""Faults of alignments."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np

from mpc_protocols.psu.groups.hashing import names
from mpc_protocols.psu.helper import protocol
from runner.review.audit.broken_builds.faults.mutation import Mutation, Patch


def _plain_hashes() -> Patch:
    """The helper gets hashes that anybody can compute of a guess."""
    return mock.patch.object(protocol, "names", lambda key, *given: names(bytes(32), *given))


def _rows_by_hash() -> Patch:
    """Rows in the order of plain hashes: the same in every run."""

    def permutation(count: int, *given: Any) -> Any:
        return np.arange(count)

    return mock.patch.multiple(
        protocol, names=lambda key, *given: names(bytes(32), *given), permutation=permutation
    )


MUTATIONS = (
    Mutation("P3", "identifiers under a hash without a key", ("P.masks",), _plain_hashes),
    Mutation("P4", "rows that are the same in every run", ("P.order",), _rows_by_hash),
)
