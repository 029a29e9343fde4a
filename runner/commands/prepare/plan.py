"""`plan STUDY`: what will happen: rounds, bytes, memory, time, epsilon; who learns what."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from mpc_protocols.engine.latency import MAX_DELAY_US
from mpc_protocols.errors import UsageError
from mpc_protocols.process.foreign_text import printable
from runner.commands import private_file_of_one, private_files_of_all
from runner.forecast import (
    NETWORKS,
    compare,
    comparison,
    forecast,
    intervals,
    network,
    quality,
    refresh,
    trial,
    words,
)
from runner.party.synthesis import plan_of
from runner.results.warnings import emphasised
from runner.study import load, private_file
from runner.study.declared.table import nearest

if TYPE_CHECKING:
    from runner.forecast.quality import Quality
    from runner.forecast.trial import Trial
    from runner.study import Study


class Meter:
    """How far a dry run is, in one line of a terminal that is gone at the end; nothing elsewhere."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream if stream.isatty() else None
        self._line = ""

    def __enter__(self) -> Meter:
        return self

    def show(self, share: float) -> None:
        """share: of the budget, spent so far."""
        line = f"dry run: {min(share, 1.0):.0%} of the budget spent"
        if self._stream is not None and line != self._line:
            self._stream.write(f"\r{line:<40}")
            self._stream.flush()
            self._line = line

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None and self._line:
            self._stream.write(f"\r{'':<40}\r")
            self._stream.flush()


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    if arguments.rows is not None and arguments.rows < 1:
        raise UsageError(f"--rows must be at least 1, got {arguments.rows}.")
    delay, rate = arguments.delay_ms, arguments.rate_mbit
    for option, value, least in (("--delay-ms", delay, 0.0), ("--rate-mbit", rate, 0.01)):
        if value is not None and not least <= value <= 1e6:
            raise UsageError(f"{option} must be from {least:g} to 1,000,000, got {value:g}.")
    if arguments.compare and arguments.party is not None:
        raise UsageError(
            "--compare tells all parties the same; leave --party out, and name a table to count by --private NAME=FILE."
        )
    if arguments.party is None:
        private = private_files_of_all(arguments.private)
    else:
        own = private_file_of_one(arguments.private, arguments.party)
        private = {} if own is None else {arguments.party: own}
    study = load(arguments.study)
    if arguments.party is not None:
        _known(study, arguments.party, f"--party {arguments.party}")
    study = _with_tables(study, private)
    networks = NETWORKS if delay is None and rate is None else network(delay or 0.0, rate)
    delay_us = min(MAX_DELAY_US, round(1000 * (delay or 0.0)))
    if arguments.compare:
        with Meter(sys.stderr) as meter:
            compared = compare(study, arguments.rows, networks, meter.show, delay_us)
        print(json.dumps(compared.to_json()) if arguments.json else printable(comparison(compared)))
        return
    for error in private_file.idle_here(
        study
    ).values():  # with another backend a party may have something to do
        raise error
    with Meter(sys.stderr) as meter:
        expected = forecast(study, arguments.rows, networks, meter.show, delay_us=delay_us)
    rows = expected.rows if expected.joining is None else expected.joining["population_rows"]
    plan = plan_of(study)
    found = quality.quality(study, plan, rows)
    widths = intervals.foretold(study, plan, rows)
    tried = None if found is None else trial.trial(study, rows)
    compared_with = refresh.refresh(study, rows)
    if arguments.json:
        print(
            json.dumps(
                {
                    **expected.to_json(),
                    "quality": _quality(found, tried),
                    "intervals": [w.to_json() for w in widths],
                    **({} if compared_with is None else {"prior": compared_with.to_json()}),
                }
            )
        )
        return
    told = [words(study, expected)]
    told += [] if found is None else quality.lines(found)
    told += [] if tried is None else trial.lines(tried)
    told += refresh.lines(compared_with)
    told += intervals.lines(study, plan, widths)
    print(emphasised(printable("\n".join(told)), sys.stdout))


def _quality(found: Quality | None, tried: Trial | None) -> dict[str, Any] | None:
    """JSON-able form of both."""
    if found is None:
        return None
    return {
        **found.to_json(),
        "warning": None if tried is None or tried.related.keeps else tried.sentence,
        "advice": [] if tried is None else [what for what, _ in tried.helps],
        "trial": None if tried is None else tried.to_json(),
    }


def _known(study: Study, name: str, said: str) -> None:
    """Raise `UsageError` for a name that no party of the study has. said: the option."""
    names = [party.name for party in study.parties]
    if name not in names:
        raise UsageError(
            f"{said}: the study has no party {name}{nearest(name, names)}; it has {', '.join(names)}."
        )


def _with_tables(study: Study, private: Mapping[str, Path]) -> Study:
    """The study with where these parties' tables lie. Raises `StudyInvalid`, `UsageError`."""
    for name, file in private.items():
        _known(study, name, f"--private {name}={file}")
    parties = [
        replace(party, data=private_file.location(study, party.name, private_file.load(private[party.name])))
        if party.name in private
        else party
        for party in study.parties
    ]
    return replace(study, parties=tuple(parties))
