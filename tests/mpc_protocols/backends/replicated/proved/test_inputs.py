"""Everybody's counts where products are proved: nobody brings impossible ones, nobody changes another one's,
and nobody learns from a check of somebody else's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.proved import inputs
from mpc_protocols.backends.replicated.proved.oracle import contribute
from mpc_protocols.engine.inputs import contribution
from mpc_protocols.engine.inputs.check import protocol
from mpc_protocols.functionality import Clique, InputRule, Level, MarginalOracle, StudyFacts
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.public.steps import PrepareStep
from tests.mpc_protocols.backends.replicated.proof.cheating import CheatingWire, flipped, outcomes
from tests.mpc_protocols.backends.replicated.proved.test_engine import party
from tests.worlds.tables import CONTRIBUTORS, PARTS, SMALL, counter, facts

R = 1000
OF = replace(facts(), inputs=InputRule(R))
CELLS = 12 + 10
"""Of the two marginals that are shared."""
Alter = Callable[..., Any]


def measured(oracle: MarginalOracle) -> list[list[int]]:
    return [x.tolist() for x in oracle.measure(oracle.prepare([("a", "b"), ("c", "d")]), SMALL)]


def run(cheat: int, alter: Alter, contributors: int = 0) -> list[Any]:
    """Outcomes of the computing parties, then of contributors, when one of them alters what it sends."""

    def body(wire: Any) -> Any:
        if wire.me < 3:
            return party(wire, measured, OF, ahead=False)
        return contribute(wire, OF, counter(CONTRIBUTORS[wire.me - 3]))

    network = MemoryNetwork(3 + contributors, 3, session_id=OF.session)
    return outcomes(body, cheat, alter, network=network)


class Claimed:
    """A computing party's counts as its own software would not let them through: something added to some
    cells."""

    def __init__(self, me: int, values: dict[int, int]) -> None:
        self.values, self.counts = values, counter(PARTS[me])

    def __call__(self, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        return self.counts(cliques)


@pytest.fixture
def claiming(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """Runs in which one party brings what it likes, and follows the protocol with that."""
    checked = contribution.local_cells

    def unchecked(of: StudyFacts, counts: Any, *rest: Any) -> list[NDArray[np.uint32]]:
        cells = checked(of, counts, *rest)
        if isinstance(counts, Claimed):
            together = added(np.concatenate(cells), counts.values)
            cells = np.split(together, np.cumsum([len(of) for of in cells])[:-1])
        return cells

    monkeypatch.setattr(inputs, "local_cells", unchecked)

    def run(cheat: int, values: dict[int, int], of: StudyFacts = OF) -> list[Any]:
        def body(wire: Any) -> Any:
            counts = Claimed(cheat, values) if wire.me == cheat else None
            return party(wire, measured, of, ahead=False, counts=counts)

        return outcomes(body, network=MemoryNetwork(3, session_id=of.session))

    return run


def right(contributors: int = 0) -> list[list[int]]:
    counted = counter(np.concatenate([*PARTS, *CONTRIBUTORS[:contributors]]))([("a", "b"), ("c", "d")])
    return [x.tolist() for x in counted]


def added(cells: NDArray[np.uint32], values: dict[int, int]) -> NDArray[np.uint32]:
    """Cells with something added to some of them."""
    altered = cells.copy()
    for place, value in values.items():
        altered[place : place + 1] += np.array([value % 2**32], np.uint32)
    return altered


# a cell below 0 by one row less; one above the bound; far beyond what a sign can hold; a row more in one
# marginal only
IMPOSSIBLE = ({0: -401, 1: 401}, {0: R + 1, 12: R + 1}, {0: 1 << 31, 12: 1 << 31}, {0: 1})


@pytest.mark.parametrize("values", IMPOSSIBLE, ids=["negative", "too many", "half the ring", "disagree"])
def test_a_computing_party_with_impossible_counts_is_named(
    values: dict[int, int], claiming: Callable[..., list[Any]]
) -> None:
    """As owner it knows every bit of this check, as prover and verifier it takes part in it: it does not
    pass."""
    cheat = IMPOSSIBLE.index(values) % 3
    found = claiming(cheat, values)
    for honest in {0, 1, 2} - {cheat}:
        assert found[honest].startswith(f"Party {cheat} sent counts that no table of at most {R} rows has"), (
            found
        )


def test_possible_counts_of_a_cheat_are_its_input(claiming: Callable[..., list[Any]]) -> None:
    """A row more, in both marginals: it could have had one."""
    more = right()
    more[0][0] += 1
    more[1][0] += 1
    assert claiming(2, {0: 1, 12: 1})[1] == more


def test_nobody_that_computes_is_left_out(claiming: Callable[..., list[Any]]) -> None:
    of = replace(OF, inputs=InputRule(R, exclude=True))
    assert all("no table" in str(said) for said in claiming(0, {0: 1}, of)[1:])


@pytest.mark.parametrize("cheat", range(3))
def test_counts_that_are_possible_for_one_of_two_only_are_false_products(cheat: int) -> None:
    """The cheat sends other counts than it computes the check with: its shares are not those that it has
    sent."""

    def alter(number: int, peer: int, payload: bytes) -> bytes | None:
        return flipped(payload, 3, 7) if len(payload) == 4 * CELLS else None

    found = run(cheat, alter)
    assert all(
        isinstance(found[honest], str) and "no table" not in found[honest] for honest in {0, 1, 2} - {cheat}
    ), found


def test_a_contributors_two_different_copies_are_found_before_they_are_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Contributor 3 sends one of two parties another seed, or other counts: nothing is computed from them, a
    check neither."""
    assert run(3, lambda *_: None, 1)[1] == right(1)
    used: list[int] = []
    original = protocol._Values

    def values(marginals: Any, *rest: Any) -> Any:
        used.append(marginals._trio.me)
        return original(marginals, *rest)

    monkeypatch.setattr(protocol, "_Values", values)
    for kind, at in ((48, 47), (64, 63), (4 * CELLS, 0)):  # a seed at P2 and P1, at P0; the counts
        changed: list[int] = []

        def alter(
            number: int,
            peer: int,
            payload: bytes,
            kind: int = kind,
            at: int = at,
            changed: list[int] = changed,
        ) -> bytes | None:
            if len(payload) != kind or changed:
                return None
            changed.append(peer)
            return flipped(payload, at)

        used.clear()
        found = run(3, alter, 1)
        accused = [said for said in found[:3] if "another copy" in str(said)]
        assert changed and accused and all("that party 3 sent it another copy" in said for said in accused), (
            found
        )
        assert not used


