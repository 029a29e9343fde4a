"""Faults of what reads bytes of others."""

from __future__ import annotations

import io
import os
import pickle
from typing import Any

from parties.session.transport import codec
from runner.audit.broken_builds.faults.mutation import Mutation, Patch, replaced


class _MakesFolders(pickle.Unpickler):
    """Loads a pickle as the library does, but calls nothing that it names except what the audit's own pickles name."""

    def find_class(self, module: str, name: str) -> Any:
        """`os.mkdir`, under whatever name of its module. Raises `UnpicklingError` for anything else."""
        if (module, name) == (os.mkdir.__module__, os.mkdir.__name__):
            return os.mkdir
        raise pickle.UnpicklingError


def _loaded_pickles() -> Patch:
    """What begins as a pickle is loaded as one."""

    def loads(plain: Any) -> Any:
        def read(payload: Any) -> Any:
            if bytes(payload[:1]) != pickle.PROTO:
                return plain(payload)
            return _MakesFolders(io.BytesIO(bytes(payload))).load()

        return read

    return replaced(f"{codec.__name__}.loads", loads)


MUTATIONS = (Mutation("M29", "a pickle in a message that is loaded", ("F.decoders",), _loaded_pickles),)
