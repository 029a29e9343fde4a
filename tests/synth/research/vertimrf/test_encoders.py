"""VertiMRF's encoders: the budget's split, what each sends, what is estimated from it, and what can be read
off sketches.

Randomness is seeded where a test judges numbers, so none fails by chance; what fresh coins would do is
stated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_protocols.errors import ProtocolAborted, StudyInvalid
from mpc_protocols.functionality import Reports, StudyFacts, unobserved
from mpc_protocols.research.reports.exchange import ReportExchange
from mpc_protocols.vertical.partition import MAX_OWNERS, OwnRows, Partition
from runner.review.audit.research.read_off import read_off
from synth.algorithms.vertimrf.algorithm import ALGORITHM
from synth.algorithms.vertimrf.config import VertiMrfConfig
from synth.budget.accounting import Accountant
from synth.domain import Domain
from synth.judgement.metrics import workload_error
from synth.research.vertimrf.bins import BINS, encoded_sizes, levels_of
from synth.research.vertimrf.joint import Estimate, joint_model
from synth.research.vertimrf.plan import PLANNED_OWNERS, EncodedPlan
from synth.research.vertimrf.reports import EncodedReporter, conclude
from synth.research.vertimrf.responses import Responses
from synth.research.vertimrf.responses_encoding import RESPONSES
from synth.research.vertimrf.sketches import KEYS, MAX_HASH, Sketches, row_hashes, union_sizes
from synth.research.vertimrf.sketches_encoding import SKETCHES
from synth.synthesis import Measured, Synthesis
from synth.workload import Workload

SIZES = {"a": 3, "b": 9, "c": 2, "d": 6, "only": 1}
OWNERS = {"a": "north", "b": "north", "only": "north", "c": "south", "d": "south"}
KEY = bytes(range(32))


def domain_of(sizes: Mapping[str, int]) -> Domain:
    return Domain.from_spec({"file": dict(sizes)})


def plan_for(
    encoder: str = RESPONSES,
    sizes: Mapping[str, int] = SIZES,
    owners: Mapping[str, str] = OWNERS,
    epsilon: float = 4.0,
    **config: Any,
) -> EncodedPlan:
    domain = domain_of(sizes)
    plan = ALGORITHM.plan(
        domain,
        Workload(domain, (domain.names[:1],)),
        VertiMrfConfig(encoder=encoder, **config),
        epsilon=epsilon,
        delta=1e-6,
        adjacency="replace",
    ).knowing(owners)
    assert isinstance(plan, EncodedPlan)
    return plan


def rows_of(sizes: Mapping[str, int], rows: int, dependence: float = 0.7) -> dict[str, np.ndarray]:
    """Columns that follow one another."""
    rng = np.random.default_rng(rows)
    hidden = rng.random(rows) ** 2
    mixed = [np.where(rng.random(rows) < dependence, hidden, rng.random(rows)) for _ in sizes]
    return {
        name: np.minimum((column * size).astype(int), size - 1).astype(np.uint16)
        for column, (name, size) in zip(mixed, sizes.items(), strict=True)
    }


def reports_of(
    plan: EncodedPlan, encoder: Any, codes: Mapping[str, np.ndarray]
) -> tuple[Reports, Accountant]:
    names = list(dict(plan.owners).values())
    number = {name: place for place, name in enumerate(dict.fromkeys(names))}
    columns = {column: number[owner] for column, owner in plan.owners}
    rows = len(next(iter(codes.values())))
    split = Partition(tuple(number.values()), columns, "intersection", {}, rows)
    tables = {
        owner: OwnRows(np.arange(rows, dtype=np.int64), {c: codes[c] for c in split.of(owner)})
        for owner in split.owners
    }
    accountant = Accountant(plan.budget)
    facts = StudyFacts(plan.domain.sizes, "replace", 1, 1 << 20, bytes(32))
    reports = ReportExchange(EncodedReporter(plan, encoder)).clear(facts, split, tables, accountant)
    return reports, accountant


@settings(max_examples=4)
@given(
    st.lists(st.integers(0, 7), min_size=2, max_size=8),
    st.sampled_from([RESPONSES, SKETCHES]),
    st.sampled_from([0.1, 0.8, 10.0]),
)
def test_events_of_any_split_stay_within_budget(owners: list[int], encoder: str, epsilon: float) -> None:
    sizes = {f"c{place}": 1 + place % 6 for place in range(len(owners))}
    split = {name: f"owner {owner}" for name, owner in zip(sizes, owners, strict=True)}
    plan = plan_for(encoder, sizes, split, epsilon)
    accountant = Accountant(plan.budget)
    reporting = ALGORITHM.reporting(plan.config)
    assert reporting is not None
    for event in reporting.reporter(plan).events:
        accountant.authorise(event, bytes(32))
    assert accountant.rho >= Fraction(96, 100) * plan.budget.rho_cap


def test_beta_is_bounded_for_as_many_owners_as_a_study_may_have() -> None:
    assert PLANNED_OWNERS == MAX_OWNERS


def test_every_party_derives_the_same_plan() -> None:
    assert plan_for() == plan_for()
    assert Responses(plan_for()).responses == Responses(plan_for()).responses


def test_responses_cost_the_same_for_every_column() -> None:
    plan = plan_for()
    responses = Responses(plan).responses
    each = plan.encoding_rho / 4
    assert set(responses) == {"a", "b", "c", "d"}
    assert all(Fraction(97, 100) * each <= response.rho <= each for response in responses.values())


def test_bins_are_of_equal_width_and_all_occur() -> None:
    levels = levels_of({"a": 4, "b": 9, f"b in {BINS} bins": 5})
    assert set(levels) == {"b", f"b in {BINS} bins"}
    assert levels["b"].bins == (0, 0, 0, 1, 1, 2, 2, 3, 3) and levels["b"].name == f"b in {BINS} bins'"
    assert encoded_sizes(SIZES) == {"a": 3, "b": 4, "c": 2, "d": 4}


@pytest.mark.parametrize("encoder", [Responses, Sketches])
def test_a_report_is_as_long_as_was_planned_and_gives_every_pair_across(encoder: Any) -> None:
    plan = plan_for(SKETCHES if encoder is Sketches else RESPONSES)
    made = encoder(plan)
    reports, accountant = reports_of(plan, made, rows_of(SIZES, 501))
    reporter = EncodedReporter(plan, made)
    for columns, payload in zip(reports.columns, reports.payloads, strict=True):
        assert len(payload) <= reporter.limit(columns, 501)
    assert [event.what for event in accountant.events].count("own model") == 2
    told = [e for e in accountant.events if e.what != "own model"]
    assert [event.detail["columns"] for event in told] == [["a", "b"], ["c", "d"]]
    seen = []
    synthesis = conclude(
        plan, made, reports, lambda phase, event, **fields: seen.append((phase, event, fields))
    )
    assert seen[0][2]["pairs"] == 4
    assert {m.clique for m in synthesis.measurements} >= {("a",), ("b",), ("c",), ("d",)}
    assert not any(len({OWNERS[name] for name in m.clique}) > 1 for m in synthesis.measurements)


def table_error(synthesis: Synthesis, codes: Mapping[str, np.ndarray], domain: Domain, cliques: Any) -> float:
    drawn = synthesis.model.sample(20_000, np.random.default_rng(1), targets=cliques)
    true = np.stack([codes[name] for name in domain.names], axis=1).astype(np.int64)
    return float(workload_error(true, drawn, domain, cliques))


@pytest.mark.parametrize(
    ("encoder", "kind", "most"), [(RESPONSES, Responses, 0.15), (SKETCHES, Sketches, 0.3)]
)
def test_a_strong_dependence_across_owners_is_learned_at_a_large_epsilon(
    encoder: str, kind: Any, most: float
) -> None:
    """At the largest epsilon that can be accounted for; independent owners would be off by more than 0.5.

    Errors of sketches: mean 0.241, standard deviation 0.025 (24 runs), so that the mean of four is beyond 0.3
    with probability 1.2e-6; of responses 0.128 and 0.005 (12 runs): beyond 0.15 at 12 standard deviations.
    """
    sizes = {"a": 3, "b": 9, "c": 2, "d": 6}
    plan = plan_for(encoder, sizes, {n: o for n, o in OWNERS.items() if n in sizes}, epsilon=200.0)
    codes = rows_of(sizes, 20_000, dependence=0.9)
    errors = []
    for _ in range(4):
        made = kind(plan, np.random.default_rng(4).bytes)
        synthesis = conclude(plan, made, reports_of(plan, made, codes)[0], unobserved)
        errors.append(table_error(synthesis, codes, plan.domain, [("a", "c"), ("a", "d")]))
        assert abs(synthesis.rows - 20_000) < 200
    assert np.mean(errors) < most


def test_a_pair_lost_in_its_noise_does_not_join_the_graph() -> None:
    plan = plan_for()
    own = [
        Measured((name,), Fraction(1), 0, np.full(size, 1000 // size, np.int64))
        for name, size in SIZES.items()
    ]
    strong = np.array([[500.0, 0.0], [0.0, 500.0]])
    seen: list[Any] = []
    for variance in (1.0, 1e5):
        estimate = Estimate(("c", "a"), np.pad(strong, ((0, 0), (0, 1))), variance)
        joint_model(plan, levels_of(SIZES), own, [estimate], lambda *_, **fields: seen.append(fields))
    assert [fields["joined"] for fields in seen if "joined" in fields] == [[["c", "a"]], []]


def test_hashes_of_a_key_are_geometric_and_those_of_another_key_are_others() -> None:
    """Shares of H > a within 7 standard deviations of 2^-a for 10^6 rows."""
    rows = 1_000_000
    hashes = row_hashes(KEY, 3, rows)
    assert hashes.min() == 1 and hashes.max() <= MAX_HASH
    for a in range(1, 12):
        share = 2.0**-a
        assert abs((hashes > a).mean() - share) < 7 * math.sqrt(share * (1 - share) / rows)
    assert np.array_equal(hashes[:10], row_hashes(KEY, 3, 10))
    assert not np.array_equal(hashes[:100], row_hashes(KEY, 4, 100))
    assert not np.array_equal(hashes[:100], row_hashes(bytes(32), 3, 100))


def test_a_sketch_is_the_largest_hash_of_its_rows_phantoms_and_floor() -> None:
    plan = plan_for(SKETCHES)
    made = Sketches(plan, lambda count: bytes(count))  # phantoms as small as they get
    codes = {"c": np.array([0, 1, 1, 0, 1]), "d": np.array([0, 0, 3, 3, 3])}
    found = np.frombuffer(made.encode(codes, KEY), np.uint8).reshape(KEYS, 6)
    smallest = found[:, 3].min()  # the value 1 of d has no rows
    assert (found[:, 3] == smallest).all() and smallest >= made.floor
    for number in (0, 17, KEYS - 1):
        hashes = row_hashes(KEY, number, 5)
        for place, rows in ((0, [0, 3]), (1, [1, 2, 4]), (2, [0, 1]), (5, [2, 3, 4])):
            assert found[number, place] == max(hashes[rows].max(), smallest)


@pytest.mark.parametrize("size", [300, 40_000, 3_000_000])
def test_sizes_of_unions_are_estimated_to_within_their_error(size: int) -> None:
    """400 estimates: their mean within 7 of its standard deviations, their spread as stated to 20 %."""
    rng = np.random.default_rng(size)
    uniform = rng.random((400, KEYS))
    maxima = np.ceil(-np.log2(-np.expm1(np.log(uniform) / size))).clip(1, MAX_HASH).astype(np.uint8)
    found = union_sizes(np.maximum(maxima, 7), 7)
    spread = found.std() / size * math.sqrt(KEYS)
    assert spread == pytest.approx(1.03, rel=0.2)
    assert abs(found.mean() / size - 1) < 7 * 1.03 / math.sqrt(KEYS * 400) + 1 / KEYS


def test_rows_are_read_off_sketches_about_as_often_as_plan_says() -> None:
    """8,000 rows of 12 columns. Fresh coins would claim a row that is nobody's in less than one of 10^4 runs."""
    sizes = {f"c{place}": 3 for place in range(12)}
    plan = plan_for(SKETCHES, sizes, dict.fromkeys(sizes, "one") | {"c11": "two"}, epsilon=0.8)
    codes = rows_of(sizes, 8000, dependence=0.5)
    made = Sketches(plan, np.random.default_rng(8).bytes)
    found = read_off(np.frombuffer(made.encode(codes, KEY), np.uint8).reshape(KEYS, -1), list(sizes.values()))
    real = set(zip(*(column.tolist() for column in codes.values()), strict=True))
    expected = made.readable_rows(8000)
    assert set(found) <= real and 0.5 * expected < len(found) <= 1.3 * expected


