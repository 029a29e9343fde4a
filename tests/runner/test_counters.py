"""What a peer says of its run's traffic, time and events is read strictly: anything odd is a
`ProtocolAborted`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mpc_protocols.errors import ProtocolAborted
from runner.party.record.run_json import counters_of, timeline_of
from runner.study import Study, load
from tests.runner import small

COUNTERS = {
    "phases": [{"name": "input", "bytes_sent": 5}],
    "bytes_sent": 5,
    "bytes_received": 6,
    "rounds": 2,
    "proofs": 3,
    "software": {"cosynth": "0.2.0", "commit": "", "python": "3.11.7"},
}
TIMELINE = {"connect": [0.0, 0.25], "fit": [0.5]}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    directory: Path = tmp_path_factory.mktemp("study")
    return load(small.write(directory / "study").path)


def test_sound_ones_are_read(study: Study) -> None:
    assert counters_of(dict(COUNTERS), "west") == COUNTERS
    assert timeline_of({"timeline": TIMELINE}, study) == TIMELINE


def test_nothing_else_is_taken_over(study: Study) -> None:
    assert counters_of({**COUNTERS, "cpu_s": 3.5, "peak_rss_mb": 70.0}, "west") == COUNTERS


@pytest.mark.parametrize("name", ["other", "<b>", None, ["input"], "x" * 10_000])
def test_a_phase_that_there_is_none_of(name: object) -> None:
    with pytest.raises(ProtocolAborted, match="west sent counters"):
        counters_of({**COUNTERS, "phases": [{"name": name, "bytes_sent": 5}]}, "west")


@pytest.mark.parametrize(
    "told",
    [
        None,
        [],
        "3.11",
        {"python": "3.11.7"},
        {"cosynth": "0.2.0", "python": 3},
        {"cosynth": "0.2.0", "python": "3" * 101},
        {"cosynth": "0.2.0", **dict.fromkeys(map(str, range(99)), "1")},
    ],
)
def test_software_that_is_none(told: object) -> None:
    with pytest.raises(ProtocolAborted, match="west sent counters"):
        counters_of({**COUNTERS, "software": told}, "west")


@pytest.mark.parametrize(
    "text", ["1e999", "NaN", "null", '"many"', "[]", "-1", "true", "2.0", '"5"', "9" * 4000]
)
def test_counters_that_are_no_numbers(text: str) -> None:
    for key in ("rounds", "bytes_sent"):
        with pytest.raises(ProtocolAborted, match="west sent counters"):
            counters_of({**COUNTERS, key: json.loads(text)}, "west")


@pytest.mark.parametrize(
    "timeline",
    [
        *({"fit": [0.5, t]} for t in (float("nan"), float("inf"), -1, 10**400, "0", None, True)),
        {"other": [0.5]},
        {"fit": 0.5},
        {"fit": None},
        [["fit", 0.5]],
        None,
    ],
)
def test_times_that_no_report_can_show(study: Study, timeline: Any) -> None:
    with pytest.raises(ProtocolAborted, match="sent times of events"):
        timeline_of({"timeline": TIMELINE | timeline if isinstance(timeline, dict) else timeline}, study)
