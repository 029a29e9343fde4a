"""`merge3` with private sizes: the law of planted pairs for m owners, its delta, who sees what, events before
the first message."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mpc_protocols.errors import BudgetRefused, DataRefused
from mpc_protocols.psu.align import align
from mpc_protocols.psu.dh2.cost import dh2_cost
from mpc_protocols.psu.dummies import (
    PRIVATE,
    assemble,
    centre,
    delta_of,
    list_noise,
    list_size,
    longest_list,
    overlap_noise,
    size_events,
    view_events,
)
from mpc_protocols.psu.forecast import forecast, list_lengths
from mpc_protocols.psu.functionality import Context
from mpc_protocols.wire import Wire
from runner.review.conformance.guards import refusing
from tests.mpc_protocols.psu.merged import MEMBERS, context_of, identifiers, merge_lists
from tests.mpc_protocols.psu.owners import ids, spec_of
from tests.mpc_protocols.psu.test_dummies import SID, law

NOISY: dict[str, Any] = {
    "adjacency": "add-remove",
    "size_epsilon": Fraction(2),
    "size_delta": Fraction(1, 1000),
}


@pytest.mark.parametrize(
    ("epsilon", "shift", "c"), [("0.5", 1, 40), ("1", 2, 30), ("0.5", 7, 200), ("3", 3, 3), ("2", 4, 9)]
)
def test_delta_of_a_shift(epsilon: str, shift: int, c: int) -> None:
    """P[E < s] by summation. At epsilon' s the hockey-stick divergence of E and E + s is exactly that, both
    ways; of smaller shifts no more: so an identifier of up to s + 1 owners is covered."""
    step = Fraction(epsilon) / shift
    exact, p = float(delta_of(step, c, shift)), law(float(step), c)
    assert exact == pytest.approx(math.fsum(p[:shift]), rel=1e-9)
    for moved in range(1, shift + 1):
        a, b = [*p, *[0.0] * moved], [*[0.0] * moved, *p]
        for one, other in ((a, b), (b, a)):
            stick = math.fsum(
                max(0.0, x - math.exp(float(step) * shift) * y) for x, y in zip(one, other, strict=True)
            )
            assert stick == pytest.approx(exact, rel=1e-9) if moved == shift else stick <= exact
    assert delta_of(step, shift - 1 if shift > 1 else 0, shift) == 1


@pytest.mark.parametrize("owners", range(2, 9))
def test_noise_for_more_owners(owners: int) -> None:
    """The least c for the study's delta at epsilon over the owners - 1 repetitions that an identifier can
    make."""
    spec = spec_of("merge3", **NOISY)
    noise = overlap_noise(spec, owners)
    assert (
        noise.epsilon == Fraction(2, owners - 1)
        and noise.shift == owners - 1
        and noise.delta <= spec.size_delta
    )
    assert delta_of(noise.epsilon, noise.c - 1, noise.shift) > spec.size_delta
    assert noise.c == centre(noise.epsilon, spec.size_delta, noise.shift)


def test_lists_with_pairs() -> None:
    """Real ones, E private dummies twice, the rest once, up to a length that E does not change; E by its law:
    chi-square of 3,000 lists of three owners, its bound passed but with probability 10^-6 (Wilson-Hilferty, z
    = 4.753), rare cells joined."""
    spec = spec_of("merge3", **NOISY, pad_to=(30, 40, 50))
    noise = overlap_noise(spec, 3)
    drawn: Counter[int] = Counter()
    for _ in range(3000):
        made = assemble(ids(range(20)), spec, SID, 1, "south", owners=3)
        counts = Counter(made.entries)
        fakes = {e: k for e, k in counts.items() if e.startswith(PRIVATE)}
        assert len(made.entries) == 40 + 4 * noise.c == list_size(spec, 1, 3) and made.entries[:20] == ids(
            range(20)
        )
        assert len(fakes) + 20 == len(counts) and set(fakes.values()) <= {1, 2}
        drawn[sum(k == 2 for k in fakes.values())] += 1
    expected = 3000 * np.array(law(float(noise.epsilon), noise.c))
    near = expected >= 5
    observed = np.array([drawn[t] for t in range(len(expected))])
    cells = [
        *zip(observed[near], expected[near], strict=True),
        (observed[~near].sum(), expected[~near].sum()),
    ]
    degrees = len(cells) - 1
    bound = degrees * (1 - 2 / (9 * degrees) + 4.753 * math.sqrt(2 / (9 * degrees))) ** 3
    assert sum((o - e) ** 2 / e for o, e in cells) < bound


@pytest.mark.parametrize("owners", [(0, 1), (0, 3), (2, 0, 1), (3, 4, 0, 5)], ids=str)
@pytest.mark.parametrize("padded", [False, True], ids=["noisy", "padded"])
def test_alignments_with_private_sizes(owners: tuple[int, ...], padded: bool) -> None:
    """Maps agree exactly on common identifiers, dummies belong to nobody, repetitions show plus pairs only;
    events are on record at the owners and nowhere else."""
    m = len(owners)
    sets = [list(range(10 * i, 10 * i + 25)) for i in range(m)]
    pad_to = tuple(range(25, 25 + m)) if padded else None
    spec = spec_of("merge3", **NOISY, pad_to=pad_to)
    done = merge_lists([ids(s) for s in sets], owners, **NOISY, pad_to=pad_to)
    rows: dict[int, int] = {}
    for members, number in zip(sets, owners, strict=True):
        result = done.results[number]
        for person, row in zip(members, result.rows.tolist(), strict=True):
            assert rows.setdefault(person, row) == row
        assert result.membership.sum() == 25
    union = {r.n_rows for r in done.results}
    assert len(set(rows.values())) == len(rows) == len(set().union(*sets)) and len(union) == 1
    noise = overlap_noise(spec, m)
    if pad_to:
        repeated = sum(list_size(spec, side, m) or 0 for side in range(m)) - union.pop()
        true = 25 * m - len(rows)
        assert true <= repeated <= true + 2 * m * noise.c
    names = [MEMBERS[i].name for i in dict.fromkeys([*owners, 0, 1, 2])]
    for number, (result, ledger) in enumerate(zip(done.results, done.ledgers, strict=True)):
        assert result.events == tuple(ledger.events)
        assert [e.detail["of"] for e in ledger.events] == (
            [] if number not in owners else ["intersection"] if padded else ["intersection", "list"]
        )
        for event in ledger.events:
            recipients = event.detail["recipients"]
            assert isinstance(recipients, list)
            assert sorted(recipients) == sorted(set(names) - {MEMBERS[number].name})
            assert event.rho == 2 and event.beta <= Fraction(1, 1000)


def test_views() -> None:
    """The report's account of one party: the repetitions once, and every noisy list but its own."""
    spec = spec_of("merge3", **NOISY)
    assert [e.detail["of"] for e in view_events(spec, ["a", "b", "c"], "b")] == [
        "intersection",
        "list of a",
        "list of c",
    ]
    assert [e.detail["of"] for e in view_events(spec, ["a", "b", "c"], "helper")] == [
        "intersection",
        "list of a",
        "list of b",
        "list of c",
    ]
    padded = spec_of("merge3", **NOISY, pad_to=(5, 5, 5))
    assert [e.detail["of"] for e in view_events(padded, ["a", "b", "c"], "b")] == ["intersection"]
    assert view_events(spec_of("merge3"), ["a", "b"], "a") == size_events(spec_of("merge3"), ["a"], 2) == ()
    assert longest_list(spec, 3) == spec.max_size + 2 * list_noise(spec).c + 4 * overlap_noise(spec, 3).c


