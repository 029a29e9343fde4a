"""Party processes that may fail: started by a test, gone when it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from parties import certificates
from tests.trio import NAMES, Child, start

Start = Callable[..., list[Child]]


@pytest.fixture(scope="session")
def credentials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a CA (and its key) and a certificate for every name."""
    directory = tmp_path_factory.mktemp("credentials")
    certificates.make_all(directory, list(NAMES), keep_ca_key=True)
    return directory


@pytest.fixture
def started() -> Iterator[Start]:
    """`tests.trio.start`, with the children ended after the test."""
    children: list[Child] = []

    def begin(
        settings: Sequence[dict[str, Any]], body: Callable[..., object] | str, *arguments: object
    ) -> list[Child]:
        made = start(settings, body, *arguments)
        children.extend(made)
        return made

    yield begin
    for child in children:
        child.end()
