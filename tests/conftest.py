"""Fixtures for all tests: long-lived party processes (see `tests.trio`), and what is measured on quiet machines only.

No test is decided by a clock (`tests.patience`). What a machine must be quiet for, such as how near two measurements are to each
other, is looked at with `pytest --quiet-machine` only. Cases that differ from others in a party or a size only are left to
`pytest --campaigns`. Hypothesis has no deadlines: on a shared machine a slow example says
nothing about the code.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.mariadb import MariaDB
from tests.mariadb import available as no_mariadb
from tests.postgres import Postgres, available, binaries
from tests.trio import Trio

settings.register_profile("cosynth", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("cosynth")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quiet-machine", action="store_true", help="also judge times: nothing else runs on this machine"
    )
    parser.addoption(
        "--campaigns", action="store_true", help="also every case of which others stand for the kind"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what `campaigns.txt` lists or is marked so, unless it is asked for. Raises `UsageError` for a name in it that no
    test has."""
    lines = (Path(__file__).parent / "campaigns.txt").read_text(encoding="utf-8").splitlines()
    listed = {line for line in lines if line and not line.startswith("#")}
    files = {item.nodeid.partition("::")[0] for item in items}
    if config.getoption("--campaigns") or any("::" in argument for argument in config.args):
        return
    stale = {line for line in listed if line.partition("::")[0] in files} - {item.nodeid for item in items}
    if stale:
        raise pytest.UsageError(f"tests/campaigns.txt lists what is no test: {sorted(stale)[0]}")
    left = [item for item in items if item.nodeid in listed or item.get_closest_marker("campaign")]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in set(left)]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Of `-n auto`: two processes of tests a core, for a good part of a test of processes is waiting; as many as get ports."""
    return min(2 * (os.cpu_count() or 1), 16)


@pytest.fixture(scope="session", autouse=True)
def own_ledger_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test, nor a process that it starts, writes into the ledger of the user who runs it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COSYNTH_LEDGER", str(tmp_path_factory.mktemp("account") / "ledger.db"))
        yield


@pytest.fixture(scope="session")
def quiet_machine(request: pytest.FixtureRequest) -> bool:
    """Whether times may be judged."""
    return bool(request.config.getoption("--quiet-machine"))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server."""
    if reason := available():
        pytest.skip(reason)
    folder = binaries()
    assert folder is not None
    server = Postgres(folder)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDB]:
    """A MariaDB server."""
    if reason := no_mariadb():
        pytest.skip(reason)
    server = MariaDB()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    """Three computing parties."""
    made = Trio(tmp_path_factory.mktemp("trio"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def trio_and_two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    """Three computing parties (wire numbers 0, 1, 2) and two contributors (3, 4)."""
    made = Trio(tmp_path_factory.mktemp("trio_and_two"), contributors=2)
    yield made
    made.close()
