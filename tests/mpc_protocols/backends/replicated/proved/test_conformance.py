"""The backend with proofs does what every backend promises; `test_engine` stands for it where campaigns are
left out."""

from __future__ import annotations

import pytest

from mpc_protocols.backend import BACKENDS
from runner.review.conformance import Check, check_oracle

PROVED = BACKENDS["replicated"].secured("malicious")


@pytest.mark.campaign
@pytest.mark.parametrize("check", check_oracle(PROVED), ids=str)
def test_conforms(check: Check) -> None:
    check()
