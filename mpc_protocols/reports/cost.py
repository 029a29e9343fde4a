"""What an exchange of reports costs: the messages of `exchange`, counted from public numbers."""

from __future__ import annotations

from dataclasses import dataclass

from mpc_protocols.functionality import Reporter
from mpc_protocols.partition import Partition
from mpc_protocols.reports.common_key import BYTES


@dataclass(frozen=True)
class ReportCost:
    """sent: bytes by wire number."""

    sent: dict[int, int]
    rounds: int


def cost(reporter: Reporter, partition: Partition, leader: int) -> ReportCost:
    """Bytes and rounds of an exchange about this common table."""
    sent = dict.fromkeys(partition.owners, 0)
    for owner in partition.owners:
        if owner != leader:
            sent[owner] += reporter.length(partition.of(owner), partition.rows)
        if reporter.keyed:
            sent[owner] += 2 * BYTES * (len(partition.owners) - 1)
    return ReportCost(sent, 3 + 2 * reporter.keyed)
