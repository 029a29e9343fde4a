"""Model files: what was written comes back, and no content whatsoever does worse than ProtocolAborted."""

from __future__ import annotations

import json
import pickle
import struct
import tracemalloc
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_protocols.errors import ProtocolAborted
from synth.mrf import Measurement, Model, fit
from synth.mrf.storage import from_bytes
from tests.synth.mrf.problems import problems

SIZES = {"age": 5, "sex": 2, "größe": 3}
MODEL = fit(
    SIZES, [Measurement(("age", "sex"), np.arange(10.0), 1.0), Measurement(("größe",), np.arange(3.0), 1.0)]
)
GOOD = MODEL.to_bytes()
HEADER: dict[str, Any] = {
    "format": "cosynth-mrf-1",
    "columns": [["a", 2], ["b", 3]],
    "total": 10.0,
    "cliques": [["a", "b"]],
}


def _npy(array: np.ndarray[Any, Any], **options: Any) -> bytes:
    stream = BytesIO()
    np.lib.format.write_array(stream, array, **options)
    return stream.getvalue()


def _archive(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def _file(header: object, potentials: np.ndarray[Any, Any] | None = None) -> bytes:
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    return _archive(
        {"header.npy": _npy(text), "potentials.npy": _npy(np.zeros(6) if potentials is None else potentials)}
    )


@given(problems())
def test_a_model_survives_the_round_trip_to_the_last_bit(
    problem: tuple[dict[str, int], list[Measurement]],
) -> None:
    sizes, measurements = problem
    model = fit(sizes, measurements, iterations=20)
    again = Model.from_bytes(model.to_bytes())
    assert again.sizes == model.sizes and list(again.sizes) == list(model.sizes)
    assert again.total == model.total and again.cliques == model.cliques
    np.testing.assert_array_equal(again.marginal(tuple(sizes)), model.marginal(tuple(sizes)))
    np.testing.assert_array_equal(
        again.sample(50, np.random.default_rng(1)), model.sample(50, np.random.default_rng(1))
    )
    assert again.to_bytes() == model.to_bytes()


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    path.write_bytes(MODEL.to_bytes())
    assert Model.load(path).to_bytes() == GOOD == path.read_bytes()
    with np.load(path, allow_pickle=False) as archive:
        assert set(archive) == {"header", "potentials"}
    with pytest.raises(FileNotFoundError):
        Model.load(tmp_path / "none.npz")


def test_the_same_bytes_twice_in_a_row_are_one_object_and_other_bytes_another() -> None:
    other = {**HEADER, "total": 20.0}
    first = Model.from_bytes(_file(HEADER))
    assert Model.from_bytes(_file(HEADER)) is first
    assert Model.from_bytes(_file(other)).marginal(("a",)) == pytest.approx([10.0, 10.0])
    assert Model.from_bytes(_file(HEADER)) is not first


def test_the_hand_made_file_is_valid_so_that_the_next_test_means_something() -> None:
    assert Model.from_bytes(_file(HEADER)).marginal(("a",)) == pytest.approx([5.0, 5.0])


def _with(**changes: object) -> bytes:
    return _file({**HEADER, **changes})


def _claiming(shape: tuple[int, ...], descr: str = "<f8") -> bytes:
    """An array header that promises more than follows."""
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    text += b" " * (63 - (10 + len(text)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(48)


def _literal(text: bytes) -> bytes:
    """An array whose header is any text."""
    return _archive(
        {
            "header.npy": TEXT,
            "potentials.npy": b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(48),
        }
    )


class _Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("the file was unpickled",))


TEXT = _npy(np.frombuffer(json.dumps(HEADER).encode(), dtype=np.uint8))
HOSTILE: dict[str, bytes] = {
    "array header that does not end": _literal(b"{'a': ("),
    "array header that is deep": _literal(b"-" * 9000 + b"1"),
    "array header with an unhashable key": _literal(b"{[]: 1}"),
    "array header of an old Python": _literal(
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (6L,), }\n"
    ),
    "empty": b"",
    "text": b"hello",
    "pickle": pickle.dumps(_Bomb()),
    "pickled array": _archive(
        {"header.npy": TEXT, "potentials.npy": _npy(np.array([_Bomb()] * 6, dtype=object), allow_pickle=True)}
    ),
    "no potentials": _archive({"header.npy": TEXT}),
    "another member": _archive(
        {"header.npy": TEXT, "potentials.npy": _npy(np.zeros(6)), "x.npy": _npy(np.zeros(1))}
    ),
    "compressed": _archive({"header.npy": TEXT, "potentials.npy": _npy(np.zeros(6))}, zipfile.ZIP_DEFLATED),
    "huge shape": _archive({"header.npy": TEXT, "potentials.npy": _claiming((2**50,))}),
    "negative shape": _archive({"header.npy": TEXT, "potentials.npy": _claiming((-6,))}),
    "code in the array header": _archive(
        {"header.npy": TEXT, "potentials.npy": _claiming((6,), "__import__('os')")}
    ),
    "two axes": _file(HEADER, np.zeros((2, 3))),
    "single precision": _file(HEADER, np.zeros(6, dtype=np.float32)),
    "too few potentials": _file(HEADER, np.zeros(5)),
    "nan": _file(HEADER, np.array([0, 0, 0, 0, 0, np.nan])),
    "infinite": _file(HEADER, np.array([0, 0, 0, 0, 0, np.inf])),
    "enormous": _file(HEADER, np.array([0, 0, 0, 0, 0, 1e300])),
    "header is a list": _file([]),
    "header is deep": _archive(
        {
            "header.npy": _npy(np.frombuffer(b"[" * 200_000, dtype=np.uint8)),
            "potentials.npy": _npy(np.zeros(6)),
        }
    ),
    "header is not UTF-8": _archive(
        {"header.npy": _npy(np.full(9, 255, dtype=np.uint8)), "potentials.npy": _npy(np.zeros(6))}
    ),
    "other format": _with(format="cosynth-mrf-2"),
    "extra key": _with(more=1),
    "no columns": _with(columns=[]),
    "many columns": _with(columns=[[f"c{i}", 2] for i in range(5000)]),
    "column twice": _with(columns=[["a", 2], ["b", 3], ["a", 2]]),
    "column of size 0": _with(columns=[["a", 0], ["b", 3]]),
    "column of size true": _with(columns=[["a", True], ["b", 3]]),
    "column of size 1e30": _with(columns=[["a", 10**30], ["b", 3]]),
    "column of size 2.0": _with(columns=[["a", 2.0], ["b", 3]]),
    "long name": _with(columns=[["a" * 10_000, 2], ["b", 3]]),
    "numbered column": _with(columns=[[1, 2], ["b", 3]]),
    "total nan": _with(total=float("nan")),
    "total 0": _with(total=0.0),
    "total text": _with(total="10"),
    "total 1e300": _with(total=1e300),
    "cliques missing": _with(cliques=None),
    "unknown column": _with(cliques=[["a", "z"]]),
    "unhashable column": _with(cliques=[["a", ["b"]]]),
    "column order": _with(cliques=[["b", "a"]]),
    "repeated column": _with(cliques=[["a", "a"]]),
    "empty clique": _with(cliques=[[]]),
    "repeated clique": _with(cliques=[["a"], ["a"]]),
    "clique of 2^62 cells": _with(columns=[["a", 2**31], ["b", 2**31]]),
    "tree beyond memory": _file(
        {
            **HEADER,
            "columns": [[f"c{i}", 3] for i in range(40)],
            "cliques": [[f"c{i}", f"c{j}"] for i in range(40) for j in range(i + 1, 40)],
        },
        np.zeros(9 * 780),
    ),
    "uniform column beyond memory": _with(columns=[["a", 2], ["b", 3], ["c", 2**31]]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_with_a_sentence(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(
        ProtocolAborted, match=r"^The model file is not valid \(.+\); ask the party that made it .+\.$"
    ):
        Model.load(path)


@pytest.mark.parametrize("member", ["header.npy", "potentials.npy"])
def test_an_archive_is_not_unpacked_to_more_than_it_is(member: str) -> None:
    """A valid array of 64 MiB in a thousandth of them, with a header in its place: only its memory gives it
    away."""
    potentials = _npy(np.zeros(1 << 23)), _npy(np.full(1 << 26, 32, np.uint8))
    bomb = {"header.npy": TEXT, "potentials.npy": _npy(np.zeros(6))}
    bomb[member] = potentials[member == "header.npy"]
    content = _archive(bomb, zipfile.ZIP_DEFLATED)
    assert len(content) < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolAborted, match="is compressed"):
            from_bytes(content)
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


@given(st.data())
def test_damage_is_refused_or_harmless(data: st.DataObject) -> None:
    """Cut anywhere, or with any bytes replaced: either refused or a model that answers with finite numbers."""
    damaged = (
        bytearray(GOOD[: data.draw(st.integers(0, len(GOOD)))])
        if data.draw(st.booleans())
        else bytearray(GOOD)
    )
    for _ in range(data.draw(st.integers(0, 4))):
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        content = from_bytes(bytes(damaged))
    except ProtocolAborted:
        return
    assert np.isfinite(Model(*content).marginal(tuple(content[0]))).all()
