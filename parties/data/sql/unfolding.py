"""Linked tables unfolded inside their database: no row leaves it, `push_down = true` (`docs/design/linked.md`
2).

The unfolded table is one nested SELECT, which every statement of `counting.py` counts as if it were a table.
The draw has the law of `parties/data/linked/unfold.py`: children are ranked by SHA-256 of (a key, the person,
the child's content as the database writes it, its number among equal ones), with one key for who stays and
one for who is drawn, both of the custodian's secret. It is another draw than outside, and the same in every
statement. The keys travel to the custodian's own database, which may log them: privacy rests on no secrecy of
them. A product without SHA-256 is refused.

    texts     children, with their text and its number among equal ones
    ranked    the C smallest by the first hash stay; of these, A is the smallest by the second; B the one before A in the order,
              or the second smallest
    unfolded  the parent's rows, LEFT JOIN A (and B), LEFT JOIN the same of what belongs to A
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import DataRefused
from parties.data.counting.local_marginals import validate
from parties.data.files.opening import open_table
from parties.data.libraries import sa
from parties.data.linked.draw_key import drawing_key
from parties.data.linked.keys import MAX_WHOLE, inexact
from parties.data.linked.places import LinkedPlaces, orphan
from parties.data.linked.unfold import MAX_ROWS, Unfolding
from parties.data.source import Source
from parties.data.sql.cases import number
from parties.data.sql.grouping import Grouping, Row, column
from parties.data.sql.kinds import Kind
from parties.data.sql.products import Expression, Product
from parties.data.sql.server import absent, trimmed
from parties.data.sql.translation import refused
from synth.domain.categorical import shown_as

if TYPE_CHECKING:
    from parties.data.location import Location
    from parties.data.sql.statements import Statement
    from synth.linked.tables import ChildTable

COUNT = Kind("integer", "bigint")
SINGLES = ("real", "float", "float4", "halffloat")
"""Types that are single precision in some database; in others their keys are bounded too early."""
ORDERED = ("integer", "decimal", "double", "date", "timestamp")


@dataclass(frozen=True)
class _Owner:
    """A table by whose key others name its rows: what FROM names, and what its columns hold."""

    label: str
    key: str
    relation: Expression
    kinds: Mapping[str, Kind]


@dataclass(frozen=True)
class _Table:
    """A table of children, whose own connection is closed. key: of its rows' owner. beneath: the tables whose
    rows belong to its own."""

    child: ChildTable
    key: str
    relation: Expression
    kinds: Mapping[str, Kind]
    beneath: tuple[_Table, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The unfolded columns."""
        return *self.child.names, *(name for own in self.beneath for name in own.names)


@dataclass(frozen=True)
class Unfolded:
    """See `Grouping`: the parent's own, but that what is counted is the unfolded table."""

    parent: Grouping
    relation: Expression
    kinds: Mapping[str, Kind]

    @property
    def product(self) -> Product:
        """See `Grouping`."""
        return self.parent.product

    def fetch(self, statement: Statement, most: int) -> list[Row]:
        """See `Grouping`."""
        return self.parent.fetch(statement, most)


