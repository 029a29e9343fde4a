"""The marginal oracle between two parties whose contributors send ciphertexts: that of `pair` over `EncryptedMarginals`."""

from __future__ import annotations

from functools import partial

from mpc_protocols.backend import OracleParts
from mpc_protocols.engine import oracle
from mpc_protocols.engine.oracle import Roles
from mpc_protocols.functionality import LocalCounts, StudyFacts
from mpc_protocols.paillier.marginals import Contributor, EncryptedMarginals
from mpc_protocols.pair.engine import PairEngine
from mpc_protocols.pair.oracle import horizontal_counts
from mpc_protocols.partition import VerticalData
from mpc_protocols.wire import Wire


def parts(key_bits: int) -> OracleParts:
    """Leader, the other computing party, contributors. key_bits: of the key that a run makes."""
    counted = partial(EncryptedMarginals, key_bits=key_bits)
    return OracleParts.of(
        Roles(partial(PairEngine, counted=counted)),
        partial(contribute, key_bits=key_bits),
    )


def contribute(wire: Wire, facts: StudyFacts, counts: LocalCounts | VerticalData, key_bits: int) -> None:
    """A custodian that does not compute: send ciphertexts of its counts when asked. Blocks. Errors as for `pair.oracle`."""
    oracle.contribute(wire, facts, Contributor(wire, facts, horizontal_counts(counts), key_bits).send)
