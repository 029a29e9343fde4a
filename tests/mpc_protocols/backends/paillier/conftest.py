"""A key for tests: shorter than any study's, made once."""

from __future__ import annotations

import pytest

from mpc_protocols.backends.paillier.keys import PrivateKey

BITS = 1024


@pytest.fixture(scope="package")
def key() -> PrivateKey:
    return PrivateKey.generate(BITS)
