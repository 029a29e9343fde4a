"""What three parties bring from bundles adds up to the clear counts, at every level and in the sharing."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.bundles.collected import CollectedCounts
from mpc_protocols.backends.bundles.layout import Layout, layout_of
from mpc_protocols.backends.replicated.marginals import CollectedMarginals
from mpc_protocols.backends.replicated.oracle import ReplicatedOracle, follow
from mpc_protocols.backends.replicated.sharing.ring import open_ring
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.errors import ProtocolAborted, StudyInvalid
from mpc_protocols.functionality import Level, StudyFacts
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.wire import Wire
from runner.review.conformance.guards import Recorder

SIZES = {"x": 4, "y": 3, "z": 2}
FACTS = StudyFacts(SIZES, "add-remove", 1, 4096, b"s" * 32)
ASKED = [("x",), ("y",), ("z",), ("x", "y"), ("y", "z")]
LAYOUT = layout_of(FACTS, ASKED)
AGREED = b"l" * 32


def cube(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 50, tuple(SIZES.values()))


def marginal(table: np.ndarray, clique: tuple[str, ...]) -> np.ndarray:
    names = list(SIZES)
    summed = table.sum(axis=tuple(i for i, name in enumerate(names) if name not in clique))
    kept = [name for name in names if name in clique]
    return summed.transpose([kept.index(name) for name in clique]).reshape(-1)


def split(total: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Three vectors that add up to it, modulo 2^32."""
    parts = [rng.integers(0, 2**32, len(total), dtype=np.uint32) for _ in range(2)]
    return [*parts, total.astype(np.uint32) - parts[0] - parts[1]]


def test_a_layout_holds_the_maximal_marginals_and_gives_all_inside_them() -> None:
    assert set(LAYOUT.cliques) == {("x", "y"), ("y", "z")} and LAYOUT.cells == 12 + 6
    table = cube(np.random.default_rng(1))
    cells = np.concatenate([marginal(table, clique) for clique in LAYOUT.cliques])
    of = LAYOUT.marginals(cells)
    for clique in [*ASKED, ("y", "x"), ("z", "y")]:
        assert np.array_equal(of([clique])[0], marginal(table, clique))
    with pytest.raises(StudyInvalid, match="x, z was asked for"):
        of([("x", "z")])


def test_layouts_of_other_marginals_or_sizes_have_other_hashes() -> None:
    hashes = {
        LAYOUT.hash,
        Layout(LAYOUT.cliques[::-1], SIZES).hash,
        Layout(LAYOUT.cliques[:1], SIZES).hash,
        Layout(LAYOUT.cliques, {**SIZES, "x": 5}).hash,
    }
    assert len(hashes) == 4


@pytest.mark.parametrize("own", list(itertools.product((False, True), repeat=3)))
def test_shared_sums_equal_the_clear_counts(own: tuple[bool, ...]) -> None:
    """own: which of the computing parties have a table of their own."""
    rng = np.random.default_rng(7)
    collected, tables = cube(rng), [cube(rng) if has else None for has in own]
    parts = split(np.concatenate([marginal(collected, clique) for clique in LAYOUT.cliques]), rng)
    everybody = collected + sum(table for table in tables if table is not None)
    level = Level("x/2", "x", (0, 0, 1, 1))
    coarse = marginal(everybody, ("x", "y")).reshape(2, 2, 3).sum(axis=1).reshape(-1)

    def party(wire: Wire) -> list[np.ndarray]:
        table = tables[wire.me]
        counts = None if table is None else lambda cliques: [marginal(table, clique) for clique in cliques]
        trio = Trio(wire)
        source = CollectedMarginals(trio, FACTS, CollectedCounts(LAYOUT, parts[wire.me], AGREED, counts))
        source.share(LAYOUT.cliques, (), b"first")
        source.share([("x/2", "y")], [level], b"second")
        return [open_ring(trio, source.shared(clique)) for clique in [*LAYOUT.cliques, ("x/2", "y")]]

    expected = [*(marginal(everybody, clique) for clique in LAYOUT.cliques), coarse]
    for opened in MemoryNetwork(3, 3).run([party] * 3):
        assert all(np.array_equal(a, b) for a, b in zip(opened, expected, strict=True))


def serve(agreed: list[bytes], sigma2: Fraction, cells: np.ndarray) -> Any:
    parts = split(cells, np.random.default_rng(3))

    def party(wire: Wire) -> Any:
        data = CollectedCounts(LAYOUT, parts[wire.me], agreed[wire.me])
        if wire.me == 1:
            with ReplicatedOracle(wire, FACTS, data, Recorder()) as oracle:
                return oracle.measure(oracle.prepare([("x",), ("y", "z")]), sigma2)
        return follow(wire, FACTS, data, Recorder())

    return MemoryNetwork(3, 3, session_id=FACTS.session).run([party] * 3)[1]


def test_the_oracle_measures_what_was_collected() -> None:
    """Noise of standard deviation 2: a value farther than 60 off has a probability below 1e-190."""
    table = cube(np.random.default_rng(5))
    cells = np.concatenate([marginal(table, clique) for clique in LAYOUT.cliques])
    x, yz = serve([AGREED] * 3, Fraction(4), cells)
    assert np.abs(x - marginal(table, ("x",))).max() < 60
    assert np.abs(yz - marginal(table, ("y", "z"))).max() < 60


def test_a_party_with_another_list_ends_the_run_before_anything_is_opened() -> None:
    with pytest.raises(ProtocolAborted):
        serve([AGREED, AGREED, b"other".ljust(32)], Fraction(4), np.zeros(LAYOUT.cells, np.int64))
