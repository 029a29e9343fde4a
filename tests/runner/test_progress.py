"""What a run shows while it runs."""

from __future__ import annotations

import io
import json
import logging
from contextlib import ExitStack
from pathlib import Path

import pytest

from runner.party.options import PartyOptions, Progress
from runner.party.record.logs import recording
from runner.party.record.progress import Display, Output, echo
from runner.study import load
from tests.runner.studies import write_study


def shown(
    tmp_path: Path, *events: dict[str, object], only: str | None = None, progress: Progress = "verbose"
) -> list[str]:
    stream = io.StringIO()
    display = Display(progress, load(write_study(tmp_path)), only, Output(stream))
    for event in events:
        display.feed(json.dumps({"t": 1.0, "party": "south", **event}))
    return [line[11:] for line in stream.getvalue().splitlines()]


def test_lines_name_phase_round_clique_measurement_and_epsilon(tmp_path: Path) -> None:
    lines = shown(
        tmp_path,
        {"phase": "connect", "event": "waiting", "party": "west", "for": ["north", "south"]},
        {"phase": "connect", "event": "connected", "party": "west", "peer": "north"},
        {"phase": "connect", "event": "connected", "party": "north", "peer": "west"},
        {"phase": "agree", "event": "paced", "party": "west", "delay_us": 250, "round_bytes": 78080},
        {"phase": "agree", "event": "paced", "party": "north", "delay_us": 250, "round_bytes": 78080},
        {"phase": "input", "event": "assembled", "parties": 3},
        {
            "phase": "select",
            "event": "selected",
            "round": 3,
            "rounds": 10,
            "clique": ["age", "sex"],
            "candidates": 5,
            "rho_spent": 0.0149,
            "bytes_sent": 2_500_000,
        },
        {
            "phase": "measure",
            "event": "measured",
            "round": 3,
            "clique": ["age", "sex"],
            "cells": 16,
            "sigma": 12.34,
            "noisy_l1_to_model": 1234.6,
            "l1_of_noise": 157.2,
        },
    )
    assert lines == [
        "connect  west is waiting for north, south",
        "connect  north and west are connected",
        "agree    a message between computing parties takes 0.25 ms",
        "input    all 3 parties are ready; none has sent anything of its data yet",
        "select   round 3 of 10: age x sex (1 of 5 candidates), epsilon 0.998 of 1, 2.50 MB sent",
        "measure  round 3: age x sex, 16 cells, noise sd 12.3, 1,235 from the model (noise alone: 157)",
    ]


def test_the_leader_tells_rounds_and_a_follower_its_own_steps(tmp_path: Path) -> None:
    step = {"phase": "select", "event": "selected", "step": 1, "candidates": 5, "cells": 1000}
    assert shown(tmp_path, step, {**step, "party": "north"}) == []
    assert shown(tmp_path, {**step, "party": "north"}, only="north") == [
        "select   step 1: one of 5 candidates chosen, 1,000 cells compared"
    ]


def test_unknown_events_are_shown_plainly_and_lines_that_are_none_are_not(tmp_path: Path) -> None:
    skew = {"phase": "agree", "event": "clock_skew", "seconds": 0.123456}
    assert shown(tmp_path, skew) == ["agree    south: clock skew seconds=0.1235"]
    assert shown(tmp_path, {"phase": "select", "event": "selected", "round": 1}) == [
        "select   south: selected round=1"
    ]
    stream = io.StringIO()
    display = Display("json", load(write_study(tmp_path)), None, Output(stream))
    for line in ("", "hello", "[1]", '{"phase": "x"}'):
        display.feed(line)
    assert stream.getvalue() == ""


def test_a_reader_that_goes_away_does_not_end_the_run(tmp_path: Path) -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    display = Display("human", load(write_study(tmp_path)), None, Output(Closed()))
    display.say("study", "one")
    display.say("study", "two")


