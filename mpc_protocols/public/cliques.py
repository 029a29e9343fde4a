"""Which marginals are shared and which are sums of shared ones.

Problem: a custodian's counts are masked and sent once; a marginal over fewer columns is a sum of cells of a larger one, which
every party adds up on its own shares (DESIGN 4). This file decides, from public facts and alike at every party, what must be
shared, and says for each handle from which shared marginal and along which axes it is derived. It never sees a count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import MAX_CELLS, Clique, Handle, Setting
from mpc_protocols.public.steps import MAX_ITEMS

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_SHARED_CELLS: Final = 1 << 28
"""Cells of all that a run shares: 1 GiB in 32-bit cells at each computing party."""


@dataclass(frozen=True)
class Derivation:
    """How a handle's marginal comes from a shared one.

    source: the shared clique. shape: sizes of the source's columns. axes: for each column of the handle's clique, its position
    among the source's columns.
    """

    source: Clique
    shape: tuple[int, ...]
    axes: tuple[int, ...]

    @property
    def is_identity(self) -> bool:
        """The handle's marginal is the shared one itself."""
        return self.axes == tuple(range(len(self.shape)))

    def apply(self, cells: NDArray[Any]) -> NDArray[Any]:
        """The handle's cells from the source's, both flat in row-major order; same dtype (sums wrap in unsigned rings)."""
        if self.is_identity:
            return cells
        summed = tuple(axis for axis in range(len(self.shape)) if axis not in self.axes)
        kept = sorted(self.axes)
        table: NDArray[Any] = cells.reshape(self.shape).sum(axis=summed, dtype=cells.dtype)
        return table.transpose([kept.index(axis) for axis in self.axes]).reshape(-1)


class CliqueRegister:
    """Handles of a run, in the order in which they were asked for, and the marginals shared so far."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._handles: dict[Clique, Handle] = {}
        self._derivations: list[Derivation] = []
        self.cliques: list[Clique] = []
        self.shared: list[Clique] = []

    def to_share(self, cliques: Sequence[Clique]) -> list[Clique]:
        """Which of these must be shared now: those contained neither in a shared one nor in another of these.

        In the order given; of two with the same columns the first. Raises `StudyInvalid` for an unknown or repeated column, too
        many cells or too many handles.
        """
        for clique in cliques:
            self._check(clique)
        if len(self._handles) + len(set(cliques) - self._handles.keys()) > MAX_ITEMS:
            raise StudyInvalid(f"a run can use at most {MAX_ITEMS} marginals; choose a smaller workload")
        fresh: list[Clique] = []
        covering = [frozenset(clique) for clique in self.shared]
        for clique in sorted(cliques, key=len, reverse=True):
            columns = frozenset(clique)
            if not any(columns <= other for other in covering):
                covering.append(columns)
                fresh.append(clique)
        cells = sum(self._setting.cells(clique) for clique in [*self.shared, *fresh])
        if cells > MAX_SHARED_CELLS:
            raise StudyInvalid(
                f"{cells} cells of marginals were to be shared, at most {MAX_SHARED_CELLS} can be; ask for fewer"
            )
        return sorted(fresh, key=list(cliques).index)

    def register(self, cliques: Sequence[Clique]) -> list[Handle]:
        """Handles of these cliques; a known clique keeps its handle. What `to_share` names counts as shared from now on."""
        self.shared += self.to_share(cliques)
        for clique in cliques:
            if clique not in self._handles:
                self._handles[clique] = len(self.cliques)
                self.cliques.append(clique)
                self._derivations.append(self._derive(clique))
        return [self._handles[clique] for clique in cliques]

    def derivation(self, handle: Handle) -> Derivation:
        """From which shared marginal a handle's is derived: the smallest that holds its columns, the earliest among equals."""
        return self._derivations[handle]

    def _check(self, clique: Clique) -> None:
        for column in clique:
            if column not in self._setting.sizes:
                raise StudyInvalid(
                    f"the clique {clique} names the column {column!r}, which the domain does not have"
                )
        if not clique or len(set(clique)) != len(clique):
            raise StudyInvalid(f"the clique {clique} must name at least one column and none twice")
        if (cells := self._setting.cells(clique)) > MAX_CELLS:
            raise StudyInvalid(
                f"the clique {clique} has {cells} cells, at most {MAX_CELLS} can be shared; leave a column out"
            )

    def _derive(self, clique: Clique) -> Derivation:
        source = min((s for s in self.shared if set(clique) <= set(s)), key=self._setting.cells)
        shape = tuple(self._setting.sizes[column] for column in source)
        return Derivation(source, shape, tuple(source.index(column) for column in clique))
