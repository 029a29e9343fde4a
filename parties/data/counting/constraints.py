"""A custodian's own rows that break the study's constraints, by their codes: refused, or left out, as the
study says.

Leaving a row out for what it says itself is a rule about that row alone, so neighbours stay neighbours
(`docs/design/privacy.md` 2). An owner of a vertical study looks at constraints of its own columns; nobody
looks at those across owners, whose cells the model leaves empty whatever was counted there. How many rows
break what is private.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mpc_protocols.process.later import np
from parties.data.counting.coding import Misfit
from synth.domain.constraints import impossible_cells
from synth.domain.keys import BROKEN_ROWS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synth.domain import Domain


class Constraints:
    """Looks at blocks of codes.

    sets: of each constraint, its text, and columns with those of their cells that it excludes.
    broken: how many rows broke each so far, by its text.
    """

    def __init__(self, domain: Domain) -> None:
        columns = dict(zip(domain.names, domain.columns, strict=True))
        self.sets = [(one.text, impossible_cells(one, columns)) for one in domain.constraints]
        self._leaves_out = domain.broken_rows != BROKEN_ROWS[0]
        self.broken = {one.text: 0 for one in domain.constraints}

    def look(
        self, codes: Mapping[str, NDArray[np.int32]]
    ) -> tuple[list[tuple[str, Misfit]], NDArray[np.bool_] | None]:
        """What is refused of a block, with the name of a column; or which of its rows are kept, None: all."""
        misfits, kept = [], None
        for text, sets in self.sets:
            bad = np.logical_or.reduce([cells[tuple(codes[name] for name in names)] for names, cells in sets])
            if not bad.any():
                continue
            self.broken[text] += int(bad.sum())
            if self._leaves_out:
                kept = ~bad if kept is None else kept & ~bad
                continue
            reason = f'the row breaks the study\'s constraint {text}; correct it, or agree on broken_rows = "{BROKEN_ROWS[1]}"'
            misfits.append((sets[0][0][-1], Misfit(int(bad.argmax()), reason, np.flatnonzero(bad))))
        return misfits, kept
