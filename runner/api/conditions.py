"""Which rows are to be drawn, in a user's words: `where={"work": "Private", "age": between(30, 40), "income":
[None]}`.

A condition is as fine as the column's codes: a number stands for its bin, and the rows drawn have any value
of that bin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_protocols.errors import UsageError
from parties.data.counting.coding import Coder, written
from parties.data.libraries import pa
from runner.study.declared.table import nearest
from synth.domain import Column, Domain

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_NAMED = 8
"""Values of a column that a sentence lists."""


@dataclass(frozen=True)
class Between:
    """Values from low to high, both included; the bins that reach into it."""

    low: Any
    high: Any


def between(low: Any, high: Any) -> Between:
    """For `Run.sample(n, where={"age": between(30, 40)})`: both ends are included."""
    return Between(low, high)


def allowed(domain: Domain, where: Mapping[str, Any]) -> dict[str, NDArray[np.bool_]]:
    """Of each column named, which of its codes a row may have. Raises `UsageError` for what the domain does
    not hold."""
    found = {}
    for name, wanted in where.items():
        if name not in domain:
            raise UsageError(
                f"The run has no column {name}{nearest(name, domain.names)}; its columns: {', '.join(domain.names)}."
            )
        found[name] = _codes(domain[name], name, wanted)
    return found


def _codes(column: Column, name: str, wanted: Any) -> NDArray[np.bool_]:
    mask = np.zeros(column.size, np.bool_)
    if isinstance(wanted, Between):
        if column.textual:
            raise UsageError(f"Column {name} has no order that between could follow; list its values.")
        low, high = _code(column, name, wanted.low), _code(column, name, wanted.high)
        if low > high:
            raise UsageError(
                f"Column {name}: between({wanted.low!r}, {wanted.high!r}) has its ends in the wrong order."
            )
        mask[low : high + 1] = True
        return mask
    values = wanted if isinstance(wanted, list | tuple | set | frozenset | range) else [wanted]
    if not values:
        raise UsageError(f"Column {name}: the list of values is empty, so no row could have one.")
    for value in values:
        mask[_code(column, name, value)] = True
    return mask


def _code(column: Column, name: str, value: Any) -> int:
    """The code of one value, by the rules that custodians' tables are read by; a number outside low..high is
    refused."""
    coder = Coder(column)
    try:
        codes, misfits = coder.code(pa.array([value], from_pandas=True))
    except (pa.ArrowException, ValueError, TypeError):
        raise UsageError(f"Column {name}: {value!r:.60} is of a type that no column holds.") from None
    if misfits:
        listed = [written(each) for each in column.listed]
        meant = nearest(str(value), listed)
        if not meant and value is not None and 0 < len(listed) <= MAX_NAMED:
            meant = f"; it has {', '.join(listed)}"
        said = "a missing value" if value is None else f"{value!r:.60}"
        raise UsageError(f"Column {name}: {said} is not a value of it{meant or f' ({misfits[0].reason})'}.")
    if coder.unlisted:  # a custodian's table may hold any; somebody who asks for rows names what is declared
        texts = [written(each) for each in column.listed]
        raise UsageError(
            f"Column {name}: {value!r:.60} is not among its values{nearest(str(value), texts)}; all that are not listed are "
            f"drawn together, as {column.other!r}."
        )
    if coder.clamped:
        raise UsageError(
            f"Column {name}: {value!r:.60} is outside {column.written(column.low)} to {column.written(column.high)}."
        )
    return int(codes[0])
