"""The marginal oracle between two parties whose contributors send ciphertexts: that of `pair` over
`EncryptedMarginals`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mpc_protocols.backend import OracleParts
from mpc_protocols.backends.paillier.marginals import Contributor, EncryptedMarginals
from mpc_protocols.backends.pair.engine import PairEngine
from mpc_protocols.backends.pair.oracle import horizontal_counts
from mpc_protocols.engine import oracle
from mpc_protocols.engine.oracle import Roles
from mpc_protocols.functionality import LocalCounts, StudyFacts
from mpc_protocols.vertical.partition import VerticalData
from mpc_protocols.wire import Wire

if TYPE_CHECKING:
    from mpc_protocols.backends.paillier.run_keys import RunKeys


def parts(keys: RunKeys) -> OracleParts:
    """Leader, the other computing party, contributors. keys: how a run comes to its key."""
    counted = partial(EncryptedMarginals, keys=keys)
    return OracleParts.of(Roles(partial(PairEngine, counted=counted)), partial(contribute, keys=keys))


def contribute(wire: Wire, facts: StudyFacts, counts: LocalCounts | VerticalData, keys: RunKeys) -> None:
    """A custodian that does not compute: send ciphertexts of its counts when asked. Blocks. Errors as for
    `pair.oracle`."""
    oracle.contribute(wire, facts, Contributor(wire, facts, horizontal_counts(counts), keys).send)
