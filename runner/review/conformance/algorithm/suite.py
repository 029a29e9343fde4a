"""The suite of algorithms: a plan that everybody derives alike, a run within its budget, a table of the
domain.

Runs are on the ideal functionality, with the noise that the plan fixes: nothing here judges how good a table
is.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mpc_protocols.errors import BudgetRefused, StudyInvalid
from mpc_protocols.functionality import Adjacency, Observe, unobserved
from runner.review.conformance.algorithm.model_size import check_model_size
from runner.review.conformance.algorithm.released import Answers, compare_released, sealed
from runner.review.conformance.algorithm.runs import (
    DELTA,
    EPSILON,
    WORLDS,
    Ran,
    World,
    conducted,
    dependent,
    independent,
    oracle_of,
    other_rows,
    plan_of,
    run_algorithm,
    tables_of,
)
from runner.review.conformance.algorithm.watched import Repeated, Watched
from runner.review.conformance.checks import Check, expect, refusal
from runner.review.conformance.guards import Recorder
from synth.algorithm import Algorithm, WhileArriving
from synth.budget.accounting import Accountant
from synth.config import AlgorithmConfig
from synth.domain import Domain
from synth.plan import Plan
from synth.synthesis import Synthesis, without_levels
from synth.workload import Workload

PROMISES: tuple[tuple[Adjacency, int], ...] = (
    ("add-remove", 1),
    ("add-remove", 3),
    ("replace", 1),
    ("replace", 3),
)
SOME_WORLDS = WORLDS[2], WORLDS[-1]
"""With one row, where noise decides everything, and with a wide column."""
READS_NOTHING = "it reads nothing of an oracle but its answers"
SAME_RESULT = "the same answers give the same result, whatever rows are behind them"
SOME_ROWS = 200
"""Of each synthetic table, at most."""


def check_algorithm(algorithm: Algorithm[Any, Any], config: AlgorithmConfig | None = None) -> list[Check]:
    """Every promise of an algorithm that can be seen from outside. config: of the runs, by default the
    algorithm's defaults."""
    chosen, checks = config or algorithm.config(), list[Check]()
    usual = WORLDS[0]

    def add(name: str, body: Callable[..., None], *arguments: object) -> None:
        checks.append(
            Check(f'algorithm "{algorithm.name}"', name, partial(body, algorithm, chosen, *arguments))
        )

    add("what it says of itself", _words)
    add("its table: keys, limits, defaults, public form", _keys)
    for on in WORLDS:
        add(f"the plan is the same at every party ({on})", _same_plan, on)
    add("less epsilon is less budget, and none is refused", _epsilon)
    for adjacency, unit_rows in PROMISES:
        add(f"a run within its budget ({adjacency}, unit of {unit_rows})", _run, usual, adjacency, unit_rows)
    small = dependent(), independent()
    for on in (*WORLDS[1:], *small):
        add(f"a run within its budget ({on})", _run, on)
    add("the budget holds whatever the answers are", _wild, usual)
    add("it asks the same after the same answers, without data", _repeated, usual)
    for on in (usual, *small):
        add(f"{READS_NOTHING} ({on})", _sealed, on)
    for on in (usual, *SOME_WORLDS, *small):
        add(f"{SAME_RESULT} ({on})", _other_rows, on)
    add("it gives columns up by what it has seen of them, not by noise alone", _looks, small[0])
    add("its model stays within max_model_mb, also while it is made", check_model_size)
    add("a refused question ends the run", _refused, usual)
    return checks


def check_arriving(algorithm: WhileArriving[Any, Any], config: AlgorithmConfig) -> list[Check]:
    """What an algorithm knows that asks in rounds of arrivals. config: of the runs."""
    return [
        Check(
            f'algorithm "{algorithm.name}"',
            f"{name} ({WORLDS[0]})",
            partial(body, algorithm, config, WORLDS[0]),
        )
        for name, body in ((READS_NOTHING, _sealed), (SAME_RESULT, _other_rows))
    ]


