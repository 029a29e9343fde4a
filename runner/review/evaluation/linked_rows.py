"""The linked tables of an evaluation, as codes: those of a finished run, and real ones as their holder writes
them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from parties.data.linked.rows import CodedTables, coded
from runner.review.evaluation.judge import SEED
from runner.study.model import DataLocation
from runner.study.private_file import read_by_rules
from runner.study.sections.linked import placed

if TYPE_CHECKING:
    from parties.data.harmony.rules import Rules
    from runner.study import Study
    from synth.linked.tables import LinkedTables


def released_tables(directory: Path, linked: LinkedTables) -> CodedTables:
    """Of a finished run. Raises `DataRefused` for files that were altered."""
    files = {name: DataLocation(directory / f"{name}.csv") for name in linked.names}
    place = placed(linked, DataLocation(tables=files), str(directory), True)
    return coded(place.locate(), np.random.default_rng(SEED), in_order=True)


def real_tables(place: DataLocation, study: Study, rules: Rules | None) -> CodedTables:
    """place: a folder, or the tables by name. rules: of a custodian's private file. Raises `DataRefused`,
    `StudyInvalid`."""
    found = (
        placed(study.linked, place, "The real tables", True)
        if rules is None
        else read_by_rules(study, place, rules)
    )
    return coded(found.locate(), np.random.default_rng(SEED))
