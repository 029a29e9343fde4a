"""Dummies: the law of the noise, its delta, and what an alignment with private sizes reveals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from mpc_protocols.errors import BudgetRefused, DataRefused, ProtocolAborted, StudyInvalid
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.psu.align import align
from mpc_protocols.psu.dummies import (
    POOL,
    PRIVATE,
    assemble,
    centre,
    delta_of,
    draw,
    list_size,
    longest_list,
    overlap_noise,
    pool,
    size_events,
    view_events,
)
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context
from mpc_protocols.psu.identifiers.normalise import Identifiers
from mpc_protocols.wire import Wire
from runner.review.conformance.guards import Recorder, refusing
from tests.mpc_protocols.psu.owners import CONTEXT, EAST, NORTH, SOUTH, ids, run, spec_of

SID = bytes(range(32))
PRIVATE_SIZES = {"adjacency": "add-remove", "size_epsilon": Fraction(2), "size_delta": Fraction(1, 1000)}


def law(epsilon: float, c: int) -> list[float]:
    weights = [math.exp(-epsilon * abs(t - c)) for t in range(2 * c + 1)]
    return [w / math.fsum(weights) for w in weights]


@pytest.mark.parametrize(
    ("epsilon", "delta", "fakes"),
    [
        ("0.05", 9, 682),
        ("0.1", 9, 356),
        ("0.25", 9, 150),
        ("0.5", 9, 78),
        ("1", 9, 40),
        ("2", 9, 22),
        ("0.5", 12, 106),
    ],
)
def test_pool_sizes(epsilon: str, delta: int, fakes: int) -> None:
    """The table of `docs/design/psu.md` 3."""
    assert 2 * centre(Fraction(epsilon), Fraction(1, 10**delta)) == fakes


@pytest.mark.parametrize(
    ("epsilon", "c"), [("0.05", 300), ("0.5", 3), ("0.5", 40), ("1", 20), ("3", 1), ("1/3", 17)]
)
def test_delta_is_that_of_the_law(epsilon: str, c: int) -> None:
    """P[K = 0] by summation; and no smaller delta will do: the hockey-stick divergence of K and K + 1, both
    ways."""
    exact, e = float(delta_of(Fraction(epsilon), c)), float(Fraction(epsilon))
    p = law(e, c)
    assert exact == pytest.approx(p[0], rel=1e-12)
    shifted = [0.0, *p]
    stick = math.fsum(max(0.0, a - math.exp(e) * b) for a, b in zip([*p, 0.0], shifted, strict=True))
    reverse = math.fsum(max(0.0, b - math.exp(e) * a) for a, b in zip([*p, 0.0], shifted, strict=True))
    assert exact == pytest.approx(stick, rel=1e-9) and exact == pytest.approx(reverse, rel=1e-9)


def test_centre_is_the_least() -> None:
    for epsilon, delta in (
        (Fraction(1, 3), Fraction(1, 9**6)),
        (Fraction(20), Fraction(1, 3)),
        (Fraction(1, 9), Fraction(1, 9)),
    ):
        c = centre(epsilon, delta)
        assert delta_of(epsilon, c) <= delta and (c == 1 or delta_of(epsilon, c - 1) > delta)
    with pytest.raises(StudyInvalid, match="raise it"):
        centre(Fraction(1, 10**7), Fraction(1, 10**9))


@pytest.mark.parametrize(("epsilon", "c"), [("0.5", 3), ("2", 1), ("0.1", 4)])
def test_draws_follow_the_law(epsilon: str, c: int) -> None:
    """Chi-square of 4,000 draws on 2c + 1 cells, its bound passed but with probability 10^-6
    (Wilson-Hilferty, z = 4.753)."""
    n, degrees = 4000, 2 * c
    counts = np.bincount([draw(Fraction(epsilon), c) for _ in range(n)], minlength=2 * c + 1)
    expected = np.array(law(float(Fraction(epsilon)), c)) * n
    bound = degrees * (1 - 2 / (9 * degrees) + 4.753 * math.sqrt(2 / (9 * degrees))) ** 3
    assert len(counts) == 2 * c + 1 and ((counts - expected) ** 2 / expected).sum() < bound


def spec_with(**changes: object) -> AlignmentSpec:
    return spec_of("dh2", **{**PRIVATE_SIZES, **changes})


def test_lists() -> None:
    """All of the own pool, a subset of the other's, private dummies up to a length that says nothing."""
    spec = spec_with(pad_to=(30, 40))
    c = centre(spec.size_epsilon, spec.size_delta)
    drawn = set()
    for n in (0, 29, 30):
        for _ in range(40):
            made = assemble(ids(range(n)), spec, SID, 0, "north")
            assert made.entries[:n] == ids(range(n)) and made.real == n
            assert len(made.entries) == len(set(made.entries)) == 30 + 4 * c == list_size(spec, 0)
            fakes = set(made.entries[n:])
            assert set(pool(SID, 0, c)) <= fakes
            others = fakes & set(pool(SID, 1, c))
            drawn.add(len(others))
            assert all(e.startswith(PRIVATE) for e in fakes - others - set(pool(SID, 0, c)))
    assert len(drawn) > 1  # K is one value in all 120 draws with probability below 0.77^119 < 10^-13
    assert len(set(pool(SID, 0, c)) | set(pool(SID, 1, c)) | set(pool(bytes(32), 0, c))) == 6 * c
    assert all(e.startswith(POOL) for e in pool(SID, 0, c))


