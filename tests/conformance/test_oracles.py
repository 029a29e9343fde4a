"""Every registered backend, and the toy, does what a backend promises."""

from __future__ import annotations

import pytest

from mpc_protocols.backend import BACKENDS
from tests.conformance import Check, check_oracle
from tests.toys import plain_backend

CHECKS = [check for backend in (*BACKENDS, plain_backend.BACKEND) for check in check_oracle(backend)]


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_oracle(check: Check) -> None:
    check()
