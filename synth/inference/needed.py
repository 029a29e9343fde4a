"""Which marginals questions need, before there is a release: those of the columns of their moments.

A question is set up as on a release (`estimands.py`), on tables that stand for one: what it asks for does not depend on what the
answer is. In these tables about every row is equally likely; a tenth more or less keeps differences that a question may divide by
from being 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpc_protocols.functionality import Clique
from synth.domain import Domain
from synth.inference.estimands import estimands
from synth.inference.language import parse
from synth.inference.moments import Array, Moment, Moments
from synth.inference.parts import Codes_of

ROWS = 1e6
"""Of a table that stands for a release, enough for every group to have some."""
SPREAD = 0.1


def needed(questions: Sequence[str], domain: Domain, codes_of: Codes_of) -> tuple[Clique, ...]:
    """The sets of columns whose marginals answer all of these questions, in domain order, none inside another.

    Raises `Unanswerable` or another `UsageError` for a question that cannot be read or does not fit the columns.
    """
    asked: dict[Clique, None] = {}

    def table(columns: Clique) -> Array:
        asked[columns] = None
        shape = [domain.sizes[name] for name in columns]
        skewed: Array = np.random.default_rng(len(columns)).uniform(1 - SPREAD, 1 + SPREAD, shape)
        table: Array = skewed * (ROWS / skewed.sum())
        return table

    def evaluate(moment: Moment) -> float:
        return float((table(moment.columns) * moment.centre).sum())

    for text in questions:
        estimands(parse(text), text, domain, codes_of, Moments(domain.sizes, evaluate, table))
    return tuple(
        clique for clique in asked if clique and not any(set(clique) < set(other) for other in asked)
    )