def test_lists_without_a_public_size() -> None:
    spec = spec_with()
    c = centre(spec.size_epsilon, spec.size_delta)
    sizes = {len(assemble(ids(range(20)), spec, SID, 1, "south").entries) for _ in range(200)}
    assert sizes <= set(range(20 + 4 * c, 20 + 6 * c + 1)) and len(sizes) > 1
    assert list_size(spec, 1) is None and max(sizes) <= longest_list(spec) == spec.max_size + 6 * c


def test_refusals() -> None:
    with pytest.raises(DataRefused, match="more identifiers than \\[alignment\\] pad_to = 30"):
        assemble(ids(range(31)), spec_with(pad_to=(30, 40)), SID, 0, "north")
    with pytest.raises(DataRefused, match="fewer identifiers"):
        assemble(ids(range(4)), spec_with(min_size=5), SID, 0, "north")
    with pytest.raises(ValueError, match="not canonical"):
        assemble([POOL + b"forged"], spec_with(), SID, 0, "north")


def entry(entries: list[bytes], spec: AlignmentSpec, ledger: object) -> object:
    def body(wire: Wire) -> Alignment:
        identifiers = Identifiers(entries, np.arange(len(entries)), ("text",))
        return align(wire, identifiers, spec, CONTEXT, ledger)  # type: ignore[arg-type]

    return body


@pytest.mark.parametrize("method", ["florist", "dh2", "dh2+proofs", "helper"])
@pytest.mark.parametrize("pad_to", [None, (25, 30)], ids=["noisy", "padded"])
def test_alignments_with_private_sizes(method: str, pad_to: tuple[int, int] | None) -> None:
    """Maps agree exactly on common identifiers, dummies belong to nobody, k shows plus K1 + K2 only."""
    spec = spec_of(method, **PRIVATE_SIZES, pad_to=pad_to)
    first, second = ids(range(20)), ids(range(8, 30))
    ledgers = Recorder(), Recorder()
    done = run(spec, entry(first, spec, ledgers[0]), entry(second, spec, ledgers[1]))  # type: ignore[arg-type]
    a, b = done.results
    row = dict(zip(first, a.rows.tolist(), strict=True))
    assert [row.get(e) for e in second] == [
        r if e in row else None for e, r in zip(second, b.rows.tolist(), strict=True)
    ]
    assert a.n_rows == b.n_rows and (a.membership & b.membership).sum() == 12
    assert a.membership.sum() == 20 and b.membership.sum() == 22
    c = centre(spec.size_epsilon, spec.size_delta)
    if pad_to:
        seen = 2 * 4 * c + sum(pad_to) - a.n_rows  # N_a + N_b - u
        assert 12 <= seen <= 12 + 4 * c
    for result, ledger, other in ((a, ledgers[0], "south"), (b, ledgers[1], "north")):
        assert result.events == tuple(ledger.events)
        assert all(
            e.detail["recipients"] == [other, "east"][: 1 + (method == "helper")] for e in ledger.events
        )
    assert [e.detail["of"] for e in ledgers[0].events] == (
        ["intersection"] if pad_to else ["intersection", "list"]
    )


