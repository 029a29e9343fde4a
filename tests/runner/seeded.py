"""`tests.runner.dying` whose run in the clear draws from a seed: what it tells must not depend on how many
attempts it takes.

Each draw is bound to how many results are known, as it is not outside of tests: a new attempt draws fresh
noise.
"""

from __future__ import annotations

import random
import sys
from types import SimpleNamespace
from typing import Any

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.functionality import Guard, LocalCounts, StudyFacts
from runner.party import synthesis
from tests.runner import dying


def install() -> None:
    """Have noise, rows and their decoding follow a seed."""
    begin = IdealOracle.__init__

    def began(
        oracle: IdealOracle, facts: StudyFacts, counts: LocalCounts, guard: Guard, history: Any
    ) -> None:
        def randomness(count: int) -> bytes:
            return random.Random(f"{len(history.results)} {count}").randbytes(count)

        begin(oracle, facts, counts, guard, randomness, history=history)

    setattr(IdealOracle, "__init__", began)  # noqa: B010 (mypy: a method is replaced)
    setattr(synthesis, "secrets", SimpleNamespace(randbits=random.Random(1).getrandbits))  # noqa: B010


if __name__ == "__main__":
    install()
    dying.install("ideal")
    from runner.__main__ import main

    sys.exit(main())