class UnfoldedInside(Source):
    """The source of a row a person. told: what the custodian alone may know of each table of children.

    Raises `DataRefused` for tables that do not fit each other or the study, but not for children without a
    parent.
    """

    def __init__(self, location: Location) -> None:
        assert location.linked is not None
        self._linked: LinkedPlaces = location.linked
        super().__init__(replace(location, linked=None))
        try:
            self._people = super().grouping()
            if self._product.hashed is None:
                raise refused(
                    self, f"{self._product.name} has no SHA-256, by which a person's children are drawn"
                )
            key = self._linked.linked.key
            _check_keys(self, key, "so its person is not known")
            _check_floats(self, self._people, key)
            names = [name for name in self._linked.linked.people.names if name in self._header]
            self.unfoldings: list[Unfolding] = []
            owner = _Owner(self.label, key, self._people.relation, self._people.kinds)
            self._children = self._opened(self._linked.linked.children, owner)
            self.columns = (key, *names, *(name for own in self._children for name in own.names))
        except BaseException:
            self.close()
            raise

    @property
    def _product(self) -> Product:
        return self._people.product

    def grouping(self) -> Grouping:
        """See `Source`."""
        return self._unfolded

    def _opened(self, children: Sequence[ChildTable], owner: _Owner) -> tuple[_Table, ...]:
        """Those tables that this custodian has, once all their rows are known to fit; their owner is told."""
        own = self._linked.children
        return tuple(self._opened_child(child, owner) for child in children if child.name in own)

    def _opened_child(self, child: ChildTable, owner: _Owner) -> _Table:

        key = owner.key
        with open_table(self._linked.children[child.name]) as source:
            for name in (key, *(name for name in (child.order, child.key) if name is not None)):
                if name not in source.columns:
                    raise DataRefused(source.lacking(name))
            for sentence in validate(source, child.domain, max_rows=MAX_ROWS, allow_empty=True).problems:
                raise DataRefused(sentence)
            grouping = source.grouping()
            if grouping.kinds[key].group != owner.kinds[key].group:
                raise refused(
                    source,
                    f'column "{key}": its type is another one than in {owner.label}; make them one by a view',
                )
            if child.key is not None:
                _check_keys(source, child.key, "so what belongs to it is not known")
            table = _Table(child, key, grouping.relation, grouping.kinds, ())
            _check_floats(source, grouping, *(name for name in (key, child.key) if name is not None))
            facts = self._facts(table, owner, None if child.order is None else self._order(table, source))
            if facts[1]:
                raise DataRefused(
                    f'{source.label}, column "{key}": a row has no key, so its person is not known.'
                )
            if facts[2]:
                raise DataRefused(
                    f'{source.label}, column "{child.order}": a row has no value, so its place in the order is not known.'
                )
            self.unfoldings.append(Unfolding(child.name, facts[0], facts[3], facts[4], facts[5]))
            here = _Owner(source.label, str(child.key), grouping.relation, grouping.kinds)
        return replace(table, beneath=self._opened(child.children, here))

    def _order(self, table: _Table, source: Source) -> Expression:
        """What sorts a person's children: numbers, days and times as they are, listed values by their places."""

        child = table.child
        assert child.order is not None
        kind = table.kinds[child.order]
        listed = child.domain[child.order].listed if child.ordered_by is not None else ()
        x = trimmed(column(child.order), kind)
        if listed and kind.group == "text":
            product = self._product
            whens = [
                (product.exact(x) == product.given(shown_as(value)), number(place))
                for place, value in enumerate(listed)
            ]
            return sa.case(*whens, else_=number(len(whens)))
        if kind.group not in ORDERED:
            raise refused(
                source,
                f'column "{child.order}": data of type {kind.name} have no order; make them numbers or days by a view',
            )
        return x

    def _key(self, name: str, kinds: Mapping[str, Kind]) -> Expression:
        x = trimmed(column(name), kinds[name])
        return self._product.exact(x) if kinds[name].group == "text" else x

    def _facts(self, table: _Table, owner: _Owner, order: Expression | None) -> list[int]:
        """How many children; without a key; without a place; without a parent; people with too many, and how
        many beyond."""

        name, child = owner.key, table.child
        people = sa.select(self._key(name, owner.kinds).label("k")).select_from(owner.relation).subquery("p")
        lacking = order.is_(None) if order is not None else sa.false()
        if (
            order is not None
            and self._product.nan is not None
            and table.kinds[str(child.order)].group == "double"
        ):
            lacking = sa.or_(lacking, self._product.nan(order))
        rows = sa.select(
            self._key(name, table.kinds).label("k"),
            _flag(absent(name, table.kinds[name], self._product)).label("nameless"),
            _flag(lacking).label("lacking"),
        ).select_from(table.relation).subquery("c")  # fmt: skip
        joined = sa.select(
            rows.c.k, rows.c.nameless, rows.c.lacking, _flag(people.c.k.is_(None)).label("orphan")
        ).select_from(rows.outerjoin(people, rows.c.k == people.c.k)).subquery("j")  # fmt: skip
        one = sa.select(
            sa.func.count(), *(sa.func.sum(joined.c[n]) for n in ("nameless", "lacking", "orphan"))
        )
        sizes = (
            sa.select((sa.func.count() - number(child.max_rows)).label("beyond"))
            .select_from(joined)
            .where(joined.c.orphan == number(0))
            .group_by(joined.c.k)
            .subquery("s")
        )
        two = sa.select(sa.func.count(), sa.func.sum(sizes.c.beyond)).where(sizes.c.beyond > number(0))
        found = [*self.fetch(self._people, one, 1)[0], *self.fetch(self._people, two, 1)[0]]
        return [int(each or 0) for each in found]

    @cached_property
    def _unfolded(self) -> Unfolded:
        linked, kinds = self._linked.linked, dict[str, Kind]()
        own = [name for name in self.columns if name in self._people.kinds]
        kinds |= {name: self._people.kinds[name] for name in own}
        people = (
            sa.select(
                self._key(linked.key, self._people.kinds).label("person"),
                *(column(name).label(f"p{place}") for place, name in enumerate(own)),
            )
            .select_from(self._people.relation)
            .subquery("people")
        )
        chosen = [people.c[f"p{place}"].label(_name(name)) for place, name in enumerate(own)]
        joined, secret = people, drawing_key(self._linked.draws)
        # tables still to be joined, each with the key of its rows' owner and a name that no other has
        waiting = [(table, people.c.person, f"{at}") for at, table in enumerate(self._children)]
        while waiting:
            table, owner, place = waiting.pop(0)
            child, ranked = table.child, self._ranked(table, secret)
            a = sa.select(ranked).where(ranked.c.drawn == number(1)).subquery(f"a{place}")
            joined = joined.outerjoin(a, owner == a.c.k)
            b, prefix = a, "b"
            if child.order is None:
                b = sa.select(ranked).where(ranked.c.drawn == number(2)).subquery(f"b{place}")
                joined, prefix = joined.outerjoin(b, owner == b.c.k), "x"
            chosen.append(sa.func.coalesce(a.c.many, number(0)).label(_name(child.count)))
            kinds[child.count] = COUNT
            for called, side, sign in ((child.first, a, "x"), (child.second, b, prefix)):
                for at, name in enumerate(child.domain.names):
                    chosen.append(side.c[f"{sign}{at}"].label(_name(called(name))))
                    kinds[called(name)] = table.kinds[name]
            waiting += [(below, a.c.own, f"{place}_{at}") for at, below in enumerate(table.beneath)]
        relation = sa.select(*chosen).select_from(joined).subquery("unfolded")
        return Unfolded(self._people, relation, kinds)

    def _ranked(self, table: _Table, secret: bytes) -> Expression:
        """Children that stay: their person (k), key (own), columns (x0, x1, ..), those before (b0, ..),
        `drawn`, and how `many`."""

        assert self._product.hashed is not None
        child, key = table.child, table.key
        names = child.domain.names
        order = None if child.order is None else self._order(table, self)
        content = [
            key,
            *names,
            *([child.order] if child.order is not None and child.ordered_by is None else []),
            *([] if child.key is None else [child.key]),
        ]
        texts = sa.select(
            self._key(key, table.kinds).label("k"),
            (number(0) if child.key is None else self._key(child.key, table.kinds)).label("own"),
            *(column(name).label(f"x{place}") for place, name in enumerate(names)),
            (number(0) if order is None else order).label("o"),
            _text([column(name) for name in content]).label("t"),
        ).select_from(table.relation).subquery("texts")  # fmt: skip
        among = sa.func.row_number().over(partition_by=[texts.c.k, texts.c.t], order_by=texts.c.t)
        numbered = sa.select(texts, among.label("i")).subquery("numbered")
        keep, draw = (
            self._product.hashed(
                _text([sa.literal(_subkey(secret, child.name, use), sa.Text()), numbered.c.i, numbered.c.t])
            )
            for use in ("keep", "draw")
        )
        hashed = sa.select(numbered, keep.label("keep"), draw.label("draw")).subquery("hashed")
        rank = sa.func.row_number().over(partition_by=hashed.c.k, order_by=hashed.c.keep)
        ranked = sa.select(hashed, rank.label("place")).subquery("ranked")
        left = sa.select(ranked).where(ranked.c.place <= number(child.max_rows)).subquery("remaining")
        by_order = [left.c.o, left.c.keep]
        before = [
            sa.func.lag(left.c[f"x{place}"]).over(partition_by=left.c.k, order_by=by_order).label(f"b{place}")
            for place in range(len(names))
        ]
        return sa.select(
            left.c.k,
            left.c.own,
            *(left.c[f"x{place}"] for place in range(len(names))),
            *(before if child.order is not None else []),
            sa.func.row_number().over(partition_by=left.c.k, order_by=left.c.draw).label("drawn"),
            sa.func.count().over(partition_by=left.c.k).label("many"),
        ).subquery("children")  # fmt: skip


