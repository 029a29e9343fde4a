"""Tables of two numbers, one of each party: every pair of numbers, views, wrong sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.pair.transfers.bit_matrix import cells_of
from mpc_protocols.backends.pair.transfers.lookup import Field, PublicTable, lookups, lookups_demand
from mpc_protocols.backends.pair.transfers.ot_extension import message_bytes
from mpc_protocols.backends.pair.transfers.random_ot import ChosenShorts, Transfers
from mpc_protocols.engine.bitwise.bitslice import to_bits, to_planes, words_for
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.wire import Wire
from tests.mpc_protocols.backends.pair.pair_run import Words, extended, run_pair

Numbers = NDArray[np.uint32]


def table(bits: int, outputs: int) -> PublicTable:
    values = np.random.default_rng().integers(0, 1 << outputs, (1 << bits, 1 << bits))
    return PublicTable(values.astype(np.uint8), outputs)


def every_pair(bits: int) -> list[Numbers]:
    """Elements of both parties, of a field of so many bits."""
    low, high = np.divmod(np.arange(1 << 2 * bits, dtype=np.uint32), np.uint32(1 << bits))
    return [low, high]


def asked(transfers: Transfers, fields: list[Field], x: Numbers, planes: int) -> list[Words]:
    return lookups(transfers, fields, x, to_planes(x, planes))


def number(planes: Words, cells: int) -> Numbers:
    bits = to_bits(planes, cells)
    found: Numbers = (bits << np.arange(len(bits), dtype=np.uint32)[:, np.newaxis]).sum(axis=0)
    return found


@pytest.mark.parametrize(
    ("bits", "outputs", "size"), [(1, 1, 1), (1, 2, 1), (2, 2, 1), (3, 2, 2), (3, 4, 4), (4, 2, 4), (5, 1, 4)]
)
@pytest.mark.parametrize("chooser", [0, 1])
def test_every_pair_of_numbers_gives_its_value(bits: int, outputs: int, size: int, chooser: int) -> None:
    field = Field(table(bits, outputs), 3, chooser)
    numbers = every_pair(bits)
    held = [
        of << np.uint32(3) | np.uint32(5) for of in numbers
    ]  # other bits beside the field's do not matter
    ran = run_pair(lambda transfers: asked(transfers, [field], held[transfers.link.me], 3 + bits))
    cells = len(numbers[0])
    found = number(ran.results[0][0] ^ ran.results[1][0], cells)
    np.testing.assert_array_equal(found, field.table.values[numbers[chooser], numbers[1 - chooser]])
    words = words_for(cells)
    assert ran.sent[chooser] == message_bytes(bits * words) + 8 * bits * words
    assert ran.sent[1 - chooser] == size * cells


def test_several_tables_share_their_rounds() -> None:
    fields = [Field(table(bits, 2), start, start % 2) for start, bits in ((0, 3), (3, 4), (7, 1))]
    values = np.random.default_rng().integers(0, 256, (2, 1000), dtype=np.uint32)
    ran = run_pair(lambda transfers: asked(transfers, fields, values[transfers.link.me], 8))
    for place, field in enumerate(fields):
        mine, others = (
            values[party] >> field.start & (len(field.table.values) - 1)
            for party in (field.chooser, 1 - field.chooser)
        )
        found = number(ran.results[0][place] ^ ran.results[1][place], 1000)
        np.testing.assert_array_equal(found, field.table.values[mine, others])
    assert ran.rounds == 3  # the transfers, questions, tables


def test_a_table_that_fills_more_than_a_string_is_refused() -> None:
    with pytest.raises(ValueError, match="64 bits"):
        _ = table(5, 2).dtype


@pytest.mark.parametrize("value", [0, 31])
def test_what_travels_is_uniform_whatever_is_asked(value: int) -> None:
    """2^17 bits of questions and of tables each: a mean off by more than 0.01 has probability below 10^-12."""
    field = Field(table(4, 2), 0, 0)
    x = np.full(1 << 15, value, np.uint32)
    ran = run_pair(lambda transfers: asked(transfers, [field], x, 4))
    questions, tables = (
        [frame.payload for frame in ran.frames if frame.sender == sender][-1] for sender in (0, 1)
    )
    shown = np.frombuffer(tables, np.uint32)
    assert len(shown) == len(x) and len(questions) == len(x) // 2
    assert not (shown & 3).any()  # entry 0 says nothing, always
    assert abs(float(np.unpackbits(np.frombuffer(questions, np.uint8)).mean()) - 0.5) < 0.01
    entries = (shown[:, np.newaxis] >> np.arange(2, 32, dtype=np.uint32)) & 1
    assert abs(float(entries.mean()) - 0.5) < 0.01


def test_the_reader_unmasks_its_entry_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other entries are right by chance, one in four: 61,440 of them, off by more than 0.012 with probability
    below 10^-10."""
    taken: list[ChosenShorts] = []
    take = Transfers.chosen_shorts

    def seen(self: Transfers, words: int) -> ChosenShorts:
        chosen = take(self, words)
        if words:
            taken.append(chosen)
        return chosen

    monkeypatch.setattr(Transfers, "chosen_shorts", seen)
    field, cells = Field(table(4, 2), 0, 0), 4096
    x = np.random.default_rng().integers(0, 16, (2, cells), dtype=np.uint32)
    ran = run_pair(lambda transfers: asked(transfers, [field], x[transfers.link.me], 4))
    (chosen,) = taken
    message = np.frombuffer([frame.payload for frame in ran.frames if frame.sender == 1][-1], np.uint32)
    mask = cells_of(np.bitwise_xor.reduce(chosen.values.reshape(64, 4, -1), axis=1), cells)
    own = number(chosen.choices.reshape(4, -1), cells)
    share = number(ran.results[1][0], cells)
    entries = np.arange(16, dtype=np.uint32)[:, np.newaxis]
    unmasked = (message ^ mask) >> (2 * entries) & 3
    right = unmasked == field.table.values[entries ^ own ^ x[0], x[1]] ^ share
    assert right[own, np.arange(cells)].all()
    assert abs((float(right.sum()) - cells) / (15 * cells) - 0.25) < 0.012


@pytest.mark.parametrize("size", [0, 255, 257])
def test_a_table_of_another_size_aborts(size: int) -> None:
    field = Field(table(4, 2), 0, 0)
    x: NDArray[Any] = np.zeros(64, np.uint32)

    def liar(wire: Wire) -> None:
        transfers = Transfers(*extended(wire))
        transfers.reserve(lookups_demand([field], 1))
        wire.send(0, bytes(size))

    def honest(wire: Wire) -> None:
        asked(Transfers(*extended(wire)), [field], x, 4)

    with pytest.raises(ProtocolAborted):
        MemoryNetwork(2, 2).run([honest, liar])