def _words(algorithm: Algorithm[Any, Any], config: AlgorithmConfig) -> None:
    plan = plan_of(algorithm, config, WORLDS[0])
    expect(algorithm.name.isidentifier() or "-" in algorithm.name, f"{algorithm.name!r} must be a word.")
    expect(algorithm.title, "the report needs a title.")
    phrases = {
        "summary": algorithm.summary,
        "claim": algorithm.claim(config),
        "asks": algorithm.asks(plan),
        "left_out": algorithm.left_out,
    }
    if (alternative := algorithm.alternative(config)) is not None:
        phrases["alternative"] = alternative
    for what, phrase in phrases.items():
        expect(
            phrase and not phrase.endswith("."), f"{what} must be a phrase without a full stop: {phrase!r}."
        )
    expect(isinstance(algorithm.adaptive(config), bool), "adaptive must be True or False.")


def _keys(algorithm: Algorithm[Any, Any], config: AlgorithmConfig) -> None:
    kind = algorithm.config
    template = kind.template(31)
    values = tomllib.loads(template)
    expect(kind(**values) == kind(), f"the template must mean the defaults:\n{template}")
    expect(kind(**kind().public()) == kind(), "the public form must mean the same configuration.")
    json.dumps(config.public())
    for key, option in kind.options().items():
        for wrong in ([], {}, object(), math.nan):
            with refusal(StudyInvalid, f"{key} = {wrong!r}") as caught:
                kind(**{key: wrong})
            expect(key in caught[0].sentence, f"the error must name the key {key}: {caught[0].sentence}")
        expect(option.help, f"the key {key} needs a comment in the template.")


def _same_plan(algorithm: Algorithm[Any, Any], config: AlgorithmConfig, on: World) -> None:
    for adjacency, unit_rows in PROMISES:
        plan = plan_of(algorithm, config, on, adjacency, unit_rows)
        domain = Domain(tuple(on.domain.names), tuple(on.domain.columns))
        again = World(on.name, domain, Workload(domain, on.workload.cliques), on.codes[:0])
        expect(
            plan == plan_of(algorithm, config, again, adjacency, unit_rows),
            "two plans of the same study must be equal.",
        )
        expect(
            list(plan.candidates) == list(plan_of(algorithm, config, again, adjacency, unit_rows).candidates),
            "two plans of the same study must have their candidates in the same order.",
        )
        expect(
            (plan.charges.adjacency, plan.charges.unit_rows) == (adjacency, unit_rows),
            "a plan must charge for the study's adjacency and unit.",
        )
        budget = plan.budget
        expect(
            (budget.epsilon, budget.delta) == (EPSILON, DELTA)
            and budget.rho_cap > 0
            and budget.beta_cap >= 0,
            f"a plan's budget must be the study's, and is {budget}.",
        )
        low, high = plan.rounds
        expect(0 <= low <= high, f"rounds must be the fewest and the most, and are {plan.rounds}.")
        for clique, cells in plan.candidates.items():
            expect(
                0 < cells <= on.domain.cells(clique) and clique == on.domain.ordered(clique),
                f"the candidate {clique} must name columns in the domain's order and have at most their cells, not {cells}.",
            )
        expect(
            not set(plan.oversized) & set(plan.candidates), "what no model can hold must not be a candidate."
        )


def _epsilon(algorithm: Algorithm[Any, Any], config: AlgorithmConfig) -> None:
    caps = [plan_of(algorithm, config, WORLDS[0], epsilon=epsilon).budget.rho_cap for epsilon in (0.3, 1, 5)]
    expect(caps == sorted(set(caps)), "more epsilon must give more rho.")
    for wrong in (0.0, -1.0, math.nan, math.inf):
        with refusal(StudyInvalid, f"epsilon = {wrong}"):
            plan_of(algorithm, config, WORLDS[0], epsilon=wrong)


def _run(
    algorithm: Algorithm[Any, Any],
    config: AlgorithmConfig,
    on: World,
    adjacency: Adjacency = "add-remove",
    unit_rows: int = 1,
) -> None:
    plan = plan_of(algorithm, config, on, adjacency, unit_rows)
    ran = run_algorithm(algorithm, plan, on)
    _within_budget(plan, ran)
    _questions(plan, ran)
    _table(plan, ran.synthesis, ran.oracle)
    _check_observer(ran)


