"""Which marginals questions need, before there is a release: those of the columns of their moments; and which
ones a run has measured without being asked to.

A question is set up as on a release (`estimands.py`), on tables that stand for one: what it asks for does not
depend on what the answer is. In these tables about every row is equally likely; a tenth more or less keeps
differences that a question may divide by from being 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from mpc_protocols.functionality import Clique
from synth.domain import Domain
from synth.inference.estimands import estimands
from synth.inference.language import parse
from synth.inference.licence import Unanswerable
from synth.inference.moments import MAX_MOMENT_CELLS, Array, Moment, Moments
from synth.inference.parts import Codes_of

ROWS = 1e6
"""Of a table that stands for a release, enough for every group to have some."""
SPREAD = 0.1
AGAIN = (
    "These columns were selected again after they had been measured, and that is more likely where the noise was large: of "
    "such numbers fewer intervals hold than of all."
)
MAX_WORK = 1 << 26
"""Cells of all moments together: of more, a study would be read for minutes."""


def needed(questions: Sequence[str], domain: Domain, codes_of: Codes_of) -> tuple[Clique, ...]:
    """The sets of columns whose marginals answer all of these questions, in domain order, none inside
    another.

    Raises `Unanswerable` or another `UsageError` for a question that cannot be read or does not fit the
    columns.
    """
    asked: dict[Clique, Array] = {}
    work = 0

    def table(columns: Clique) -> Array:
        if columns in asked:
            return asked[columns]
        shape = [domain.sizes[name] for name in columns]
        if prod(shape) > MAX_MOMENT_CELLS:
            raise Unanswerable(
                f"{' x '.join(columns)} has more than {MAX_MOMENT_CELLS:,} cells; ask about fewer columns."
            )
        places = [
            domain.names.index(name) for name in columns
        ]  # of each its own, so that equal columns differ
        skewed: Array = np.random.default_rng([len(places), *places]).uniform(1 - SPREAD, 1 + SPREAD, shape)
        asked[columns] = skewed * (ROWS / skewed.sum())
        return asked[columns]

    def evaluate(moment: Moment) -> float:
        nonlocal work
        work += moment.centre.size
        if work > MAX_WORK:
            raise Unanswerable(
                "The questions ask for more numbers of large marginals than are worked out at once; register fewer, "
                "or of fewer columns."
            )
        return float((table(moment.columns) * moment.centre).sum())

    for text in questions:
        estimands(parse(text), text, domain, codes_of, Moments(domain.sizes, evaluate, table))
    return tuple(
        clique for clique in asked if clique and not any(set(clique) < set(other) for other in asked)
    )


def chosen(facts: Mapping[str, Any], domain: Domain, codes_of: Codes_of) -> frozenset[frozenset[str]]:
    """The sets of columns that a run measured because it selected them: neither registered nor part of what
    is. facts: run.json."""
    queries = ((facts.get("public_study") or {}).get("inference") or {}).get("queries", ())
    registered = [frozenset(clique) for clique in needed(queries, domain, codes_of)] if queries else []
    selected = (frozenset(clique) for clique in facts.get("selected", ()))
    return frozenset(clique for clique in selected if not any(clique <= whole for whole in registered))


def again(facts: Mapping[str, Any]) -> frozenset[frozenset[str]]:
    """The sets of columns that a run has selected more than once."""
    picked = Counter(frozenset(clique) for clique in facts.get("selected", ()))
    return frozenset(clique for clique, times in picked.items() if times > 1)
