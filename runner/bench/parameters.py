"""What a benchmark may vary: names, ranges, and lists of values as people type them (1e6, 2^20, 10,100,1000)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from mpc_protocols.backend import BACKENDS
from mpc_protocols.errors import UsageError

Value = int | float | bool | str
Params = Mapping[str, Value]
MAX_VALUES = 64


@dataclass(frozen=True)
class Parameter:
    """One thing that a benchmark can vary. `default`: the values it takes if the command line names none.

    whole: integers only. choices: the only values; low and high do not matter then.
    """

    name: str
    help: str
    default: tuple[Value, ...]
    low: float = 1
    high: float = 2**40
    whole: bool = True
    choices: tuple[Value, ...] = ()

    def of(self, *values: Value) -> Parameter:
        """The same with other default values."""
        return replace(self, default=values)

    def parse(self, text: str) -> tuple[Value, ...]:
        """Values separated by commas. Raises `UsageError`."""
        parts = text.split(",")
        if len(parts) > MAX_VALUES:
            raise UsageError(f"--{self.name} takes at most {MAX_VALUES} values, got {len(parts)}.")
        return tuple(dict.fromkeys(self._one(part.strip()) for part in parts))

    def _one(self, text: str) -> Value:
        if self.choices:
            found = [choice for choice in self.choices if text == spelled(choice)]
            if not found:
                raise UsageError(
                    f"--{self.name}: {text!r} is not one of {', '.join(map(spelled, self.choices))}."
                )
            return found[0]
        value = number(text)
        if value is None or (self.whole and value != int(value)):
            raise UsageError(
                f"--{self.name}: {text!r} is not {'a whole number' if self.whole else 'a number'}."
            )
        if not self.low <= value <= self.high:
            raise UsageError(f"--{self.name} must be from {self.low:g} to {self.high:g}, got {text}.")
        return int(value) if self.whole else value


def number(text: str) -> float | None:
    """A finite number as people type it: 1000, 1e6, 2^20, 0.25; None if it is none."""
    if power := re.fullmatch(r"(\d{1,4})\^(\d{1,3})", text):
        return float(int(power[1]) ** int(power[2])) if int(power[2]) <= 64 else None
    if not re.fullmatch(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,2})?|\.[0-9]+", text):
        return None
    return float(text)


def spelled(value: Value) -> str:
    """A value as the command line and the tables have it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str):
        return value
    for exponent in range(12, 2, -1):
        if value and value % 10**exponent == 0 and value // 10**exponent < 1000:
            return f"{value // 10**exponent:g}e{exponent}"
    return f"{value:g}" if isinstance(value, float) else str(value)


CELLS = Parameter("cells", "cells of all candidates together", (10**6,), 1, 2**28)
BITS = Parameter("bits", "bits of a number, its sign included", (24,), 2, 64)
CANDIDATES = Parameter("candidates", "candidates of a selection", (64,), 1, 4096)
SIGMA = Parameter("sigma", "standard deviation of the noise", (10, 100, 1000), 0.125, 2**20, whole=False)
ROWS = Parameter("rows", "rows of all custodians together", (48_000,), 1, 2**31)
PARTIES = Parameter("parties", "parties; as many of them compute as the backend lets", (3,), 2, 64)
_SECURE = tuple(backend.name for backend in BACKENDS if not backend.ideal)
BACKEND = Parameter("backend", f"who computes, and how: {', '.join(_SECURE)}", _SECURE[:1], choices=_SECURE)
PROVED = "malicious"
"""The security of a study whose parties prove their products."""
PROOFS = Parameter(
    "proofs",
    'the parties prove their products, as with security = "malicious" (docs/design/malicious.md)',
    (False,),
    choices=(False, True),
)
TLS = Parameter("tls", "mutual TLS between the parties", (False,), choices=(False, True))
