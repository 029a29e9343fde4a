"""Counts before noise on a real table, as for three parties
(`tests/mpc_protocols/backends/replicated/vertical/test_adult.py`)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.mpc_protocols.backends.replicated.vertical.owners import partition
from tests.mpc_protocols.backends.replicated.vertical.test_adult import TABLE, adult, histogram
from tests.mpc_protocols.backends.shamir.vertical.owners import held_marginals


@pytest.mark.skipif(not TABLE.exists(), reason=f"{TABLE.name} is not beside the project")
def test_holders_parts_add_up_to_the_counts_of_the_people_in_common() -> None:
    """An owner that computes and one that contributes; some pairs of columns of one and of both."""
    of = adult((1, 3))
    split = partition(of.sizes, of.owner_of, "intersection", of.rows)
    cliques = of.cliques[0][::7]
    marginals, _ = held_marginals(of.sizes, split, of.tables, [cliques], computing=3)
    for clique, marginal in zip(cliques, marginals, strict=True):
        np.testing.assert_array_equal(marginal, histogram(of.common, of.sizes, clique))
