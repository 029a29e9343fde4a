"""Sums of |x - c| over cells that are compared again and again, against plaintext; what is asked for, and when."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.pair.circuits import kept_cells
from mpc_protocols.backends.pair.circuits.kept_cells import KeptCells
from mpc_protocols.backends.pair.transfers.asked_once import USES, ask, look_up
from mpc_protocols.backends.pair.transfers.ot_extension import message_bytes
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.engine.bitwise.adders import Adder
from mpc_protocols.engine.bitwise.bitslice import words_for
from mpc_protocols.public.answers import Answers, CellRange, DealerLayout, cell_ranges
from tests.mpc_protocols.backends.pair.pair_run import Ran, run_pair, share_ring

SIZES = (1, 2, 300, 64, 5000)
"""Of the marginals, by handle."""
LEADER = 1
Selection = tuple[Sequence[int], int, float]
"""Handles, planes, and the share of answers that are 0."""


def layout_of(handles: Sequence[int]) -> DealerLayout:
    return DealerLayout(
        [(q, cells) for q, handle in enumerate(handles) for cells in cell_ranges(handle, SIZES[handle])], 1
    )


class Case:
    """Shared marginals, and answers of some selections in a row."""

    def __init__(self, selections: Sequence[Selection], planes: int = 12) -> None:
        draw = np.random.default_rng()
        top = 1 << planes - 2
        self.counts = [draw.integers(0, top, size).astype(np.uint32) for size in SIZES]
        self.shares = [share_ring(of) for of in self.counts]
        self.selections = selections
        self.answers: list[Answers] = []
        for handles, _, zeros in selections:
            layout = layout_of(handles)
            values = [draw.integers(1, top, SIZES[handle]).astype(np.uint32) for handle in handles]
            for of in values:
                of[draw.random(len(of)) < zeros] = 0
            self.answers.append(Answers.of(layout, values))

    def sums(self, number: int) -> NDArray[np.int64]:
        """What selection `number` comes to."""
        answers = self.answers[number]
        counts = np.concatenate([self.counts[handle] for handle in self.selections[number][0]])
        differences = np.abs(counts.astype(np.int64) - answers.cells) * answers.nonzero
        return answers.layout.sums(0, differences, np.int64)

    def run(self, adder: Adder = "ripple", kept: int = kept_cells.MAX_KEPT) -> Ran[list[NDArray[np.uint32]]]:
        """Both parties' shares of every selection's sums."""

        def party(transfers: Transfers) -> list[NDArray[np.uint32]]:
            cells, found = KeptCells(transfers), []
            for answers, (handles, planes, _) in zip(self.answers, self.selections, strict=True):
                parts = np.concatenate([self.shares[handle][transfers.link.me] for handle in handles])
                lengths = answers.layout.sums(0, answers.nonzero.astype(np.int64), np.int64)
                found.append(
                    cells.l1_sums(answers, parts, lengths, planes, adder, transfers.link.me == LEADER)
                )
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kept_cells, "MAX_KEPT", kept)
            return run_pair(party)

    def holds(self, ran: Ran[list[NDArray[np.uint32]]]) -> None:
        for number in range(len(self.selections)):
            together = ran.results[0][number] + ran.results[1][number]
            np.testing.assert_array_equal(together.astype(np.int64), self.sums(number))


@pytest.mark.parametrize("adder", ["ripple", "tree"])
def test_sums_are_those_of_the_plaintext_selection_after_selection(adder: Adder) -> None:
    """Other answers, other cells that are 0, new candidates, in another order, numbers of another width."""
    selections: list[Selection] = [
        ((0, 2), 12, 0.3),
        ((0, 2), 12, 0.3),
        ((2, 0, 4), 12, 0.9),
        ((4,), 12, 0.0),
        ((1, 3, 4, 2), 12, 0.5),
        ((4, 2), 18, 0.5),
        ((4, 2), 18, 0.2),
        ((2,), 12, 0.0),
        ((0,), 13, 0.0),
    ]
    case = Case(selections)
    case.holds(case.run(adder))


def asking(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """For how many cells each party asks, (party 0, party 1), each time: noted while a test runs."""
    asked: list[tuple[int, int]] = []

    def noted(transfers, fields, planes, cells):  # type: ignore[no-untyped-def]
        if transfers.link.me == 0:
            asked.append(cells)
        return ask(transfers, fields, planes, cells)

    monkeypatch.setattr(kept_cells, "ask", noted)
    return asked


def test_what_is_used_up_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asking(monkeypatch)
    case = Case([((2, 4), 12, 0.0)] * (2 * USES + 2))
    case.holds(case.run())
    assert asked == [(2650, 2650)] * 3


FEW, MANY = (0, 364), (2500, 2500)


@pytest.mark.parametrize(("kept", "due"), [(5364, [FEW, MANY]), (5363, [FEW, MANY, FEW])])
def test_no_more_is_kept_than_may_be(
    kept: int, due: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """364 cells, other 5,000, and the 364 again, in another order as well: what is dropped is asked for again."""
    asked = asking(monkeypatch)
    case = Case([((2, 3), 12, 0.0), ((4,), 12, 0.0), ((2, 3), 12, 0.0), ((3, 2), 12, 0.0)])
    case.holds(case.run(kept=kept))
    assert asked == due


@pytest.mark.parametrize("kept", [kept_cells.MAX_KEPT, 5100])
def test_no_mask_serves_twice(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 18 planes 127 bits of masks a cell, in four fields: two of 10^5 cells have the same ones by chance with
    probability below 10^-26. More selections than USES in a row, cells that are new, another width and back."""
    given: dict[tuple[int, str], list[bytes]] = {
        (me, role): [] for me in (0, 1) for role in ("own", "others")
    }

    def noted(transfers, fields, own, others):  # type: ignore[no-untyped-def]
        for role, (_, masks) in (("own", own), ("others", others)):
            given[transfers.link.me, role] += [column.tobytes() for column in np.ascontiguousarray(masks.T)]
        return look_up(transfers, fields, own, others)

    monkeypatch.setattr(kept_cells, "look_up", noted)
    selections: list[Selection] = [
        ((2, 4), 18, 0.2),
        ((2, 4), 18, 0.0),
        ((4, 3), 18, 0.5),
        ((4,), 18, 0.9),
    ] * 4
    assert len(selections) > USES
    case = Case([*selections, ((2, 3), 17, 0.0), ((2, 3), 18, 0.0), ((2, 3), 17, 0.0)], planes=17)
    case.holds(case.run(kept=kept))
    for masks in given.values():
        assert masks and len(set(masks)) == len(masks)


