"""When a collection of bundles closes: `[contributors] close`. Standard library only."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from parties.inbox.close import Close
from runner.study.declared.keys import CloseKeys
from runner.study.declared.table import Table, value_text

CLOSES_BEFORE = 9000
"""Year: bundles last longer than the collection, and their dates end
(`mpc_protocols.backends.bundles.bundle.MAX_YEAR`)."""
MAX_CLOSES = 1 << 10
"""Closes of a study that selects while contributors arrive."""


def read_closes(table: Table, arriving: bool, least: int, most: int) -> tuple[Close, ...]:
    """One; if selections are made while contributors arrive one for each round, each later than the one
    before.

    least: newcomers of a later round, and bundles of the first. most: bundles.

    Problems are noted in the table.
    """
    raw = table.raw.get("close")
    if not arriving:
        return (_close(table, raw, most),)
    if not isinstance(raw, list) or not 1 <= len(raw) <= MAX_CLOSES:
        table.problem(
            'must be a list with schedule = "arriving", of a close for each round of arrivals, such as '
            "[{ bundles = 20 }, { bundles = 40 }]",
            "close",
        )
        return ()
    closes = tuple(_close(table, each, most) for each in raw)
    for earlier, later in pairwise(closes):
        if _comes_first(later.at, earlier.at) or _comes_first(later.bundles, earlier.bundles):
            table.problem(
                f"must come later from round to round, and {_words(later)} follows {_words(earlier)}", "close"
            )
            break
        if (
            earlier.bundles is not None
            and later.bundles is not None
            and later.bundles - earlier.bundles < least
        ):
            table.problem(
                f"bundles = {later.bundles} follows bundles = {earlier.bundles}, and fewer newcomers than min = {least} wait for "
                f"a later round: each must be at least {least} more than the one before",
                "close",
            )
            break
    return closes


def _comes_first(one: Any, other: Any) -> bool:
    return one is not None and other is not None and bool(one <= other)


def _words(close: Close) -> str:
    return " or ".join(f"{key} = {value}" for key, value in public_form(close).items())


def public_form(close: Close) -> dict[str, Any]:
    """JSON-able."""
    form: dict[str, Any] = {} if close.at is None else {"at": close.at.isoformat()}
    return form if close.bundles is None else {**form, "bundles": close.bundles}


def _close(table: Table, raw: object, most: int) -> Close:
    inner = Table({} if raw is None else raw, table.file, "[contributors] close", CloseKeys, table.problems)
    if not inner.raw:
        table.problem(
            "must say when the collection is over, as { at = 2027-01-31T00:00:00Z, bundles = 90 } or one of these",
            "close",
        )
        return Close(None, None)
    at = inner.raw.get("at")
    if at is not None and not (isinstance(at, datetime) and at.tzinfo is not None):
        inner.problem(
            f"must be a date and time with a time zone, such as 2027-01-31T00:00:00Z, got {value_text(at)}",
            "at",
        )
        at = None
    elif at is not None and at.year >= CLOSES_BEFORE:
        inner.problem(f"must be before the year {CLOSES_BEFORE}, got {value_text(at)}", "at")
        at = None
    bundles = inner.integer("bundles", low=1, high=most) if "bundles" in inner else None
    return Close(None if at is None else at.astimezone(UTC).replace(microsecond=0), bundles)
