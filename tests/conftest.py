"""Fixtures for all tests: long-lived party processes (see `tests.trio`), and what is measured on quiet
machines only.

No test is decided by a clock (`tests.patience`). What a machine must be quiet for, such as how near two
measurements are to each other, is looked at with `pytest --quiet-machine` only. Cases that differ from others
in a party or a size only are left to `pytest --campaigns`. Hypothesis has no deadlines: on a shared machine a
slow example says nothing about the code; a property that does not say how many it takes has 50, and 300 with
`--campaigns`. Nothing is decided by chance either: a test's coins (`tests.coins`)
and Hypothesis' examples are the same in each run, unless `pytest --fresh-coins` asks for others.
"""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import HealthCheck, settings

from parties.data.engines import duckdb_engine
from runner.launch import ports
from tests import coins
from tests.mariadb import MariaDB
from tests.mariadb import available as no_mariadb
from tests.postgres import Postgres, available, binaries
from tests.trio import Trio

settings.register_profile(
    "cosynth", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, max_examples=50
)
settings.load_profile("cosynth")

NO_TESTS = pytest.StashKey[list[str]]()
"""Lines of `campaigns.txt` that name no test of the files that are there."""

# Tests of two sessions on one machine would else try the same ports at the same time.
setattr(ports, "secrets", SimpleNamespace(randbelow=coins.SystemCoins().randrange))  # noqa: B010


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quiet-machine", action="store_true", help="also judge times: nothing else runs on this machine"
    )
    parser.addoption(
        "--campaigns", action="store_true", help="also every case of which others stand for the kind"
    )
    parser.addoption(
        "--fresh-coins", action="store_true", help="other coins and other examples than in each other run"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Before the tests' modules are read: their `@settings` start from the profile, and what they import is no
    garbage (`pytest_collection_finish`)."""
    gc.disable()
    settings.register_profile(
        "asked",
        settings.get_profile("cosynth"),
        derandomize=not config.getoption("--fresh-coins"),
        max_examples=300 if config.getoption("--campaigns") else 50,
    )
    settings.load_profile("asked")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A test has the coins of its name."""
    with nullcontext() if item.config.getoption("--fresh-coins") else coins.fixed(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """What several tests share has the coins of its own name: which of them comes first decides nothing."""
    if fixturedef.scope == "function" or request.config.getoption("--fresh-coins"):
        return (yield)
    name = f"{fixturedef.baseid} {fixturedef.argname} {getattr(request, 'param_index', 0)}"
    with coins.fixed(name):
        return (yield)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, unless it is asked for, what is marked so or listed in `campaigns.txt`: a case, a test with
    its cases, or of a test `[*]` what `_each_value` leaves out. A name in the list that no test has is for
    `test_campaigns.py`."""
    lines = (Path(__file__).parent / "campaigns.txt").read_text(encoding="utf-8").splitlines()
    listed = {line for line in lines if line and not line.startswith("#")}
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    names = {item.nodeid for item in items} | tests.keys() | {f"{test}[*]" for test in tests}
    files = {test.partition("::")[0] for test in tests}
    config.stash[NO_TESTS] = sorted({line for line in listed if line.partition("::")[0] in files} - names)
    if config.getoption("--campaigns") or any("::" in argument for argument in config.args):
        return
    left: set[pytest.Item] = set()
    for test, cases in tests.items():
        kept = [
            item
            for item in cases
            if not {test, item.nodeid} & listed and not item.get_closest_marker("campaign")
        ]
        left.update(set(cases).difference(_each_value(kept) if f"{test}[*]" in listed else kept))
    config.hook.pytest_deselected(items=[item for item in items if item in left])
    items[:] = [item for item in items if item not in left]


def _each_value(cases: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Of the cases of a test with several `parametrize`, as few as hold every value of each, first come."""
    held: dict[pytest.Item, set[tuple[object, ...]]] = {}
    for item in cases:
        values = cast(pytest.Function, item).callspec.params
        axes = [[word.strip() for word in _words(mark.args[0])] for mark in item.iter_markers("parametrize")]
        held[item] = {(*axis, *(id(values[name]) for name in axis)) for axis in axes}
    kept, lacking = [], set().union(*held.values())
    while lacking:
        kept.append(max(held, key=lambda item: len(held[item] & lacking)))
        lacking -= held[kept[-1]]
    return kept


def _words(names: str | Iterable[str]) -> Iterable[str]:
    """The names of one `parametrize`."""
    return names.split(",") if isinstance(names, str) else names


def pytest_collection_finish() -> None:
    """What was imported and collected is no garbage: looking for some in it takes a tenth of all tests' time."""
    gc.collect()
    gc.freeze()
    gc.enable()

    # At the end it is, for extensions that look for what they have leaked: once, when pytest has looked
    # five times.
    atexit.register(gc.unfreeze)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Of `-n auto`: two processes of tests a core, for a good part of a test of processes is waiting; as many
    as get ports."""
    return min(2 * (os.cpu_count() or 1), 16)


@pytest.fixture(scope="session", autouse=True)
def own_ledger_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test, nor a process that it starts, writes into the ledger of the user who runs it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COSYNTH_LEDGER", str(tmp_path_factory.mktemp("account") / "ledger.db"))
        yield


@pytest.fixture(scope="module", autouse=True)
def own_ledger_of_a_module(
    own_ledger_of_the_tests: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """What a module's tests share may be made once more by the same process, which comes back to the module, with the same
    coins: the same run would be on record already."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COSYNTH_LEDGER", str(tmp_path_factory.mktemp("account") / "ledger.db"))
        yield


@pytest.fixture(scope="session", autouse=True)
def one_duckdb_reads_all_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """In this process, each over a connection of its own, as where many files are one table: making a DuckDB
    costs as much as all else that a small test does with its tables. Databases, and the processes of runs, have their
    own. It is what makes a connection elsewhere."""
    made, own = list[duckdb_engine.Shared](), duckdb_engine._own_connection

    def cursor(spill: str, other: duckdb_engine.Shared | None) -> object:
        if other is None and not made:
            made.append(duckdb_engine.Shared(str(tmp_path_factory.mktemp("spill"))))
        return (other or made[0]).cursor()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(duckdb_engine, "_own_connection", cursor)
        yield own
    for shared in made:
        shared.close()


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