def _within_budget(plan: Plan, ran: Ran) -> None:
    spent, budget = ran.accountant, plan.budget
    expect(0 < spent.rho <= budget.rho_cap, f"rho must add up to {budget.rho_cap} at most, not {spent.rho}.")
    expect(
        spent.beta <= budget.beta_cap,
        f"the samplers' distances must add up to {float(budget.beta_cap):.3g} at most, not {float(spent.beta):.3g}: `distance` "
        "bounds too little.",
    )


def _questions(plan: Plan, ran: Ran) -> None:
    """Marginals that custodians count in their one pass; what is released is what was answered."""
    said, names = ran.oracle.conversation, plan.domain.sizes
    allowed = {*map(frozenset, plan.candidates), *map(frozenset, plan.one_way)}
    for clique in said.cliques.values():
        columns = without_levels(clique, said.levels.values())
        expect(
            set(columns) <= names.keys(),
            f"the marginal {clique} names something else than columns and levels.",
        )
        expect(
            frozenset(columns) in allowed,
            f"only candidates and single columns may be asked for, and {columns} is neither.",
        )
    released = ran.synthesis.measurements
    expect(
        len(released) == len(said.measured),
        f"{len(said.measured)} marginals were measured, and {len(released)} are released.",
    )
    for mine, (clique, cells) in zip(released, said.measured, strict=True):
        expect(
            mine.clique == clique and np.array_equal(mine.values, cells),
            f"the measurement of {clique} must be released as it was answered.",
        )
    selections = sum(event.what == "select" for event in ran.accountant.events)
    expect(
        len(ran.synthesis.selections) == selections,
        f"there were {selections} events of selections, and {len(ran.synthesis.selections)} are released.",
    )


def _table(plan: Plan, synthesis: Synthesis, oracle: Watched) -> None:
    rows, domain = synthesis.rows, plan.domain
    expect(type(rows) is int and rows >= 0, f"rows must be a whole number of at least 0, and is {rows!r}.")
    fixed = plan.config.synthetic_rows
    expect(
        rows == fixed if fixed is not None else rows <= oracle.row_bound,
        f"there must be {fixed or f'at most {oracle.row_bound}'} rows, not {rows}.",
    )
    expect(
        synthesis.noisy_total == oracle.noisy_total,
        f"the number of rows must be the oracle's noisy total, {oracle.noisy_total}, not {synthesis.noisy_total}.",
    )
    for count in {0, min(rows, 1), min(rows, SOME_ROWS)}:
        codes = synthesis.model.sample(count, np.random.default_rng(0), targets=plan.workload.cliques)
        expect(
            codes.shape == (count, len(domain)) and codes.dtype == np.int64,
            f"a table of {count} rows must be int64 of shape {(count, len(domain))}, and is {codes.dtype}, {codes.shape}.",
        )
        for place, (name, size) in enumerate(domain.sizes.items()):
            expect(
                not count or 0 <= int(codes[:, place].min()) <= int(codes[:, place].max()) < size,
                f"codes of the column {name} must lie below {size}.",
            )


def _check_observer(ran: Ran) -> None:
    expect(ran.observed, "an observer must be told something.")
    for phase, event, fields in ran.observed:
        expect(isinstance(phase, str) and isinstance(event, str), f"{phase!r}, {event!r} must be words.")
        try:
            json.dumps(fields)
        except TypeError as error:
            expect(False, f"what is told of {phase} {event} must be JSON ({error}): {fields}")


def _wild(algorithm: Algorithm[Any, Any], config: AlgorithmConfig, on: World) -> None:
    """Answers that no data gives: counts off by up to 10^5. The guard is the plan's own budget and would
    refuse."""
    plan = plan_of(algorithm, config, on)
    for seed in range(2):
        ran = run_algorithm(algorithm, plan, on, np.random.default_rng(seed))
        _within_budget(plan, ran)
        expect(ran.synthesis.rows >= 0, "rows must not be negative.")


