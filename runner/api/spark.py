"""Count a custodian's Spark DataFrame: `tally_spark`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mpc_protocols.errors import StudyInvalid
from parties.data.linked.draw_key import drawing_key
from parties.inbox.files import write_private
from runner.party.own_counts import counting_of
from runner.party.synthesis import counted, plan_of
from runner.study import Study


def tally_spark(
    study: Study | str | os.PathLike[str], frame: Any, out: str | os.PathLike[str], *, name: str
) -> Path:
    """Write the tally of a whole DataFrame, for `data = { tallies = "..." }` (`docs/howto/large-tables.md`);
    its path.

    frame: a PySpark DataFrame whose columns and values are the study's; others are ignored. Of linked tables
    a mapping, by name a DataFrame each. It is read twice where the unit of privacy is an identifier, and of
    linked tables: cache one that may change. name: what the table is called; two tallies of one name are not
    added. The file is readable by its owner alone, and replaced if it is there. Raises `DataRefused`,
    `StudyInvalid`, OSError.
    """
    from parties.data.tallies.engines import spark, spark_linked

    read = study if isinstance(study, Study) else Study.read(study)
    counting = counting_of(read, counted(plan_of(read)), None)
    if read.linked is None:
        if isinstance(frame, Mapping):
            raise StudyInvalid(f"{read.path}: this study has one table; give its DataFrame, not a mapping.")
        counts = spark.count_frame(frame, counting, name)
    else:
        frames = frame if isinstance(frame, Mapping) else {}
        if set(frames) != set(read.linked.names):
            tables = ", ".join(f'"{table}": ...' for table in read.linked.names)
            raise StudyInvalid(
                f"{read.path}: this study has linked tables; give a DataFrame of each, {{{tables}}}."
            )
        counts = spark_linked.unfold_frames(frames, counting, read.linked, drawing_key(None), name)
    write_private(Path(out), counts.to_bytes())
    return Path(out)
