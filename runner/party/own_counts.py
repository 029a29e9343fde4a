"""A custodian's own marginals, from wherever its table is counted: here, or in parts that are added here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpc_protocols.errors import StudyInvalid
from parties.data.counting.counters import check_memory
from parties.data.linked.draw_key import drawing_key
from parties.data.linked.opening import open_source
from parties.data.tallies.by_engine import add_counted
from parties.data.tallies.counting import Counting
from parties.data.tallies.files import add_files
from parties.data.tallies.places import EngineTallies
from parties.data.tallies.workers import cores, count_by_workers
from runner.study import DataLocation, Study, VerticalStudy, digest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpc_protocols.functionality import Clique
    from parties.data.counting.local_marginals import LocalTable
    from parties.data.counting.scan import Unit
    from parties.data.harmony.recipe import Recipe


def own_counts(
    study: Study,
    data: DataLocation,
    cliques: Sequence[Clique],
    *,
    allow_empty: bool,
    workers: int = 1,
    custodians: int = 1,
) -> LocalTable:
    """Count these cliques of a custodian's table, or add the counts of its parts. Raises `DataRefused`, and `OutOfResources` if
    there is not the memory for it.

    workers: how many processes count a table, as far as this machine has cores. custodians: how many count on this machine.
    """
    check_memory(map(study.domain.cells, cliques), custodians)
    if data.tallies is not None:
        counting = counting_of(study, cliques, data.recipe)
        if isinstance(data.tallies, EngineTallies):
            return add_counted(data.tallies, counting, allow_empty=allow_empty)
        return add_files(data.tallies, counting, allow_empty=allow_empty)
    if data.cluster is not None:
        from parties.data.tallies.engines import dask_cluster, dask_linked

        counting = counting_of(study, cliques, data.recipe)
        if study.linked is not None:
            key = drawing_key(data.draws)
            return dask_linked.unfold_on_cluster(
                data.cluster, counting, study.linked, key, data.dialect, allow_empty=allow_empty
            )
        return dask_cluster.count_on_cluster(
            data.cluster, counting, data.dialect, data.recipe, allow_empty=allow_empty
        )
    with open_source(data.locate()) as source:
        return count_by_workers(
            source,
            study.domain,
            cliques,
            max_rows=study.privacy.max_rows,
            unit=unit_of(study),
            allow_empty=allow_empty,
            workers=min(workers, cores()),
        )


def counting_of(study: Study, cliques: Sequence[Clique], recipe: Recipe | None) -> Counting:
    """What the study asks of each part of a table. recipe: what the private file makes of it.

    The study's digest is that of study and software: engines that count parts need not know the session's
    certificates. Raises `StudyInvalid` for owners of columns.
    """
    if isinstance(study, VerticalStudy):
        raise StudyInvalid(
            f"{study.path}: owners of a vertical study share rows, not counts; there is nothing to tally."
        )
    return Counting(
        digest(study, ""),
        study.name,
        study.domain,
        cliques,
        study.privacy.max_rows,
        # a part of linked tables has a row a person, and nobody may be in two parts
        unit_of(study) if study.linked is None else (study.linked.key, 1),
        "" if recipe is None else recipe.digest,
    )


def unit_of(study: Study) -> Unit | None:
    """The unit's identifier and the most rows that one may have at a custodian; None of a study whose unit is
    a row."""
    unit = study.privacy.unit
    return None if unit.id is None else (unit.id, unit.max_rows)
