"""Whether to run at all where there is a release already: three tables compared on invented rows, before
anything is spent.

Rows are drawn from the release itself, and an earlier release of them is made at what that one has cost; then
this study runs on other rows of the same law, with it and without. So nothing has changed between the two,
which is the best that can happen to a prior; what a change makes of it only the run tells. Of a public table
one half is the prior, and rows of the other one are asked. Everything is in the clear, in this process, of
public values, with seeded noise.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.functionality import unobserved
from runner.party.synthesis import facts_of, plan_of
from runner.study.method import algorithm_of
from synth.budget.accounting import Accountant
from synth.judgement.metrics import marginal
from synth.prior import PublicTable, Release, known_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from runner.study import Study
    from synth.prior import Prior
    from synth.synthesis import Synthesis

    Rows = NDArray[np.int64]

MAX_ROWS, MAX_MARGINALS = 50_000, 200
"""Taken at most: of rows, and of the workload's marginals, by which tables are judged."""


@dataclass(frozen=True)
class Refresh:
    """Mean L1 distance of the workload's marginals from the rows. unchanged: of the earlier table as it is.
    alone, together: of a run without and with it."""

    rows: int
    unchanged: float
    alone: float
    together: float

    @property
    def sentence(self) -> str:
        """What to make of it."""
        if self.unchanged <= self.together:
            return "if nothing has changed, the earlier table as it is would be as good as a new one, and costs nothing"
        gain = 1 - self.together / self.unchanged
        return f"if nothing has changed, a new table would be {gain:.0%} nearer than the earlier one"

    def to_json(self) -> dict[str, Any]:
        """JSON-able form."""
        return {"sentence": self.sentence, **asdict(self)}


def refresh(study: Study, rows: int) -> Refresh | None:
    """Compare on so many rows; None of a study that begins from nothing, or knows part of its columns.

    Raises `StudyInvalid`.
    """
    before = study.prior
    if before is None or before.content.names != study.domain.names:
        return None
    rng, rows = np.random.default_rng(0), min(rows, MAX_ROWS)
    without = replace(study, prior=None)
    prior: Prior
    if isinstance(before.content, PublicTable):
        order = rng.permutation(len(before.content.codes))
        first, second = np.array_split(before.content.codes[order].astype(np.int64), 2)
        now = second[rng.integers(len(second), size=rows)]
        earlier = first
        prior = PublicTable(before.content.names, first, before.content.sizes)
    else:
        assert isinstance(before.content, Release)
        own = before.content.names
        places = [tuple(before.content.model.sizes).index(name) for name in own]
        then = min(MAX_ROWS, max(1, round(before.content.rows)))
        drawn = before.content.model.sample(then + rows, rng, sweeps=0)[:, places]
        then_rows, now = drawn[rng.permutation(len(drawn))][:then], drawn[then:]
        privacy = replace(study.privacy, epsilon=Fraction(str(before.epsilon)))
        made = _run(replace(without, privacy=privacy), then_rows, 1, None)
        earlier = _table(study, made, then)
        prior = Release(own, made.model, known_of(made.measurements, made.model.total))
    cliques = study.workload.cliques[:MAX_MARGINALS]

    def distance(table: Rows) -> float:
        return float(
            np.mean(
                [
                    np.abs(
                        marginal(table, study.domain, c) / len(table)
                        - marginal(now, study.domain, c) / len(now)
                    ).sum()
                    for c in cliques
                ]
            )
        )

    alone, both = _run(without, now, 2, None), _run(without, now, 3, prior)
    return Refresh(
        rows, distance(earlier), distance(_table(study, alone, rows)), distance(_table(study, both, rows))
    )


def _run(study: Study, rows: Rows, seed: int, prior: Prior | None) -> Synthesis:
    plan = plan_of(study)
    plan = plan.knowing(dict.fromkeys(study.domain.names, "")) if study.partition == "vertical" else plan
    facts = facts_of(study, len(study.parties), hashlib.sha256(b"refresh").digest())
    oracle = IdealOracle(
        replace(facts, row_cap=max(facts.row_cap, len(rows))),
        lambda cliques: [marginal(rows, study.domain, clique) for clique in cliques],
        Accountant(plan.budget),
        np.random.default_rng(seed).bytes,
    )
    found: Synthesis = algorithm_of(study).run(oracle, replace(plan, prior=prior), unobserved)
    return found


def _table(study: Study, made: Synthesis, rows: int) -> Rows:
    return made.model.sample(rows, np.random.default_rng(4), targets=study.workload.cliques)


def lines(found: Refresh | None) -> list[str]:
    """For a terminal."""
    if found is None:
        return []
    return [
        f"  prior      {found.sentence}: of {found.rows:,} invented rows, marginals of the workload were off by "
        f"{found.unchanged:.3f} in the earlier table as it is (L1),",
        f"             {found.alone:.3f} in a run without it and {found.together:.3f} with it",
    ]
