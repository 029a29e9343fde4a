"""Contributors' counts on shares, on every backend that checks them: honest ones are left alone, every kind
of lie is found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backend import BACKENDS, DistributedBackend
from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import from_bits
from mpc_protocols.engine.inputs.check import protocol
from mpc_protocols.errors import BadInput
from mpc_protocols.functionality import Clique, InputRule, MarginalOracle
from runner.review.conformance.guards import Recorder
from tests.extras import skip_unless_installed
from tests.mpc_protocols.engine.inputs.lying_run import ROWS, Lie, run
from tests.worlds.questions import work
from tests.worlds.tables import CONTRIBUTORS, ONE_WAY, PARTS, SMALL, counter, facts, table

Cells = NDArray[np.uint32]
TRIED = [
    (backend, computing)
    for backend in BACKENDS
    if isinstance(backend, DistributedBackend) and not backend.unchecked
    for computing in ({backend.computing[0], 4} if backend.name == "shamir" else {backend.computing[0]})
]
WIDE: list[Clique] = [("a", "b"), ("b", "c", "d")]
HONEST = [CONTRIBUTORS[2], CONTRIBUTORS[1]]
"""One has just as many rows as are allowed."""
assert len(HONEST[0]) == ROWS


def negative(clique: Clique, cells: Cells) -> Cells:
    """-1 in one cell, the number of rows as it was."""
    cells[1] += cells[0] + np.uint32(1)
    cells[0] = 2**32 - 1
    return cells


def far_below(clique: Clique, cells: Cells) -> Cells:
    """-2^31 in two cells: sums wrap to the true ones."""
    cells[:2] += np.uint32(1 << 31)
    return cells


def too_many(clique: Clique, cells: Cells) -> Cells:
    """One row too many, each cell small: only sums show it, and all marginals agree."""
    return replaced(clique, counter(table(ROWS + 1, 8)))


def one_more(clique: Clique, cells: Cells) -> Cells:
    """A row that one of the columns does not know."""
    cells[0] += np.uint32(clique == ("c",))
    return cells


def later(lie: Lie) -> Lie:
    """Honest about single columns, which are shared first."""
    return lambda clique, cells: cells if len(clique) == 1 else lie(clique, cells)


def replaced(clique: Clique, counts: Any) -> Cells:
    """Somebody else's counts."""
    [cells] = counts([clique])
    found: Cells = cells.astype(np.uint32)
    return found


def others_rows(clique: Clique, cells: Cells) -> Cells:
    """Another table's marginals, of as many rows."""
    return replaced(clique, counter(table(60, 12)))


AT_ONCE: list[Lie] = [negative, far_below, too_many, one_more]
LATER: list[Lie] = [later(negative), later(far_below), later(others_rows)]


FAR = 7
"""A model's answer for every cell."""


def questions(oracle: MarginalOracle) -> list[Any]:
    """Counts of single columns and how far they are from FAR, then counts of joint ones, the same distances,
    and the number of rows."""
    handles = oracle.prepare(ONE_WAY)
    first = oracle.measure(handles, SMALL)
    far = [np.full(len(cells), FAR, float) for cells in first]
    before = oracle.distances(handles, far, SMALL)
    second = oracle.measure(oracle.prepare(WIDE), SMALL)
    after = oracle.distances(handles, far, SMALL)
    counts = [[list(cells) for cells in first], [list(cells) for cells in second], oracle.total(SMALL)]
    return [*counts, before.tolist(), after.tolist()]


def expected(at_first: Sequence[NDArray[np.int64]], then: Sequence[NDArray[np.int64]]) -> list[Any]:
    """The true answers: of the tables that are in when single columns are measured, and of those that are
    then."""
    one_way, wide = counter(np.concatenate(at_first))(ONE_WAY), counter(np.concatenate(then))(WIDE)
    left = counter(np.concatenate(then))(ONE_WAY)
    counts = [[list(cells) for cells in one_way], [list(cells) for cells in wide], sum(map(len, then))]
    return [*counts, *([int(np.abs(cells - FAR).sum()) for cells in of] for of in (one_way, left))]