@pytest.mark.parametrize(
    "spoil",
    [
        lambda payload: b"",
        lambda payload: payload[:-1],
        lambda payload: payload + b"\0",
        lambda payload: b"\xff" * 4 + payload[4:],
        lambda payload: payload[:4] + b"{" + payload[5:],
        lambda payload: payload.replace(b'"a"', b'"c"', 1),
        lambda payload: payload.replace(b'["a"]', b'["?"]', 1),
        lambda payload: payload.replace(b"[[", b"[" * 2000, 1),
    ],
    ids=["nothing", "short", "long", "no header", "no JSON", "others' column", "no column", "deep"],
)
@pytest.mark.parametrize("kind", [Responses, Sketches])
def test_a_report_that_does_not_fit_names_its_sender(kind: Any, spoil: Any) -> None:
    plan = plan_for(SKETCHES if kind is Sketches else RESPONSES)
    made = kind(plan)
    reports, _ = reports_of(plan, made, rows_of(SIZES, 64))
    first, second = reports.payloads
    spoilt = Reports(reports.rows, reports.columns, (spoil(first), second))
    with pytest.raises(ProtocolAborted, match="Party north sent a report that does not fit the study"):
        conclude(plan, made, spoilt, unobserved)


def test_a_response_outside_its_column_and_a_sketch_above_any_hash_name_their_sender() -> None:
    for kind, last in ((Responses, b"\xff"), (Sketches, b"\xff")):
        plan = plan_for(
            SKETCHES if kind is Sketches else RESPONSES, {"a": 3, "c": 3}, {"a": "north", "c": "south"}
        )
        made = kind(plan)
        reports, _ = reports_of(plan, made, rows_of({"a": 3, "c": 3}, 8))
        first, second = reports.payloads
        spoilt = first[:-2] + last * 2
        with pytest.raises(ProtocolAborted, match="Party north"):
            conclude(plan, made, Reports(8, reports.columns, (spoilt, second)), unobserved)


def test_a_column_that_no_model_holds_is_refused_before_the_run() -> None:
    with pytest.raises(StudyInvalid, match="max_model_mb"):
        plan_for(sizes={"a": 300_000, "c": 2}, owners={"a": "north", "c": "south"}, max_model_mb=1.0)
