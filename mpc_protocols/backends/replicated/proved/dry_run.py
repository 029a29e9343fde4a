"""What a run with proofs costs: `party_dry_run` over an engine that counts (`counted`)."""

from __future__ import annotations

from mpc_protocols.backends.replicated.proved.counted import CountedEngine
from mpc_protocols.engine.tally import Tally
from mpc_protocols.in_memory.party_dry_run import PartyDryRun
from mpc_protocols.in_memory.presumed import PresumedRun

PRODUCT_BYTES = 2
"""Of a product until it is proved: X, Y and shares of them in three roles, and once more as rows of a proof."""
PRODUCT_S = 13e-9
"""CPU seconds of a party for a product and its proof, while others run on the same machine."""
ENTRY_PRODUCT_S = 0.5e-9
"""The same per product of two entries in a table over two owners' columns."""
ROW_S = 5e-6
"""The same per row of each such table, for the proof, which takes 64 coefficients a row however few the
columns are."""


class ProvedDryRun(PartyDryRun):
    """Three computing parties, and those that contribute."""

    def __init__(self, run: PresumedRun) -> None:
        tally = Tally.of(run.computing + run.contributing)
        self._counted = CountedEngine(tally, run.facts, run.contributing, run.split)
        super().__init__(run, tally, self._counted)

    @property
    def beside_bytes(self) -> int:
        """Products that are proved together, and what every custodian has shared."""
        return (
            PRODUCT_BYTES * self._counted.counted_gates.most_unproved + 8 * len(self.sent) * self.shared_cells
        )

    @property
    def seconds(self) -> float:
        proved = sum(of.products for of in (self._counted.counted_gates, self._counted.counted_beside))
        found, vertical = PRODUCT_S * proved, self._counted.vertical
        if vertical is not None:
            found += ENTRY_PRODUCT_S * vertical.multiplied + ROW_S * vertical.proved_rows
        return found