def test_echo_shows_a_processs_own_events(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stream = echo("human", load(write_study(tmp_path)), "north")
    stream.write('{"t": 0, "party": "north", "phase": "report", "event": "written", "rows": 5}\n')
    stream.flush()
    assert capsys.readouterr().out.endswith("report   north has its results\n")


def test_a_run_leaves_the_loggers_as_it_found_them(tmp_path: Path) -> None:
    """Or what the process does next would not be heard, as in a program that runs several studies."""
    study = write_study(tmp_path)
    loggers = [logging.getLogger(name) for name in ("cosynth", "cosynth.custodian")]
    found = [(each.level, each.propagate, list(each.handlers)) for each in loggers]
    out = tmp_path / "out"
    out.mkdir()
    with recording(PartyOptions(study, "north", out), load(study), out):
        assert not loggers[0].propagate
    assert [(each.level, each.propagate, list(each.handlers)) for each in loggers] == found


def test_what_a_run_says_in_private_stays_so_when_another_one_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In a program that runs two studies at a time and listens to all that is logged in it."""
    study, private = write_study(tmp_path), logging.getLogger("cosynth.custodian")
    found = private.level, private.propagate
    caplog.set_level(logging.INFO)
    with ExitStack() as first, ExitStack() as second:
        for stack, name in ((first, "north"), (second, "south")):
            out = tmp_path / name
            out.mkdir()
            stack.enter_context(recording(PartyOptions(study, name, out), load(study), out))
        first.close()
        private.info("own data: 60 rows")
        second.close()
    assert "own data" not in caplog.text
    assert "own data: 60 rows" in (tmp_path / "south" / "private.log").read_text()
    assert (private.level, private.propagate) == found


def test_a_pipe_gets_a_line_a_batch_and_the_steps_with_verbose(tmp_path: Path) -> None:
    chosen = [["age", "sex"], ["age", "work"], ["sex", "work"], ["age"]]
    events: list[dict[str, object]] = [
        {"phase": "connect", "event": "waiting", "for": ["north"]},
        {"phase": "agree", "event": "agreed", "parties": ["a", "b"], "session": "5" * 64},
        {"phase": "input", "event": "counted", "custodians": 2},
    ]
    for number, clique in enumerate(chosen):
        events.append(
            {"phase": "select", "event": "selected", "round": number + 1, "clique": clique, "candidates": 9}
        )
    for number, clique in enumerate(chosen):
        events.append(
            {
                "phase": "measure",
                "event": "measured",
                "round": number + 1,
                "clique": clique,
                "cells": 6,
                "sigma": 2.0,
            }
        )
    events[-1]["rho_spent"] = 0.0149
    fitted = {"model_mb": 1.0, "iterations": 9, "seconds": 0.1}
    events.append({"phase": "fit", "event": "fitted", "round": 4, **fitted})
    events += [{"phase": "report", "event": "written", "party": name} for name in ("south", "north")]
    leader = [{"party": "south", **event} for event in events]
    told = shown(tmp_path, *leader, progress="human")
    assert told == [
        "agree    2 parties hold the same study (session 555555555555)",
        "measure  round 1 to 4: age x sex; age x work; sex x work and 1 more, epsilon 0.998 of 1",
        "report   south has its results",
    ]
    assert len(shown(tmp_path, *leader, progress="verbose")) > 10
    assert shown(tmp_path, *leader, progress="quiet") == []


def test_what_no_fit_follows_is_told_before_the_next_phase(tmp_path: Path) -> None:
    measured = {
        "phase": "measure",
        "event": "measured",
        "round": 1,
        "clique": ["age"],
        "cells": 6,
        "sigma": 2.0,
    }
    sampled = {"phase": "sample", "event": "sampled", "rows": 10}
    assert shown(tmp_path, measured, sampled, progress="human") == [
        "measure  round 1: age",
        "sample   10 synthetic rows",
    ]