def test_events() -> None:
    spec = spec_with()
    delta = delta_of(Fraction(2), centre(Fraction(2), Fraction(1, 1000)))
    events = size_events(spec, ["south"])
    assert [(e.what, e.rho, e.beta) for e in events] == [("alignment.size", Fraction(2), delta)] * 2
    assert delta <= Fraction(1, 1000)
    assert events[0].detail["recipients"] == ["south"]
    assert size_events(spec_of("dh2"), ["south"]) == ()


@pytest.mark.parametrize("method", ["florist", "dh2"])
@pytest.mark.parametrize("pad_to", [None, (25, 30)], ids=["noisy", "padded"])
def test_a_computing_party_that_hears_the_union_is_charged_for_it_alone(
    method: str, pad_to: tuple[int, int] | None
) -> None:
    spec = spec_of(method, **PRIVATE_SIZES, pad_to=pad_to)
    context = Context(bytes(32), (NORTH, SOUTH), None, (NORTH, SOUTH, EAST))
    ledgers = [Recorder() for _ in range(3)]

    def body(wire: Wire) -> Alignment:
        own = None if wire.me == 2 else Identifiers(ids(range(20)), np.arange(20), ("text",))
        return align(wire, own, spec, context, ledgers[wire.me])

    MemoryNetwork(3).run([body] * 3)
    owners = ["north", "south"]
    for me, ledger in enumerate(ledgers[:2]):
        known = {event.detail["of"]: event.detail["recipients"] for event in ledger.events}
        assert known == {"intersection": [owners[1 - me], "east"]} | (
            {} if pad_to else {"list": [owners[1 - me]]}
        )
    assert not ledgers[2].events
    (seen,) = view_events(spec, owners, "east")
    assert (seen.detail["of"], seen.rho, seen.beta) == ("union", 2, overlap_noise(spec).delta)  # type: ignore[comparison-overlap]
    assert len(view_events(spec, owners, "north")) == (1 if pad_to else 2)
    assert (
        len(view_events(spec_of("helper", **PRIVATE_SIZES), owners, "east")) == 3
    )  # a helper gets both lists


@pytest.mark.parametrize("padded", [True, False])
def test_the_union_with_its_noise_is_as_private_as_its_event_says(padded: bool) -> None:
    """The exact law of what an outsider hears, |X_1 u X_2| + L_1 + L_2 - E_1 - E_2 (with pad_to: a constant -
    r - E_1 - E_2), under one identifier more or less: its hockey-stick divergence at epsilon. At most the
    event's delta; one E reaches it."""
    epsilon, c = 2.0, centre(Fraction(2), Fraction(1, 1000))
    one = np.array(law(epsilon, c))

    def stick(noise: np.ndarray) -> float:
        there, moved = np.append(noise, 0.0), np.append(0.0, noise)
        return max(
            float(np.maximum(0, a - math.exp(epsilon) * b).sum()) for a, b in ((there, moved), (moved, there))
        )

    delta = float(delta_of(Fraction(2), c))
    both = np.convolve(one, one)  # the law is symmetric: minus E is E - 2c
    assert stick(both if padded else np.convolve(both, both)) <= delta
    assert stick(one) == pytest.approx(delta, rel=1e-9)


def test_on_record_before_the_first_message() -> None:
    """A guard that refuses stops the run before anything is sent; one that agrees keeps the events though the
    run fails."""
    spec = spec_with(pad_to=(25, 30))
    with pytest.raises(BudgetRefused):
        run(spec, entry(ids(range(20)), spec, refusing()), lambda wire: None)  # type: ignore[arg-type]
    ledger = Recorder()
    with pytest.raises(Exception, match=r"party 1 leaves"):
        run(spec, entry(ids(range(20)), spec, ledger), lambda wire: leave())  # type: ignore[arg-type]
    assert len(ledger.events) == 1


def leave() -> None:
    raise RuntimeError("party 1 leaves")


def test_the_other_must_keep_to_its_public_size() -> None:
    """With pad_to every list has one length; any other is refused."""
    spec, other = spec_with(pad_to=(25, 30)), spec_with(pad_to=(25, 31))

    class Same(AlignmentSpec):
        """Announces other lists under the same salt."""

        def to_bytes(self) -> bytes:
            return spec.to_bytes()

    wrong = Same(**{name: getattr(other, name) for name in other.__dataclass_fields__})
    bodies = [entry(ids(range(20)), each, Recorder()) for each in (spec, wrong)]
    with pytest.raises(
        ProtocolAborted, match=r"announced a list of \d+ entries where \d+ to \d+ are allowed"
    ):
        run(spec, *bodies)  # type: ignore[arg-type]
