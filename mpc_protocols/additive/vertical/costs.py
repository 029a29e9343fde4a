"""What tables over two owners' columns cost: the messages of `tables`, as functions of a plan."""

from __future__ import annotations

from mpc_protocols.additive.costs import AdditiveCosts
from mpc_protocols.additive.link import DEALER
from mpc_protocols.additive.vertical.plan import TablesPlan


def count_tables(costs: AdditiveCosts, plan: TablesPlan) -> None:
    """`TableSharing.share` of a plan."""
    first, second = plan.owners
    dealer, tally, element = plan.dealer, costs.tally, plan.element
    for stretch in plan.stretches():
        for block in plan.blocks(stretch):
            rows = len(block) * element
            tally.step([(first, second, rows * plan.breadth(0)), (second, first, rows * plan.breadth(1))])
            for batch in plan.batches(len(block)):
                begun, ended = [], []
                for piece in batch:
                    owner, worker = plan.owners[piece.order.side], plan.owners[1 - piece.order.side]
                    places, masked, sums = piece.layout.transfers()
                    begun += [(owner, worker, places), (dealer, worker, masked)]
                    ended.append((worker, owner, sums))
                tally.step(begun)
                tally.step(ended)
        tally.step([(dealer, first, element * plan.dealt_cells)])
        if second == DEALER:
            tally.step([(second, dealer, element * plan.cells)])
        if element == 2:
            costs.widened(plan.cells, 2)