def _repeated(algorithm: Algorithm[Any, Any], config: AlgorithmConfig, on: World) -> None:
    plan = plan_of(algorithm, config, on)
    first = run_algorithm(algorithm, plan, on)
    oracle = Repeated(first.oracle)
    second = algorithm.run(oracle, plan, unobserved)
    expect(
        not oracle.left,
        f"after the same answers it must ask the same; {oracle.left} questions were not asked.",
    )
    expect(
        (second.rows, second.selections) == (first.synthesis.rows, first.synthesis.selections),
        "the same answers must give the same result.",
    )


def _looks(algorithm: Algorithm[Any, Any], config: AlgorithmConfig, on: World) -> None:
    """Where noise is large and dependence clear beyond it, whoever can measure what joins columns must have
    looked."""
    plan = plan_of(algorithm, config, on)
    if not any(len(clique) > 1 for clique in plan.candidates):
        return
    synthesis = conducted(algorithm, plan, [oracle_of(plan, on, Accountant(plan.budget))])
    expect(
        any(len(measured.clique) > 1 for measured in synthesis.measurements),
        "it must measure something that joins columns before it takes them for independent; noise alone says nothing of them.",
    )
    expect(
        synthesis.noise_share is None,
        "it must not take columns for independent that tell one another in what it has measured.",
    )


def _sealed(algorithm: Algorithm[Any, Any], config: AlgorithmConfig, on: World) -> None:
    """Also where it makes nothing of what it reads, or has another way if there is nothing to read."""
    plan, read = plan_of(algorithm, config, on), list[str]()
    guard = Accountant(plan.budget)
    oracles = [sealed(oracle_of(plan, table, guard), read) for table in tables_of(algorithm, plan, on)]
    try:
        conducted(algorithm, plan, oracles)
    except Exception:
        if not read:
            raise
    expect(
        not read,
        f"it must read nothing of an oracle but its answers and what is public, and has read {', '.join(sorted(set(read)))}.",
    )


def _other_rows(algorithm: Algorithm[Any, Any], config: AlgorithmConfig, on: World) -> None:
    """Two oracles of the very class that runs have, which give the same answers: the second one's private
    side is another table. Whatever differs came from there."""
    plan = plan_of(algorithm, config, on)
    results, told, asked = list[Synthesis](), list[list[Any]](), list[int]()
    histories = [Answers() for _ in tables_of(algorithm, plan, on)]
    for table in (on, other_rows(on)):
        guard, heard = Accountant(plan.budget), list[Any]()
        tables = tables_of(algorithm, plan, table)
        oracles = [oracle_of(plan, one, guard, of) for one, of in zip(tables, histories, strict=True)]
        results.append(conducted(algorithm, plan, oracles, _without_times(heard)))
        told.append(heard)
        asked.append(sum(len(answers.values) for answers in histories))
        histories = [Answers(known=answers) for answers in histories]
    expect(
        asked[0] == asked[1],
        f"after the same answers it must ask the same; it asked {asked[0]} times and then {asked[1]} times.",
    )
    compare_released(*results)
    expect(told[0] == told[1], "what observers are told must follow from the answers alone, but for times.")


def _without_times(heard: list[Any]) -> Observe:
    def hear(phase: str, event: str, **fields: Any) -> None:
        heard.append((phase, event, {name: value for name, value in fields.items() if name != "seconds"}))

    return hear


def _refused(algorithm: Algorithm[Any, Any], config: AlgorithmConfig, on: World) -> None:
    plan = plan_of(algorithm, config, on)
    events = len(run_algorithm(algorithm, plan, on).accountant.events)
    for allowed in sorted({0, 1, events // 2} & set(range(events))):
        guard = Recorder(refuse_from=allowed)
        with refusal(BudgetRefused, f"a run whose release {allowed + 1} is refused"):
            algorithm.run(oracle_of(plan, on, guard), plan, unobserved)
        expect(guard.refused == 1, f"after a refusal nothing must be asked; {guard.refused} releases were.")
