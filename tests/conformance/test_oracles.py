"""Every registered backend, and the toys, does what a backend promises."""

from __future__ import annotations

import pytest

from mpc_protocols.backend import BACKENDS, Backend
from mpc_protocols.backends.paillier.backend import BACKEND as PAILLIER
from mpc_protocols.backends.paillier.backend import Paillier
from runner.review.conformance import Check, check_oracle
from tests.extras import skip_unless_installed
from tests.toys import dealt_backend, plain_backend

SHORT_KEYS = Paillier(1024)
"""paillier with keys of 1,024 bits, for whose making and use nobody waits: the same messages but for their
lengths."""
TOYS = (plain_backend.BACKEND, dealt_backend.BACKEND)
TRIED = (*(backend for backend in BACKENDS if backend is not PAILLIER), SHORT_KEYS, *TOYS)
CHECKS = [(backend, check) for backend in TRIED for check in check_oracle(backend)]


@pytest.mark.parametrize(("backend", "check"), CHECKS, ids=[str(check) for _, check in CHECKS])
def test_oracle(backend: Backend, check: Check) -> None:
    skip_unless_installed(backend)
    check()
