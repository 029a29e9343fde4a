"""The marginals of vertically split data as the oracle's shares, in place of everybody's counts (DESIGN 6).

Each batch of marginals becomes tables over the owners' joint rows (`plan`; the union takes one for every two or more owners of
a clique, `union`), and each wave of the common table's rows runs

    input        owners' one-hot columns and memberships                        1 round         (`matrices`)
    everyone     the product of all memberships, pairwise                       lg m rounds
    factors      secure products row by row                                     a round for each further owner of a clique
    orders       sums by cell of joints that are too wide for one-hot columns   2 rounds a batch  (`segments`)
    products     A^T B on shares                                                no message      (`matrices.product`)

after the last wave ONE resharing of all cells, lifted to 2^32 where counts travelled modulo 2^16. The union's one-owner tables
are the owners' own histograms, input as horizontal counts are (`replicated.marginals`).

Threat model: semi-honest, at most one of the three computing parties corrupted; owners that do not compute semi-honest;
assumption `prg`. Every message is uniform to its receiver (argued in `matrices`, `segments`, `trio`). Each party learns which
tables are computed, and u, the rows of the common table; nobody learns which rows another owner holds, how many are in common,
or a count. Counts are at most u < 2^16 or 2^31, so no ring overflows. Memory: one wave (`plan.WAVE` bytes of shares and what its
products take), the cells, and each owner's own codes; it does not grow with u beyond those.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import DataRefused, StudyInvalid
from mpc_protocols.functionality import Clique, LocalCounts, Setting
from mpc_protocols.replicated.bitslice import Elements
from mpc_protocols.replicated.contribution import send_contribution
from mpc_protocols.replicated.conversion import lift
from mpc_protocols.replicated.marginals import MarginalSource, SharedMarginals
from mpc_protocols.replicated.prg import binding
from mpc_protocols.replicated.ring import RingShare, reshare
from mpc_protocols.replicated.trio import Trio, UInt
from mpc_protocols.vertical import union
from mpc_protocols.vertical.functionality import Partition, VerticalData
from mpc_protocols.vertical.matrices import (
    Matrix,
    begin_dealing,
    deal_block,
    dealt_block,
    expect_dealing,
    input_rows,
    multiply,
    product,
    side_by_side,
)
from mpc_protocols.vertical.plan import Factor, Part, Plan, layout_of, make_plan
from mpc_protocols.vertical.records import CodedRows
from mpc_protocols.vertical.segments import Job, sums_by_cell
from mpc_protocols.wire import Wire

BATCH = 1 << 22
"""Bytes of one party's largest array in a batch of orders that share their rounds; also of a piece of one order's columns."""
_MEMBERSHIP: Clique = ()


class Schedule:
    """What is still to be computed for the cliques asked for; every party and contributor of a run follows it alike."""

    def __init__(self, partition: Partition, setting: Setting, computing: int) -> None:
        self._partition = partition
        self._setting = setting
        self._computing = computing
        self._histograms: list[Clique] = []
        self._tables: list[Clique] = []
        self._somebody = False

    def next(self, cliques: Sequence[Clique]) -> tuple[list[Clique], list[Clique], Plan | None]:
        """Own histograms to input, tables to compute, and how; for cliques that the oracle shares now."""
        if self._partition.population == "intersection":
            return [], list(cliques), self._plan(cliques, everyone=False)
        wanted = sorted({table for clique in cliques for table in union.needed(self._partition, clique)},
                        key=lambda table: (-len(table), table))
        histograms = self._fresh([t for t in wanted if len(union.owners_of(self._partition, t)) == 1], self._histograms)
        tables = self._fresh([t for t in wanted if len(union.owners_of(self._partition, t)) > 1], self._tables)
        everyone, self._somebody = not self._somebody, True
        return histograms, tables, self._plan(tables, everyone) if tables or everyone else None

    def _plan(self, tables: Sequence[Clique], everyone: bool) -> Plan:
        return make_plan(self._partition, self._setting.sizes, self._computing, tables, everyone)

    def _fresh(self, wanted: Sequence[Clique], known: list[Clique]) -> list[Clique]:
        """Those (largest first) that no known table of the same owners covers; they are known from now on."""
        fresh = []
        for table in wanted:
            if covering(self._partition, table, known) is None:
                fresh.append(table)
                known.append(table)
        return fresh


def covering(partition: Partition, table: Clique, known: Sequence[Clique]) -> Clique | None:
    """The first known table over the same owners that has all columns of this one."""
    owners = union.owners_of(partition, table)
    return next((other for other in known if set(table) <= set(other) and union.owners_of(partition, other) == owners), None)


def own_rows(data: VerticalData, setting: Setting, me: int) -> CodedRows | None:
    """This party's records, checked: None if it owns no column. Raises `DataRefused`, `StudyInvalid`."""
    partition = data.partition
    if set(partition.columns) != set(setting.sizes):
        raise StudyInvalid("the owners' columns are not those of the study's domain")
    if (data.own is None) == (me in partition.owners):
        raise DataRefused(f"Party {me} must bring its rows exactly if it owns columns of the study.")
    if partition.population == "union" and partition.rows > setting.row_cap:
        raise DataRefused("The common table has more rows than the study's max_rows; raise max_rows in the study.")
    if data.own is None:
        return None
    data.own.check(partition, me, setting.sizes)
    if len(data.own.rows) > setting.row_cap:
        raise DataRefused("This party has more records than the study's max_rows; raise max_rows in the study.")
    return CodedRows(data.own, setting.sizes)


