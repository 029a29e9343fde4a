"""Which sums of a contributor's marginals must be equal if they all count the same rows: public, alike at
every party.

Two marginals agree if they give the same sums over whatever both tell: their common columns, at the coarser
of two nested levels of a column, and at least the number of rows. A *common marginal* is such a set of
columns; all cliques that refine it must give the same one. Cliques that agree on a common marginal agree on
all that it refines, so each common marginal compares one clique of each group that is linked already: the
1,001 marginals of 4 of 14 columns take 3,640 links.

A link is a public linear function of the cells, 0 everywhere if both agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Final

from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import Clique
from mpc_protocols.public.cliques import CliqueRegister, Derivation

MAX_LISTED: Final = 1 << 12
"""Common marginals of one clique that are listed one by one; a clique with more is compared with each other
one."""
MAX_COMPARED: Final = 1 << 26
"""Pairs of common marginals and wide cliques that are looked at."""


@dataclass(frozen=True)
class Link:
    """Two marginals that must agree on a common one of so many cells. first, second: how it comes from each."""

    first: Derivation
    second: Derivation
    cells: int

    def difference(self, marginals: Mapping[Clique, Elements]) -> Elements:
        """The common marginal of the first less that of the second, modulo 2^32. marginals: cells of the
        shared ones."""
        of_first = self.first.apply(marginals[self.first.source])
        gap: Elements = of_first - self.second.apply(marginals[self.second.source])
        return gap


def links(register: CliqueRegister, agreed: Sequence[Clique], fresh: Sequence[Clique]) -> list[Link]:
    """What must be compared so that all these marginals agree. agreed: those of them that are known to, among
    each other.

    Raises `StudyInvalid` (`MAX_COMPARED`).
    """
    columns = _Columns(register, [*agreed, *fresh])
    refining = columns.common()
    known = frozenset(agreed)
    found: list[Link] = []
    for common in sorted(
        refining, key=lambda names: (len(names), register.facts.cells(names), names), reverse=True
    ):
        groups = _Groups(refining[common])
        groups.join(clique for clique in refining[common] if clique in known)
        for finer in columns.next_finer(common):
            groups.join(refining.get(finer, ()))
        first, *others = groups.heads(register.facts.cells)
        cells = register.facts.cells(common)
        found += [Link(register.derive(common, first), register.derive(common, of), cells) for of in others]
    return found


class _Columns:
    """The columns of some cliques, each with the names under which they occur: its own, and those of its
    levels."""

    def __init__(self, register: CliqueRegister, cliques: Sequence[Clique]) -> None:
        self._register, self._cliques = register, cliques
        names: dict[str, dict[str, None]] = {}
        for clique in cliques:
            for name in clique:
                names.setdefault(register.column(name), {})[name] = None
        self._names = {column: list(of) for column, of in names.items()}
        self._place = {column: place for place, column in enumerate(names)}

    def common(self) -> dict[Clique, list[Clique]]:
        """The common marginals of two cliques or more, each with all cliques that refine it. Raises
        `StudyInvalid`."""
        refining: dict[Clique, list[Clique]] = {}
        wide: list[Clique] = []
        for clique in self._cliques:
            choices = [["", *self._coarser(name)] for name in self._ordered(clique)]
            if prod(map(len, choices)) > MAX_LISTED:
                wide.append(clique)
                continue
            for names in product(*choices):
                refining.setdefault(tuple(filter(None, names)), []).append(clique)
        for place, clique in enumerate(wide):
            for other in wide[:place]:
                refining.setdefault(self._shared(clique, other), [])
        if len(wide) * len(refining) > MAX_COMPARED:
            raise StudyInvalid(
                f"{len(wide)} wide marginals were to be compared with {len(refining)} narrower ones; ask for fewer at once."
            )
        for clique in wide:
            for common, members in refining.items():
                if self._register.refines(clique, common):
                    members.append(clique)
        return {common: members for common, members in refining.items() if len(members) > 1}

    def next_finer(self, common: Clique) -> Iterator[Clique]:
        """Those with one column more, or one column finer: what agrees on a still finer one agrees on one of
        them."""
        register, sizes = self._register, self._register.facts.sizes
        of_column = {register.column(name): name for name in common}
        for column, names in self._names.items():
            for name in names:
                here = of_column.get(column)
                if here is None or (sizes[name] > sizes[here] and register.refines((name,), (here,))):
                    rest = [other for other in common if other != here]
                    yield self._ordered((*rest, name))

    def _ordered(self, clique: Iterable[str]) -> Clique:
        return tuple(sorted(clique, key=lambda name: self._place[self._register.column(name)]))

    def _coarser(self, name: str) -> list[str]:
        """The names of a column that one of its names determines, itself among them."""
        return [
            of for of in self._names[self._register.column(name)] if self._register.refines((name,), (of,))
        ]

    def _shared(self, one: Clique, other: Clique) -> Clique:
        """The finest marginal that both cliques refine, or nearly: of levels that are not nested, none."""
        register = self._register
        theirs = {register.column(name): name for name in other}
        found = []
        for name in one:
            version = theirs.get(register.column(name))
            if version is None:
                continue
            if register.refines((name,), (version,)):
                found.append(version)
            elif register.refines((version,), (name,)):
                found.append(name)
        return self._ordered(found)


class _Groups:
    """Which cliques are known to agree on a common marginal."""

    def __init__(self, members: Sequence[Clique]) -> None:
        self._above = {clique: clique for clique in members}

    def join(self, linked: Iterable[Clique]) -> None:
        """Put these, all members, into one group."""
        first: Clique | None = None
        for clique in linked:
            head = self._head(clique)
            if first is None:
                first = head
            self._above[head] = first

    def heads(self, cells: Callable[[Clique], int]) -> list[Clique]:
        """One of each group, that with the fewest cells; of all these first the one with the fewest."""
        least: dict[Clique, Clique] = {}
        for clique in self._above:
            head = self._head(clique)
            least[head] = min(least.get(head, clique), clique, key=cells)
        return sorted(least.values(), key=cells)

    def _head(self, clique: Clique) -> Clique:
        while (above := self._above[clique]) != clique:
            self._above[clique] = self._above[above]
            clique = above
        return clique
