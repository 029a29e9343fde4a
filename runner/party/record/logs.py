"""What one process of a run writes while it runs: events.jsonl and its logs, one of them private
(`docs/reference/outputs.md`)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
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


class LogFile(logging.FileHandler):
    """A log that keeps to its file: what cannot be written there is lost, and is written nowhere else
    (Python's own handlers write it to stderr, which a host keeps where others read it)."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass

    def close(self) -> None:
        with suppress(OSError):
            super().close()


class _Loggers:
    """Those of this process. The first run that is under way takes them, the last one leaves them as the
    first one found them: that one has ended is no reason for others to hear what another one says in private.
    """

    def __init__(self) -> None:
        self._lock, self._runs = threading.Lock(), 0
        self._before: dict[str, tuple[int, bool]] = {}

    def take(self, handlers: Mapping[str, logging.Handler]) -> None:
        """For another run, with these handlers by the loggers' names, the same in all runs."""
        with self._lock:
            for name, handler in handlers.items():
                logger = logging.getLogger(name)
                if not self._runs:
                    self._before[name] = logger.level, logger.propagate
                    logger.setLevel(logging.INFO)
                    logger.propagate = False
                logger.addHandler(handler)
            self._runs += 1

    def give_back(self, handlers: Mapping[str, logging.Handler]) -> None:
        """At the end of a run."""
        with self._lock:
            self._runs -= 1
            for name, handler in handlers.items():
                logger = logging.getLogger(name)
                logger.removeHandler(handler)
                if not self._runs:
                    level, logger.propagate = self._before[name]
                    logger.setLevel(level)


_LOGGERS = _Loggers()


@contextmanager
def recording(options: PartyOptions, study: Study, private: Path) -> Iterator[EventLog]:
    """The events and the logs of this process, for as long as it runs; the private log is in the directory
    `private`."""
    paths = account(options.out)
    handlers = {
        "cosynth": LogFile(paths[LOG], mode="w", encoding="utf-8"),
        PRIVATE: LogFile(private_log(private), encoding="utf-8"),
        # which may quote what failed, and would write to stderr
        "asyncio": LogFile(private_log(private), encoding="utf-8"),
    }
    for handler in handlers.values():
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    display = echo(options.progress, study, options.party)
    events = EventLog(paths[EVENTS], options.party or study.leader.name, display)
    events("connect", "begun", **facts_of(study))
    _LOGGERS.take(handlers)
    try:
        yield events
    finally:
        events.close()
        display.close()
        _LOGGERS.give_back(handlers)
        for handler in handlers.values():
            handler.close()
