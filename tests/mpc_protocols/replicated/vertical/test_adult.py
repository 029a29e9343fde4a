"""Counts before noise on a real table: Adult split 8 & 7 columns, each owner holding a random nine tenths of the people."""

from __future__ import annotations

import numpy as np

from tests.mpc_protocols.replicated.vertical.owners import shared_marginals
from tests.worlds.adult_owners import adult_owners, needs_table


@needs_table
def test_shares_open_to_the_counts_of_the_people_in_common() -> None:
    """All pairs of columns and some triples; the people that one owner lacks count nowhere."""
    adult = adult_owners()
    marginals, rows, _ = shared_marginals(
        adult.sizes, adult.partition, adult.owned, [adult.pairs, adult.triples]
    )
    people = len(next(iter(adult.common.values())))
    assert rows == [people, people]
    for clique, marginal in zip([*adult.pairs, *adult.triples], marginals, strict=True):
        np.testing.assert_array_equal(marginal, adult.counts(clique))
