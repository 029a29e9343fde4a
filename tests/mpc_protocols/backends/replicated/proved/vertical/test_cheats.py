"""Owners and parties that deviate in a vertical study: honest parties stop, or have the ideal answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.proved.vertical import columns
from mpc_protocols.backends.replicated.proved.vertical.conditions import links
from mpc_protocols.backends.replicated.sharing.copies import DIGEST_BYTES
from mpc_protocols.functionality import Clique
from mpc_protocols.public.steps import PrepareStep
from mpc_protocols.vertical.partition import OwnRows
from mpc_protocols.vertical.records import CodedRows
from tests.mpc_protocols.backends.replicated.proof.cheating import flipped
from tests.mpc_protocols.backends.replicated.proved.test_cheats import accused
from tests.mpc_protocols.backends.replicated.proved.vertical.world import World, world
from tests.worlds.tables import SIZES, SMALL

Spoil = Callable[[int, Sequence[Clique], NDArray[Any]], None]
COMPUTES, CONTRIBUTES = (0, 0, 2, 2), (0, 0, 3, 3)
"""Owners of a, b, c, d: the second one computes, or does not."""


TWICE: list[list[Clique]] = [[("a", "b", "c"), ("c",)], [("b", "d"), ("a", "c", "d")]]
"""Two requests. The second owner inputs c, then d and both together."""


def lying(monkeypatch: pytest.MonkeyPatch, spoil: Spoil) -> None:
    """The owner of c and d inputs other columns than its records give. spoil: its (request, joints, block)."""
    one_hot = CodedRows.one_hot
    requests: list[Sequence[Clique]] = []

    def altered(self: CodedRows, start: int, stop: int, joints: Sequence[Clique], dtype: Any) -> Any:
        block = one_hot(self, start, stop, joints, dtype)
        if "c" in self._codes:
            if not requests or requests[-1] != joints:
                requests.append(joints)
            spoil(len(requests), joints, block)
        return block

    monkeypatch.setattr(CodedRows, "one_hot", altered)


def moved(
    request: int, joints: Sequence[Clique], block: NDArray[Any], cell: int, by: int, row: int = 0
) -> None:
    """A row of the first joint of columns."""
    first = int(joints[0] == ())
    block[row, first + cell] += np.uint16(by % 65536)


def two_values(request: int, joints: Sequence[Clique], block: NDArray[Any]) -> None:
    """A row that the owner has names two values of its first column."""
    first = int(joints[0] == ())
    row = int(np.flatnonzero(block[:, first])[0])
    block[row, first + 1] = 1


def weighted(request: int, joints: Sequence[Clique], block: NDArray[Any]) -> None:
    """All its rows count a thousand times."""
    block *= np.uint16(1000)


def negative(request: int, joints: Sequence[Clique], block: NDArray[Any]) -> None:
    """A row counts for one value and against another one."""
    moved(request, joints, block, 0, 1)
    moved(request, joints, block, 1, -1)


def contradictory(request: int, joints: Sequence[Clique], block: NDArray[Any]) -> None:
    """The last joint, of its own, tells other values than the ones before."""
    if joints[-1] == ("c", "d"):
        block[:, -10:] = np.roll(block[:, -10:], 1, axis=1)


def fewer_rows_at_first(request: int, joints: Sequence[Clique], block: NDArray[Any]) -> None:
    """It has no rows in the first request, and its own in the second."""
    if request == 1:
        block[:] = 0


LIES = [two_values, weighted, negative, contradictory, fewer_rows_at_first]


@pytest.mark.parametrize(
    ("owners", "spoil"),
    [*((COMPUTES, spoil) for spoil in LIES), (CONTRIBUTES, two_values), (CONTRIBUTES, weighted)],
)
def test_an_owner_that_lies_about_its_columns_is_named(
    owners: tuple[int, int, int, int], spoil: Spoil, monkeypatch: pytest.MonkeyPatch
) -> None:
    lying(monkeypatch, spoil)
    found, liar = world(owners, rows=40).share(TWICE), owners[2]
    for honest in {0, 1, 2} - {liar}:
        said = found[honest]
        assert f"says that party {liar} shared columns of which a row names no value or several" in said or (
            f"says that party {liar} sent it" in said
        ), found


def test_values_that_change_places_are_no_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    """Input substitution: an owner that brings other rows, consistently, has the tables of these."""
    of = world(COMPUTES, rows=40)

    def turned_round(request: int, joints: Sequence[Clique], block: NDArray[Any]) -> None:
        block[:] = block[::-1].copy()

    assert of.share(TWICE) == [of.counts(TWICE)] * 3
    lying(monkeypatch, turned_round)
    found = of.share(TWICE)
    assert found[0] == found[1] == found[2] != of.counts(TWICE) and isinstance(found[0], list)


def test_a_marginal_of_the_union_is_made_of_one_requests_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a column that was not kept an owner may bring other values now: with tables of the old ones, cells
    of rows that nobody else holds would be negative."""
    monkeypatch.setattr(columns, "MAX_KEPT", 0)
    of = world(COMPUTES, "union", rows=40)
    requests: list[list[Clique]] = [[("a", "c", "d")], [("b", "c")]]

    def other_values(request: int, joints: Sequence[Clique], block: NDArray[Any]) -> None:
        if request == 2:
            assert list(joints) == [("c",)]
            block[:] = np.roll(block, 1, axis=1)

    lying(monkeypatch, other_values)
    rolled = {"c": ((of.tables[2].codes["c"] + 1) % SIZES["c"]).astype(np.uint8)}
    brought = OwnRows(of.tables[2].rows, {**of.tables[2].codes, **rolled})
    then = World(of.split, {**of.tables, 2: brought})
    assert of.share(requests) == [of.counts(requests[:1]) + then.counts(requests[1:])] * 3


