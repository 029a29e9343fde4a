"""What an exchange of reports costs: the messages of `exchange`, counted from public numbers."""

from __future__ import annotations

from mpc_protocols.functionality import Reporter
from mpc_protocols.research.reports.common_key import BYTES
from mpc_protocols.vertical.owners import ReportCost
from mpc_protocols.vertical.partition import Partition


def cost(reporter: Reporter, partition: Partition, leader: int) -> ReportCost:
    """Bytes and rounds of an exchange about this common table."""
    sent = dict.fromkeys(partition.owners, 0)
    for owner in partition.owners:
        if owner != leader:
            sent[owner] += reporter.length(partition.of(owner), partition.rows)
        if reporter.keyed:
            sent[owner] += 2 * BYTES * (len(partition.owners) - 1)
    return ReportCost(sent, 3 + 2 * reporter.keyed)
