"""The toolkit's protocols against plaintext: what is opened, what is charged, what is refused, rounds and
bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_protocols.backends.replicated.sharing import trio
from mpc_protocols.backends.replicated.sharing.ring import RingShare, centred, open_ring
from mpc_protocols.engine import prg
from mpc_protocols.engine.noise.sampling import gaussian_noise, gumbel_noise
from mpc_protocols.errors import BudgetRefused, CosynthError, DataRefused, ProtocolAborted, UsageError
from mpc_protocols.functionality import Event, Guard
from mpc_protocols.in_memory.memory_wire import MemoryNetwork, run_parties
from mpc_protocols.in_memory.presumed import AllowAll
from mpc_protocols.mechanisms.gaussian import sampler
from mpc_protocols.toolkit.shared_array import MAX_ENTRY, MIN_ENTRY, SharedArray
from mpc_protocols.toolkit.three_parties import ThreeParties, UnionRows, _selection_plan
from mpc_protocols.wire import Wire

Program = Callable[["Recording"], Any]


class Recording(ThreeParties, Guard):
    """Keeps the names of releases, by which a test draws the same noise again, and what was charged."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire, self)  # its own guard
        self.releases: list[bytes] = []
        self.events: list[Event] = []

    def authorise(self, event: Event, inputs: bytes) -> None:
        assert inputs == self.releases[-1]
        self.events.append(event)

    def _agree(self, what: str, public: str) -> bytes:
        self.releases.append(super()._agree(what, public))
        return self.releases[-1]


def run(program: Program) -> list[Any]:
    return run_parties([lambda wire: program(Recording(wire))] * 3)


def mine(party: ThreeParties, values: dict[int, Any]) -> Any:
    return values.get(party.number)


def opened(program: Program) -> Any:
    """What all three opened, which must be the same."""
    first, *others = run(lambda party: party.open(program(party)))
    for other in others:
        assert np.array_equal(first, other)
    return first


@given(st.integers(0, 2), st.lists(st.integers(-1000, 1000), min_size=1, max_size=6), st.integers(-50, 50))
@settings(max_examples=10)
def test_shared_numbers_add_multiply_and_sum_as_numbers_do(
    owner: int, values: list[int], factor: int
) -> None:
    x = np.array(values)

    def program(party: Recording) -> SharedArray:
        shared = party.share(
            x if party.number == owner else None, owner=owner, shape=len(x), low=-1000, high=1000
        )
        ones = party.shared_sum(np.full(len(x), party.number), high=2)
        return (party.multiply(shared, shared) * factor - shared + ones * np.arange(len(x))).sum()

    assert opened(program)[0] == (factor * x * x - x + 3 * np.arange(len(x))).sum()


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-300, 300)])
@pytest.mark.parametrize("owners", [(0, 1), (1, 0), (2, 0), (1, 2)])
def test_a_product_of_split_columns_is_that_of_the_matrices(
    owners: tuple[int, int], low: int, high: int
) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.integers(low, high + 1, (700, 3)), rng.integers(low, high + 1, (700, 2))

    def program(party: Recording) -> SharedArray:
        own = mine(party, {owners[0]: a, owners[1]: b})
        return party.transposed_product(own, owners=owners, rows=700, columns=(3, 2), low=low, high=high)

    assert np.array_equal(opened(program), a.T @ b)


@pytest.mark.parametrize("sigma2", [25, Fraction(1, 3), 10**6])
def test_what_noisy_opens_is_the_array_plus_the_noise_of_its_release_and_nothing_else(sigma2: Any) -> None:
    def program(party: Recording) -> Any:
        x = party.shared_sum(np.arange(12).reshape(3, 4) + party.number, high=100)
        noisy = party.noisy(x, sigma2=sigma2, sensitivity2=3)
        bits = party._gates.release_bits(party.releases[-1])
        again = gaussian_noise(party._gates, bits, sampler(Fraction(sigma2)), 12, np.uint32)
        return noisy, centred(open_ring(party._trio, again)).reshape(3, 4), party.events

    for noisy, noise, [event] in run(program):
        assert np.array_equal(noisy.values, 3 * np.arange(12).reshape(3, 4) + 3 + noise)
        assert np.any(noise) and noisy.sigma2 == sigma2
        assert noisy.rho == event.rho == Fraction(3) / (2 * Fraction(sigma2))
        assert event.beta == 3 * sampler(Fraction(sigma2)).tv