@pytest.mark.parametrize(("backend", "computing"), TRIED, ids=[f"{b.name}-{n}" for b, n in TRIED])
def test_liars_are_left_out_from_their_first_lie_on(backend: DistributedBackend, computing: int) -> None:
    skip_unless_installed(backend)
    own = [*PARTS, table(50, 11)][:computing]
    lies = [*AT_ONCE, *LATER]
    liars = [table(60, 20 + number) for number in range(len(lies))]
    first = computing + 1
    tables = [*own, HONEST[0], *liars, HONEST[1]]
    found = run(
        backend, computing, tables, questions, dict(enumerate(lies, first)), InputRule(ROWS, exclude=True)
    )
    for named in found.left_out.values():
        assert named == list(range(first, first + len(lies)))
    assert found.answer == expected([*own, *HONEST, *liars[len(AT_ONCE) :]], [*own, *HONEST])


@pytest.mark.parametrize(("backend", "computing"), TRIED, ids=[f"{b.name}-{n}" for b, n in TRIED])
def test_honest_contributors_change_nothing_but_traffic(
    backend: DistributedBackend, computing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answers are the ideal ones, also where signs are computed in several batches."""
    skip_unless_installed(backend)
    monkeypatch.setattr(protocol, "TESTED", 256)
    tables = [*PARTS, table(50, 11)][:computing] + HONEST
    ideal = work(IdealOracle(facts(), counter(np.concatenate(tables)), Recorder()))
    assert run(backend, computing, tables, work, {}, InputRule(ROWS)).answer == ideal


@pytest.mark.parametrize(("backend", "computing"), TRIED[:1], ids=[f"{b.name}-{n}" for b, n in TRIED[:1]])
@pytest.mark.parametrize("lie", [AT_ONCE[0], LATER[2]])
def test_or_the_run_ends_and_names_them(backend: DistributedBackend, computing: int, lie: Lie) -> None:
    tables = [*PARTS, HONEST[0], CONTRIBUTORS[0], CONTRIBUTORS[3]]
    lies = {computing + 1: lie, computing + 2: lie}
    with pytest.raises(
        BadInput, match="Parties 4 and 5 sent counts that no table of at most 120 rows has"
    ) as ended:
        run(backend, computing, tables, questions, lies, InputRule(ROWS))
    assert ended.value.contributors == (4, 5) and ended.value.exit_code == 40


def test_a_total_before_anything_else_is_of_those_that_are_left() -> None:
    """The column that is shared for it is checked, too."""
    backend, computing = TRIED[0]
    tables = [*PARTS, HONEST[0], CONTRIBUTORS[0]]
    found = run(
        backend,
        computing,
        tables,
        lambda oracle: [oracle.total(SMALL), *questions(oracle)],
        {computing + 1: negative},
        InputRule(ROWS, exclude=True),
    )
    assert found.answer == [sum(map(len, tables[:-1])), *expected(tables[:-1], tables[:-1])]


@pytest.mark.parametrize("wrong", [[0], [191], [3, 70, 130]])
def test_each_random_sum_misses_wrong_signs_half_of_the_time(wrong: list[int]) -> None:
    """100 seeds, 64 sums each. False-alarm rate: P(|Binomial(6400, 1/2) - 3200| > 300) < 1e-13, and 100 *
    2^-64."""
    cells = np.zeros(192, np.uint8)
    cells[wrong] = 1
    batch, seen = [(0, slice(0, 128)), (1, slice(0, 64))], 0
    for seed in range(100):
        chosen = np.random.default_rng(seed).integers(0, 1 << 64, (2, protocol.CHECKS), np.uint64)
        found = protocol._sums(Bits(from_bits(cells)), batch, 2, chosen).parts[0]
        assert found.shape == (2, 1, 64)
        assert [bool(row.any()) for row in found] == [cells[:128].any(), cells[128:].any()]
        seen += int(found[1 if wrong == [191] else 0].sum())
    assert abs(seen - 3200) < 300
