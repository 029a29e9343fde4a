"""Halves read back from their files compute what the training computed; a damaged file is refused."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from mpc_protocols.errors import DataRefused
from runner.review.audit.research.trainings import LABEL, People, Rehearsed, rehearse
from synth.domain import Domain
from synth.research.florist.algorithm import ALGORITHM
from synth.research.florist.config import FloristConfig
from synth.research.florist.evaluate import binned
from synth.research.florist.halves import ACTIVE, CALIBRATION, PASSIVE, ActiveModel, PassiveModel, archive

USUAL = People.invented(600, 5)
PEOPLE = replace(
    USUAL,
    domain=Domain.from_spec({"columns": {f"c{9 - place}": 3 + place % 5 for place in range(8)} | {LABEL: 2}}),
)
"""Columns whose names are not in the order of the alphabet."""


@pytest.fixture(scope="module")
def trained() -> Rehearsed:
    pytest.importorskip("torch")
    config = FloristConfig(label=LABEL, label_rate=0.25, cut=16, batch=64, epochs=2, calibrate="test")
    return rehearse(PEOPLE, ALGORITHM, config, "halves")


def test_they_predict_what_the_training_predicted(trained: Rehearsed) -> None:
    passive, active = (half.files for half in trained.halves)
    names = [name for name in PEOPLE.domain.names if name != LABEL]
    left, right = PassiveModel.read(passive.__getitem__), ActiveModel.read(active.__getitem__)
    assert list(left.columns) == names  # in the order of codes
    assert left.cut == right.cut == 16 and right.label == LABEL
    held = trained.held_out[PEOPLE.has_features[trained.held_out]]
    sent = np.concatenate(trained.embeddings[len(trained.batches) :])
    own = sent[PEOPLE.has_features[trained.held_out]]
    assert np.allclose(left.embed(PEOPLE.codes[held]), own, atol=1e-5)
    scores = trained.halves[1].scores
    assert scores is not None
    rows, _, bins = scores
    place = {row: number for number, row in enumerate(trained.held_out)}
    found = binned(right.probabilities(sent[[place[row] for row in rows]]))
    assert (found != bins).mean() < 0.01  # at the edge of a bin the last bits decide


def bomb(size: int) -> bytes:
    """An archive of so many bytes, all zero, in a thousandth of them."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("head.npy", "w") as member:
        np.lib.format.write_array_header_1_0(
            member, {"descr": "|u1", "fortran_order": False, "shape": (size,)}
        )
        for _ in range(size >> 20):
            member.write(bytes(1 << 20))
    return out.getvalue()


def claimed(size: int) -> bytes:
    """An archive whose array says that it has so many bytes, and has none."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive, archive.open("head.npy", "w") as member:
        np.lib.format.write_array_header_1_0(
            member, {"descr": "|u1", "fortran_order": False, "shape": (size,)}
        )
    return out.getvalue()


@pytest.mark.parametrize(
    "made", [(bomb, 1 << 28), (claimed, 1 << 50), (claimed, 1 << 70), (claimed, -1), (bytes, 1000)]
)
def test_a_file_that_would_fill_the_memory_is_refused(made: tuple[Callable[[int], bytes], int]) -> None:
    content = made[0](made[1])
    assert len(content) < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(DataRefused, match="is not the half of a model"):
            PassiveModel.read({PASSIVE: content}.__getitem__)
        peak = tracemalloc.get_traced_memory()[1]
        assert peak < 1 << 24 or peak > 1 << 40, "only what is never written to may be as large as claimed"
    finally:
        tracemalloc.stop()


def test_a_damaged_file_is_refused(trained: Rehearsed) -> None:
    passive, active = (dict(half.files) for half in trained.halves)
    with np.load(io.BytesIO(passive[PASSIVE])) as half:
        arrays = {name: half[name] for name in half.files if name != "head"}
        head = json.loads(half["head"].tobytes())
    bad = arrays["layers.0.weight"].copy()
    bad[0, 0] = np.nan
    damaged = (
        passive[PASSIVE][:100],
        b"",
        active[ACTIVE],
        archive({**head, "cut": 17}, arrays),
        archive({**head, "columns": [["a", 2]]}, arrays),
        archive(head, {**arrays, "layers.0.weight": bad}),
        archive(head, {**arrays, "layers.0.bias": arrays["layers.0.bias"][:-1]}),
        archive(head, {name: array.astype(np.float64) for name, array in arrays.items()}),
    )
    for content in damaged:
        with pytest.raises(DataRefused, match=r"florist-passive\.npz is not the half of a model"):
            PassiveModel.read({PASSIVE: content}.__getitem__)
    for name, content in ((ACTIVE, passive[PASSIVE]), (CALIBRATION, b"{}"), (CALIBRATION, b"[")):
        with pytest.raises(DataRefused, match=f"{name} is not the half"):
            ActiveModel.read({**active, name: content}.__getitem__)
