"""The suites notice what is wrong: versions with one defect each fail the check that is about it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backend import DryRun
from mpc_protocols.functionality import LocalCounts, StudyFacts
from mpc_protocols.partition import Partition
from tests.conformance import Check, NonconformingError, check_oracle
from tests.toys.plain_backend import Plain, PlainDryRun, PlainOracle


def failing(checks: Sequence[Check], about: str) -> str:
    """What the one check with these words in its name says; it must fail."""
    [check] = [check for check in checks if about in check.name]
    with pytest.raises(NonconformingError) as raised:
        check()
    assert str(raised.value).startswith(str(check))
    return str(raised.value)


class Hasty(PlainOracle):
    """Opens without waiting for the others' guards: it reads what they say when it needs their next counts."""

    def _agree(self, inputs: bytes) -> None:
        self._unread = [*getattr(self, "_unread", []), *self._followers]

    def _receive(self, peer: int, size: int) -> bytes:
        while peer in self._unread:
            self._unread.remove(peer)
            super()._receive(peer, 32)
        return super()._receive(peer, size)


class Forgetful(PlainOracle):
    """Does not add what the last party brings."""

    def _receive(self, peer: int, size: int) -> bytes:
        received = super()._receive(peer, size)
        return bytes(size) if peer == self._others[-1] > self._followers[-1] else received


class Silent(PlainOracle):
    """Adds no noise."""

    def measure(
        self, handles: Sequence[int], sigma2: Fraction | Sequence[Fraction]
    ) -> list[NDArray[np.int64]]:
        super().measure(handles, sigma2)
        return [self._marginal(handle) for handle in handles]


class Trusting(PlainOracle):
    """Does not look at what the others have seen."""

    def _check_agreement(self, peer: int, theirs: bytes, inputs: bytes) -> None:
        return


def plain(oracle: type[PlainOracle]) -> Plain:
    """The toy backend with another leader."""

    class Defective(Plain):
        def lead(self, wire: Any, facts: StudyFacts, data: Any, guard: Any, observe: Any) -> Any:
            return oracle(wire, facts, data, guard)

    return Defective()


class Cheap(Plain):
    """A cost model that forgets the end of the run."""

    def dry_run(
        self,
        facts: StudyFacts,
        counts: LocalCounts,
        computing: int,
        contributing: int,
        split: Partition | None,
    ) -> DryRun:
        class NoEnd(PlainDryRun):
            def close(self) -> None:
                return

        return NoEnd(facts, counts, computing, contributing)


@pytest.mark.parametrize(
    ("oracle", "about", "words"),
    [
        (Hasty, "party 0 refuses a measurement", "no answer to a question that a guard refused"),
        (Forgetful, "by ideal (2 computing, 2 contributing)", "the answer must be"),
        (Silent, "noise is there", "fresh noise"),
        (Trusting, "another study", "nothing was raised"),
    ],
)
def test_a_defective_backend(oracle: type[PlainOracle], about: str, words: str) -> None:
    assert words in failing(check_oracle(plain(oracle)), about)


def test_a_cost_model_that_forgets_something() -> None:
    assert "count the bytes" in failing(check_oracle(Cheap()), "byte and round (2 computing, 0")
