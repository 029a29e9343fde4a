"""From a table of codes to values, row by row in the order that the domain's constraints state.

Columns are decoded one by one, each value drawn within its bin, but for columns in an order
(`constraints.Order`): those are drawn from the smallest on, each between what comes before it in its row and
what the bins after it still allow. Orders are closed under transitivity, so there is always room: every bin
begins below the end of every later one.
"""

from __future__ import annotations

from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from synth.domain.constraints import Order
from synth.domain.numbers import Binned

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synth.domain.domain import Domain


def decode(domain: Domain, codes: NDArray[np.integer[Any]], rng: np.random.Generator) -> list[NDArray[Any]]:
    """The values of a table of codes, (rows, columns in domain order), as an array a column: see each kind's
    `decode`."""
    numbers = _ordered(domain, codes, rng)
    return [
        cast(Binned, column).values_of(numbers[name], codes[:, j])
        if name in numbers
        else column.decode(codes[:, j], rng)
        for j, (name, column) in enumerate(zip(domain.names, domain.columns, strict=True))
    ]


def _ordered(
    domain: Domain, codes: NDArray[np.integer[Any]], rng: np.random.Generator
) -> dict[str, NDArray[Any]]:
    """The numbers of the columns of bins that stand in an order."""
    columns = dict(zip(domain.names, domain.columns, strict=True))
    before: dict[str, list[str]] = {}
    after: dict[str, list[str]] = {}
    for one in domain.constraints:
        if isinstance(one, Order) and columns[one.first].binned:
            before.setdefault(one.second, []).append(one.first)
            after.setdefault(one.first, []).append(one.second)
            before.setdefault(one.first, [])
    place = {name: j for j, name in enumerate(domain.names)}
    numbers: dict[str, NDArray[Any]] = {}

    def there(name: str) -> NDArray[np.bool_]:
        column = columns[name]
        return np.asarray(codes[:, place[name]] < column.size - column.missing)

    for name in TopologicalSorter({name: sorted(of) for name, of in sorted(before.items())}).static_order():
        least, most = np.full(len(codes), -np.inf), np.full(len(codes), np.inf)
        for other in before[name]:
            least = np.maximum(least, np.where(there(other), numbers[other], -np.inf))
        for other in after.get(name, ()):
            ends = np.array([*(high for _, high in columns[other].spans()), np.inf])
            most = np.minimum(most, ends[np.minimum(codes[:, place[other]], len(ends) - 1)])
        numbers[name] = cast(Binned, columns[name]).between(codes[:, place[name]], least, most, rng)
    return numbers
