"""Alignment by row order: equal tables pass, others stop everywhere; the noise of private row numbers and who
sees what."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mpc_protocols.errors import CosynthError, DataRefused, ProtocolAborted, StudyInvalid
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.psu.align import align
from mpc_protocols.psu.dummies import list_noise
from mpc_protocols.psu.functionality import Alignment, Context, Member
from mpc_protocols.wire import Wire
from runner.review.conformance.guards import Recorder
from tests.mpc_protocols.backends.replicated.proof.cheating import CheatingWire
from tests.mpc_protocols.psu.owners import spec_of

MEMBERS = tuple(
    Member(name, bytes([i]) * 32, i) for i, name in enumerate(("north", "south", "east", "west", "hill"))
)
NOISY = {"adjacency": "add-remove", "size_epsilon": Fraction(2), "size_delta": Fraction(1, 1000)}


def run(rows: dict[int, int], **changes: Any) -> tuple[list[Alignment], list[Frame], list[Recorder]]:
    """Owners by number with their rows; all five parties or the first three."""
    spec, frames = spec_of("row-order", **changes), list[Frame]()
    context = Context(bytes(32), tuple(MEMBERS[i] for i in rows), None, MEMBERS[:3])
    parties = max(3, *(i + 1 for i in rows))
    ledgers = [Recorder() for _ in range(parties)]

    def body(wire: Wire) -> Alignment:
        return align(wire, rows.get(wire.me), spec, context, ledgers[wire.me])

    network = MemoryNetwork(parties, tap=frames.append)
    return network.run([body] * parties), frames, ledgers


@pytest.mark.parametrize("owners", [(0, 1), (0, 1, 2), (1, 3), (3, 4), (4, 0, 3), (0, 1, 2, 3, 4)])
@pytest.mark.parametrize("rows", [0, 1, 77])
@pytest.mark.parametrize("changes", [{}, NOISY], ids=["replace", "add-remove"])
def test_equal_tables(owners: tuple[int, ...], rows: int, changes: dict[str, Any]) -> None:
    results, _, ledgers = run(dict.fromkeys(owners, rows), **changes)
    onlookers = [name for name in ("north", "south", "east") if name not in [MEMBERS[i].name for i in owners]]
    noisy = bool(changes) and bool(onlookers)
    top = rows + 2 * list_noise(spec_of("row-order", **changes)).c * noisy
    assert len({(r.n_rows, r.digest) for r in results}) == 1 and rows <= results[0].n_rows <= top
    for number, (result, ledger) in enumerate(zip(results, ledgers, strict=True)):
        np.testing.assert_array_equal(result.rows, np.arange(rows if number in owners else 0))
        assert tuple(ledger.events) == result.events
        assert [e.detail["recipients"] for e in ledger.events] == (
            [onlookers] if noisy and number in owners else []
        )


@pytest.mark.parametrize("rows", [{0: 5, 1: 6}, {0: 5, 1: 5, 2: 4}, {3: 5, 4: 6}, {0: 9, 3: 8}])
@pytest.mark.parametrize("changes", [{}, NOISY], ids=["replace", "add-remove"])
def test_other_tables_stop_at_every_party(rows: dict[int, int], changes: dict[str, Any]) -> None:
    spec, context = (
        spec_of("row-order", **changes),
        Context(bytes(32), tuple(MEMBERS[i] for i in rows), None, MEMBERS[:3]),
    )
    said: list[str] = []

    def body(wire: Wire) -> None:
        try:
            align(wire, rows.get(wire.me), spec, context, Recorder())
        except CosynthError as error:
            said.append(error.sentence)

    parties = max(3, *(i + 1 for i in rows))
    MemoryNetwork(parties).run([body] * parties)
    assert len(said) == parties and all("different numbers of rows" in sentence for sentence in said)


def test_noise_reaches_owners_only() -> None:
    """Two contributors own; what any one computing party gets is n + K and one uniform half of K. Over 60
    runs n + K varies (all draws equal with probability below 0.77^59 < 10^-6), and of the halves, uniform on
    2^64, none is below 2^32 with probability above 1 - 120 * 2^-32."""
    totals = set()
    for _ in range(60):
        results, frames, _ = run({3: 40, 4: 40}, **NOISY)
        totals.add(results[0].n_rows)
        halves = [
            next(int.from_bytes(f.payload, "big") for f in frames if (f.sender, f.receiver) == (3, relay))
            for relay in (0, 1)
        ]
        assert min(halves) > 1 << 32
        assert sum(halves) % (1 << 64) == results[0].n_rows - 40
    assert len(totals) > 1


@pytest.mark.parametrize("change", [1, 1000, 1 << 63], ids=str)
def test_altered_noise_ends_the_run_whatever_it_is(change: int) -> None:
    """K goes through two computing parties, one of which adds to its half: all stop because numbers differ,
    whether K could still be drawn or not, which would tell that party about K."""
    spec, context = spec_of("row-order", **NOISY), Context(bytes(32), MEMBERS[3:5], None, MEMBERS[:3])

    def alter(count: int, peer: int, payload: bytes) -> bytes | None:
        added = (int.from_bytes(payload, "big") + change) % (1 << 64)
        return added.to_bytes(8, "big") if count == 1 and peer == 4 else None

    def body(wire: Wire) -> str:
        try:
            align(
                CheatingWire(wire, alter) if wire.me == 0 else wire,
                40 if wire.me > 2 else None,
                spec,
                context,
                Recorder(),
            )
        except CosynthError as error:
            return error.sentence
        return "aligned"

    for _ in range(4):
        found = MemoryNetwork(5).run([body] * 5)
        assert all("different numbers of rows" in sentence for sentence in found), found


def test_refusals() -> None:
    with pytest.raises(DataRefused, match="more than 100000 rows"):
        run({0: 100_001, 1: 100_001})
    with pytest.raises(StudyInvalid, match="pad_to pads lists"):
        spec_of("row-order", **NOISY, pad_to=(5, 5))
    with pytest.raises(StudyInvalid, match="needs exactly three computing parties"):
        Context(bytes(32), MEMBERS[:2], None, MEMBERS[:2]).check(spec_of("row-order"))
    with pytest.raises(ProtocolAborted, match="different numbers"):
        run({0: 3, 1: 4, 2: 3})


def test_no_number_of_extra_rows_takes_rows_away() -> None:
    """The first owner tells the other K = -5 and announces five rows less: they agree, but rows would lie
    outside the table."""
    spec = spec_of("row-order", malicious=True, **NOISY)
    context = Context(bytes(32), MEMBERS[:2], None, MEMBERS[:3])

    def alter(count: int, peer: int, payload: bytes) -> bytes:
        return (-5 % 2**64 if count == 1 else 77 - 5).to_bytes(8, "big")

    def body(wire: Wire) -> Any:
        deviating = CheatingWire(wire, alter) if wire.me == 0 else wire
        try:
            return align(deviating, 77 if wire.me < 2 else None, spec, context, Recorder())
        except CosynthError as error:
            return error.sentence

    found = MemoryNetwork(3).run([body] * 3)
    assert "fewer rows than this party has" in found[1], found
