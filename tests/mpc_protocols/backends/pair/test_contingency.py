"""Two owners' tables against plaintext, with records that one or both lack; bytes and rounds; what each of
them sees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.pair.link import Link
from mpc_protocols.backends.pair.transfers.ot_extension import message_bytes
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.backends.pair.vertical import contingency
from mpc_protocols.backends.pair.vertical.contingency import Column, TableShape, of_paths, of_vectors
from mpc_protocols.engine.bitwise.bitslice import words_for
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.wire import Wire
from tests.mpc_protocols.backends.pair.pair_run import Ran, extended, run_pair
from tests.trio import Trio

Table = NDArray[np.int64]


@dataclass(frozen=True)
class Case:
    shape: TableShape
    paths: NDArray[np.int64]
    columns: list[Column]

    def share(self, transfers: Transfers) -> NDArray[np.unsignedinteger]:
        if transfers.link.me == self.shape.owner:
            return of_paths(transfers, self.shape, self.paths)
        return of_vectors(transfers, self.shape, self.columns)

    def table(self) -> Table:
        table = np.zeros((self.shape.leaves, self.shape.width), np.int64)
        offset = 0
        for column in self.columns:
            held = column.codes < column.size
            np.add.at(table, (self.paths[held], offset + column.codes[held]), 1)
            offset += column.size
        return table

    def run(self) -> Ran[Table]:
        ran = run_pair(self.share)
        found = ran.results[0] + ran.results[1]
        np.testing.assert_array_equal(found, self.table().astype(self.shape.dtype))
        return ran  # type: ignore[return-value]


def case(records: int, leaves: int, sizes: list[int], owner: int = 0, dtype: type = np.uint32) -> Case:
    rng = np.random.default_rng()
    return Case(
        TableShape(owner, records, leaves, sum(sizes), dtype),
        rng.integers(0, leaves, records),
        [Column(rng.integers(0, size, records, endpoint=True), size) for size in sizes],
    )


@pytest.mark.parametrize("owner", [0, 1])
@pytest.mark.parametrize("leaves", [2, 3, 4, 16, 17, 201])
@pytest.mark.parametrize("records", [1, 65, 300])
def test_a_table_of_two_owners(records: int, leaves: int, owner: int) -> None:
    made = case(records, leaves, [3, 1, 15], owner, np.uint16)
    ran = made.run()
    levels, words = made.shape.levels, words_for(records)
    sent = {
        owner: message_bytes(levels * words) + 8 * levels * words,
        1 - owner: 32 * levels * records + made.shape.row_bytes * records,
    }
    assert ran.sent == [sent[0], sent[1]]
    assert ran.rounds == 2


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
def test_wide_and_narrow_vectors(dtype: type) -> None:
    case(700, 5, [1], dtype=dtype).run()
    case(700, 5, [300], dtype=dtype).run()


def test_one_category_takes_everything_and_nothing_overflows_but_the_ring() -> None:
    made = Case(
        TableShape(0, 70_000, 2, 1, np.uint16),
        np.ones(70_000, np.int64),
        [Column(np.zeros(70_000, np.int64), 1)],
    )
    assert made.table()[1, 0] == 70_000  # the share is that number modulo 2^16; and two chunks of records
    made.run()


def test_several_chunks_and_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contingency, "CHUNK", 100)
    monkeypatch.setattr(contingency, "_EXPANDED", 16 * 30)
    assert case(250, 7, [4]).run().rounds == 6


def test_a_record_that_the_owner_of_paths_lacks_shows_nothing_of_its_vector() -> None:
    """All records are lacked (leaf u) or held: t_r is uniform in both. 2^17 bits: off by 0.01 with
    probability below 10^-12."""
    records = 4096
    for path in (0, 3):
        made = Case(
            TableShape(0, records, 4, 1, np.uint32),
            np.full(records, path),
            [Column(np.zeros(records, np.int64), 1)],
        )
        ran = made.run()
        sent = [frame.payload for frame in ran.frames if frame.sender == 1][-1]
        assert len(sent) == 4 * records
        assert abs(float(np.unpackbits(np.frombuffer(sent, np.uint8)).mean()) - 0.5) < 0.01


def test_the_path_is_masked_by_fresh_choices() -> None:
    """The corrections of equal paths: 2^15 bits, off by 0.03 with probability below 10^-12."""
    made = Case(
        TableShape(0, 1 << 14, 4, 1, np.uint32),
        np.zeros(1 << 14, np.int64),
        [Column(np.ones(1 << 14, np.int64), 1)],
    )
    ran = made.run()
    sent = [frame.payload for frame in ran.frames if frame.sender == 0][-1]
    assert len(sent) == 2 * (1 << 14) // 8
    assert abs(float(np.unpackbits(np.frombuffer(sent, np.uint8)).mean()) - 0.5) < 0.03


def test_two_tables_of_the_same_records_share_no_mask() -> None:
    made = case(64, 4, [2])
    ran = run_pair(lambda transfers: (made.share(transfers), made.share(transfers)))
    sent = [frame.payload for frame in ran.frames if frame.sender == 1 and len(frame.payload) == 64 * 8]
    assert len(sent) == 2
    difference = np.frombuffer(sent[0], np.uint32) - np.frombuffer(sent[1], np.uint32)
    assert (difference == 0).sum() < 3  # 128 elements: two equal by chance with probability below 10^-14


def test_the_columns_make_the_vectors() -> None:
    made = case(10, 4, [2])
    with pytest.raises(ValueError, match="vectors of 2"):
        run_pair(lambda transfers: of_vectors(transfers, made.shape, []))


@pytest.mark.parametrize("change", [-1, 1])
def test_masked_sums_of_another_size_abort(change: int) -> None:
    made = case(10, 4, [2])

    def liar(wire: Wire) -> None:
        extended(wire)
        wire.send(0, bytes(32 * 2 * 10 + change))
        wire.receive_up_to(0, 1 << 20)

    def honest(wire: Wire) -> object:
        return made.share(Transfers(*extended(wire)))

    with pytest.raises(ProtocolAborted, match="bytes"):
        MemoryNetwork(2, 2).run([honest, liar])


def job(
    wire: Wire, owner: int, leaves: int, own: list[NDArray[np.int64]], sizes: list[int]
) -> NDArray[np.uint32]:
    shape = TableShape(owner, len(own[0]), leaves, sum(sizes), np.uint32)
    transfers = Transfers.start(Link(wire))
    if wire.me == owner:
        return of_paths(transfers, shape, own[0])
    return of_vectors(transfers, shape, [Column(codes, size) for codes, size in zip(own, sizes, strict=True)])


def test_a_table_between_two_processes(two: Trio) -> None:
    made = case(2000, 16, [15, 2], owner=1)
    codes = [column.codes for column in made.columns]
    found = two.run(job, each=[(1, 16, codes, [15, 2]), (1, 16, [made.paths], [15, 2])])
    np.testing.assert_array_equal(found[0] + found[1], made.table())
