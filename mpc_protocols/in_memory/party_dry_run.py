"""What a run costs whose engine can count: the ideal oracle on a presumed table, beside the leading party's
own code.

The steps themselves (`engine.step`), over an engine that sends nothing and notes on a tally what every party
would send. No private data, nothing released, nothing charged. Answers are the ideal ones; what is picked
follows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from mpc_protocols.engine.interface import Engine
from mpc_protocols.engine.latency import count_delay
from mpc_protocols.engine.step import ComputingParty
from mpc_protocols.engine.tally import AGREEMENT, Tally
from mpc_protocols.in_memory.presumed import AllowAll, PresumedRun
from mpc_protocols.in_memory.tallied_dry_run import Learned, TalliedDryRun
from mpc_protocols.public.begun import (
    Begun,
    BegunDistances,
    BegunMeasure,
    BegunPrepare,
    BegunSelect,
    BegunTotal,
)
from mpc_protocols.public.steps import EndStep, PrepareStep

if TYPE_CHECKING:
    from mpc_protocols.public.rounded_answers import RoundedAnswers


class CountingEngine(Engine[Any, Any], Protocol):
    """An engine of the leading party that notes messages on a tally. picked: of a selection of several, the
    candidates that are picked. check_cost: rounds and bytes of all checks of inputs so far."""

    picked: Sequence[int]
    check_cost: tuple[int, int]


class PartyDryRun(TalliedDryRun):
    """The ideal oracle, and the messages of a run."""

    def __init__(self, run: PresumedRun, tally: Tally, engine: CountingEngine) -> None:
        """tally: of the run's computing parties, and the contributors."""
        facts = run.facts
        super().__init__(facts, run.counts, tally, engine.dealers)
        self._engine = engine
        self._followers = [party for party in range(run.computing) if party != facts.leader]
        count_delay(tally, run.computing, facts.leader)
        self._party: ComputingParty[Any, Any] = ComputingParty(
            engine, facts, AllowAll(), None, delay=run.delay_us
        )
        self._party.state = cast(Any, Learned(self._ideal.state))

    @property
    def input_checks(self) -> tuple[int, int]:
        return self._engine.check_cost

    def close(self) -> None:
        end = EndStep().to_bytes()
        self._announce(end, end)
        self._engine.announce(bytes(AGREEMENT))()

    def _count(self, begun: Begun, rounded: RoundedAnswers | None) -> None:
        party, request = self._party, b""
        if isinstance(begun, BegunPrepare) and begun.fresh:
            request = PrepareStep(begun.fresh, begun.levels).to_bytes()
        elif isinstance(begun, BegunTotal) and party.shares_rows_first(begun):
            request = PrepareStep((party.smallest(),), ()).to_bytes()
        if not (isinstance(begun, BegunMeasure) and begun.promised):
            self._announce(begun.step.to_bytes(), request)
        if isinstance(begun, BegunDistances):
            party.distances(begun, rounded)
        else:
            party.run(begun)

    def _count_select(self, begun: BegunSelect, rounded: RoundedAnswers, picked: Sequence[int]) -> None:
        self._announce(begun.step.to_bytes(), b"")
        self._engine.picked = picked
        self._party.select(begun, rounded)

    def _announce(self, step: bytes, request: bytes) -> None:
        """The leader sends a step to all others that compute, and a request, if there is one, to
        contributors."""
        leader = self.facts.leader
        to_followers = [(leader, peer, len(step)) for peer in self._followers]
        self.tally.step(
            to_followers + [(leader, peer, len(request)) for peer in self._party.wire.contributors]
        )