def test_a_leader_that_asks_a_contributor_for_other_marginals_is_found() -> None:
    """It would have the contributor's counts of (b, a) taken for those of (a, b); the links would tell how
    like they are."""

    def alter(number: int, peer: int, payload: bytes) -> bytes | None:
        asked = PrepareStep((("a", "b"), ("c", "d")), ()).to_bytes()
        return PrepareStep((("b", "a"), ("c", "d")), ()).to_bytes() if (peer, payload) == (3, asked) else None

    found = run(1, alter, 1)
    for honest in (0, 2):
        assert found[honest].startswith("Party 3 was asked for other marginals"), found


def test_a_leader_that_tells_a_contributor_of_another_level_is_found() -> None:
    """Under the same name: whether its counts then agree with what it shared before is a question about its
    records."""
    level, turned = Level("c2", "c", (0, 0, 1, 1, 1)), Level("c2", "c", (1, 1, 0, 0, 0))

    def asked(oracle: MarginalOracle) -> Any:
        return [x.tolist() for x in oracle.measure(oracle.prepare([("a", "c2")], [level]), SMALL)]

    def alter(number: int, peer: int, payload: bytes) -> bytes | None:
        told = [PrepareStep((("a", "c2"),), (of,)).to_bytes() for of in (level, turned)]
        return told[1] if (peer, payload) == (3, told[0]) else None

    def body(wire: Any) -> Any:
        if wire.me == 3:
            return contribute(wire, OF, counter(CONTRIBUTORS[0]))
        return party(wire, asked, OF, ahead=False)

    network = MemoryNetwork(4, 3, session_id=OF.session)
    found = outcomes(body, 1, alter, network=network)
    for honest in (0, 2):
        assert str(found[honest]).startswith("Party 3 was asked for other marginals"), found


def test_a_party_cannot_test_an_honest_contributor() -> None:
    """A cheat goes on with a row less in the contributor's counts than came, to see whether the check minds,
    that is whether there is a row: whether there is or not, honest parties find wrong products, and no bit of
    the check is opened."""
    for place in (0, 1):  # of (a, b): one cell with rows, one without
        seen: list[Any] = []

        class Lessened(CheatingWire):
            def receive(self, peer: int, size: int) -> Any:
                got = self._wire.receive(peer, size)
                if peer == 3 and size == 4 * CELLS:
                    cells = np.frombuffer(got, np.uint32)
                    return memoryview(added(cells, {place: -1, place + 4: 1}).tobytes())  # noqa: B023
                return got

        def body(wire: Any) -> Any:
            if wire.me == 3:
                return contribute(wire, OF, counter(CONTRIBUTORS[0]))
            return party(Lessened(wire, lambda *_: None) if wire.me == 2 else wire, measured, OF, ahead=False)

        network = MemoryNetwork(4, 3, session_id=OF.session)
        found = outcomes(body, network=network)
        seen.append(found)
        for honest in (0, 1):
            assert "no table" not in str(found[honest]) and isinstance(found[honest], str), found


def test_a_selection_counts_everybody_once() -> None:
    def body(oracle: MarginalOracle) -> Any:
        handles = oracle.prepare([("a", "b"), ("c", "d")])
        answers = [np.full(12, 70.0), np.full(10, 60.0)]
        return oracle.select(handles, answers, [Fraction(9), Fraction(1)], [Fraction(0)] * 2, Fraction(40))

    def each(wire: Any) -> Any:
        return party(wire, body, OF, ahead=False)

    assert MemoryNetwork(3, session_id=OF.session).run([each] * 3)[1] == [0]


@pytest.mark.campaign
@pytest.mark.parametrize("cheat", range(3))
def test_a_flipped_bit_of_any_message_never_gives_a_wrong_answer(cheat: int) -> None:
    """Of a run with a contributor, from the counts on: whoever is honest stops, or has the right answer, and
    one stops."""
    sizes: list[int] = []
    run(cheat, lambda number, peer, payload: sizes.append(len(payload)), 1)
    first = sizes.index(4 * CELLS) + 1
    for number in range(first + 1, len(sizes) + 1):
        found = run(
            cheat, lambda at, peer, payload, number=number: flipped(payload) if at == number else None, 1
        )
        honest = [found[me] for me in range(3) if me != cheat]
        assert any(isinstance(said, str) for said in [*honest, found[3]]), (number, found)
        assert all(isinstance(said, str) or said == right(1) for said in honest), (number, found)
