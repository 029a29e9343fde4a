"""Whether a run of a study will keep relations between columns: tried on invented tables, before anybody runs
it.

The study's algorithm runs with its own plan, noise and budget, in this process and in the clear, on invented
rows (`invented_table`) with and without relations, and each result is judged as a run's is
(`synth.judgement.relations`). What may help is tried too, and advised only if it did. Everything follows from
the study and a guess at its number of rows; noise is seeded, so that the same study is told the same each
time: a simulation, which protects nobody.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.errors import CosynthError
from mpc_protocols.functionality import Clique, unobserved
from runner.forecast.arrivals import arrives
from runner.forecast.presumed.invented_table import invented_rows
from runner.party.synthesis import facts_of, plan_of
from runner.study.method import algorithm_of
from synth.algorithm import ALGORITHMS, proposed
from synth.budget.accounting import Accountant
from synth.config import ADAPTIVE
from synth.domain import Codes, Column
from synth.judgement.metrics import marginal
from synth.judgement.relations import Relations, relations

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from runner.study import Study
    from synth.synthesis import Synthesis

MAX_COLUMNS, MAX_ROWS, MAX_SECONDS = 40, 50_000, 12.0
"""A study of more columns is not tried; more rows are taken as so many; what may help is tried while so many
CPU seconds last."""
TABLES = 3
"""Invented tables with relations, and as many without."""
FEWER_BINS, MIN_MORE = 8, 1.0
"""What is tried in place of more bins; pairs that a change must keep beyond those kept without it."""
HIGHEST_EPSILON = 3.0
"""Up to which more is advised."""


@dataclass(frozen=True)
class Tried:
    """Of one way to run: kept, of how many pairs, mean of the tables; in how many of the tables any."""

    kept: float
    pairs: int
    tables: int
    any_kept: int

    @property
    def keeps(self) -> bool:
        """Whether relations are to be expected."""
        return 2 * self.any_kept > self.tables


@dataclass(frozen=True)
class Trial:
    """related, unrelated: on tables with and without relations. helps: what was tried and kept more, with
    what it kept."""

    rows: int
    related: Tried
    unrelated: Tried
    helps: tuple[tuple[str, Tried], ...]

    @property
    def sentence(self) -> str:
        """The forecast."""
        of = self.related
        if not of.keeps:
            return (
                f"no relations will be kept: of invented tables of about {self.rows:,} rows, with columns related as those of "
                f"people's data often are, {of.any_kept} of {of.tables} kept any"
            )
        return (
            f"relations will be kept, where there are some: of invented tables of about {self.rows:,} rows about "
            f"{of.kept:.0f} of {of.pairs} pairs of columns"
        )

    def to_json(self) -> dict[str, Any]:
        """JSON-able form."""
        return {"sentence": self.sentence, "keeps": self.related.keeps, **asdict(self)}


def can_try(study: Study) -> bool:
    """Whether the study's algorithm measures marginals one by one, of few enough columns."""
    algorithm = algorithm_of(study)
    return (
        algorithm.workload
        and algorithm.name in ALGORITHMS.names
        and algorithm.reporting(study.config) is None
        and not arrives(study)
        and 2 <= len(study.domain) <= MAX_COLUMNS
    )


def trial(study: Study, rows: int) -> Trial | None:
    """Try a study on so many rows; None where it cannot be tried. Raises `StudyInvalid`."""
    if not can_try(study) or not plan_of(study).candidates:
        return None
    began, rows = time.process_time(), min(rows, MAX_ROWS)
    study = replace(study, prior=None)  # whose relations are not those of invented tables
    related = _tried(study, rows, TABLES, began + MAX_SECONDS / 3, related=True)
    unrelated = _tried(study, rows, TABLES, began + MAX_SECONDS / 2, related=False)
    helps: list[tuple[str, Tried]] = []
    for words, other in _less_costly_studies(study, kept=related.keeps):
        if time.process_time() - began > MAX_SECONDS:
            break
        try:
            found = _tried(other, rows, related.tables, math.inf, related=True)
        except CosynthError:  # a change that this study cannot have
            continue
        if (
            found.kept > max(related.kept + MIN_MORE, 1.25 * related.kept)
            and found.any_kept >= related.any_kept
        ):
            helps.append((words, found))
    return Trial(rows, related, unrelated, tuple(helps))