@pytest.mark.parametrize(
    ("sensitivity", "epsilon", "high"), [(1, 1.0, 400), (3, Fraction(1, 4), 5), (2, 0.05, 10**6)]
)
def test_the_arg_max_is_that_of_the_scaled_scores_plus_the_noise_of_its_release(
    sensitivity: int, epsilon: Any, high: int
) -> None:
    """Bit for bit, so that the distribution is that of `mechanisms.selection`, which its own tests enumerate."""
    scores = np.array([0, high // 2, high, high - 1, -high])

    def program(party: Recording) -> Any:
        x = party.share(scores if party.number == 2 else None, owner=2, shape=5, low=-high, high=high)
        chosen = party.arg_max(x, sensitivity=sensitivity, epsilon=epsilon)
        plan = _selection_plan(x, sensitivity, epsilon)
        ring = np.uint32 if plan.ring_bits == 32 else np.uint64
        bits = party._gates.release_bits(party.releases[-1])
        noise = centred(open_ring(party._trio, gumbel_noise(party._gates, bits, 5, plan.a, ring)))
        return chosen, plan, noise, party.events

    for chosen, plan, noise, events in run(program):
        weight = plan.weights[0]
        assert chosen.position == int(np.argmax(weight * (scores + high) + noise))
        assert events == [plan.event] and chosen.rho == plan.event.rho == chosen.epsilon**2 / 8
        assert Fraction(epsilon) * Fraction(9, 10) < chosen.epsilon <= Fraction(epsilon)
        # e^(epsilon (score - score') / (2 sensitivity)) of Gumbel noise in units of 64 2^a, but for what
        # rounding inflates
        exact = chosen.epsilon / (2 * sensitivity)
        assert Fraction(9, 10) * exact < Fraction(weight, 64 << plan.a) <= exact


def test_numbers_of_numpy_s_bound_and_charge_as_python_s_do() -> None:
    """Theirs wrap around: 3 * int8(100) is 44."""

    def program(party: Recording) -> Any:
        narrow = party.shared_sum([100], high=np.int8(100))  # type: ignore[arg-type]
        noisy = party.noisy(narrow, sigma2=Fraction(np.int64(4)), sensitivity2=np.int8(100))  # type: ignore[call-overload, arg-type]
        return narrow.high, type(narrow.high), noisy.rho

    assert run(program) == [(300, int, Fraction(100, 8))] * 3


def test_an_array_is_taken_apart_and_scaled_from_either_side() -> None:
    def program(party: Recording) -> SharedArray:
        x = party.share(mine(party, {1: [3, 5]}), owner=1, shape=2, high=9)
        scaled: SharedArray = np.array([2, -1]) * (3 * x)
        return scaled[1].reshape((1, 1)) + scaled[:1].reshape(1, 1)

    assert opened(program) == [[18 - 15]]


def test_another_thread_is_refused_as_it_would_draw_the_same_masks() -> None:
    def program(wire: Wire) -> None:
        party = ThreeParties(wire)
        with ThreadPoolExecutor(1) as pool:
            call = pool.submit(
                lambda: party.share([1] if party.number == 0 else None, owner=0, shape=1, high=1)
            )
        with pytest.raises(UsageError, match="in the thread and process"):
            call.result()
        assert party.traffic().bytes_sent == 0

    run_parties([program] * 3)


def test_many_scores_are_compared_in_groups_and_a_clear_winner_wins() -> None:
    scores = np.zeros(1500, int)
    scores[1234] = 10**6

    def program(party: Recording) -> int:
        x = party.share(mine(party, {0: scores}), owner=0, shape=1500, high=10**6)
        return party.arg_max(x, sensitivity=1, epsilon=1).position

    assert run(program) == [1234] * 3


@pytest.mark.parametrize("owners", [(0, 1), (2, 0)])
def test_a_union_gives_the_same_identifier_the_same_row_at_both_owners(owners: tuple[int, int]) -> None:
    lists: dict[int, Any] = {owners[0]: ["ada", "Ben ", "cy"], owners[1]: ["CY", "dee"]}

    def program(party: Recording) -> tuple[UnionRows, UnionRows]:
        return party.union(mine(party, lists), owners=owners), party.union(
            mine(party, {owners[0]: [1, 2], owners[1]: [2]}), owners=owners
        )

    results = run(program)
    first, second = (results[owner] for owner in owners)
    assert {each.size for each, _ in results} == {4} and {each.size for _, each in results} == {2}
    assert first[0].rows[2] == second[0].rows[0] and len({*first[0].rows, *second[0].rows}) == 4
    assert first[1].rows[1] == second[1].rows[0]
    [third] = {0, 1, 2} - set(owners)
    assert len(results[third][0].rows) == 0


def test_no_stream_of_masks_or_noise_serves_twice_in_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two lists or two releases under one mask would show what they differ in."""
    keys: dict[str, list[bytes]] = {}
    derive = prg.derive

    def noted(key: bytes, purpose: bytes, *context: bytes) -> bytes:
        drawn = derive(key, purpose, *context)
        keys.setdefault(threading.current_thread().name, []).append(drawn)
        return drawn

    monkeypatch.setattr(trio, "derive", noted)

    def program(party: Recording) -> None:
        x = party.shared_sum([1, 2], high=5)
        for _ in range(2):
            party.union(mine(party, {0: ["a", "b"], 1: ["b"]}))
            party.noise(3, sigma2=4)
            party.noisy(x, sigma2=4, sensitivity2=1)
            party.arg_max(x, sensitivity=1, epsilon=1)

    run(program)
    assert len(keys) == 3
    for drawn in keys.values():
        assert len(drawn) >= 2 * 2 * 4 and len(set(drawn)) == len(drawn)


def spent(party: Recording, call: Program) -> Any:
    call(party)
    return party.traffic()


def test_rounds_and_bytes_are_those_that_the_page_states() -> None:
    counted: dict[str, Program] = {
        "share": lambda party: party.share(mine(party, {0: np.arange(100)}), owner=0, shape=100, high=99),
        "sum": lambda party: party.shared_sum(np.arange(100), high=99),
        "product": lambda party: party.transposed_product(
            mine(party, {0: np.ones((50, 2), int), 1: np.ones((50, 3), int)}),
            owners=(0, 1),
            rows=50,
            columns=(2, 3),
        ),
    }
    costs = {}
    for name, call in counted.items():
        traffic = run(partial(spent, call=call))
        costs[name] = (max(each.rounds for each in traffic), [each.bytes_sent for each in traffic])
    agreed = 2 * 32
    assert costs == {
        "share": (1, [400, 0, 0]),
        "sum": (2, [agreed + 400] * 3),
        "product": (3, [agreed + 50 * 2 * 4 + 24, agreed + 50 * 3 * 4 + 24, agreed + 24]),
    }


def test_a_refused_release_sends_nothing_but_the_comparison_of_public_arguments() -> None:
    def program(wire: Wire) -> None:
        party = ThreeParties(wire)
        x = party.shared_sum([1, 2], high=5)
        before = party.traffic().bytes_sent
        with pytest.raises(BudgetRefused, match="without a budget"):
            party.noisy(x, sigma2=4, sensitivity2=1)
        with pytest.raises(BudgetRefused, match="without a budget"):
            party.arg_max(x, sensitivity=1, epsilon=1)
        assert party.traffic().bytes_sent - before == 2 * 2 * 32

    run_parties([program] * 3)


@pytest.mark.parametrize("what", ["noisy", "arg_max", "open", "shared_sum", "noise", "transposed_product"])
def test_parties_with_other_public_arguments_stop_before_anything_is_opened(what: str) -> None:
    def program(wire: Wire) -> None:
        party = ThreeParties(wire, AllowAll())
        x = party.shared_sum([1, 2], high=5)
        odd = party.number == 1
        calls: dict[str, Callable[[], object]] = {
            "noisy": lambda: party.noisy(x, sigma2=5 if odd else 4, sensitivity2=1),
            "arg_max": lambda: party.arg_max(x, sensitivity=1, epsilon=2 if odd else 1),
            "open": lambda: party.open(x * 2 if odd else x),
            "shared_sum": lambda: party.shared_sum([1], high=6 if odd else 5),
            "noise": lambda: party.noise(3 if odd else 4, sigma2=4),
            "transposed_product": lambda: party.transposed_product(
                [[1]] if party.number < 2 else None, owners=(1, 0) if odd else (0, 1), rows=1, columns=(1, 1)
            ),
        }
        calls[what]()

    with pytest.raises(ProtocolAborted, match="other public arguments"):
        run_parties([program] * 3)


def test_four_parties_or_a_contributor_are_refused() -> None:
    for parties, computing in ((4, 4), (4, 3), (2, 2)):
        with pytest.raises(UsageError, match="exactly three parties"):
            ThreeParties(MemoryNetwork(parties, computing).wire(0))


def test_a_second_party_on_one_wire_is_refused_as_it_would_draw_the_same_masks() -> None:
    wire = MemoryNetwork(3).wire(0)
    ThreeParties(wire)
    with pytest.raises(UsageError, match="has a party already"):
        ThreeParties(wire)


def test_no_text_of_a_result_holds_a_share_or_a_row() -> None:
    def program(party: Recording) -> tuple[str, str]:
        x = party.share(mine(party, {0: [123456]}), owner=0, shape=1, high=10**6)
        return repr(x), repr(party.union(mine(party, {0: ["a"], 1: ["b"]})))

    for shared, union in run(program):
        assert shared == "SharedArray(shape=(1,), low=0, high=1000000)"
        assert union == "UnionRows(size=2)"


MISTAKES: dict[str, Callable[[ThreeParties, SharedArray], object]] = {
    "floats": lambda p, x: p.shared_sum([1.5], high=9),
    "text": lambda p, x: p.shared_sum(["a"], high=9),
    "nothing": lambda p, x: p.shared_sum([], high=9),
    "None": lambda p, x: p.shared_sum(None, high=9),
    "beyond high": lambda p, x: p.shared_sum([123457], high=9),
    "below low": lambda p, x: p.shared_sum([-123457], high=9),
    "unsigned": lambda p, x: p.shared_sum(np.array([2**64 - 1], np.uint64), high=9),
    "bounds the wrong way": lambda p, x: p.shared_sum([1], high=0, low=1),
    "bounds of floats": lambda p, x: p.shared_sum([1], high=1.5),  # type: ignore[arg-type]
    "sum too wide": lambda p, x: p.shared_sum([1], high=MAX_ENTRY),
    "no such owner": lambda p, x: p.share(None, owner=3, shape=1, high=1),
    "owner by name": lambda p, x: p.share(None, owner="north", shape=1, high=1),  # type: ignore[arg-type]
    "owner without values": lambda p, x: p.share(None, owner=0, shape=1, high=1),
    "values of another": lambda p, x: p.share([1], owner=1, shape=1, high=1),
    "another shape": lambda p, x: p.share([1, 2], owner=0, shape=3, high=2),
    "no shape": lambda p, x: p.share([1], owner=0, shape=(), high=2),
    "negative shape": lambda p, x: p.share([1], owner=0, shape=-1, high=2),
    "shape too large": lambda p, x: p.share(None, owner=1, shape=1 << 27, high=2),
    "addition of shapes": lambda p, x: x + x[:1],
    "product of shapes": lambda p, x: p.multiply(x, x[:1]),
    "difference too wide": lambda p, x: SharedArray(x.share, MIN_ENTRY, 0) - x,
    "scaled too wide": lambda p, x: x * (1 << 31),
    "factors of floats": lambda p, x: x * np.array([0.5]),
    "factors of another shape": lambda p, x: x * np.array([1, 2, 3]),
    "a number added": lambda p, x: x + 1,  # type: ignore[operator]
    "an array subtracted": lambda p, x: x - np.array([1, 2]),
    "shared times shared": lambda p, x: x * x,  # type: ignore[operator]
    "no such entry": lambda p, x: x[7],
    "an entry by name": lambda p, x: x["a"],
    "no entry": lambda p, x: x[:0],
    "reshaped to another size": lambda p, x: x.reshape(3),
    "reshaped to text": lambda p, x: x.reshape("a"),  # type: ignore[arg-type]
    "rows of two lengths": lambda p, x: p.shared_sum([[1], [1, 2]], high=9),
    "public numbers opened": lambda p, x: p.open([1]),  # type: ignore[arg-type]
    "public numbers multiplied": lambda p, x: p.multiply(x, [1, 2]),  # type: ignore[arg-type]
    "public numbers with noise": lambda p, x: p.noisy(np.array([1, 2]), sigma2=4, sensitivity2=1),  # type: ignore[arg-type]
    "public scores": lambda p, x: p.arg_max([1, 2], sensitivity=1, epsilon=1),  # type: ignore[arg-type]
    "bounds of NumPy's that wrap": lambda p, x: p.multiply(
        *[SharedArray(x.share, np.int32(0), np.int32(70_000))] * 2  # type: ignore[arg-type]
    ),
    "sigma2 zero": lambda p, x: p.noisy(x, sigma2=0, sensitivity2=1),
    "sigma2 not a number": lambda p, x: p.noisy(x, sigma2=float("nan"), sensitivity2=1),
    "sigma2 text": lambda p, x: p.noisy(x, sigma2="4", sensitivity2=1),  # type: ignore[arg-type]
    "sensitivity zero": lambda p, x: p.noisy(x, sigma2=4, sensitivity2=0),
    "sensitivity a float": lambda p, x: p.noisy(x, sigma2=4, sensitivity2=1.0),  # type: ignore[arg-type]
    "noise too wide": lambda p, x: p.noisy(SharedArray(x.share, 0, MAX_ENTRY), sigma2=4, sensitivity2=1),
    "no noise": lambda p, x: p.noise(0, sigma2=4),
    "one score": lambda p, x: p.arg_max(x[:1], sensitivity=1, epsilon=1),
    "a matrix of scores": lambda p, x: p.arg_max(x.reshape(1, 2), sensitivity=1, epsilon=1),
    "epsilon zero": lambda p, x: p.arg_max(x, sensitivity=1, epsilon=0),
    "epsilon huge": lambda p, x: p.arg_max(x, sensitivity=1, epsilon=1e9),
    "epsilon infinite": lambda p, x: p.arg_max(x, sensitivity=1, epsilon=float("inf")),
    "scores all alike": lambda p, x: p.arg_max(SharedArray(x.share, 3, 3), sensitivity=1, epsilon=1),
    "scores too far apart": lambda p, x: p.arg_max(
        SharedArray(x.share, MIN_ENTRY, 0), sensitivity=1, epsilon=1
    ),
    "epsilon beyond the keys": lambda p, x: p.arg_max(x, sensitivity=1, epsilon=1e-17),
    "one owner twice": lambda p, x: p.union(["a"], owners=(0, 0)),
    "owners no pair": lambda p, x: p.union(["a"], owners=1),  # type: ignore[arg-type]
    "no list": lambda p, x: p.union(None),
    "a list too many": lambda p, x: p.union(["a"], owners=(1, 2)),
    "a text for a list": lambda p, x: p.union("ada"),
    "an identifier twice": lambda p, x: p.union(["123457", "123457"]),
    "an identifier missing": lambda p, x: p.union(["123457", None]),  # type: ignore[list-item]
    "identifiers of two types": lambda p, x: p.union(["123457", 5]),
    "an integer of many digits": lambda p, x: p.union([10**5000]),
    "a product of one width": lambda p, x: p.transposed_product([[1]], owners=(0, 1), rows=1, columns=(1,)),  # type: ignore[arg-type]
    "a product too large": lambda p, x: p.transposed_product(
        np.ones((1, 1 << 14), int), owners=(0, 1), rows=1, columns=(1 << 14, 1 << 14)
    ),
    "no rows": lambda p, x: p.transposed_product([[1]], owners=(0, 1), rows=0, columns=(1, 1)),
    "product too wide": lambda p, x: p.transposed_product(
        [[1]], owners=(0, 1), rows=1 << 20, columns=(1, 1), high=100
    ),
    "a matrix of another": lambda p, x: p.transposed_product([[1]], owners=(1, 2), rows=1, columns=(1, 1)),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_answered_by_one_sentence_without_a_private_value(mistake: str) -> None:
    """At party 0, before anything is sent."""
    wire = MemoryNetwork(3, patience_s=0.1).wire(0)
    party = ThreeParties(wire, AllowAll())
    own = np.array([123456, 123456], np.uint32)
    x = SharedArray(RingShare(own, own), 0, 5)
    with pytest.raises((UsageError, DataRefused)) as refused:
        MISTAKES[mistake](party, x)
    sentence = refused.value.sentence
    assert isinstance(refused.value, CosynthError)
    assert sentence[0].isupper() and sentence.endswith(".") and "\n" not in sentence
    assert "123457" not in sentence and "123456" not in sentence
    assert wire.traffic().bytes_sent == 0
