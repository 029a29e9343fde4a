"""A library that is loaded when it is first used, and not when whoever may use it is imported.

Reading a study, `check` and the launcher load the standard library only, and the fork server nothing that
starts a thread (`docs/design/session.md` 7). Yet what they import also computes once there are rows: the
kinds of columns, the partition of a vertical study, a custodian's table. Such files import NumPy from here
instead of importing it inside each function; `parties.data.libraries` does the same for what reads tables.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Later", "np"]


class Later(ModuleType):
    """A module by its name, imported when something of it is asked for. Raises `ImportError` then.

    A loop over blocks of rows asks tens of thousands of times: the import system, which is slow, is asked again
    only where the interpreter has another module of this name, or none, by now.
    """

    _loaded: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        loaded = self._loaded
        if loaded is None or sys.modules.get(self.__name__) is not loaded:
            loaded = self._loaded = import_module(self.__name__)
        return getattr(loaded, name)


if not TYPE_CHECKING:
    np = Later("numpy")
