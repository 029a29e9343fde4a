"""What one process of a run writes while it runs: events.jsonl and its logs, one of them private
(`docs/reference/outputs.md`)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runner.party.custodian import PRIVATE
from runner.party.options import PartyOptions
from runner.party.record.events import EventLog
from runner.party.record.progress import echo
from runner.results.outdir import EVENTS, LOG, account, private_log
from runner.study import Study


def facts_of(study: Study) -> dict[str, Any]:
    """What a run is of, for who watches it: public, as the study is."""
    rounds = study.config.public().get("rounds")
    return {
        "study": study.name,
        "algorithm": study.algorithm,
        "backend": study.backend,
        "epsilon": float(study.privacy.epsilon),
        "delta": float(study.privacy.delta),
        "rounds": rounds,
        "leader": study.leader.name,
        "parties": [{"name": party.name, "computes": party.compute} for party in study.parties],
        "columns": list(study.domain.names),
    }


@contextmanager
def recording(options: PartyOptions, study: Study, private: Path) -> Iterator[EventLog]:
    """The events and the logs of this process, for as long as it runs; the private log is in the directory `private`."""
    paths = account(options.out)
    handlers = {
        "cosynth": logging.FileHandler(paths[LOG], mode="w", encoding="utf-8"),
        PRIVATE: logging.FileHandler(private_log(private), encoding="utf-8"),
    }
    before = {}
    for name, handler in handlers.items():
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
        logger = logging.getLogger(name)
        before[name] = (logger.level, logger.propagate)
        logger.setLevel(logging.INFO)
        logger.propagate = False
        logger.addHandler(handler)
    display = echo(options.progress, study, options.party)
    events = EventLog(paths[EVENTS], options.party or study.leader.name, display)
    events("connect", "begun", **facts_of(study))
    try:
        yield events
    finally:
        events.close()
        display.close()
        for name, handler in handlers.items():
            logger = logging.getLogger(name)
            logger.removeHandler(handler)
            level, logger.propagate = before[name]
            logger.setLevel(level)
            handler.close()
