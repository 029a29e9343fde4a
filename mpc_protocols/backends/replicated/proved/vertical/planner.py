"""Plans of tables over split columns whose every product is proved: one-hot columns only
(`docs/design/malicious.md` 3.3).

As in the semi-honest mode a table is LEFT^T RIGHT (`vertical.tables`), with what a proof makes dearer and
cheaper:

  - every entry that an owner inputs is proved to be 0 or 1, so no left joint is wider than it must be;
  - a product of matrices costs its proof a constant for each row, whatever its columns: products are few and wide
    (`products_of`), also if cells come along that nobody asked for, which are dropped;
  - owners' secret orders of the rows are not proved, so there are none: of a joint of more than MAX_WIDTH cells the narrowest
    columns are multiplied row by row instead, and what is wider still is refused;
  - with two owners a table of one owner's columns takes the other's membership, without a product of all memberships;
  - a table of one owner of a union is made of the columns that it inputs, too: it brings no counts besides.

Public: everything here, as in `replicated.vertical.planner`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from mpc_protocols.backends.replicated.vertical.plan import NARROW_ROWS, Plan, TablePlan
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import Clique, StudyFacts
from mpc_protocols.vertical.partition import Partition
from mpc_protocols.vertical.schedule import Schedule
from mpc_protocols.vertical.tables import Factor, Group, Joint, Table, Tables, cheapest, table_of

MAX_WIDTH: Final = 1024
"""Columns of a left joint, and of a right factor, at most."""
ELEMENT: Final = 2
"""Bytes of the ring in which counts are summed, over fewer than 2^16 rows at a time (`Plan.row_ranges`)."""
PLANES: Final = 8 * ELEMENT - 1
"""Statements that prove an entry (`entries`)."""
BLOCK_BYTES: Final = 1 << 23
MIN_BLOCK_ROWS: Final = 256
_ENTRY, _CONTRIBUTED = 10, 50
"""What an entry costs that a computing owner or a contributor inputs: bytes, and work at 64 bytes a
microsecond."""
_PRODUCT, _FACTOR_CELL = 320, 10
"""What a product's proof costs of each row, and a row's product of two entries."""
_CELLS_A_BYTE = 32
"""Products of entries of a row that are multiplied at the cost of a byte."""


def schedule_of(partition: Partition, facts: StudyFacts, computing: int) -> Schedule[Plan]:
    """The schedule of a run of so many computing parties."""
    return Schedule(partition, facts, computing, make_plan, anew=True)


def make_plan(
    partition: Partition,
    sizes: Mapping[str, int],
    computing: int,
    tables: Sequence[Clique],
    needs_memberships: bool,
) -> Plan:
    """The plan of these tables. needs_memberships: all memberships are needed besides (union, the first
    time).

    Raises `StudyInvalid` for tables that are too wide (`check_tables`).
    """
    check_tables(partition, sizes, tables)

    def planned(split_owners: frozenset[int]) -> Plan:
        made = tuple(_table_of(partition, sizes, table, split_owners) for table in tables)
        wanted = tuple(TablePlan(table.left, table.right, False) for table in made)
        places = {product: place for place, product in enumerate(dict.fromkeys(wanted))}
        return Plan(
            partition,
            sizes,
            tuple(places),
            needs_memberships or any(table.right.restricted for table in made),
            computing,
            tuple(tables),
            tuple(places[product] for product in wanted),
            ELEMENT,
            1,
            NARROW_ROWS,
        )

    plan = cheapest(partition, tables, planned, _estimate)
    return replace(plan, row_block=_block_rows(plan))


def check_tables(partition: Partition, sizes: Mapping[str, int], tables: Iterable[Clique]) -> None:
    """Raise `StudyInvalid` for the first table that is too wide to be computed here."""
    for table in tables:
        made = _table_of(partition, sizes, table, frozenset())
        left = _cells(sizes, made.left.columns)
        right = prod(_cells(sizes, part.columns) for part in made.right.parts)
        if max(left, right) > MAX_WIDTH:
            raise StudyInvalid(
                f'The table of {", ".join(table)} is too wide for split columns with security = "malicious": cut into two parts '
                f"it has {left:,} and {right:,} cells, each at most {MAX_WIDTH:,}; give these columns fewer values, or ask for "
                "smaller tables."
            )


def _table_of(
    partition: Partition, sizes: Mapping[str, int], clique: Clique, split_owners: frozenset[int]
) -> Table:
    """How a clique's table is made; split_owners: those whose own cliques have their narrowest column on the
    right."""
    made = _whole_table_of(partition, sizes, clique, split_owners)
    left, parts = list(made.left.columns), list(made.right.parts)
    while len(left) > 1 and _cells(sizes, left) > MAX_WIDTH:
        least = min(left, key=lambda name: sizes[name])
        left.remove(least)
        parts.append(Joint(made.left.owner, (least,)))
    return Table(Joint(made.left.owner, tuple(left)), Factor(tuple(parts), made.right.restricted))


def _whole_table_of(
    partition: Partition, sizes: Mapping[str, int], clique: Clique, split_owners: frozenset[int]
) -> Table:
    owners = {partition.columns[name] for name in clique}
    others = [owner for owner in partition.owners if owner not in owners]
    if len(owners) > 1 or (partition.population == "intersection" and len(others) > 1):
        return table_of(partition, sizes, clique, split_owners)
    (owner,) = owners
    counted = Joint(owner if partition.population == "union" else others[0], ())
    left, least = clique, min(clique, key=lambda name: sizes[name])
    if owner in split_owners and len(clique) > 1:
        left = tuple(name for name in clique if name != least)
        parts = (Joint(owner, (least,)), *((counted,) if counted.owner != owner else ()))
        return Table(Joint(owner, left), Factor(parts, False))
    return Table(Joint(owner, left), Factor((counted,), False))


def products_of(plan: Plan) -> tuple[Group, ...]:
    """The products of matrices: lefts that meet about the same rights stand side by side."""
    growing: list[_Product] = []
    for product in plan.products:
        left, right = plan.width(product.left), plan.breadth(product.right)
        costs = [of.added(product, left, right) for of in growing]
        best = min(range(len(growing)), key=costs.__getitem__, default=None)
        if best is None or costs[best] - left * right >= _PRODUCT * _CELLS_A_BYTE:
            best = len(growing)
            growing.append(_Product({}, {}))
        growing[best].lefts[product.left] = left
        growing[best].rights[product.right] = right
    return tuple(Group(tuple(of.lefts), tuple(of.rights)) for of in growing)


@dataclass(frozen=True)
class _Product:
    """Lefts and rights of a product, with their columns."""

    lefts: dict[Joint, int]
    rights: dict[Factor, int]

    @property
    def cells(self) -> int:
        """Products of entries of a row."""
        return sum(self.lefts.values()) * sum(self.rights.values())

    def added(self, table: Table, left: int, right: int) -> int:
        """How many more there are with a further table, whose sides have so many columns."""
        lefts = sum(self.lefts.values()) + (0 if table.left in self.lefts else left)
        rights = sum(self.rights.values()) + (0 if table.right in self.rights else right)
        return lefts * rights - self.cells


def factor_products(plan: Tables[TablePlan]) -> list[list[tuple[Factor | Joint, tuple[Factor | Joint, ...]]]]:
    """The products row by row, a list for each round: x, and the ys whose columns it multiplies, side by
    side.

    Of a factor's last step, x is the last joint if that is a membership, else all that comes before it.
    """
    rounds = []
    for level in plan.levels():
        found: dict[Factor | Joint, list[Factor | Joint]] = {}
        for step in level:
            before, last = Factor(step.parts[:-1], step.restricted), step.parts[-1]
            if last.columns:
                found.setdefault(before, []).append(last)
            else:
                found.setdefault(last, []).append(before)
        rounds.append([(x, tuple(ys)) for x, ys in found.items()])
    return rounds


def step_of(x: Factor | Joint, y: Factor | Joint) -> Factor:
    """The factor that is a product of `factor_products`."""
    before, last = (x, y) if isinstance(x, Factor) else (y, x)
    assert isinstance(before, Factor) and isinstance(last, Joint)
    return Factor((*before.parts, last), before.restricted)


def columns_of(plan: Plan, part: Factor | Joint) -> int:
    """Columns of a factor, or of an owner's joint."""
    return plan.breadth(part) if isinstance(part, Factor) else plan.width(part)


