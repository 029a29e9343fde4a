"""The protocols between processes, over TLS sockets (see tests.trio)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mpc_protocols.psu.align import align
from mpc_protocols.psu.functionality import Alignment, ideal_align
from mpc_protocols.psu.helper import protocol as helper
from mpc_protocols.psu.identifiers.normalise import IdentifierPolicy
from mpc_protocols.wire import Wire
from runner.review.conformance.guards import Recorder
from tests.mpc_protocols.psu.merged import context_of
from tests.mpc_protocols.psu.owners import CONTEXT, assert_ideal, spec_of
from tests.trio import Trio

POLICY = IdentifierPolicy(("id",), ("text",))


def job(wire: Wire, method: str, keys: list[list[str]]) -> Any:
    """Parties 0 and 1 own, party 2 helps if it has to."""
    spec = spec_of(method)
    if wire.me == 2:
        return helper.serve(wire, spec, CONTEXT) if method == "helper" else None
    before = wire.traffic().bytes_sent
    result = align(wire, POLICY.encode([keys[wire.me]], str(wire.me)), spec, CONTEXT, Recorder())
    return result.n_rows, result.rows, result.digest, wire.traffic().bytes_sent - before


@pytest.mark.parametrize("method", ["florist", "dh2", "dh2+proofs", "helper"])
def test_over_sockets(trio: Trio, method: str) -> None:
    rng = np.random.default_rng(3)
    keys = [[f"person {i}" for i in rng.permutation(300)[:200]] for _ in range(2)]
    lists = [POLICY.encode([k], "x").entries for k in keys]
    results = [Alignment(n, rows, digest) for n, rows, digest, _ in trio.run(job, method, keys)[:2]]
    assert_ideal(lists, results, ideal_align(lists, spec_of(method)))


def merging(wire: Wire, owners: list[int], keys: list[list[str]]) -> Any:
    """Any owners, three computing parties."""
    side = owners.index(wire.me) if wire.me in owners else None
    own = None if side is None else POLICY.encode([keys[side]], str(wire.me))
    result = align(wire, own, spec_of("merge3"), context_of(owners), Recorder())
    return result.n_rows, result.rows, result.digest


def merged_over_sockets(parties: Trio, owners: list[int]) -> None:
    rng = np.random.default_rng(owners)
    keys = [[f"person {i}" for i in rng.permutation(900)[: 500 + 50 * side]] for side in range(len(owners))]
    lists = [POLICY.encode([k], "x").entries for k in keys]
    results = [Alignment(*found) for found in parties.run(merging, owners, keys)]
    assert len({(r.n_rows, r.digest) for r in results}) == 1
    assert_ideal(lists, [results[i] for i in owners], ideal_align(lists, spec_of("merge3")))


def test_merge3_over_sockets(trio: Trio) -> None:
    merged_over_sockets(trio, [0, 1])
    merged_over_sockets(trio, [2, 0, 1])


def test_merge3_with_contributors_over_sockets(trio_and_two: Trio) -> None:
    merged_over_sockets(trio_and_two, [3, 4])
    merged_over_sockets(trio_and_two, [1, 4, 0, 3, 2])
