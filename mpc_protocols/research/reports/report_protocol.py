"""Descriptor of the protocol by which owners report once (`exchange`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpc_protocols.process.later import Later
from mpc_protocols.vertical.owners import ReportProtocol

if TYPE_CHECKING:
    from mpc_protocols.functionality import Reporter
    from mpc_protocols.research.reports import cost, exchange
    from mpc_protocols.vertical.owners import ReportCost
    from mpc_protocols.vertical.partition import Partition
else:
    cost = Later("mpc_protocols.research.reports.cost")
    exchange = Later("mpc_protocols.research.reports.exchange")


class ReportsToLeader(ReportProtocol):
    """Each owner to the leader, once everything that reports are charged is on record."""

    name = "reports"

    def exchange(self, reporter: Reporter) -> exchange.ReportExchange:
        return exchange.ReportExchange(reporter)

    def cost(self, reporter: Reporter, partition: Partition, leader: int) -> ReportCost:
        return cost.cost(reporter, partition, leader)


REPORT_PROTOCOL = ReportsToLeader()
