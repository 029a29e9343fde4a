"""The fork server of a run's parties begins to import before the launcher has imported what it needs itself: two
processes, two cores (`docs/design/session.md` 7).

What the study file says of its backend and its parties decides whether there will be one, and under which
environment. The file is not checked here: where it is not what it should be no server begins, and whoever reads
it says why. Standard library only.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mpc_protocols.backend import BACKENDS
from mpc_protocols.errors import CosynthError
from mpc_protocols.process.foreign_toml import parse_toml
from parties.core_dumps import forbid_core_dumps
from runner.launch import fork_server
from runner.launch.children import environment


@contextmanager
def importing(arguments: argparse.Namespace) -> Iterator[None]:
    """Around `run`: the fork server of the study's parties begins to import, if all of them will be processes of
    this machine; it ends with a run that fails."""
    parties = 0 if arguments.party is not None or arguments.resume else _parties(arguments.study)
    if parties:
        forbid_core_dumps()  # before: it is among the limits that what is forked inherits
        fork_server.begin(environment(parties))
    try:
        yield
    except BaseException:
        fork_server.end()
        raise


def _parties(path: Path) -> int:
    """How many processes a study's parties will be; 0 if none, or if that cannot be told here."""
    try:
        tree = parse_toml(path.read_text(encoding="utf-8-sig"))
        return 0 if BACKENDS[tree["study"]["backend"]].ideal else len(tree["party"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError, CosynthError):
        return 0