def test_only_what_was_not_compared_before_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asking(monkeypatch)
    monkeypatch.setattr(kept_cells, "PIECE", 4000)
    case = Case([((4,), 12, 0.0), ((4,), 12, 0.5), ((2, 4), 12, 0.0), ((2,), 12, 0.5)])
    case.holds(case.run())
    # Every second cell by each party: of 5,000 in two pieces; then 300 that are new, by the leader.
    assert asked == [(2000, 2000), (500, 500), (0, 300)]


def test_asking_takes_bytes_and_a_round_of_many() -> None:
    rounds = [Case([((4,), 12, 0.0)] * count).run().rounds for count in (1, 2, 3)]
    assert rounds[1] - rounds[0] == rounds[2] - rounds[1] == rounds[0] - 1
    sent = [Case([((4,), 12, 0.0)] * count).run().sent for count in (1, 2)]
    for party in (0, 1):
        again = sent[1][party] - sent[0][party]
        assert sent[0][party] - again == message_bytes(11 * words_for(2500), are_given=True)


def test_what_is_not_kept() -> None:
    twice = DealerLayout([(0, CellRange(3, 0, 64)), (1, CellRange(3, 0, 64))], 1)
    assert not KeptCells.takes(twice)  # one number beside two, under one mask
    assert KeptCells.takes(layout_of((3, 2)))
    pieces = cell_ranges(7, kept_cells.MAX_KEPT + 1)
    assert not KeptCells.takes(DealerLayout([(0, of) for of in pieces], 1))