def _tried(study: Study, rows: int, tables: int, until: float, *, related: bool) -> Tried:
    """On so many tables, or fewer once this process has used CPU time `until`."""
    found = [_run(study, rows, 0, related=related)]
    while len(found) < tables and time.process_time() < until:
        found.append(_run(study, rows, len(found), related=related))
    kept = [one.kept for one in found]
    return Tried(sum(kept) / len(kept), found[0].pairs, len(kept), sum(each > 0 for each in kept))


def _run(study: Study, rows: int, seed: int, *, related: bool) -> Relations:
    codes = invented_rows(study.domain, rows, seed, study.workload.label, related=related)
    synthesis = rehearsed(study, lambda clique: marginal(codes, study.domain, clique), len(codes), seed)
    return relations(
        synthesis.model, synthesis.measurements, study.domain.sizes, synthesis.noise_share is not None
    )


def rehearsed(study: Study, counts: Callable[[Clique], NDArray[np.int64]], rows: int, seed: int) -> Synthesis:
    """What a study that `can_try` would release of so many rows with these counts, int64, flat. seed: of the noise."""
    plan, algorithm = plan_of(study), algorithm_of(study)
    plan = plan.knowing(dict.fromkeys(study.domain.names, "")) if study.partition == "vertical" else plan
    noise = np.random.default_rng([seed, rows])  # the same each time: nothing is protected here
    facts = facts_of(study, len(study.parties), hashlib.sha256(b"trial").digest())
    oracle = IdealOracle(
        replace(facts, row_cap=max(facts.row_cap, rows)),  # a guess may be more than all may bring
        lambda cliques: [counts(clique) for clique in cliques],
        Accountant(plan.budget),
        noise.bytes,
    )
    synthesis: Synthesis = algorithm.run(oracle, plan, unobserved)
    return synthesis


def _less_costly_studies(study: Study, *, kept: bool) -> Iterator[tuple[str, Study]]:
    """Studies that may keep more, and what is different in them, the least costly first. kept: whether this
    one keeps any."""
    spec, algorithm, better = dict(study.workload_spec), algorithm_of(study), proposed()
    if any(len(clique) > 2 for clique in study.workload.cliques):
        pairs = {key: value for key, value in spec.items() if key == "label"} | {"degree": 2}
        yield "[workload] degree = 2", replace(study, workload_spec=pairs)
    rounds, option = getattr(study.config, "rounds", None), study.config.options().get("rounds")
    if isinstance(rounds, int) and option is not None and ADAPTIVE in option.choices:
        adaptive: Any = replace(study.config, rounds=ADAPTIVE)  # type: ignore[call-arg]
        yield f'rounds = "{ADAPTIVE}"', replace(study, config=adaptive)
    if spec.get("label") is not None and not kept:  # with it, fewer relations are better ones
        without = {key: value for key, value in spec.items() if key != "label"}
        yield "[workload] without label", replace(study, workload_spec=without)
    if algorithm.name != better.name:
        yield f'algorithm = "{better.name}"', replace(study, algorithm=better.name, config=better.config())
    if not algorithm.chooses_bins and (coarse := _coarser(study)) is not None:
        wide = [name for name in study.domain.names if study.domain.sizes[name] != coarse.domain.sizes[name]]
        named = ", ".join(wide[:3]) + ", .." * (len(wide) > 3)
        yield f"{FEWER_BINS} bins for {named}", coarse
    for factor in (2, 4):
        epsilon = float(study.privacy.epsilon) * factor
        if epsilon <= HIGHEST_EPSILON:
            privacy = replace(study.privacy, epsilon=Fraction(study.privacy.epsilon) * factor)
            yield f"epsilon = {epsilon:g}, which protects less", replace(study, privacy=privacy)


def _coarser(study: Study) -> Study | None:
    """With at most `FEWER_BINS` bins of each column of bins."""
    columns: list[Column] = [
        Codes(FEWER_BINS) if column.binned and column.bins > FEWER_BINS else column
        for column in study.domain.columns
    ]
    if columns == list(study.domain.columns) or study.domain.constraints:
        return None
    return replace(study, domain=replace(study.domain, columns=tuple(columns)))


def lines(found: Trial) -> list[str]:
    """For a terminal."""
    said = [f"  {'forecast' if found.related.keeps else 'WARNING':<10} {found.sentence}"]
    if found.unrelated.any_kept:
        said.append(
            f"             of tables without relations {found.unrelated.any_kept} of {found.unrelated.tables} seemed to have some"
        )
    said += [
        f"  advice     {words}: about {of.kept:.0f} of {of.pairs} pairs in the same tables, where this study keeps about "
        f"{found.related.kept:.0f}"
        for words, of in found.helps
    ]
    return said