def test_links_are_enough() -> None:
    """Joints linked as they are agree on all that any two of them share."""
    assert links([(), ("a",), ("b",)]) == [(("a",), (), ()), (("b",), (), ())]
    assert links([("a",), ("b",), ("a", "b")]) == [
        (("b",), ("a",), ()),
        (("a", "b"), ("a",), ("a",)),
        (("a", "b"), ("b",), ("b",)),
    ]
    assert links([(), ("a",), ("b",)], known=2) == [(("b",), (), ())]
    found = links([("a", "b"), ("b", "c"), ("a", "b", "c")])
    assert found[0] == (("b", "c"), ("a", "b"), ("b",))
    assert found[1:] == [(("a", "b", "c"), ("a", "b"), ("a", "b")), (("a", "b", "c"), ("b", "c"), ("b", "c"))]


# -- parties that deviate
# ------------------------------------------------------------------------------------------------------


def no_wrong_answer(of: World, found: list[Any], cheat: int) -> None:
    """Every honest party stops or has the right counts, and one of them at least stops."""
    right = of.counts(TWICE)
    honest = [said for me, said in enumerate(found) if me != cheat]
    assert any(isinstance(said, str) for said in honest), found
    for said in honest:
        assert isinstance(said, str) or said == right, found


def sweep(of: World, cheat: int, every: int) -> int:
    """Flip a bit of each of a party's messages, or of every so many; how many runs."""
    sent: list[int] = []
    of.share(TWICE, cheat, lambda number, peer, payload: sent.append(number))
    numbers = sent[every // 2 :: every]
    for number in numbers:

        def alter(n: int, peer: int, payload: bytes, at: int = number) -> bytes | None:
            return flipped(payload) if n == at else None

        no_wrong_answer(of, of.share(TWICE, cheat, alter), cheat)
    return len(numbers)


@pytest.mark.parametrize("cheat", range(3))
def test_a_flipped_bit_never_gives_a_wrong_answer(cheat: int) -> None:
    assert sweep(world(COMPUTES, rows=40), cheat, 61) >= 2


@pytest.mark.campaign
@pytest.mark.parametrize("owners", [COMPUTES, CONTRIBUTES, (1, 3, 2, 0)])
@pytest.mark.parametrize("cheat", range(3))
def test_a_flipped_bit_of_any_message_never_gives_a_wrong_answer(
    owners: tuple[int, int, int, int], cheat: int
) -> None:
    assert sweep(world(owners, rows=40), cheat, 1) > 40


@pytest.mark.parametrize("cheat", range(3))
def test_an_error_in_a_row_product_is_found(cheat: int) -> None:
    """Of memberships: a weight on records. The message of products row by row, by its size."""
    of = world((0, 1, 2, 2), rows=40)

    def alter(number: int, peer: int, payload: bytes) -> bytes | None:
        is_product = (peer, len(payload)) == ((cheat - 1) % 3, 2 * 40)
        return flipped(payload) if is_product else None

    assert accused(of.share([[("a", "c")]], cheat, alter), cheat)


@pytest.mark.parametrize("cheat", range(3))
def test_a_contributors_entries_are_judged_once_their_additions_are_proved(cheat: int) -> None:
    """What an error in one leads to depends on the entries: the comparison would tell it."""
    of, products = world(CONTRIBUTES, rows=40), list[int]()

    def note(number: int, peer: int, payload: bytes) -> None:
        if peer == (cheat - 1) % 3 and len(payload) != DIGEST_BYTES:
            products.append(number)

    of.share(TWICE, cheat, note)
    first = products[0]
    found = of.share(
        TWICE, cheat, lambda number, peer, payload: flipped(payload) if number == first else None
    )
    assert accused(found, cheat), found


def test_a_contributors_two_different_copies_are_found() -> None:
    of, seen = world(CONTRIBUTES, rows=40), list[int]()

    def alter(number: int, peer: int, payload: bytes) -> bytes | None:
        if len(payload) > 400 and not seen:
            seen.append(number)
            return flipped(payload)
        return None

    found = of.share(TWICE, 3, alter)
    assert sum("another copy of its data" in str(said) for said in found) == 2
    assert not any(isinstance(said, list) for said in found)


def test_a_leader_that_asks_a_contributor_for_other_tables_is_found() -> None:
    """Of as many cells, so that everything else fits."""
    of = world(CONTRIBUTES, rows=40)
    told = PrepareStep((("a", "c", "d"),), ()).to_bytes()

    def asked(oracle: Any) -> Any:
        return oracle.measure(oracle.prepare([("a", "c", "d")]), SMALL)[0].tolist()

    def alter(number: int, peer: int, payload: bytes) -> bytes | None:
        return PrepareStep((("b", "c", "d"),), ()).to_bytes() if peer == 3 and payload == told else None

    found = of.run(asked, 1, alter)
    for honest in (0, 2):
        assert found[honest].startswith(
            "Party 3 was asked for other marginals than the computing parties share"
        ), found
