"""The backend with proofs does what every backend promises: the suite of backends, of which one check stands for all."""

from __future__ import annotations

import pytest

from mpc_protocols.backend import BACKENDS
from tests.conformance import Check, check_oracle

PROVED = BACKENDS["replicated"].secured("malicious")
STANDS_FOR_ALL = "a dry run counts every byte and round (3 computing, 2 contributing)"


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=str(check), marks=() if check.name == STANDS_FOR_ALL else pytest.mark.campaign)
        for check in check_oracle(PROVED)
    ],
)
def test_conforms(check: Check) -> None:
    check()
