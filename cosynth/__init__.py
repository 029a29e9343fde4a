"""Cosynth for Python users: `from cosynth import Study, run_study, load, CosynthError`.

A thin face of the packages that do the work. It exists because one of them is called `runner`, as files of
many users are: the first name that is asked for loads the packages beside this one, whatever the current
directory holds. Importing `cosynth` itself loads nothing.

    from cosynth import Study, load, run_study
    study = Study.read("study.toml")         # or Study.from_dict(...), Study.from_toml(...), Study.of(...)
    run = run_study(study, data={"north": north, "south": south, "west": west}, out="result")
    run.synthetic                            # a pandas DataFrame
    load("result").sample(1000, where={"work": "private"})
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpc_protocols.errors import CosynthError
    from runner.api import Run, Synthesizer, between, load, run_study, tally_spark
    from runner.study import Study
    from runner.version import VERSION as __version__
    from synth.judgement.warned import CosynthWarning

__all__ = [
    "CosynthError",
    "CosynthWarning",
    "Run",
    "Study",
    "Synthesizer",
    "__version__",
    "between",
    "load",
    "run_study",
    "tally_spark",
]

_HOMES = {
    "CosynthError": ("mpc_protocols.errors", "CosynthError"),
    "CosynthWarning": ("synth.judgement.warned", "CosynthWarning"),
    "Run": ("runner.api", "Run"),
    "Study": ("runner.study", "Study"),
    "Synthesizer": ("runner.api", "Synthesizer"),
    "__version__": ("runner.version", "VERSION"),
    "between": ("runner.api", "between"),
    "load": ("runner.api", "load"),
    "run_study": ("runner.api", "run_study"),
    "tally_spark": ("runner.api", "tally_spark"),
}
_PACKAGES = ("mpc_protocols", "synth", "parties", "runner")
_BESIDE = Path(__file__).resolve().parent.parent


def __getattr__(name: str) -> object:
    """The public name, from where it is defined. Raises `ImportError` if another module bears the name of a
    package of ours."""
    if name not in _HOMES:
        raise AttributeError(f"module 'cosynth' has no attribute '{name}'")
    _load_ours()
    module, own = _HOMES[name]
    globals()[name] = value = getattr(importlib.import_module(module), own)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def _load_ours() -> None:
    """Import the four packages from beside this one, even if files of the same names come before them on
    `sys.path`."""
    sys.path.insert(0, str(_BESIDE))
    try:
        for package in _PACKAGES:
            found = Path(importlib.import_module(package).__file__ or "").resolve()
            if found.parent.parent != _BESIDE:
                raise ImportError(
                    f"cosynth needs its own package {package}, but {found} is loaded under that name: rename that file, "
                    "or import cosynth before it."
                )
    finally:
        sys.path.remove(str(_BESIDE))
