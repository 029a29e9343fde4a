"""Shared matrices: every kind of input and product against plaintext, what travels is uniform, who holds
what."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.backends.replicated.vertical import planner
from mpc_protocols.backends.replicated.vertical.matrices import (
    Matrix,
    deal_block,
    input_rows,
    multiply,
    product,
    receive_block,
    receive_mask_seeds,
    send_mask_seeds,
    side_by_side,
)
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.vertical.partition import OwnRows
from mpc_protocols.wire import Wire
from tests.mpc_protocols.backends.replicated.vertical.owners import Population, partition, shared_marginals

RINGS = [np.uint16, np.uint32]
ROWS, WIDTHS = 37, (3, 5)


def block(owner: int, width: int, dtype: type) -> NDArray[Any]:
    return (np.random.default_rng(owner).random((ROWS, width)) < 0.4).astype(dtype)


def together(owners: tuple[int, int], dtype: type, body: Any, tap: Any = None) -> list[Any]:
    """Input of two owners' blocks, computing or not, then body(trio, a, b) at the three parties."""
    parties = max(3, *(owner + 1 for owner in owners))

    def party(wire: Wire) -> Any:
        mine = {owner: block(owner, width, dtype) for owner, width in zip(owners, WIDTHS, strict=True)}
        if wire.me >= 3:
            streams = send_mask_seeds(wire)
            return deal_block(wire, streams, mine[wire.me]) if wire.me in mine else None
        trio = Trio(wire)
        streams_of = {owner: receive_mask_seeds(wire, owner) for owner in range(3, parties)}
        computing = [
            (owner, (ROWS, width), mine[owner] if wire.me == owner else None)
            for owner, width in zip(owners, WIDTHS, strict=True)
            if owner < 3
        ]
        inputs = dict(
            zip([owner for owner, _, _ in computing], input_rows(trio, computing, dtype), strict=True)
        )
        inputs |= {
            owner: receive_block(trio, streams_of[owner], owner, (ROWS, width), dtype)
            for owner, width in zip(owners, WIDTHS, strict=True)
            if owner >= 3
        }
        return body(trio, inputs[owners[0]], inputs[owners[1]])

    return MemoryNetwork(parties, 3, tap=tap).run([party] * parties)[:3]


def opened(parts: list[Matrix]) -> NDArray[Any]:
    """The matrix; a component is held alike by its two holders."""
    own = [np.zeros(part.shape, np.uint32) if part.own is None else part.own for part in parts]
    following = [np.zeros(part.shape, np.uint32) if part.next is None else part.next for part in parts]
    for i in range(3):
        np.testing.assert_array_equal(following[i], own[(i + 1) % 3])
    total: NDArray[Any] = own[0] + own[1] + own[2]
    return total


@pytest.mark.parametrize(
    "owners", [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1), (0, 3), (3, 1), (4, 3), (2, 5), (3, 5)]
)
@pytest.mark.parametrize("dtype", RINGS)
def test_inputs_and_products(owners: tuple[int, int], dtype: type) -> None:
    a, b = (block(owner, width, dtype) for owner, width in zip(owners, WIDTHS, strict=True))

    def body(trio: Trio, x: Matrix, y: Matrix) -> Any:
        (dense,) = multiply(trio, [(x, y)], dtype)
        (again,) = multiply(trio, [(y.columns(1, 2), dense)], dtype)
        return (
            x,
            y,
            dense,
            again,
            [product(left, right, dtype) for left, right in ((x, y), (y, x), (x, dense), (dense, y))],
        )

    results = together(owners, dtype, body)
    rows = (a[:, :, None] * b[:, None, :]).reshape(ROWS, 15)
    expected = [a, b, rows, (b[:, 1:3, None] * rows[:, None, :]).reshape(ROWS, 30)]
    for place, plain in enumerate(expected):
        np.testing.assert_array_equal(opened([result[place] for result in results]).astype(dtype), plain)
    wide = [x.astype(np.int64) for x in (a, b, rows)]
    for place, plain in enumerate(
        [wide[0].T @ wide[1], wide[1].T @ wide[0], wide[0].T @ wide[2], wide[2].T @ wide[1]]
    ):
        np.testing.assert_array_equal(
            sum(result[4][place] for result in results).astype(dtype), plain.astype(dtype)
        )


@pytest.mark.parametrize("owners", [(0, 1), (2, 3)])
def test_columns_put_side_by_side(owners: tuple[int, int]) -> None:
    results = together(
        owners, np.uint32, lambda trio, x, y: side_by_side([x, y.columns(0, 2), x.columns(2, 1)], np.uint32)
    )
    a, b = (block(owner, width, np.uint32) for owner, width in zip(owners, WIDTHS, strict=True))
    np.testing.assert_array_equal(opened(results), np.concatenate([a, b[:, :2], a[:, 2:]], axis=1))


def test_nobody_but_the_owner_knows_its_rows() -> None:
    """No party holds all components of a contributor's matrix; the others hold those of a computing owner's
    one by one."""
    for contributor in (3, 4, 5):
        parts = together((0, contributor), np.uint32, lambda trio, x, y: y)
        assert all(part.plain is None and part.own is not None and part.next is not None for part in parts)
        for part in parts:
            assert not np.array_equal(part.own + part.next, block(contributor, 5, np.uint32))
    parts = together((0, 1), np.uint32, lambda trio, x, y: x)
    assert [(part.own is None, part.next is None, part.plain is None) for part in parts] == [
        (False, False, False),
        (False, True, True),
        (True, False, True),
    ]


@pytest.mark.parametrize("owners", [(0, 1), (0, 3), (3, 4)])
@pytest.mark.parametrize("population", ["intersection", "union"])
def test_all_that_travels_is_uniform(
    monkeypatch: pytest.MonkeyPatch, owners: tuple[int, int], population: Population
) -> None:
    """The most regular data, every record in common and alike: bytes of all messages, chi-square at 1e-9 for
    each link.

    Without orders of the rows, whose places are permutations (`test_group_by`).
    """
    monkeypatch.setattr(planner, "_by_permutation_is_cheaper", lambda *_: False)
    sizes = {"a": 4, "b": 4, "c": 20}
    rows = 3000
    of = partition(sizes, {"a": owners[0], "b": owners[1], "c": owners[0]}, population, rows)
    zeros = np.zeros(rows, np.uint8)
    tables = {owner: OwnRows(np.arange(rows), {name: zeros for name in of.of(owner)}) for owner in owners}
    frames: list[Frame] = []
    shared_marginals(sizes, of, tables, [[("a", "b"), ("a", "c")]], frames.append)
    links: dict[tuple[int, int], Counter[int]] = {}
    for frame in frames:
        links.setdefault((frame.sender, frame.receiver), Counter()).update(frame.payload)
    assert len(links) >= 4
    for link, octets in links.items():
        expected = sum(octets.values()) / 256
        assert sum((octets[value] - expected) ** 2 / expected for value in range(256)) < chi2.isf(
            1e-9, 255
        ), link
