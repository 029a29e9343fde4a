"""Rounds and bytes of the vertical protocols, as functions of public sizes (the other steps: `replicated.step_costs`).

Each function replays the messages of its protocol on a tally; the tests hold them against the wire's counters, exactly. A run's
schedule says what each request still takes, so one schedule goes with one tally:

    schedule = schedule_of(partition, facts, computing=3)
    prepare(tally, step=120, request=120, facts=facts, work=schedule.next(fresh))
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mpc_protocols.engine.inputs.contribution import SEED_BYTES, block_cells
from mpc_protocols.engine.tally import Tally
from mpc_protocols.functionality import StudyFacts
from mpc_protocols.replicated import costs, step_costs
from mpc_protocols.replicated.sharing.copies import DIGEST_BYTES
from mpc_protocols.replicated.vertical import orders
from mpc_protocols.replicated.vertical.group_by import component_shuffles
from mpc_protocols.replicated.vertical.plan import Plan
from mpc_protocols.vertical.schedule import Work


def prepare_vertical(tally: Tally, step: int, request: int, facts: StudyFacts, work: Work[Plan]) -> None:
    """`ReplicatedOracle.prepare` over vertical data of marginals that are not shared yet; `request`: bytes to a contributor."""
    step_costs.announce(tally, step, [(1, q, request) for q in range(3, len(tally.clocks))])
    step_costs.agreement(tally)
    share(tally, facts, work)


def share(tally: Tally, facts: StudyFacts, work: Work[Plan]) -> None:
    """`source.VerticalMarginals.share`."""
    if work.histograms:
        step_costs.counts(tally, block_cells(facts, work.histograms))
    if work.plan is not None:
        run(tally, work.plan)


def run(tally: Tally, plan: Plan) -> None:
    """`execution.PlanExecution`: seeds, every row block, the end of every row range."""
    for owner in plan.contributing():
        tally.step(
            [(owner, _party(owner, place), SEED_BYTES * (2 if place == 0 else 1)) for place in range(3)]
        )
    _compare(tally, [pair for owner in plan.contributing() for pair in ((owner, 0, 1), (owner, 0, 2))])
    for owner in plan.ordering():
        tally.step([(owner, party, SEED_BYTES) for party in range(3)])
    total = plan.cells() + plan.counts_somebody
    for row_range in plan.row_ranges():
        for start, stop in row_range:
            row_block(tally, plan, stop - start)
        for owner in plan.ordering():
            cells = sum(
                prod(plan.shape(group))
                for group in plan.groups(by_permutation=True)
                if group.lefts[0].owner == owner
            )
            _deal(tally, owner, cells * plan.element)
        _compare(tally, [(owner, 1, 2) for owner in plan.ordering()])
        costs.products(tally, total, plan.element)
        if plan.element == 2:
            costs.lift(tally, total, 2, 4)


def row_block(tally: Tally, plan: Plan, rows: int) -> None:
    """`execution.PlanExecution.row_block`."""
    widths = {owner: rows * plan.input_width(owner) * plan.element for owner in plan.inputs()}
    tally.step([(owner, (owner + 1) % 3, size) for owner, size in widths.items() if owner < plan.computing])
    for owner in plan.contributing():
        _deal(tally, owner, widths.get(owner, 0))
    _compare(tally, [(owner, 1, 2) for owner in plan.contributing() if owner in widths])
    members = len(plan.partition.owners) if plan.needs_memberships else 1
    while members > 1:
        costs.products(tally, members // 2 * rows, plan.element)
        members -= members // 2
    for level in plan.levels():
        costs.products(tally, rows * sum(map(plan.breadth, level)), plan.element)
    for batch in orders.batches(plan, rows):
        order(tally, plan, batch)


def order(tally: Tally, plan: Plan, batch: list[orders.Piece]) -> None:
    """`group_by.sums_by_cell`: Q answers each shuffle as soon as it has its two messages."""
    tasks = [
        (piece, shuffle)
        for piece in batch
        for shuffle in component_shuffles(piece.left.owner, plan.computing, piece.helper)
    ]
    travelling = []
    for piece, shuffle in tasks:
        places, masked, _ = piece.layout.transfers()
        travelling.append(
            tally.leave(
                [(piece.left.owner, shuffle.worker, places), (shuffle.helper, shuffle.worker, masked)]
            )
        )
    answers = []
    for (piece, shuffle), arriving in zip(tasks, travelling, strict=True):
        tally.arrive(arriving)
        answers.append(tally.leave([(shuffle.worker, piece.left.owner, piece.layout.transfers()[2])]))
    for answer in answers:
        tally.arrive(answer)


def _deal(tally: Tally, owner: int, size: int) -> None:
    """`matrices.deal_block`."""
    tally.step([(owner, _party(owner, place), size) for place in (1, 2)])


def _compare(tally: Tally, holders: Sequence[tuple[int, int, int]]) -> None:
    """`copies.same_copies`: a contributor and the places of the two parties that hold the same of it."""
    pairs = [(_party(owner, one), _party(owner, other)) for owner, one, other in holders]
    tally.step([transfer for a, b in pairs for transfer in ((a, b, DIGEST_BYTES), (b, a, DIGEST_BYTES))])


def _party(owner: int, place: int) -> int:
    """k + place of a contributor, whose index among the contributors is its number less 3."""
    return (owner + place) % 3
