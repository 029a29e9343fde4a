"""Count a custodian's Spark DataFrame: `tally_spark`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mpc_protocols.errors import StudyInvalid
from parties.inbox.files import write_private
from runner.party.own_counts import counting_of
from runner.party.synthesis import counted, plan_of
from runner.study import Study


def tally_spark(
    study: Study | str | os.PathLike[str], frame: Any, out: str | os.PathLike[str], *, name: str
) -> Path:
    """Write the tally of a whole DataFrame, for `data = { tallies = "..." }` (`docs/howto/large-tables.md`);
    its path.

    frame: a PySpark DataFrame whose columns and values are the study's; others are ignored. It is read twice
    where the unit of privacy is an identifier: cache one that may change. name: what the table is called; two
    tallies of one name are not added. The file is readable by its owner alone, and replaced if it is there.
    Raises `DataRefused`, `StudyInvalid`, OSError.
    """
    from parties.data.tallies.engines.spark import count_frame

    read = study if isinstance(study, Study) else Study.read(study)
    if read.linked is not None:
        raise StudyInvalid(
            f"{read.path}: a DataFrame is one table, and this study has linked ones: write them cut by persons, and count each "
            "part by `tally --data FOLDER`."
        )
    counts = count_frame(frame, counting_of(read, counted(plan_of(read)), None), name)
    write_private(Path(out), counts.to_bytes())
    return Path(out)
