"""Parts that an engine of another distribution counts (`engine.py`), added here.

What it hands back is looked at as files of counts are (`total.Total`): of this study, by these rules, each part once. Its name
and version are told in the private log. What it raises is not handed on, for it may quote a record: only sentences of this
program are.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from mpc_protocols.errors import CosynthError, DataRefused
from parties.data.counting.local_marginals import LocalTable
from parties.data.tallies.counting import Counting
from parties.data.tallies.engine import ENGINES
from parties.data.tallies.places import EngineTallies
from parties.data.tallies.total import Total

log = logging.getLogger("cosynth.custodian.tallies")  # below the logger whose lines are private


def add_counted(place: EngineTallies, counting: Counting, *, allow_empty: bool) -> LocalTable:
    """The whole table's counts. Raises `DataRefused`, at the first part that does not fit; `StudyInvalid` for an engine that
    cannot be loaded."""
    origin = ENGINES.origin(place.engine) or "of this program"
    log.info("The parts of the table are counted by the engine %s (%s).", place.engine, origin)
    total = Total(counting, place.label)
    for number, content in enumerate(_counted(place, counting), 1):
        label = f"{place.label}, part {number}"
        total.add(total.parse(content, label), label)
    return total.table(allow_empty=allow_empty, expected=place.parts)


def _counted(place: EngineTallies, counting: Counting) -> Iterator[bytes]:
    try:
        for content in ENGINES[place.engine].tallies(place, counting):
            if not isinstance(content, bytes):
                raise DataRefused(
                    f"{place.label} handed back {type(content).__name__} where a part's tally is due, as bytes; mend the engine."
                )
            yield content
        return
    except CosynthError:
        raise
    except Exception as error:  # a stranger's code: its text may quote a record
        kind = type(error).__name__
    raise DataRefused(
        f"{place.label} could not be counted ({kind}); see the engine's own logs, mend it or its settings, and run again."
    )
