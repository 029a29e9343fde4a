"""How close two tables are. OFFLINE ONLY: a metric computed on private rows is itself a release
(`docs/design/algorithms.md` 6).

For benchmarks, simulations and demonstrations with data that is public anyway; nothing here is charged to a
budget.
"""

from __future__ import annotations

from synth.judgement.metrics.marginals import marginal, random_cliques, total_variation, workload_error

__all__ = ["marginal", "random_cliques", "total_variation", "workload_error"]
