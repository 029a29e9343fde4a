"""Faults of what is counted, of how private rows shape what should be public, and of published rows."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np

from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.inputs import contribution
from mpc_protocols.engine.oracle import LeadingOracle
from mpc_protocols.engine.step import ComputingParty
from mpc_protocols.vertical import ordered_sums
from mpc_protocols.vertical.records import CodedRows
from parties.data.counting.coding import Coder
from runner.review.audit.broken_builds.faults.mutation import Aside, Mutation, Patch
from runner.review.audit.subjects.in_memory import arena
from synth.mrf import Model


def _order_of_frequency() -> Patch:
    """A custodian's cells travel in the order of their frequency, and so does that order."""
    plain, aside = contribution.send_masked, Aside("order")

    def send_masked(wire: Any, facts: Any, counts: Any, cliques: Any, *given: Any) -> None:
        plain(wire, facts, counts, cliques, *given)
        if counts is not None:
            order = np.concatenate([np.argsort(cells, kind="stable") for cells in counts(cliques)])
            aside.of(wire).send(given[-1], order.astype(np.uint32).tobytes())

    return mock.patch.object(contribution, "send_masked", send_masked)


def _bins_of_the_rows() -> Patch:
    """Bins of equal width between the least and the largest number of the table, instead of the study's."""
    plain = Coder._bins

    def bins(self: Any, numbers: Any, distinct: Any) -> Any:
        _, faults = plain(self, numbers, distinct)
        edges = np.linspace(numbers.min(), numbers.max(), self.column.bins + 1)[1:-1]
        return np.searchsorted(edges, numbers, side="right").astype(np.int64), faults

    return mock.patch.object(Coder, "_bins", bins)


@contextmanager
def _candidates_of_the_rows() -> Iterator[None]:
    """The leader gives no weight to candidates of which it holds less than half of the cells itself."""
    cells, select, held = contribution.local_cells, LeadingOracle.select, dict[Any, bool]()

    def local_cells(facts: Any, counts: Any, cliques: Any, levels: Any) -> Any:
        found = cells(facts, counts, cliques, levels)
        held.update(
            {
                clique: 2 * int((each > 0).sum()) >= len(each)
                for clique, each in zip(cliques, found, strict=True)
            }
        )
        return found

    def chosen(self: Any, handles: Any, answers: Any, weights: Any, *given: Any, **named: Any) -> Any:
        kept = [
            weight if held.get(self.state.cliques[handle], True) else Fraction(1, 1000)
            for handle, weight in zip(handles, weights, strict=True)
        ]
        return select(self, handles, answers, kept, *given, **named)

    with (
        mock.patch.object(contribution, "local_cells", local_cells),
        mock.patch.object(LeadingOracle, "select", chosen),
    ):
        yield


def _everybody_holds_everything() -> Patch:
    """An owner says of every row of the common table that it holds it."""
    plain = CodedRows.one_hot

    def one_hot(self: Any, start: int, stop: int, joints: Any, dtype: Any) -> Any:
        block = plain(self, start, stop, joints, dtype)
        at = 0
        for joint in joints:
            width = self._width(joint)
            if not joint:
                block[:, at : at + width] = 1
            at += width
        return block

    return mock.patch.object(CodedRows, "one_hot", one_hot)


def _bare_inputs() -> Patch:
    """What a party inputs is sent without its mask."""
    stack = ExitStack()
    for name in ("own_mask", "next_mask"):
        stack.enter_context(
            mock.patch.object(Trio, name, lambda self, shape, dtype, operation: np.zeros(shape, dtype))
        )
    return stack


def _ties_by_count() -> Patch:
    """Before a position is opened, the parties open how far each candidate lies behind it, to settle ties by
    number."""
    pick = ComputingParty._pick

    def picked(self: Any, plan: Any, noisy: Any) -> Any:
        found = pick(self, plan, noisy)
        if noisy is not None and plan.picks == 1:
            self.engine.reveal(noisy)
        return found

    return mock.patch.object(ComputingParty, "_pick", picked)


def _repeated_places() -> Patch:
    """Nobody looks whether an owner's order names a place twice."""
    return mock.patch.object(ordered_sums, "_repeats", lambda places, count: False)


def _counted_twice() -> Patch:
    """A custodian's rows count twice."""
    plain = contribution.local_cells
    return mock.patch.object(
        contribution, "local_cells", lambda *given: [2 * cells for cells in plain(*given)]
    )


def _count_in_the_log() -> Patch:
    plain = contribution.local_cells

    def local_cells(*given: Any) -> Any:
        cells = plain(*given)
        logging.getLogger("cosynth").debug("cells in use: %d", sum(int((each > 0).sum()) for each in cells))
        return cells

    return mock.patch.object(contribution, "local_cells", local_cells)


def _word_of_the_empty() -> Patch:
    """A custodian without rows says so."""
    plain, aside = contribution.send_masked, Aside("empty")

    def send_masked(wire: Any, facts: Any, counts: Any, cliques: Any, *given: Any) -> None:
        plain(wire, facts, counts, cliques, *given)
        if counts is not None and not any(cells.any() for cells in counts([cliques[0]])):
            aside.of(wire).send(given[-1], b"\0")

    return mock.patch.object(contribution, "send_masked", send_masked)


@contextmanager
def _copied_rows() -> Iterator[None]:
    """The model keeps the rows that it was made of, and hands them out."""
    plain, kept = arena.counter, list[Any]()

    def counter(rows: Any, sizes: Any) -> Any:
        kept.append(rows)
        return plain(rows, sizes)

    def sample(self: Any, rows: int, *given: Any, **named: Any) -> Any:
        return kept[-1][:rows]

    with mock.patch.object(arena, "counter", counter), mock.patch.object(Model, "sample", sample):
        yield


MUTATIONS = (
    Mutation("M9", "ties settled by number, in the clear", ("V.opened",), _ties_by_count),
    Mutation("M17", "a log line with a count", ("T.told",), _count_in_the_log),
    Mutation("M18", "cells in the order of their frequency", ("V.masks",), _order_of_frequency),
    Mutation("M19", "a custodian whose counts are all 0 behaves otherwise", ("T.sizes",), _word_of_the_empty),
    Mutation("M20", "bins between a table's own extremes", ("S.files",), _bins_of_the_rows),
    Mutation("M21", "candidates that depend on rows", ("T.sizes",), _candidates_of_the_rows),
    Mutation("M22", "rows that count twice", ("S.neighbours", "S.values"), _counted_twice),
    Mutation(
        "M23", "a record that one owner lacks in a marginal", ("J.values",), _everybody_holds_everything
    ),
    Mutation("M34", "synthetic rows that are copies of real ones", ("I.distance",), _copied_rows),
    Mutation("M39", "an order that names a row again and again", ("J.orders",), _repeated_places),
    Mutation("P5", "an owner's columns without a mask", ("J.masks",), _bare_inputs),
)
