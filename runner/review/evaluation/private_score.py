"""A score that may be told: how far the table's pairs of columns lie from real rows, with differential
privacy.

Problem: every other figure of an evaluation is an exact function of real rows. This one is one number,
released with noise and charged to the custodian's ledger before it is known, under the run's own notion of
what is protected:

    rows       the number of real rows, noisily: a tenth of rho
    distances  of each pair of columns, the L1 distance between the real counts and the table's, scaled to that number,
               noisily: the rest of rho, split evenly (a unit moves each distance by its rows, so the noise in their mean does
               not grow with the number of pairs)

The score is their mean over twice the rows: mean total variation, 0 (equal) to 1. The mechanisms are the
ideal backend's (`mpc_protocols.backends.ideal`), whose tables, bounds and charges are those of every run. Who
learns what: this process sees every row; who is told the score learns what (epsilon, delta) covers, on top of
the run's.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.errors import StudyInvalid, UsageError
from mpc_protocols.functionality import Clique, LocalCounts, StudyFacts
from mpc_protocols.process.canonical_json import canonical
from parties.budget.ledger import Ledger
from parties.budget.spending import Reservation
from parties.data.counting.local_marginals import count
from parties.data.linked.opening import open_source
from runner.results.finished_run import agreed_study
from runner.results.outdir import RUN
from runner.review.evaluation.judge import SEED, SETS
from runner.study import Study, VerticalStudy
from runner.study.model import DataLocation
from runner.study.private_file import read_by_rules
from synth.budget.accounting import Accountant, Budget
from synth.budget.charges import Charges, cell_distance
from synth.judgement.metrics import marginal, random_cliques

if TYPE_CHECKING:
    from runner.report.files import Run
    from runner.study.private_file import Private

FOR_ROWS = Fraction(1, 10)
"""Of rho, for the number of rows."""


@dataclass(frozen=True)
class PrivateScore:
    """value: mean total variation of pairs. standard_error: from the noise of the distances. dataset: the
    account that was charged epsilon at delta."""

    value: float
    standard_error: float
    pairs: int
    epsilon: float
    delta: float
    rho: float
    dataset: str
    ledger: Path

    def lines(self) -> list[str]:
        """For a terminal."""
        return [
            f"Private score: {self.value:.4f} mean distance of {self.pairs} pairs of columns, standard error "
            f"{self.standard_error:.4f}.",
            f"It is ({self.epsilon:g}, {self.delta:g})-differentially private, on top of the run: {self.ledger} has charged "
            f"rho {self.rho:.4g} to {self.dataset}.",
        ]


def score(
    run: Run, real: Path | DataLocation, directory: Path, epsilon: float, private: Private
) -> PrivateScore:
    """Read the rows as a run would, charge the ledger, release the score.

    private: the custodian's, for the rules by which its table is read and for its ledger. Raises
    `DataRefused`, `BudgetRefused`, `StudyInvalid` for rules that do not fit the study, `UsageError`.
    """
    study = agreed_study(run.facts, directory / RUN)
    if isinstance(study, VerticalStudy):
        raise UsageError(
            "A private score needs one custodian's rows with all columns; this run's columns lie at several."
        )
    if not math.isfinite(epsilon) or epsilon <= 0:
        raise UsageError(f"--private-score must be an epsilon above 0, got {epsilon:g}.")
    pairs, unit, settings = _pairs(study), study.privacy.unit, private.ledger
    where = real if isinstance(real, DataLocation) else DataLocation(real.resolve())
    place = read_by_rules(study, where, private.rules).locate()
    with open_source(place) as source:
        table = count(
            source,
            study.domain,
            pairs,
            max_rows=study.privacy.max_rows,
            unit=None if unit.id is None else (unit.id, unit.max_rows),
            allow_empty=private.allow_empty,
        )
    budget, sigmas = _budget(study, epsilon, len(pairs))
    ledger = Ledger(settings.file)
    domain = hashlib.sha256(canonical(study.domain.to_spec())).hexdigest()
    reservation = Reservation(
        settings.dataset or place.dataset,
        secrets.token_hex(32),
        f"score of {study.name}",
        str(run.facts["digest"]),
        budget.epsilon,
        budget.delta,
        study.privacy.notion,
        budget.rho_cap,
        budget.beta_cap,
        (),
        domain=domain,
        max_rows=study.privacy.max_rows,
    )
    account = ledger.reserve(reservation, settings.cap)
    try:
        guard = Accountant(
            budget, record=lambda releases: account.begin_all([(event, None) for event, _ in releases])
        )
        value, spread = _released(study, run, pairs, table.counts, guard, sigmas)
        account.settle()
    except StudyInvalid as error:
        raise UsageError(f"--private-score {epsilon:g} buys nothing: {error.sentence}") from None
    finally:
        account.close()
    return PrivateScore(
        value, spread, len(pairs), epsilon, budget.delta, float(guard.rho), reservation.dataset, ledger.path
    )


def _pairs(study: Study) -> list[Clique]:
    """All pairs, or as many at random, the same in every evaluation."""
    if len(study.domain) < 2:
        raise UsageError("A private score compares pairs of columns, and the study has one column.")
    every: list[Clique] = list(itertools.islice(itertools.combinations(study.domain.names, 2), SETS + 1))
    if len(every) <= SETS:
        return every
    return sorted(set(random_cliques(study.domain, 2, SETS, np.random.default_rng(SEED))))


def _budget(study: Study, epsilon: float, pairs: int) -> tuple[Budget, tuple[Fraction, Fraction]]:
    """The score's own budget at the run's delta, and the noise of the rows and of each distance."""
    privacy = study.privacy
    charges = Charges(privacy.adjacency, privacy.unit.rows)

    def noise(rho: Fraction) -> tuple[Fraction, Fraction]:
        return charges.total_sigma2(FOR_ROWS * rho), charges.distances_sigma2((1 - FOR_ROWS) * rho, pairs)

    try:
        widest = Budget.of(epsilon, float(privacy.delta), Fraction(0))
        moved = charges.cells_moved * (pairs + 1)
        # with a reserve: what finite precision takes of delta makes rho a little smaller, and noise larger
        beta = 2 * moved * max(map(cell_distance, noise(widest.rho_cap)))
        budget = Budget.of(epsilon, float(privacy.delta), beta)
    except StudyInvalid as error:
        raise UsageError(
            f"--private-score {epsilon:g} buys nothing at the run's delta: {error.sentence}"
        ) from None
    return budget, noise(budget.rho_cap)


def _released(
    study: Study,
    run: Run,
    pairs: list[Clique],
    counts: LocalCounts,
    guard: Accountant,
    sigmas: tuple[Fraction, Fraction],
    randomness: Callable[[int], bytes] = secrets.token_bytes,
) -> tuple[float, float]:
    """The score and its standard error."""
    privacy = study.privacy
    facts = StudyFacts(
        study.domain.sizes, privacy.adjacency, privacy.unit.rows, privacy.max_rows, secrets.token_bytes(32)
    )
    oracle = IdealOracle(facts, counts, guard, randomness)
    handles = oracle.prepare(pairs)
    rows = max(1, oracle.total(sigmas[0]))
    scale = rows / max(1, len(run.codes))
    answers = [scale * marginal(run.codes, study.domain, pair).astype(np.float64) for pair in pairs]
    distances: Any = oracle.distances(handles, answers, sigmas[1])
    value = float(distances.sum()) / len(pairs) / (2 * rows)
    return min(1.0, max(0.0, value)), math.sqrt(float(sigmas[1]) / len(pairs)) / (2 * rows)