def open_inside(location: Location) -> UnfoldedInside:
    """Raises `DataRefused` also for children without a parent."""
    source = UnfoldedInside(location)
    for one in source.unfoldings:
        if one.orphans and location.linked is not None:
            source.close()
            raise orphan(location, location.linked, one.name, "")
    return source


def _check_keys(source: Source, key: str, unknown: str) -> None:
    """Raise `DataRefused` where a key is missing or names two rows. unknown: what a missing one leaves so."""
    if key not in source.columns:
        raise DataRefused(source.lacking(key))
    repeated, nameless = source.units(key, 1)
    if nameless:
        raise DataRefused(f'{source.label}, column "{key}": a row has no key, {unknown}.')
    if repeated:
        raise DataRefused(
            f'{source.label}, column "{key}": a key is there twice, and it names one row of this table.'
        )


def _check_floats(source: Source, grouping: Grouping, *keys: str) -> None:
    """Raise `DataRefused` where a key is a floating point number that may stand for several."""
    for key in keys:
        kind = grouping.kinds[key]
        if kind.group != "double":
            continue
        most = MAX_WHOLE["float" if kind.name.lower() in SINGLES else "double"]
        large = sa.select(sa.func.count()).select_from(grouping.relation)
        large = large.where(sa.or_(column(key) >= number(most), column(key) <= number(-most)))
        if source.fetch(grouping, large, 1)[0][0]:
            raise DataRefused(inexact(source.label, key, "", most))


def _name(name: str) -> Any:
    return sa.sql.quoted_name(name, True)


def _flag(condition: Expression) -> Expression:
    return sa.case((condition, number(1)), else_=number(0))


def _subkey(secret: bytes, table: str, use: str) -> str:
    """A key as text."""
    return hashlib.blake2b(f"{use} {table}".encode(), key=secret, digest_size=32).hexdigest()


def _text(values: Sequence[Expression]) -> Expression:
    """Values in a row, as the database writes them; one that is absent as nothing."""
    none, end = sa.literal_column("'-'"), sa.literal_column("'|'")
    parts = [part for value in values for part in (sa.func.coalesce(sa.cast(value, sa.Text()), none), end)]
    return sa.func.concat(*parts)
