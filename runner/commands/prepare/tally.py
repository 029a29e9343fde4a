"""`tally STUDY --data FILE --out FILE`: count one part of a custodian's table (`docs/howto/large-tables.md`)."""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import UsageError
from parties import core_dumps
from parties.data.linked.opening import open_source
from parties.data.tallies.counting import count_partition, place_of
from parties.data.tallies.partition import MAGIC
from parties.inbox.files import discard_unfinished, write_private
from runner.party.own_counts import counting_of
from runner.party.synthesis import counted, plan_of
from runner.results import outdir
from runner.study import DataLocation, load, private_file
from runner.study.declared.table import nearest

if TYPE_CHECKING:
    from runner.study import Study


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    core_dumps.forbid_core_dumps()
    study = load(arguments.study)
    if arguments.party is not None:
        _check_party(study, arguments.party)
    out: Path = arguments.out
    if not out.parent.is_dir():
        raise UsageError(f"The folder of {out} is not there; make it first.")
    outdir.spare(out, replace=arguments.replace or _is_tally(out))
    if study.linked is not None and not arguments.data.is_dir():
        raise UsageError(
            f"--data {arguments.data} must be a folder with a file of each linked table, as {study.linked.parent}.csv, all "
            "of the same persons."
        )
    own = private_file.load(arguments.private)
    data = private_file.read_by_rules(study, DataLocation(arguments.data.resolve()), own.rules)
    location, cliques = data.locate(), counted(plan_of(study))
    # of linked tables each has marks of its own; the party's own process knows of none (`own_counts`)
    counting = counting_of(study, cliques, data.recipe if data.linked is None else None)
    with open_source(location) as source:
        assert location.path is not None
        counts = count_partition(source, counting, place_of(location.path))
        source.check_unchanged()
    discard_unfinished(out.parent, out.name)
    content = counts.to_bytes()
    try:
        write_private(out, content)
    except OSError as error:
        raise UsageError(f"{out} cannot be written ({error.strerror}); name another place.") from None
    print(f"{out} ({len(content):,} bytes): private, for this custodian alone")


def _is_tally(path: Path) -> bool:
    """Whether there are counts already: those of new data take their place."""
    if not path.is_file():
        return False
    with suppress(OSError), path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC
    return False


def _check_party(study: Study, name: str) -> None:
    listed = () if study.contributors is None else tuple(study.contributors.keys)
    names = [*(party.name for party in study.parties), *listed]
    if name not in names:
        raise UsageError(
            f"--party {name} is not in {study.path}{nearest(name, names)}; its parties: {', '.join(names)}."
        )
