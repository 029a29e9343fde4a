"""What federated methods reach on Adult, where the table is: one run each, like the twelve of
`docs/design/flaim.md` 7."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.bench.research.federated.methods import Row
from runner.bench.research.federated.runs import Point, Source, run

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"


@pytest.fixture(scope="module")
def source() -> Source:
    if not (DATA / "adult.csv").is_file():
        pytest.skip(f"{DATA} holds no adult.csv: it is not shipped.")
    return Source(DATA)


@pytest.mark.parametrize(
    ("method", "rounds", "cluster", "label"),
    [
        ("collect", 10, 0.26, 0.20),
        ("collect:register=true:rounds=adaptive", 10, 0.21, 0.185),
        pytest.param("collect:rounds=adaptive", 22, 0.20, 0.175, marks=pytest.mark.campaign),
        pytest.param("waves", 22, 0.22, 0.20, marks=pytest.mark.campaign),
        pytest.param("arriving", 10, 0.42, 0.30, marks=pytest.mark.campaign),
        pytest.param("light", 10, 0.32, 0.275, marks=pytest.mark.campaign),
        ("private", 10, 0.40, 0.32),
    ],
)
def test_errors_on_adult(source: Source, method: str, rounds: int, cluster: float, label: float) -> None:
    """The seed is fixed, and with it the figure."""
    for split, limit in (("cluster", cluster), ("label:0.8", label)):
        point = Point("adult", split, 100, 0.1, rounds, 1.0, 1e-5, 1)
        world = source.world(point, 0)
        assert world is not None
        assert run(Row.parse(method), world).scores["err"] <= limit, split
