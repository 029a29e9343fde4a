"""Checks that all kinds of column share."""

from __future__ import annotations

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import MAX_CELLS


def is_integer(value: object) -> bool:
    """Whether it is one; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def check_size(value: object, key: str) -> int:
    """A number of codes. Raises `StudyInvalid`."""
    if not is_integer(value) or not 1 <= value <= MAX_CELLS:  # type: ignore[operator]
        raise StudyInvalid(f"{key} must be an integer from 1 to {MAX_CELLS}, got {value!r}.")
    return value  # type: ignore[return-value]


def check_flag(value: object, key: str) -> bool:
    """True or false. Raises `StudyInvalid`."""
    if not isinstance(value, bool):
        raise StudyInvalid(f"{key} must be true or false, got {value!r}.")
    return value


def as_number(value: object, name: str) -> float:
    """A number that the column `name` is compared with. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"Column {name} is compared with numbers, got {value!r:.40}.")
    return float(value)
