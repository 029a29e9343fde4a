"""What ciphertexts cost: 262,144 cells in 64 marginals from ten contributors of 2^22 rows at most, at 3,072
bits, as processes.

    python -m tests.acceptance.paillier

CPU seconds of each party from the first ciphertext to shares at both; payload bytes a cell. Some two and a
half minutes of CPU.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from mpc_protocols.backends.paillier.backend import Paillier
from mpc_protocols.functionality import USUAL_LEADER, LocalCounts, StudyFacts, unobserved
from mpc_protocols.wire import Wire
from runner.review.conformance.guards import Recorder
from tests.acceptance import paillier
from tests.trio import Trio

MARGINALS, CELLS, CONTRIBUTORS, MAX_ROWS = 64, 4096, 10, 1 << 22


def own(number: int) -> LocalCounts:
    """A contributor's marginals, as many rows as may be in each."""

    def counts(cliques: Any) -> list[Any]:
        rng = np.random.default_rng(number)
        return [rng.multinomial(MAX_ROWS, np.full(CELLS, 1 / CELLS)).astype(np.int64) for _ in cliques]

    return counts


def job(wire: Wire, session: bytes) -> list[Any]:
    """One party's part; CPU seconds and bytes sent."""
    names = tuple(f"c{place}" for place in range(MARGINALS))
    facts = StudyFacts(dict.fromkeys(names, CELLS), "add-remove", 1, CONTRIBUTORS * MAX_ROWS, session)
    backend = Paillier()
    mine = own(wire.me) if wire.me >= wire.computing else None
    start = time.process_time()
    if wire.me == facts.leader:
        with backend.lead(wire, facts, mine, Recorder(), unobserved) as oracle:
            oracle.prepare([(name,) for name in names])
    elif wire.me < wire.computing:
        backend.follow(wire, facts, mine, Recorder(), unobserved)
    else:
        assert mine is not None
        backend.contribute(wire, facts, mine)
    return [time.process_time() - start, wire.traffic().bytes_sent]


def main() -> None:
    """Run it, and print a line a role."""
    with tempfile.TemporaryDirectory() as folder:
        trio = Trio(Path(folder), computing=2, contributors=CONTRIBUTORS)
        found = trio.run(paillier.job, bytes(range(32)))
        trio.close()
    for number, (cpu, sent) in enumerate(found):
        role = "contributor" if number > 1 else "key holder" if number == USUAL_LEADER else "aggregator"
        print(f"{number:2} {role:11} {cpu:6.1f} CPU s, {sent / (MARGINALS * CELLS):6.1f} B a cell")


if __name__ == "__main__":
    main()
