"""Faults of what reads bytes of others."""

from __future__ import annotations

import os
import pickle
import pickletools
import zipfile
from io import BytesIO
from typing import Any
from unittest import mock

import numpy as np

from parties.session.transport import codec, frames
from runner.review.audit.broken_builds.faults.mutation import Mutation, Patch, replaced
from synth.mrf import storage


def _obeyed(payload: bytes) -> None:
    """Call what a pickle names, as who loads it would: here the one function that the audit's own pickles
    name, and no other."""
    *names, argument = [word for _, word, _ in pickletools.genops(payload) if isinstance(word, str)]
    if " ".join(names).split() == [os.mkdir.__module__, os.mkdir.__name__]:
        os.mkdir(argument)


def _loaded_pickles() -> Patch:
    """What begins as a pickle is obeyed as one."""

    def loads(plain: Any) -> Any:
        def read(payload: Any) -> Any:
            if bytes(payload[:1]) != pickle.PROTO:
                return plain(payload)
            return _obeyed(bytes(payload))

        return read

    return replaced(f"{codec.__name__}.loads", loads)


def _endless_frames() -> Patch:
    endless = {number: (kind, 1 << 32) for number, (kind, _) in frames.KINDS.items()}
    return mock.patch.dict(frames.KINDS, endless)


def _unpacked() -> Patch:
    """A member of an archive is unpacked to whatever it comes to, and looked at then."""

    def member(archive: zipfile.ZipFile, name: str, dtype: str) -> Any:
        with archive.open(name) as file:
            return np.lib.format.read_array(BytesIO(file.read()))

    return mock.patch.object(storage, "_member", member)


MUTATIONS = (
    Mutation("M29", "a pickle in a message that is loaded", ("F.decoders",), _loaded_pickles),
    Mutation("M45", "an archive that is unpacked to whatever it comes to", ("F.decoders",), _unpacked),
    Mutation("M30", "frames of any length", ("F.decoders",), _endless_frames),
)
