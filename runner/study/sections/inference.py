"""The table [inference]: questions that the release answers with intervals
(`docs/howto/answer-a-question.md`).

The marginals that they need are measured whatever is selected, in one batch with a share of the budget of
their own (`synth.budget.reserved`). Standard library only at import: what questions need is found out with
NumPy, where there are any.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import UsageError
from mpc_protocols.functionality import MAX_CELLS
from mpc_protocols.process.later import Later
from runner.study.declared.keys import InferenceKeys
from runner.study.declared.table import Table
from synth.algorithm import Algorithm
from synth.config import AlgorithmConfig
from synth.domain import Domain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Clique
    from runner.api import conditions
    from synth.inference import needed
    from synth.mrf import tree_size
else:
    conditions = Later("runner.api.conditions")
    needed = Later("synth.inference.needed")
    tree_size = Later("synth.mrf.tree_size")

MAX_QUERIES = 100


@dataclass(frozen=True)
class Inference:
    """queries: as `infer` reads them. share: of rho. cliques: the marginals that answer them, in domain
    order; none where single columns do, which are measured anyway."""

    queries: tuple[str, ...]
    share: Fraction
    cliques: tuple[Clique, ...]

    def public(self) -> dict[str, Any]:
        """JSON-able form."""
        return {
            "queries": list(self.queries),
            "share": float(self.share),
            "cliques": [list(clique) for clique in self.cliques],
        }


def read_inference(
    table: Table, algorithm: Algorithm[Any, Any], config: AlgorithmConfig, domain: Domain
) -> Inference | None:
    """[inference]; None if it is wrong, which `table` is told."""
    before = len(table.problems)
    given = table.options(InferenceKeys)
    queries = given.queries
    if len(queries) > MAX_QUERIES:
        table.problem(f"holds {len(queries)} questions; at most {MAX_QUERIES} can be registered", "queries")
    if not algorithm.reserves or algorithm.reporting(config) is not None:
        table.problem(
            f'has no meaning with algorithm = "{algorithm.name}" as configured, which measures only what it selects; use '
            'algorithm = "mosaic", or remove it'
        )
    if len(table.problems) > before:
        return None
    found: list[Clique] = []
    for query in queries:
        try:
            found += marginals([query], domain)
        except UsageError as error:
            table.problem(
                f'holds "{query}", which cannot be answered: {error.sentence.rstrip(".")}', "queries"
            )
    cliques = tuple(
        clique
        for clique in dict.fromkeys(found)
        if len(clique) > 1 and not any(set(clique) < set(other) for other in found)
    )
    for clique in cliques:
        if domain.cells(clique) > MAX_CELLS:
            table.problem(
                f"needs the marginal of {' x '.join(clique)}, which has {domain.cells(clique):,} cells, and none of more than "
                f"{MAX_CELLS:,} can be shared: ask about fewer columns, or coarsen them",
                "queries",
            )
    if len(table.problems) == before and cliques:
        _check_model(table, cliques, config, domain)
    return None if len(table.problems) > before else Inference(queries, Fraction(str(given.share)), cliques)


def marginals(queries: list[str], domain: Domain) -> tuple[Clique, ...]:
    """As `synth.inference.needed`."""

    def codes_of(name: str, value: Any) -> NDArray[np.bool_]:
        return conditions.allowed(domain, {name: value})[name]

    return needed.needed(queries, domain, codes_of)


def _check_model(table: Table, cliques: tuple[Clique, ...], config: AlgorithmConfig, domain: Domain) -> None:
    size = tree_size.model_size_mb(domain.sizes, [*cliques, *domain.impossible])
    if size > config.model_mb:
        table.problem(
            f"needs marginals whose model would take {size:,.0f} MiB, more than max_model_mb = {config.model_mb:g}: ask "
            "about fewer columns together, or raise it",
            "queries",
        )
