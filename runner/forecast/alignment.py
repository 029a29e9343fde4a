"""What is assumed of a vertical study before anybody has met: who owns what, how long the lists are, how far
they overlap.

Owners that the study or the tables on this machine do not tell are presumed: columns that nobody is known to
own are dealt out evenly to parties of which nothing is known. The overlap is nobody's to know: half of each
list is taken to be common to all owners and the rest to be nobody else's, as in `docs/design/psu.md`. What
joining then costs is exact (`mpc_protocols.psu.forecast`).
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import CosynthError
from mpc_protocols.psu.forecast import forecast, list_lengths
from runner.party.alignment import context, own_columns, partition, specification
from runner.party.record.run_json import alignment_facts
from runner.study import VerticalStudy
from runner.study.owners import Ownership, ownership

if TYPE_CHECKING:
    from mpc_protocols.psu.forecast import Forecast
    from mpc_protocols.vertical.partition import Partition
    from synth.plan import Plan


@dataclass(frozen=True)
class Joining:
    """presumed: owners of which neither the study nor this machine knows. records: at each owner. population:
    rows the table is about. split: of the common table. cost: of the alignment."""

    owned: Ownership
    presumed: tuple[str, ...]
    records: int
    population: int
    split: Partition
    cost: Forecast


def joining(study: VerticalStudy, records: int) -> Joining:
    """For so many records at each owner. Raises `StudyInvalid`: these owners cannot run the study."""
    owned, presumed = owners(study)
    spec, count = specification(study, owned), len(owned.owners)
    records = max(records, spec.min_size)
    aligned = not study.alignment.psu
    common = records if aligned else records // 2
    union = common + count * (records - common)
    rows = union if aligned else union + sum(list_lengths(spec, [records] * count)) - count * records
    keys = max(1, len(study.alignment.id))
    cost = forecast(spec, context(study, owned, secrets.token_bytes(32)), [records] * count, rows, keys)
    return Joining(
        owned,
        presumed,
        records,
        common if study.alignment.population == "intersection" else union,
        partition(study, owned, rows),
        cost,
    )


def owners(study: VerticalStudy) -> tuple[Ownership, tuple[str, ...]]:
    """Who owns what, as far as it is known or else presumed, and whose columns are presumed. Raises
    `StudyInvalid`."""
    known: dict[str, tuple[str, ...]] = {}
    unknown = []
    for party in study.parties:
        if party.columns is not None:
            known[party.name] = party.columns
        elif party.data is not None:
            try:
                known[party.name] = own_columns(study, party.name, party.data)
            except CosynthError:  # not here, or not readable: `check` says which
                unknown.append(party.name)
    orphans = [name for name in study.domain.names if not any(name in columns for columns in known.values())]
    # contributors are there for their data; of computing parties as many as it takes to have two owners
    idle = [party.name for party in study.computing if party.name not in known and party.name not in unknown]
    takers = unknown + [
        party.name for party in study.contributing if party.name not in known and party.name not in unknown
    ]
    takers += idle[: max(0, 2 - len(known) - len(takers))]
    if orphans and not takers:
        takers = idle[:1]
    presumed = {name: tuple(orphans[i :: len(takers)]) for i, name in enumerate(takers[: len(orphans)])}
    return ownership(study, known | presumed), tuple(presumed)


def joined_facts(study: VerticalStudy, plan: Plan, joined: Joining) -> dict[str, Any]:
    """What is assumed and known about joining the owners' records; what it costs, and what it tells the
    parties."""
    cost = joined.cost
    return {
        **alignment_facts(study, plan, joined.owned),
        "presumed": list(joined.presumed),
        "records": joined.records,
        "common_table": joined.split.rows,
        "population_rows": joined.population,
        "rounds": cost.rounds,
        "bytes_sent": sum(cost.sent.values()),
        "seconds": round(max(cost.seconds.values(), default=0.0), 2),
        "false_merges": cost.false_merges,
    }
