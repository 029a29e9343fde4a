"""The oracle with contributors that send ciphertexts, as real processes; the conformance suite has the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.backends.paillier.backend import Paillier
from mpc_protocols.functionality import unobserved
from mpc_protocols.wire import Wire
from runner.review.conformance.guards import Recorder
from tests.mpc_protocols.backends.paillier.conftest import BITS
from tests.trio import Trio
from tests.worlds.questions import work
from tests.worlds.tables import CONTRIBUTORS, PARTS, counter, facts

TABLES = [*PARTS[:2], *CONTRIBUTORS[:2]]


@pytest.fixture(scope="module")
def two_and_two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    """Two computing parties (wire numbers 0, 1) and two contributors (2, 3)."""
    made = Trio(tmp_path_factory.mktemp("two_and_two"), computing=2, contributors=2)
    yield made
    made.close()


def job(wire: Wire, session: bytes) -> list[Any]:
    of, mine, backend = facts(session=session), counter(TABLES[wire.me]), Paillier(BITS)
    if wire.me == of.leader:
        with backend.lead(wire, of, mine, Recorder(), unobserved) as oracle:
            return [repr(work(oracle))]
    if wire.me < 2:
        backend.follow(wire, of, mine, Recorder(), unobserved)
    else:
        backend.contribute(wire, of, mine)
    return []


def test_four_processes_answer_like_the_ideal_oracle(two_and_two: Trio) -> None:
    session = bytes(range(32))
    expected = work(IdealOracle(facts(session=session), counter(np.concatenate(TABLES)), Recorder()))
    assert two_and_two.run(job, session)[1] == [repr(expected)]