def test_on_record_before_the_first_message() -> None:
    """A guard that refuses stops its party before it has sent anything."""

    def refused(wire: Wire) -> Any:
        try:
            return align(
                wire, identifiers(ids(range(5))), spec_of("merge3", **NOISY), context_of((0, 1)), refusing()
            )
        finally:
            assert wire.traffic().messages_sent == 0

    with pytest.raises(BudgetRefused):
        merge_lists([ids(range(5)), ids(range(5))], (0, 1), bodies={0: refused}, **NOISY)
    with pytest.raises(DataRefused, match="more identifiers than \\[alignment\\] pad_to = 4"):
        merge_lists([ids(range(5)), ids(range(5))], (0, 1), **NOISY, pad_to=(4, 5))


def test_forecast_is_what_happens() -> None:
    """Bytes by party, and rounds, of a run whose sizes are public; with noise the lists at their means."""
    owners = (0, 3, 4)
    lists = [ids(range(40)), ids(range(20, 50)), ids(range(45, 60))]
    done = merge_lists(lists, owners)
    told = forecast(spec_of("merge3"), context_of(owners), [40, 30, 15], done.results[0].n_rows)
    assert [t.bytes_sent for t in done.traffic] == [told.sent[i] for i in range(5)]
    assert max(t.rounds for t in done.traffic) == told.rounds and 0 < told.false_merges < 1e-12
    noisy = spec_of("merge3", **NOISY)
    assert list_lengths(noisy, [10, 20]) == [
        n + list_noise(noisy).c + 4 * overlap_noise(noisy).c for n in (10, 20)
    ]
    two = Context(bytes(32), MEMBERS[:2], MEMBERS[2], MEMBERS[:3])
    for method in ("dh2", "florist", "helper", "row-order"):
        found = forecast(spec_of(method), two, [100, 100], 150)
        assert found.rounds > 0 and all(found.sent[i] > 0 for i in (0, 1))
    n, pool = list_lengths(noisy, [100, 100])[0], 2 * overlap_noise(noisy).c
    for spec, due in (
        (spec_of("dh2"), dh2_cost(100, 100, 150)),
        (spec_of("dh2+proofs"), dh2_cost(100, 100, 150, proofs=True)),
        (spec_of("dh2", **NOISY), dh2_cost(n, n, 150, pool=pool)),
    ):
        told = forecast(spec, two, [100, 100], 150)
        assert (
            told.exponentiations == dict(enumerate(due.powers[:2]))
            and [told.sent[i] for i in (0, 1)]
            == [sent + 1 + 40 for sent in due.sent[:2]]  # types; u, to a third
        )
