"""The table of four linked columns that the algorithms' tests have in common, and plans for it."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from mpc_protocols.functionality import Adjacency
from synth.algorithm import Algorithm
from synth.config import AlgorithmConfig
from synth.domain import Domain
from synth.plan import Plan
from synth.workload import Workload
from tests.synth.oracles import chain

C = TypeVar("C", bound=AlgorithmConfig)
P = TypeVar("P", bound=Plan)

ROWS = 20_000
DOMAIN, CODES = chain(ROWS, np.random.default_rng(11))
WORKLOAD = Workload.from_spec({"degree": 2}, DOMAIN)
LINKS = {("a", "b"), ("b", "c"), ("c", "d")}


def planned(
    algorithm: Algorithm[C, P],
    config: C | None = None,
    epsilon: float = 1.0,
    adjacency: Adjacency = "add-remove",
    unit_rows: int = 1,
    domain: Domain = DOMAIN,
    workload: Workload | None = None,
) -> P:
    """A plan; about the first column unless a workload is given: no algorithm that spans all columns cares."""
    asked = workload or Workload(domain, (domain.names[:1],))
    settings = config or algorithm.config()
    return algorithm.plan(
        domain, asked, settings, epsilon=epsilon, delta=1e-9, adjacency=adjacency, unit_rows=unit_rows
    )
