"""What a study's table of an algorithm (`[aim]`, `[mwem]`, `[mst]`; DESIGN 7) may hold: checks that the tables share.

Each raises `StudyInvalid` naming table and key. Standard library only.
"""

from __future__ import annotations

import math

from mpc_protocols.errors import StudyInvalid

MOST_ROUNDS = 100_000


def check_rounds(table: str, value: object, *, or_else: str = "") -> None:
    """A number of rounds; `or_else` names what else the table allows."""
    if not (whole(value) and 1 <= value <= MOST_ROUNDS):  # type: ignore[operator]
        raise StudyInvalid(
            f"[{table}] rounds must be an integer from 1 to {MOST_ROUNDS}{or_else}, got {value!r}."
        )


def check_model_mb(table: str, value: object) -> None:
    """The model's size in MiB."""
    if not number(value) or not 0 < value < math.inf:  # type: ignore[operator]
        raise StudyInvalid(f"[{table}] max_model_mb must be a number above 0, got {value!r}.")


def check_prune(table: str, value: object) -> None:
    """Whether candidates that are all noise are left out."""
    if not isinstance(value, bool):
        raise StudyInvalid(f"[{table}] prune must be true or false, got {value!r}.")


def check_rows(table: str, value: object) -> None:
    """The public number of synthetic rows, or None for the noisy total."""
    if value is not None and not (whole(value) and value >= 1):  # type: ignore[operator]
        raise StudyInvalid(f"[{table}] synthetic_rows must be an integer of at least 1, got {value!r}.")


def whole(value: object) -> bool:
    """Whether it is an integer; True is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def number(value: object) -> bool:
    """Whether it is a number; True is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)
