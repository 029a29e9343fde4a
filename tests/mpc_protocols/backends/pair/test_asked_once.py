"""Lookups of a number that stays, beside one number after the other: values, bytes and rounds, what travels."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.pair.circuits.sign import carry_fields
from mpc_protocols.backends.pair.link import Link
from mpc_protocols.backends.pair.transfers.asked_once import USES, Masks, _of_uses, ask, look_up
from mpc_protocols.backends.pair.transfers.fixed_key import PublicPermutation
from mpc_protocols.backends.pair.transfers.lookup import Field
from mpc_protocols.backends.pair.transfers.ot_extension import message_bytes
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.engine.bitwise.bitslice import to_planes, words_for
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.wire import Wire
from tests.mpc_protocols.backends.pair.pair_run import Ran, extended, run_pair
from tests.worlds.words import random_words

Numbers = NDArray[np.uint32]
FIELDS = carry_fields(9)
"""Of 5 bits with one output, and of 4 with two."""
CELLS = 1 << 9


def numbers(cells: int) -> Numbers:
    return np.random.default_rng().integers(0, CELLS, cells, dtype=np.uint32)


def looked_up(
    transfers: Transfers, asked: tuple[Numbers, Numbers], beside: list[tuple[Numbers, Numbers]]
) -> tuple[list[list[tuple[Any, Any]]], tuple[Masks, Masks]]:
    """Shares of each use. asked: party 0's numbers, and party 1's. beside: in each use, what party 0 has beside those
    of party 1, and party 1 beside those of party 0."""
    me = transfers.link.me
    own, others = asked[me], asked[1 - me]
    mine, theirs = ask(transfers, FIELDS, to_planes(own, 9), (len(own), len(others)))
    return [
        look_up(transfers, FIELDS, (own, mine[use]), (of[me], theirs[use])) for use, of in enumerate(beside)
    ], (mine, theirs)


def value(field: Field, asked: Numbers, beside: Numbers) -> NDArray[np.uint8]:
    ones = len(field.table.values) - 1
    return field.table.values[asked >> field.start & ones, beside >> field.start & ones]


@pytest.mark.parametrize("counts", [(CELLS, CELLS), (65, 3), (40, 0), (0, 1)])
def test_every_use_gives_the_values(counts: tuple[int, int]) -> None:
    asked = np.arange(CELLS, dtype=np.uint32)[: counts[0]], numbers(counts[1])
    beside = [(numbers(counts[1]), numbers(counts[0])) for _ in range(USES)]
    ran = run_pair(lambda transfers: looked_up(transfers, asked, beside)[0])
    for use, of in enumerate(beside):
        for place, field in enumerate(FIELDS):
            for party in (0, 1):  # who asks
                share, other = ran.results[party][use][place][0], ran.results[1 - party][use][place][1]
                np.testing.assert_array_equal(share ^ other, value(field, asked[party], of[1 - party]))
    entries = sum(np.dtype(field.table.dtype).itemsize for field in FIELDS)
    for party in (0, 1):
        transfers = message_bytes(9 * words_for(counts[party]), are_given=True)
        assert ran.sent[party] == transfers + USES * counts[1 - party] * entries
    assert ran.rounds == (1 + USES if all(counts) else 2)  # a table for nobody is not waited for


def messages(ran: Ran[Any], sender: int) -> list[NDArray[Any]]:
    """Of each use in turn, the tables that a party sent for the second field."""
    sent = [frame.payload for frame in ran.frames if frame.sender == sender]
    return [np.frombuffer(of, np.uint32) for of in sent[-2 * USES :][1::2]]


@pytest.mark.parametrize("number", [0, 511])
def test_what_travels_is_uniform_in_each_use_and_in_any_two_together(number: int) -> None:
    """A use and the XOR of two, 30 bits of 2^13 cells: the mean of 66 and 12 such messages off by more than 0.01 with
    probability below 10^-19. Masks that served twice would show in an XOR of zeros."""
    cells = 1 << 13
    same = np.full(cells, number, np.uint32)
    ran = run_pair(lambda transfers: looked_up(transfers, (same, same), [(same, same)] * USES)[0])
    for sender in (0, 1):
        tables = messages(ran, sender)
        assert all(len(of) == cells and not (of & 3).any() for of in tables)  # entry 0 says nothing, always
        together = [*tables, *(left ^ right for left, right in combinations(tables, 2))]
        for shown in together:
            entries = (shown[:, np.newaxis] >> np.arange(2, 32, dtype=np.uint32)) & 1
            assert abs(float(entries.mean()) - 0.5) < 0.01


def test_a_string_masks_nothing_itself() -> None:
    """What masks is hashed, 32 bits of a hash in one use each. Of 2^11 strings two parts of 32 bits agree at one place
    where they should not with probability below 2^-20, at all places below 2^-65000."""
    strings = random_words(64, 32, 2)
    keys = [bytes([number]) * 32 for number in range(3)]
    hashed = [PublicPermutation(key).hash(strings).view(np.uint32) for key in keys]
    uses = [of for (of,) in _of_uses([strings], keys)]
    assert len(uses) == USES
    for use, of in enumerate(uses):
        np.testing.assert_array_equal(of, hashed[use // 4][:, :, use % 4])
        assert not any((of == part).all() for part in np.moveaxis(strings.view(np.uint32), 2, 0))


def test_the_hashes_of_a_question_have_keys_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Alike at both parties, which take turns in asking; of two questions in a row no two are the same."""
    keys: dict[int, list[bytes]] = {0: [], 1: []}
    context = Link.context

    def noted(link: Link, *parts: bytes) -> bytes:
        if parts[0] == b"uses":
            keys[link.me].append(context(link, *parts))
        return context(link, *parts)

    monkeypatch.setattr(Link, "context", noted)
    few = numbers(3), numbers(5)
    run_pair(lambda transfers: [looked_up(transfers, few, []) for _ in range(2)])
    assert keys[0] == keys[1]
    assert len(set(keys[0])) == len(keys[0]) == 2 * 2 * USES // 4


