"""Tables drawn from a published Bayesian network: a BIF file (the interchange format of 1998, as bnlearn's
repository has it).

variable NAME { type discrete [ 2 ] { yes, no }; }
probability ( NAME | PARENT, ... ) { (yes, low) 0.2, 0.8; ... }        or, without parents, { table 0.2, 0.8; }
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import DataRefused

_VARIABLE = re.compile(r"variable\s+(\S+)\s*\{\s*type\s+discrete\s*\[\s*(\d+)\s*\]\s*\{([^}]*)\}\s*;\s*\}")
_PROBABILITY = re.compile(r"probability\s*\(\s*([^\s|)]+)\s*(?:\|([^)]*))?\)\s*\{([^}]*)\}")
_ROW = re.compile(r"(?:\(([^)]*)\)|table)\s*([0-9eE.,+\-\s]+);")
_CLOSE = 1e-3


@dataclass(frozen=True)
class Network:
    """A discrete Bayesian network. values: of each variable, in the file's order. parents; tables: rows in
    the parents' order."""

    values: dict[str, tuple[str, ...]]
    parents: dict[str, tuple[str, ...]]
    tables: dict[str, NDArray[np.float64]]

    @classmethod
    def read(cls, path: Path) -> Network:
        """Parse a file. Raises `DataRefused` naming it if a variable or a probability is missing or does not
        add up."""
        text = path.read_text(encoding="utf-8")
        values = {
            name: tuple(value.strip() for value in listed.split(","))
            for name, size, listed in _VARIABLE.findall(text)
            if int(size) == len(listed.split(","))
        }
        parents: dict[str, tuple[str, ...]] = {}
        tables: dict[str, NDArray[np.float64]] = {}
        for name, given, body in _PROBABILITY.findall(text):
            parents[name] = tuple(part.strip() for part in given.split(",")) if given.strip() else ()
            if name not in values or not set(parents[name]) <= values.keys():
                raise DataRefused(
                    f"{path} gives probabilities of {name}, or of a parent, that it does not declare."
                )
            shape = [len(values[parent]) for parent in parents[name]]
            table = np.full((*shape, len(values[name])), np.nan)
            for states, numbers in _ROW.findall(body):
                row = [float(number) for number in numbers.split(",")]
                cell = tuple(
                    values[parent].index(state.strip())
                    for parent, state in zip(parents[name], states.split(",") if states else (), strict=True)
                )
                table[cell] = row if len(row) == len(values[name]) else np.nan
            if not np.all(np.abs(table.sum(axis=-1) - 1) < _CLOSE):
                raise DataRefused(
                    f"The probabilities of {name} in {path} are incomplete or do not add up to 1."
                )
            tables[name] = table / table.sum(axis=-1, keepdims=True)
        if not values or tables.keys() != values.keys():
            raise DataRefused(f"{path} does not declare every variable and its probabilities.")
        return cls(values, parents, tables)

    def sample(self, rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Codes of independent rows: (rows, variables in the file's order)."""
        found: dict[str, NDArray[np.int64]] = {}
        waiting = list(self.values)
        while waiting:
            name = next(name for name in waiting if all(parent in found for parent in self.parents[name]))
            waiting.remove(name)
            below = np.cumsum(self.tables[name], axis=-1)[tuple(found[p] for p in self.parents[name])]
            code = (rng.random((rows, 1)) >= np.broadcast_to(below, (rows, len(self.values[name])))).sum(
                axis=1
            )
            found[name] = np.minimum(code, len(self.values[name]) - 1)
        return np.stack([found[name] for name in self.values], axis=1).astype(np.int64)
