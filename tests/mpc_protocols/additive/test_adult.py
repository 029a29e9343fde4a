"""Counts before noise on a real table: Adult split 8 & 7 columns, each owner holding a random nine tenths of the people."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.additive.circuits.gates import AdditiveGates
from mpc_protocols.additive.vertical.marginals import JoinedMarginals
from mpc_protocols.partition import VerticalData
from tests.mpc_protocols.additive.dealt_run import run_three
from tests.mpc_protocols.replicated.vertical.owners import facts
from tests.worlds.adult_owners import adult_owners, needs_table


@needs_table
@pytest.mark.usefixtures("crypten")
def test_shares_open_to_the_counts_of_the_people_in_common() -> None:
    """All pairs of columns and some triples; the people that one owner lacks count nowhere."""
    adult = adult_owners()
    cliques = [*adult.pairs, *adult.triples]

    def body(gates: AdditiveGates) -> list[NDArray[Any]]:
        data = VerticalData(adult.partition, adult.owned.get(gates.link.me))
        source = JoinedMarginals(gates, facts(adult.sizes), data)
        source.share(cliques, (), b"asked")
        return [source.shared(clique) for clique in cliques]

    first, second, _ = run_three(body).results
    for clique, one, other in zip(cliques, first, second, strict=True):
        np.testing.assert_array_equal(one + other, adult.counts(clique))
