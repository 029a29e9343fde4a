"""A source's table as statements see it: each column's cases, and which rows count. What no statement can say
is refused here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpc_protocols.errors import DataRefused
from parties.data.counting.constraints import Constraints
from parties.data.harmony.recipe import Step
from parties.data.libraries import sa
from parties.data.sql.cases import UNREAD, Cases, Untranslated, When
from parties.data.sql.grouping import Grouping, column
from parties.data.sql.kinds import STORAGE, Kind
from parties.data.sql.numbers import binned, dated
from parties.data.sql.probe import Probe
from parties.data.sql.server import absent, trimmed
from parties.data.sql.statements import MAX_BROKEN_CELLS, Coded, Rule
from parties.data.sql.texts import listed

if TYPE_CHECKING:
    from parties.data.counting.scan import Unit
    from parties.data.source import Source
    from parties.data.sql.products import Expression, Product
    from synth.domain import Column, Domain


def refused(source: Source, what: str) -> DataRefused:
    """What of a study or a private file no statement can say."""
    return DataRefused(f"{source.label} cannot be counted inside the database (push_down = true): {what}.")


def coded(source: Source, grouping: Grouping, domain: Domain, unit: Unit | None) -> Coded:
    """The table of a source, in the domain's codes. Raises `DataRefused`."""
    recipe = source.location.recipe
    if recipe is not None and recipe.filter is not None:
        raise refused(source, "[harmonise] filter is computed on rows; write it into a view")
    return Coded(
        grouping.relation,
        {name: _cases(source, grouping, name, domain[name]) for name in domain.names},
        _named(source, grouping, unit[0]) if unit is not None and source.leaves_out else None,
    )


def rules(source: Source, domain: Domain) -> dict[str, Rule]:
    """The study's constraints, by their texts. Raises `DataRefused` for one that is too long for a statement."""
    found = {text: Rule(sets) for text, sets in Constraints(domain).sets}
    for text, rule in found.items():
        if rule.broken_cells > MAX_BROKEN_CELLS:
            raise refused(
                source,
                f"the constraint {text} excludes more than {MAX_BROKEN_CELLS} cells; bin its columns coarser",
            )
    return found


def _step(source: Source, name: str) -> Step:
    recipe = source.location.recipe
    return Step(name) if recipe is None else recipe.step(name)


def _cases(source: Source, grouping: Grouping, name: str, wanted: Column) -> Cases:
    step = _step(source, name)
    field = step.source or name
    try:
        if field not in grouping.kinds:
            raise Untranslated("its [harmonise] sql is computed on rows")
        kind = grouping.kinds[field]
        return cases(wanted, step, kind, trimmed(column(field), kind), grouping.product)
    except Untranslated as error:
        reason = str(error)
    raise refused(source, f'column "{name}": {reason}; a view can hold it as a value of the study\'s kind')


def cases(column: Column, step: Step, kind: Kind, x: Expression, database: Product) -> Cases:
    """What becomes of the values of a database's column `x`. Raises `Untranslated`."""
    if step.sql is not None:
        raise Untranslated("its [harmonise] sql is computed on rows")
    probe = Probe(column, step, kind)
    if not kind.group:
        raise Untranslated(f"data of type {kind.name} cannot be counted")
    whens = [When(x.is_(None), probe(None))]
    if database.storage:
        expected = [sa.literal_column(f"'{name}'") for name in STORAGE[kind.group]]
        whens.append(When(sa.func.typeof(x).not_in(expected), UNREAD))
    unlisted = column.writings() is None
    if unlisted and column.textual:
        raise Untranslated(f"a statement cannot list all that the study reads as {column.noun}")
    if unlisted and kind.group == "text":
        raise Untranslated(f"the database has text where the study has {column.noun}")
    if kind.group == "text":
        return listed(whens, probe, x, database)
    if kind.group == "boolean":
        whens += [When(x == (sa.true() if value else sa.false()), probe(value)) for value in (False, True)]
        return Cases(tuple(whens), UNREAD)
    if kind.group in ("date", "timestamp"):
        return dated(whens, probe, x, database)
    return binned(whens, probe, database.double(x) if kind.group == "double" else x, database)


def _named(source: Source, grouping: Grouping, name: str) -> Expression:
    """Whether a row has an identifier."""
    step = _step(source, name)
    if not step.plain:
        raise refused(
            source,
            f"the private file's rules for the identifier {name} are computed on rows; write them into a view",
        )
    field = step.source or name
    return sa.not_(absent(field, grouping.kinds[field], grouping.product))