def own_histograms(rows: CodedRows | None, partition: Partition, setting: Setting, me: int) -> LocalCounts:
    """An owner's own histograms as horizontal counts: zeros for what another owner has."""
    def counts(cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        return [rows.counts(clique) if rows is not None and union.owners_of(partition, clique) == (me,)
                else np.zeros(setting.cells(clique), np.int64) for clique in cliques]

    return counts


class VerticalMarginals(MarginalSource):
    """One computing party's shares of the population's marginals."""

    def __init__(self, trio: Trio, setting: Setting, data: VerticalData) -> None:
        """data: this party's own rows, if it owns columns. Raises `DataRefused`, `StudyInvalid`."""
        partition = data.partition
        public = [partition.owners, list(partition.columns.items()), partition.population, sorted(partition.missing.items()),
                  partition.rows]
        super().__init__(trio, binding(b"vertical", json.dumps(public).encode()))
        self._setting = setting
        self._partition = partition
        self._rows = own_rows(data, setting, trio.me)
        self._schedule = Schedule(partition, setting, trio.wire.computing)
        self._own = SharedMarginals(trio, setting, own_histograms(self._rows, partition, setting, trio.me))
        self._tables: dict[Clique, RingShare] = {}
        self._somebody: RingShare | None = None

    def _input(self, cliques: Sequence[Clique], inputs: bytes) -> dict[Clique, RingShare]:
        histograms, tables, plan = self._schedule.next(cliques)
        if histograms:
            self._own.share(histograms, inputs)
            self._tables |= {table: self._own.shared(table) for table in histograms}
        if plan is not None:
            self._compute(plan, tables)
        if self._partition.population == "intersection":
            return {clique: self._tables.pop(clique) for clique in cliques}
        return {clique: self._of_union(clique) for clique in cliques}

    def _of_union(self, clique: Clique) -> RingShare:
        assert self._somebody is not None
        sizes, components = self._setting.sizes, []
        for which in ("own", "next"):
            joint = {}
            for table in union.needed(self._partition, clique):
                source = covering(self._partition, table, list(self._tables))
                assert source is not None
                joint[table] = union.summed(getattr(self._tables[source], which), source, table, sizes)
            components.append(union.assemble(self._partition, clique, sizes, joint, getattr(self._somebody, which)))
        return RingShare(*components)

    def _compute(self, plan: Plan, tables: Sequence[Clique]) -> None:
        """All tables of a plan, and R where the union needs it for the first time."""
        run = _Run(self._trio, plan, self._rows)
        for number, (start, stop) in enumerate(plan.waves()):
            run.wave(number, start, stop)
        cells = run.finish()
        if self._partition.population == "union" and plan.everyone:
            self._somebody, cells = cells[:1], cells[1:]
        start = 0
        for table, of in zip(tables, plan.products, strict=True):
            stop = start + self._setting.cells(table)
            share = cells[start:stop]
            self._tables[table] = RingShare(*(union.summed(part, of.columns, table, plan.sizes)
                                              for part in (share.own, share.next)))
            start = stop


class _Run:
    """One plan under way at one computing party: this party's part of every cell so far."""

    def __init__(self, trio: Trio, plan: Plan, rows: CodedRows | None) -> None:
        self._trio = trio
        self._plan = plan
        self._rows = rows
        self._dtype: UInt = np.uint16 if plan.element == 2 else np.uint32
        self._dealings = {owner: expect_dealing(trio.wire, owner) for owner in plan.inputs() if owner >= plan.computing}
        self._groups = [*plan.groups(ordered=False), *plan.groups(ordered=True)]
        self._ordered = {part for group in plan.groups(ordered=True) for part in group.lefts}
        self._parts = [np.zeros((sum(map(plan.width, group.lefts)), sum(map(plan.breadth, group.rights))), self._dtype)
                       for group in self._groups]
        self._nobody: Elements = np.zeros(1, self._dtype)

    def wave(self, number: int, start: int, stop: int) -> None:
        """Add the rows start .. stop - 1."""
        joints = self._inputs(number, start, stop)
        everyone = self._everyone(joints)
        factors = self._factors(joints, everyone)
        orders: list[tuple[NDArray[np.unsignedinteger], Job]] = []
        for group, parts in zip(self._groups, self._parts, strict=True):
            rights = [factors[factor] for factor in group.rights]
            if group.lefts[0] in self._ordered:
                orders += self._orders(group.lefts[0], rights, parts, start, stop)
            else:
                left = side_by_side([joints[part] for part in group.lefts], self._dtype)
                parts += product(left, side_by_side(rights, self._dtype), self._dtype)
        for batch in _batches(orders):
            for (target, _), part in zip(batch, sums_by_cell(self._trio, [job for _, job in batch], self._dtype), strict=True):
                target += part

    def finish(self) -> RingShare:
        """The cells of all products, in the plan's order, modulo 2^32; before them R, if the union needs it. 1 round, or 9."""
        plan, where = self._plan, {}
        for group, parts in zip(self._groups, self._parts, strict=True):
            top = 0
            for left in group.lefts:
                bottom, first = top + plan.width(left), 0
                for right in group.rights:
                    end = first + plan.breadth(right)
                    where[left, right] = parts[top:bottom, first:end]
                    first = end
                top = bottom
        cells = [where[product.left, product.right].reshape(-1) for product in plan.products]
        if plan.partition.population == "union" and plan.everyone:
            nobody = -self._nobody
            if self._trio.me == 0:
                nobody += self._dtype(plan.partition.rows)
            cells.insert(0, nobody)
        shared = reshare(self._trio, np.concatenate(cells))
        return lift(self._trio, shared, np.uint32) if self._dtype is np.uint16 else shared

    def _inputs(self, number: int, start: int, stop: int) -> dict[Part, Matrix]:
        plan, trio = self._plan, self._trio
        shapes = {owner: (stop - start, plan.input_width(owner)) for owner in plan.inputs()}
        computing = [owner for owner in plan.inputs() if owner < plan.computing]
        blocks = []
        for owner in computing:
            block = None
            if owner == trio.me:
                assert self._rows is not None
                block = self._rows.one_hot(start, stop, plan.joints(owner), self._dtype)
            blocks.append((owner, shapes[owner], block))
        matrices = dict(zip(computing, input_rows(trio, blocks, self._dtype), strict=True))
        matrices |= {owner: dealt_block(trio, dealing, owner, shapes[owner], self._dtype, number)
                     for owner, dealing in self._dealings.items()}
        joints = {}
        for owner, matrix in matrices.items():
            first = 0
            for joint in plan.joints(owner):
                part = Part(owner, joint)
                joints[part] = matrix.columns(first, plan.width(part))
                first += plan.width(part)
        return joints

    def _everyone(self, joints: dict[Part, Matrix]) -> Matrix | None:
        """The product of all memberships; the union counts the rows that nobody holds: the product of their complements."""
        plan = self._plan
        if not plan.everyone:
            return None
        members = [joints[Part(owner, _MEMBERSHIP)] for owner in plan.partition.owners]
        if plan.partition.population == "union":
            members = [_complement(self._trio, member, self._dtype) for member in members]
        while len(members) > 1:
            pairs = list(zip(members[::2], members[1::2], strict=False))
            rest = members[2 * len(pairs):]
            members = [*multiply(self._trio, pairs, self._dtype), *rest]
        if plan.partition.population == "union" and members[0].own is not None:
            self._nobody += members[0].own.sum(dtype=self._dtype)
        return members[0]

    def _factors(self, joints: dict[Part, Matrix], everyone: Matrix | None) -> dict[Factor, Matrix]:
        factors = {Factor((part,), False): matrix for part, matrix in joints.items()}
        if everyone is not None:
            factors[Factor((), True)] = everyone
        for level in self._plan.levels():
            pairs = [(factors[Factor(step.parts[:-1], step.restricted)], joints[step.parts[-1]]) for step in level]
            factors |= dict(zip(level, multiply(self._trio, pairs, self._dtype), strict=True))
        return factors

    def _orders(self, left: Part, rights: Sequence[Matrix], parts: Elements, start: int,
                stop: int) -> list[tuple[Elements, Job]]:
        """One owner's order of the rows by a joint, in pieces of the rights' columns: where each job's part is to be added."""
        plan = self._plan
        cells = None
        if self._trio.me == left.owner:
            assert self._rows is not None
            cells = self._rows.cells(start, stop, left.columns)
        weights = side_by_side(rights, self._dtype)
        jobs = []
        for first, width in pieces(plan, left, weights.shape[1], stop - start):
            layout = layout_of(plan, left, width, stop - start)
            jobs.append((parts[:, first:first + width],
                         Job(left.owner, plan.helper(left.owner), layout, weights.columns(first, width), cells)))
        return jobs


def pieces(plan: Plan, left: Part, columns: int, rows: int) -> Iterator[tuple[int, int]]:
    """First column and width of what one job takes of the rights: BATCH bytes of places at most, or one column."""
    step = max(1, BATCH // (layout_of(plan, left, columns, rows).places * plan.element))
    for first in range(0, columns, step):
        yield first, min(step, columns - first)


def _batches(orders: Sequence[tuple[Elements, Job]]) -> Iterator[list[tuple[Elements, Job]]]:
    start = 0
    for stop in batch_ends([job.layout.places * job.layout.columns * job.layout.element for _, job in orders]):
        yield list(orders[start:stop])
        start = stop


def batch_ends(sizes: Sequence[int]) -> Iterator[int]:
    """Where batches of jobs of these sizes end: BATCH bytes each, or one job."""
    total = 0
    for place, size in enumerate(sizes):
        if total and total + size > BATCH:
            yield place
            total = 0
        total += size
    if sizes:
        yield len(sizes)


def _complement(trio: Trio, matrix: Matrix, dtype: UInt) -> Matrix:
    """1 - x; the 1 goes into component 0, which P0 and P2 hold. No longer known to its owner as it is."""
    zero = np.zeros(matrix.shape, dtype)
    own = zero if matrix.own is None else -matrix.own
    following = zero.copy() if matrix.next is None else -matrix.next
    if trio.me == 0:
        own = own + dtype(1)
    elif trio.me == 2:
        following = following + dtype(1)
    return Matrix(matrix.shape, own, following)


class VerticalContributor:
    """An owner that does not compute: answers the leader's requests with the same plans."""

    def __init__(self, wire: Wire, setting: Setting, data: VerticalData) -> None:
        """Raises `DataRefused`, `StudyInvalid`."""
        rows = own_rows(data, setting, wire.me)
        if rows is None:
            raise DataRefused(f"Party {wire.me} neither computes nor owns columns; leave it out of the study.")
        self._wire = wire
        self._setting = setting
        self._rows = rows
        self._schedule = Schedule(data.partition, setting, wire.computing)
        self._counts = own_histograms(rows, data.partition, setting, wire.me)

    def send(self, cliques: Sequence[Clique]) -> None:
        """Its part in the input of these cliques. Blocks while the computing parties are behind."""
        histograms, _, plan = self._schedule.next(cliques)
        if histograms:
            send_contribution(self._wire, self._setting, self._counts, histograms)
        if plan is None or self._wire.me not in plan.inputs():
            return
        dtype: UInt = np.uint16 if plan.element == 2 else np.uint32
        dealing = begin_dealing(self._wire)
        for number, (start, stop) in enumerate(plan.waves()):
            deal_block(self._wire, dealing, self._rows.one_hot(start, stop, plan.joints(self._wire.me), dtype), number)
