"""One computing party of two parties and a dealer: `engine.parts` over what the dealer deals.

The dealer runs the same code on zeros, which makes it deal what the two others need, in their order
(`dealer`).

Who learns what: all three the releases, the model's answers, and sizes; the dealer what is opened only when
it is open. Threat model: semi-honest, no two of the three collude; recipients and contributors may collude
with any. Assumption: AES (`masks`).
"""

from __future__ import annotations

from collections.abc import Callable

from mpc_protocols.backends.additive.adapter.crypten_operations import CrypTenOperations
from mpc_protocols.backends.additive.circuits.gates import AdditiveGates
from mpc_protocols.backends.additive.dealing.dealer import DealerOperations
from mpc_protocols.backends.additive.dealing.operations import Operations
from mpc_protocols.backends.additive.link import DEALER, SPLIT, Link
from mpc_protocols.backends.additive.vertical.marginals import JoinedMarginals
from mpc_protocols.engine.inputs.held_marginals import HeldMarginals
from mpc_protocols.engine.parts.engine import ArrayEngine
from mpc_protocols.engine.prg import own_key
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import LocalCounts, StudyFacts
from mpc_protocols.vertical.partition import VerticalData
from mpc_protocols.wire import Wire


class AdditiveEngine(ArrayEngine[AdditiveGates]):
    """Shares, arithmetic and openings of party 0 or 1; what the dealer deals for them at party 2."""

    def __init__(
        self,
        wire: Wire,
        facts: StudyFacts,
        data: LocalCounts | VerticalData | None,
        operations: Callable[[Link], Operations] | None = None,
    ) -> None:
        """data: this party's own; None if it only computes. operations: at either end, CrypTen's and the
        dealer's if not named.

        Raises `StudyInvalid` (number of parties, a dealer that would lead, CrypTen is not installed, other
        owners than two of the three), `DataRefused` (rows that do not fit).
        """
        if facts.leader == DEALER:
            raise StudyInvalid(
                "The dealer cannot lead: the model's answers are subtracted from the leader's shares."
            )
        link, secret, made = Link(wire), own_key(wire), operations or _operations
        gates = AdditiveGates(made(link), secret)
        super().__init__(
            facts,
            gates,
            AdditiveGates(made(link.fork("noise")), secret),
            JoinedMarginals(gates, facts, data)
            if isinstance(data, VerticalData)
            else HeldMarginals(wire, facts, data, SPLIT),
        )


def _operations(link: Link) -> Operations:
    return DealerOperations(link) if link.deals else CrypTenOperations(link)