def test_shares_of_two_uses_are_independent() -> None:
    """The offering party's r: the same number beside the same, 2^13 cells; a mean off by more than 0.03 has probability
    below 10^-7, of 132 pairs below 10^-5 together; shares that repeat would differ nowhere."""
    cells = 1 << 13
    same = np.full(cells, 77, np.uint32)
    ran = run_pair(lambda transfers: looked_up(transfers, (same, same), [(same, same)] * USES)[0])
    for party in (0, 1):
        shares = [of_use[1][1] & 1 for of_use in ran.results[party]]
        for left, right in combinations(shares, 2):
            assert abs(float((left ^ right).mean()) - 0.5) < 0.03


def test_the_reader_unmasks_its_entry_and_no_other() -> None:
    """Other entries are right by chance, one in four: of each use 61,440 of them, off by more than 0.012 with
    probability below 10^-10."""
    cells = 1 << 12
    asked, beside = numbers(cells), [numbers(cells) for _ in range(USES)]
    nobody: Numbers = np.empty(0, np.uint32)
    ran = run_pair(lambda transfers: looked_up(transfers, (asked, nobody), [(nobody, of) for of in beside]))
    mine, _ = ran.results[0][1]
    field, entries = FIELDS[1], np.arange(16, dtype=np.uint32)[:, np.newaxis]
    own = asked >> field.start & 15
    for use, message in enumerate(messages(ran, 1)):
        share = ran.results[1][0][use][1][1]
        unmasked = (message ^ mine[use, 1]) >> (2 * entries) & 3
        right = unmasked == field.table.values[entries, beside[use] >> field.start & 15] ^ share
        assert right[own, np.arange(cells)].all()
        assert abs((float(right.sum()) - cells) / (15 * cells) - 0.25) < 0.012


@pytest.mark.parametrize("size", [0, 255, 257])
def test_a_table_of_another_size_aborts(size: int) -> None:
    nobody: Numbers = np.empty(0, np.uint32)
    asked = np.zeros(64, np.uint32)

    def liar(wire: Wire) -> None:
        ask(Transfers(*extended(wire)), FIELDS, to_planes(nobody, 9), (0, 64))
        wire.send(0, bytes(size))

    def honest(wire: Wire) -> None:
        looked_up(Transfers(*extended(wire)), (asked, nobody), [(nobody, nobody)])

    with pytest.raises(ProtocolAborted):
        MemoryNetwork(2, 2).run([honest, liar])
