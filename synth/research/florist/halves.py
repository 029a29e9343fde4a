"""Both owners' halves of a trained model, written to their files and read back: embeddings of rows, probabilities
of embeddings.

NumPy only: whoever predicts needs no PyTorch. A number may differ in its last bits from what the training
computed. Files are an owner's own and are read without pickles; one that is damaged is refused.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import DataRefused
from synth.research.florist.calibrate import Correction, corrected

PASSIVE, ACTIVE, CALIBRATION = "florist-passive.npz", "florist-active.npz", "calibration.json"
HEAD = "head"
_COLUMN, _LAYERS = "columns.{}.weight", "layers."
Read = Callable[[str], bytes]
"""The content of an own file, by name."""
Layers = tuple[tuple[NDArray[np.float32], NDArray[np.float32]], ...]


@dataclass(frozen=True)
class PassiveModel:
    """run: the public id of the run that left it. columns: how many values each has, in the order of codes.
    cut: numbers in an embedding."""

    run: str
    columns: Mapping[str, int]
    cut: int
    tables: tuple[NDArray[np.float32], ...]
    layers: Layers

    @classmethod
    def read(cls, read: Read) -> PassiveModel:
        """Raises `DataRefused`."""
        head, arrays = _archive(PASSIVE, read(PASSIVE), "passive")
        try:
            columns = {str(name): int(size) for name, size in head["columns"]}
            tables = tuple(arrays[_COLUMN.format(place)] for place in range(len(columns)))
            found = cls(str(head["run"]), columns, int(head["cut"]), tables, _layers(arrays, _LAYERS))
            width = sum(table.shape[1] for table in tables)
            fits = [len(table) for table in tables] == list(columns.values())
        except (KeyError, ValueError, TypeError, AttributeError, IndexError):
            raise _damaged(PASSIVE) from None
        if not fits or not _chained(found.layers, width, found.cut):
            raise _damaged(PASSIVE)
        return found

    def embed(self, codes: NDArray[Any]) -> NDArray[np.float32]:
        """(n, columns) codes to (n, cut) float32."""
        parts = [table[codes[:, place]] for place, table in enumerate(self.tables)]
        return np.maximum(_through(np.concatenate(parts, axis=1), self.layers), np.float32(0))


@dataclass(frozen=True)
class ActiveModel:
    """run: the public id of the run that left it. label: what it predicts. after: what takes the effect of
    invented rows out of a probability."""

    run: str
    label: str
    cut: int
    layers: Layers
    after: Correction

    @classmethod
    def read(cls, read: Read) -> ActiveModel:
        """Raises `DataRefused`."""
        head, arrays = _archive(ACTIVE, read(ACTIVE), "active")
        try:
            layers = _layers(arrays, "")
            found = cls(str(head["run"]), str(head["label"]), int(head["cut"]), layers, Correction())
        except (KeyError, ValueError, TypeError, IndexError):
            raise _damaged(ACTIVE) from None
        if not _chained(found.layers, found.cut, 1):
            raise _damaged(ACTIVE)
        try:
            line = json.loads(read(CALIBRATION))["probability"]
            after = Correction(float(line["slope"]), float(line["offset"]))
        except (KeyError, ValueError, TypeError):
            raise _damaged(CALIBRATION) from None
        return replace(found, after=after)

    def probabilities(self, embeddings: NDArray[np.float32]) -> NDArray[np.float64]:
        """(n, cut) to (n,): of label 1, corrected."""
        logits = _through(embeddings, self.layers)[:, 0].astype(np.float64)
        return corrected(0.5 * (1 + np.tanh(logits / 2)), self.after)


def _through(values: NDArray[np.float32], layers: Layers) -> NDArray[np.float32]:
    """All layers, with ReLU between them."""
    for number, (weight, bias) in enumerate(layers):
        values = (np.maximum(values, np.float32(0)) if number else values) @ weight.T + bias
    return values


def _layers(arrays: Mapping[str, NDArray[Any]], prefix: str) -> Layers:
    places = sorted(
        int(name.removeprefix(prefix).removesuffix(".weight"))
        for name in arrays
        if name.startswith(prefix) and name.removeprefix(prefix).removesuffix(".weight").isdigit()
    )
    return tuple((arrays[f"{prefix}{place}.weight"], arrays[f"{prefix}{place}.bias"]) for place in places)


def _chained(layers: Layers, inputs: int, outputs: int) -> bool:
    """Whether they lead from so many numbers to so many."""
    for weight, bias in layers:
        if weight.ndim != 2 or weight.shape[1] != inputs or bias.shape != (len(weight),):
            return False
        inputs = len(weight)
    return bool(layers) and inputs == outputs


def archive(head: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """An .npz of the arrays and of the head's JSON text."""
    out = io.BytesIO()
    text = np.frombuffer(json.dumps(dict(head), sort_keys=True).encode(), np.uint8)
    members: dict[str, Any] = {HEAD: text, **arrays}
    np.savez(out, **members)
    return out.getvalue()


def _archive(name: str, content: bytes, half: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(member.file_size for member in archive.infolist()) > len(content):  # it would grow
                raise ValueError
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
        head = json.loads(arrays.pop(HEAD).tobytes())
        right = isinstance(head, dict) and head.get("half") == half
    except (
        KeyError,
        ValueError,
        OSError,
        EOFError,
        RuntimeError,
        MemoryError,
        AttributeError,
        OverflowError,
        zipfile.BadZipFile,
    ):
        raise _damaged(name) from None
    finite = all(array.dtype == np.float32 and np.isfinite(array).all() for array in arrays.values())
    if not right or not finite:
        raise _damaged(name)
    return head, arrays


def _damaged(name: str) -> DataRefused:
    return DataRefused(f"{name} is not the half of a model that a run has left; restore it, or train again.")
