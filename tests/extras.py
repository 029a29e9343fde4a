"""Tests of versions whose packages are an optional part of the installation: skipped where these are not
installed."""

from __future__ import annotations

import pytest

from mpc_protocols.registry import Extra, not_installed


def skip_unless_installed(version: Extra) -> None:
    """Skip the running test, saying what is lacking, if this version's packages are not here."""
    if lack := not_installed(version):
        pytest.skip(f"This test {lack}.")
