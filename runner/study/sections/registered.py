"""Single columns of everybody who is enrolled, noisily, from an earlier run: what `[contributors] registered`
names.

A study that measures single columns only (`[flaim] variant = "one-shot"` with `[workload] degree = 1`) asks
contributors for a few kB when they enrol. Its measurements.json is public; a later study over those who drop
by names it, and the table is brought to its columns (`synth.mrf.raking`). A file of any other run is refused.
Each of the two runs is charged by itself (`docs/design/federated.md` 4). Standard library only: studies are
read with it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_protocols.mechanisms.gaussian import MAX_SIGMA2, MIN_SIGMA2
from mpc_protocols.public.rationals import rational
from runner.study.sections.public_files import read_public

if TYPE_CHECKING:
    from synth.budget.charges import Charges
    from synth.domain import Domain

MAX_COUNT = 1 << 50


@dataclass(frozen=True)
class Registered:
    """columns: of each column its counts and the parameter of their noise. digest: SHA-256 of the file."""

    columns: Mapping[str, tuple[tuple[int, ...], Fraction]]
    digest: bytes

    @property
    def rows(self) -> int:
        """About how many rows are enrolled."""
        sums = [sum(values) for values, _ in self.columns.values()]
        return max(1, round(sum(sums) / len(sums)))

    def rho(self, charges: Charges) -> Fraction:
        """What a record of an enrolled contributor was charged for them, if charges are that run's.

        The file does not tell its adjacency and unit: it was more if its units had more rows.
        """
        return sum((charges.measuring(sigma2) for _, sigma2 in self.columns.values()), Fraction(0))


def read_registered(file: Path, domain: Domain) -> Registered:
    """Raises OSError; ValueError, with the reason, for a file that does not have every column of the study
    once, or has more: what else a run has measured or selected was charged to the same records, and its cost
    would not be told."""
    content = read_public(file)
    form = json.loads(content.decode("utf-8"))
    try:
        if form["columns"] != dict(domain.sizes):
            raise ValueError("it is of a study with other columns or other numbers of values")
        entries = [_column(entry, domain) for entry in form["measurements"]]
    except (KeyError, TypeError, AttributeError):
        raise ValueError("it is not the measurements.json of a run") from None
    found = {name: (values, sigma2) for name, values, sigma2 in entries}
    if len(found) != len(entries) or found.keys() != domain.sizes.keys():
        raise ValueError("it must hold every column of the study by itself, once")
    columns = {name: found[name] for name in domain.names}
    return Registered(columns, hashlib.sha256(content).digest())


def _column(entry: Mapping[str, Any], domain: Domain) -> tuple[str, tuple[int, ...], Fraction]:
    if len(entry["clique"]) != 1 or entry["round"] != 0:
        raise ValueError(
            "it holds more than single columns that were measured once, and whoever is in it was charged for that too"
        )
    (name,) = entry["clique"]
    if "resolution" in entry or entry.get("rows") is not None:
        raise ValueError(f'its column "{name}" is counted over bins, or of some custodians only')
    values, text = entry["values"], entry["sigma2"]
    if not isinstance(values, list) or len(values) != domain.sizes[name]:
        raise ValueError(f'its column "{name}" has another number of values')
    if not all(type(value) is int and abs(value) < MAX_COUNT for value in values):
        raise ValueError(f'its column "{name}" holds something that is no count')
    try:
        sigma2 = rational(text.removesuffix("/1"))
    except ValueError:
        raise ValueError(f'the noise of its column "{name}" is no fraction') from None
    if not MIN_SIGMA2 <= sigma2 <= MAX_SIGMA2:
        raise ValueError(f'the noise of its column "{name}" is out of range')
    return name, tuple(values), sigma2