def _cells(sizes: Mapping[str, int], columns: Iterable[str]) -> int:
    return prod(sizes[name] for name in columns)


def _width(plan: Plan, group: Group) -> int:
    lefts, rights = plan.shape(group)
    return lefts * rights


def _estimate(plan: Plan) -> int:
    """What a row costs, for comparing plans."""
    total = sum(
        plan.input_width(owner) * (_ENTRY if owner < plan.computing else _CONTRIBUTED)
        for owner in plan.inputs()
    )
    total += sum(
        _PRODUCT + _FACTOR_CELL * sum(plan.breadth(step_of(x, y)) for y in ys)
        for products in factor_products(plan)
        for x, ys in products
    )
    groups = products_of(plan)
    return total + sum(_PRODUCT + _width(plan, group) // _CELLS_A_BYTE for group in groups)


def _block_rows(plan: Plan) -> int:
    """Rows that are input and multiplied at a time: their entries, planes of entries and products take
    BLOCK_BYTES or so."""
    width = sum(map(plan.input_width, plan.inputs()))
    made = sum(map(plan.breadth, _steps(plan)))
    rows = max(MIN_BLOCK_ROWS, BLOCK_BYTES // max(1, 8 * width + 4 * made))
    longest = min(plan.partition.rows, NARROW_ROWS)
    return max(1, -(-longest // max(1, -(-longest // rows))))


def _steps(plan: Plan) -> Iterable[Factor]:
    return (step for level in plan.levels() for step in level)
