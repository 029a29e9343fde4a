"""FLAIM's rounds where all clients are there from beginning to end: who asks whom, and what is made of it.

`schedule` deals the cohorts, `server` asks them, `client` answers, `accounts` keeps the budget of every
client, and `opened` tells what anybody who holds the answers finds in them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mpc_protocols.errors import StudyInvalid
from synth.algorithm import CohortRounds
from synth.algorithms.flaim.accounts import ClientAccounts
from synth.algorithms.flaim.client import Client
from synth.algorithms.flaim.opened import Opened
from synth.algorithms.flaim.plan import FlaimPlan
from synth.algorithms.flaim.schedule import deal
from synth.algorithms.flaim.server import Arrivals, Server
from synth.mrf import fit
from synth.synthesis import Synthesis

if TYPE_CHECKING:
    from mpc_protocols.functionality import Answered, Cohorts, Event, LocalCounts, LocalVector, Observe
    from synth.algorithm import CohortGuard
    from synth.mrf import Model

MAX_SUM = 1 << 31
"""A sum of everybody's rows with the noise of their sizes stays below it."""


class InRounds(CohortRounds[FlaimPlan]):
    """See `CohortRounds`."""

    def fitted(self, plan: FlaimPlan, clients: int, max_rows: int) -> FlaimPlan:
        """See `CohortRounds`."""
        if clients < plan.config.group:
            raise StudyInvalid(
                f"[flaim] group = {plan.config.group} is more than the {clients} custodians of the study: nothing could ever be "
                "opened; lower it, or let more take part."
            )
        if clients * max_rows >= MAX_SUM // 2:
            raise StudyInvalid(
                f"[privacy] max_rows = {max_rows:,} is too large for {clients:,} clients: their rows together must stay below "
                f"2^30; lower it to at most {(MAX_SUM // 2 - 1) // clients:,}, well above any client's table."
            )
        return replace(plan, max_rows=max_rows)

    def client(self, plan: FlaimPlan, counts: LocalCounts, session: bytes) -> LocalVector:
        """See `CohortRounds`."""
        return Client(plan, counts, session)

    def accounts(
        self, plan: FlaimPlan, clients: Sequence[int], record: Callable[[Event, bytes], None]
    ) -> CohortGuard:
        """See `CohortRounds`."""
        return ClientAccounts(plan, clients, record)

    def conduct(self, cohorts: Cohorts, plan: FlaimPlan, session: bytes, observe: Observe) -> Synthesis:
        """See `CohortRounds`."""
        server = Server(plan, cohorts, session, observe)
        found = server.run([Arrivals(cohort) for cohort in deal(plan, cohorts.clients, session)])
        # with hardly a row there is nothing to fit, and the run ends like any other
        model: Model = fit(plan.domain.sizes, [], total=1.0) if found is None else found.model
        rows = 0 if found is None else round(model.total)
        return Synthesis(
            model,
            tuple(server.opened.measurements),
            tuple(server.opened.selections),
            float(rows),
            plan.config.synthetic_rows or min(rows, len(cohorts.clients) * plan.max_rows),
        )

    def opened(self, plan: FlaimPlan, answered: Sequence[Answered]) -> Opened:
        """See `CohortRounds`."""
        return Opened.of(plan, answered)
