"""Counts before noise on a real table: Adult split 8 & 7 columns, each owner holding a random nine tenths of
the people."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.additive.circuits.gates import AdditiveGates
from mpc_protocols.backends.additive.vertical.marginals import JoinedMarginals
from mpc_protocols.vertical.partition import VerticalData
from tests.mpc_protocols.backends.additive.dealt_run import run_three
from tests.mpc_protocols.backends.replicated.vertical.owners import facts, partition
from tests.mpc_protocols.backends.replicated.vertical.test_adult import TABLE, adult, histogram


@pytest.mark.skipif(not TABLE.exists(), reason=f"{TABLE.name} is not beside the project")
@pytest.mark.usefixtures("crypten")
def test_shares_open_to_the_counts_of_the_people_in_common() -> None:
    """All pairs of columns and some triples; the people that one owner lacks count nowhere."""
    of = adult()
    split = partition(of.sizes, of.owner_of, "intersection", of.rows)
    cliques = [clique for batch in of.cliques for clique in batch]

    def body(gates: AdditiveGates) -> list[NDArray[Any]]:
        source = JoinedMarginals(gates, facts(of.sizes), VerticalData(split, of.tables.get(gates.link.me)))
        source.share(cliques, (), b"asked")
        return [source.shared(clique) for clique in cliques]

    first, second, _ = run_three(body).results
    for clique, one, other in zip(cliques, first, second, strict=True):
        np.testing.assert_array_equal(one + other, histogram(of.common, of.sizes, clique))
