"""The command line, the launcher, the report, and the Python API: `run_study`. Light to import.

The API's names are fetched when asked for: most processes of this package never do, the parties of a
benchmark among them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runner.api import Run, run_study

__all__ = ["Run", "run_study"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from runner import api

    return getattr(api, name)
