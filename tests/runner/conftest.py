"""Fixtures for the tests of `runner`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from runner.launch import children
from tests.forks import forked


@pytest.fixture(scope="session", autouse=True)
def parties_are_forked_from_the_tests_own_server() -> Iterator[None]:
    """Of a launcher in this process, and of modules of tests that take the place of `runner`: each launcher's own
    server, and each such process, would import everything anew."""
    start = children._start

    def begun(
        program: Sequence[str],
        arguments: Sequence[str],
        environment: Mapping[str, str],
        streams: Sequence[int],
    ) -> int:
        module = next((name for flag, name in pairwise(program) if flag == "-m"), None)
        if module is None or sys.platform != "linux":
            return start(program, arguments, environment, streams)
        return forked([module, *arguments], environment, Path.cwd(), streams).pid

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(children, "_start", begun)
        patched.setattr(children, "begin", lambda environment: None)
        yield
