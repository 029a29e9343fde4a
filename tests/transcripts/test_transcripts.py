"""No byte of what parties tell each other has changed since it was recorded (`record`)."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from mpc_protocols.in_memory.memory_wire import Frame
from tests.transcripts.record import RECORD
from tests.transcripts.runs import Case, Transcript, cases

CASES: Mapping[str, Case] = cases()
RECORDED = json.loads(RECORD.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", CASES)
def test_a_run_with_fixed_coins_sends_what_it_always_sent(name: str) -> None:
    case = CASES[name]
    if case.lacks is not None:
        pytest.skip(f"the backend {case.lacks}")
    assert Transcript.of(case.frames()).as_dict() == RECORDED[name]


def test_every_case_is_recorded_and_no_other() -> None:
    assert list(CASES) == list(RECORDED)


def test_a_transcript_is_of_contents_places_and_lengths_and_not_of_the_scheduler() -> None:
    frames = [Frame("", 0, 1, 1, b"ab"), Frame("", 0, 1, 2, b"c"), Frame("/noise", 1, 0, 1, b"d")]
    usual = Transcript.of(frames)
    assert Transcript.of([frames[2], *frames[:2]]) == usual
    for other in (Frame("", 0, 1, 2, b"e"), Frame("", 1, 0, 2, b"c"), Frame("/beside", 0, 1, 2, b"c")):
        assert Transcript.of([frames[0], other, frames[2]]) != usual
    assert Transcript.of([Frame("", 0, 1, 1, b"a"), Frame("", 0, 1, 2, b"bc"), frames[2]]) != usual
