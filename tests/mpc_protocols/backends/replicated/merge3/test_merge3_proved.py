"""merge3 where a computing party may deviate: it computes the functionality, at the stated cost; whoever
deviates is stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.replicated.merge3 import counted, part, protocol
from mpc_protocols.backends.replicated.merge3.contributor import contribute
from mpc_protocols.backends.replicated.merge3.keys import Keys, keys_of
from mpc_protocols.backends.replicated.merge3.proved import ProvedComputingParty
from mpc_protocols.backends.replicated.merge3.public import STREAM, common_salt
from mpc_protocols.backends.replicated.sharing.boolean import BitShare, open_bits
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.errors import PeerLost, ProtocolAborted
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.psu.functionality import ideal_align
from mpc_protocols.wire import Wire
from runner.review.conformance.guards import Recorder
from tests.mpc_protocols.backends.replicated.proof.cheating import CheatingWire, flipped
from tests.mpc_protocols.backends.replicated.proved.openings import noted_openings
from tests.mpc_protocols.psu.merged import body_of, context_of, merge_lists
from tests.mpc_protocols.psu.owners import assert_ideal, ids, spec_of
from tests.patience import PATIENCE_S

NOISY: dict[str, Any] = {
    "adjacency": "add-remove",
    "size_epsilon": Fraction(2),
    "size_delta": Fraction(1, 1000),
}
X, Y, Z = ids(range(30)), ids(range(10, 40)), ids(range(20, 45))
ROLES = [(0, 1), (4, 3), (3, 4, 0, 2)]


@pytest.mark.parametrize("owners", ROLES, ids=str)
def test_the_functionality_at_its_cost(owners: tuple[int, ...]) -> None:
    lists = [X, Y, Z, X[:5]][: len(owners)]
    done = merge_lists(lists, owners, malicious=True)
    spec = spec_of("merge3", malicious=True)
    assert len({(r.n_rows, r.digest) for r in done.results}) == 1
    assert_ideal(lists, [done.results[i] for i in owners], ideal_align(lists, spec))
    expected, products = counted.merge3_cost(
        context_of(owners), spec, [len(of) for of in lists], done.results[0].n_rows
    )
    assert [t.bytes_sent for t in done.traffic] == expected.sent
    assert [t.messages_sent for t in done.traffic] == expected.messages
    assert [t.rounds for t in done.traffic] == expected.clocks
    assert [t.proofs for t in done.traffic[:3]] == [expected.proofs] * 3 and expected.proofs > 0
    assert products > 0


@pytest.mark.parametrize(("owners", "sizes"), [((0, 1), (0, 0)), ((3, 0), (0, 3)), ((0, 1), (1, 1))])
def test_the_shortest_lists(owners: tuple[int, int], sizes: tuple[int, int]) -> None:
    lists = [ids(range(size)) for size in sizes]
    done = merge_lists(lists, owners, malicious=True)
    assert_ideal(lists, [done.results[i] for i in owners], ideal_align(lists, spec_of("merge3")))
    spec = spec_of("merge3", malicious=True)
    expected, _ = counted.merge3_cost(context_of(owners), spec, sizes, done.results[0].n_rows)
    assert [t.rounds for t in done.traffic] == expected.clocks


def test_with_dummies_that_occur_twice() -> None:
    done = merge_lists([X, Y], (0, 3), malicious=True, **NOISY)
    rows = [dict(zip(own, done.results[i].rows.tolist(), strict=True)) for own, i in ((X, 0), (Y, 3))]
    assert all(rows[0][person] == rows[1][person] for person in X if person in Y)
    assert len({*rows[0].values(), *rows[1].values()}) == len({*X, *Y}) < done.results[0].n_rows
    expected, _ = counted.merge3_cost(
        context_of((0, 3)),
        spec_of("merge3", malicious=True, **NOISY),
        [done.results[i].listed for i in (0, 3)],
        done.results[0].n_rows,
    )
    assert [t.bytes_sent for t in done.traffic] == expected.sent
    assert [t.rounds for t in done.traffic] == expected.clocks


# Parties that deviate.

Words = Callable[[Any], Any]


def ended(
    owners: tuple[int, ...],
    lists: list[list[bytes]],
    *,
    words: dict[int, Words] | None = None,
    cheat: int | None = None,
    alter: Callable[[int, int, bytes], bytes | None] | None = None,
    **changes: Any,
) -> list[Any]:
    """What every party of a run ends with, an alignment or a sentence. words: by owner, what it shares for
    its list's words. cheat, alter: a party whose messages are altered."""
    honest = body_of(
        spec_of("merge3", malicious=True, **changes),
        context_of(owners),
        lists,
        [Recorder() for _ in range(5)],
    )
    parties = max(3, *(number + 1 for number in owners))

    def body(wire: Wire) -> Any:
        party: Any = CheatingWire(wire, alter) if alter and wire.me == cheat else wire
        if words and wire.me in words:
            party = Relisting(wire, words[wire.me])
        try:
            return honest(party)
        except (ProtocolAborted, PeerLost) as error:
            return error.sentence

    return MemoryNetwork(parties).run([body] * parties)


class Relisting(CheatingWire):
    """The wire of an owner that shares other words than those of its list."""

    def __init__(self, wire: Any, change: Words) -> None:
        super().__init__(wire, lambda *_: None)
        self.change = change

    def fork(self, name: str) -> Relisting:
        return Relisting(self._wire.fork(name), self.change)


@pytest.fixture(autouse=True)
def relisted(monkeypatch: pytest.MonkeyPatch) -> None:
    """An owner with such a wire changes its keys once they are made, and does not check them."""
    original = part.align

    def align(wire: Any, entries: Any, kinds: Any, spec: Any, context: Any) -> Any:
        if not isinstance(wire, Relisting):
            return original(wire, entries, kinds, spec, context)
        stream = wire.fork(STREAM)
        salt = common_salt(stream, context, context.salt(spec, wire.session_id))
        own = keys_of(entries, salt, len(context.owners))
        own = Keys(wire.change(own.words.copy()), own.order)
        if wire.me < 3:
            return ProvedComputingParty(stream, own, kinds, spec, context).run()
        return contribute(stream, own, kinds, spec, context)

    monkeypatch.setattr(part, "align", align)


def backwards(words: Any) -> Any:
    return words[::-1].copy()


def exchanged(words: Any) -> Any:
    words[[3, 20]] = words[[20, 3]]
    return words


def repeated(times: int) -> Words:
    def change(words: Any) -> Any:
        start = next(
            i for i in range(1, len(words)) if len(set(words[i - 1 : i + times + 1].tolist())) == times + 2
        )
        words[start : start + times] = words[start]  # no dummy that occurs twice is near
        return words

    return change


NOT_IN_ORDER = "shared identifiers that are not in order, or one too often"


@pytest.mark.parametrize(
    ("owner", "change", "noisy"),
    [
        (0, backwards, False),
        (3, exchanged, False),
        (0, exchanged, True),
        (3, repeated(2), False),
        (0, repeated(3), True),
    ],
)
def test_a_list_out_of_order_ends_the_run_with_its_owners_name(
    owner: int, change: Words, noisy: bool
) -> None:
    """Whatever the others hold: nothing else is opened."""
    found = ended((owner, 1), [X, Y], words={owner: change}, **(NOISY if noisy else {}))
    name = context_of((owner, 1)).owners[0].name
    for party in {0, 1, 2} - {owner}:
        assert f"Party {name} {NOT_IN_ORDER}" in found[party], found


def test_an_identifier_entered_twice_is_as_a_dummy() -> None:
    """With add-remove an owner may: another owner's record of that person keeps its row, whoever holds it,
    and all go on."""
    for others in (Y, ids(range(60, 90))):
        found = ended((0, 1, 3), [X, others, others], words={0: repeated(2)}, **NOISY)
        assert isinstance(found[1].n_rows, int) and found[1].n_rows == found[2].n_rows == found[3].n_rows
        assert found[1].rows.tolist() == found[3].rows.tolist()
        assert len(np.unique(found[1].rows)) == len(others)


class Together:
    """Two owners enter every third of the words that both have twice, each in place of the one after it."""

    def __init__(self) -> None:
        self._met, self._lists = threading.Barrier(2), list[Any]()

    def __call__(self, words: Any) -> Any:
        self._lists.append(words.tolist())
        self._met.wait(PATIENCE_S)
        first, second = self._lists
        common = [word for word in words.tolist() if first.count(word) == second.count(word) == 1]
        for word in common[:-1:3]:
            words[words.tolist().index(word) + 1] = word
        return words


def test_a_person_whom_two_owners_enter_twice_has_one_row_at_the_others() -> None:
    """One that computes and one that contributes: six entries of four owners."""
    both = Together()
    found = ended((0, 1, 3, 4), [X] * 4, words={0: both, 3: both}, **NOISY)
    assert found[1].rows.tolist() == found[4].rows.tolist()
    assert len(np.unique(found[1].rows)) == len(X)


def consistent(found: list[Any], owners: tuple[int, ...], lists: list[list[bytes]], cheat: int) -> None:
    """Honest parties that go on have one table, and a row of its own for each person, the same at all honest
    owners."""
    done = {i: of for i, of in enumerate(found) if i != cheat and not isinstance(of, str)}
    assert len({(of.n_rows, of.digest) for of in done.values()}) <= 1
    row_of: dict[bytes, int] = {}
    for own, number in zip(lists, owners, strict=True):
        if number in done:
            assert len(np.unique(done[number].rows)) == len(own)
            for person, row in zip(own, done[number].rows.tolist(), strict=True):
                assert row_of.setdefault(person, row) == row
    assert len(set(row_of.values())) == len(row_of)


def altered_runs(numbers: Any, cheat: int, owners: tuple[int, ...], inputs: int) -> dict[int, int]:
    """Runs in which the cheat flips a bit of one message: how many honest parties stopped, by its number."""
    lists = [X, Y, Z][: len(owners)]
    stopped = {}
    for number in numbers:
        met: list[int] = []

        def alter(
            count: int, peer: int, payload: bytes, number: int = number, met: list[int] = met
        ) -> bytes | None:
            if count != number:
                return None
            met.append(count)
            return flipped(payload, len(payload) // 2, count % 8)

        found = ended(owners, lists, cheat=cheat, alter=alter)
        if not met:
            break
        consistent(found, owners, lists, cheat)
        stopped[number] = sum(isinstance(of, str) for i, of in enumerate(found) if i != cheat)
        assert stopped[number] > 0 or number <= inputs, (number, found)
    return stopped


@pytest.mark.campaign
@pytest.mark.parametrize("cheat", range(3))
@pytest.mark.parametrize("owners", [(0, 1), (3, 1, 0)])
def test_a_bit_of_any_message(cheat: int, owners: tuple[int, ...]) -> None:
    stopped = altered_runs(range(1, 1000), cheat, owners, 4)
    print(
        f"party {cheat}, owners {owners}: {len(stopped)} messages, {sum(map(bool, stopped.values()))} runs stopped"
    )


@pytest.mark.parametrize("shuffled", [False, True])
def test_an_error_is_found_before_anything_is_opened(monkeypatch: pytest.MonkeyPatch, shuffled: bool) -> None:
    """In the first product, or the first row of a shuffle; not even whether lists are in order is opened."""
    openings = noted_openings(monkeypatch)

    def opened(trio: Trio, x: BitShare) -> Any:
        openings.append(trio.me)
        return open_bits(trio, x)

    monkeypatch.setattr(protocol, "open_bits", opened)
    size = 8 * (len(X) + len(Y))
    numbers: list[int] = []

    def note(count: int, peer: int, payload: bytes) -> None:
        if (peer == 0 and len(payload) == size) if shuffled else (peer == 1 and len(payload) != 32):
            numbers.append(count)

    ended((0, 1), [X, Y], cheat=2, alter=note)
    assert len(openings) > 6
    openings.clear()
    first = numbers[0]
    found = ended(
        (0, 1),
        [X, Y],
        cheat=2,
        alter=lambda count, peer, payload: flipped(payload) if count == first else None,
    )
    assert not openings
    assert all("nothing was opened at this party" in found[honest] for honest in (0, 1)), found


@pytest.mark.parametrize(("owners", "cheat"), [((0, 1), 1), ((0, 1), 2), ((3, 1), 2)])
def test_rows_returned_to_an_owner(owners: tuple[int, int], cheat: int) -> None:
    """By either holder, or its hash; the owner names the two of which one lies. They are the last messages to
    the owner."""
    sent: list[int] = []
    ended(
        owners,
        [X, Y],
        cheat=cheat,
        alter=lambda count, peer, _: sent.append(count) if peer == owners[0] else None,
    )

    def alter(count: int, peer: int, payload: bytes) -> bytes | None:
        return flipped(payload, len(payload) // 2) if count == sent[-1] else None

    found = ended(owners, [X, Y], cheat=cheat, alter=alter)
    assert "returned different parts of this party's records" in found[owners[0]], found
    assert all(not isinstance(found[party], str) for party in {0, 1, 2} - {cheat, *owners})


def test_the_salt_is_a_coin() -> None:
    """A contributor hears it from all three; with the same nonces keys differ from run to run, as fresh
    pairwise keys do."""
    salts, context = set(), context_of((0, 3))
    for _ in range(2):
        network = MemoryNetwork(4, session_id=bytes(32))
        found = network.run([lambda wire: common_salt(wire.fork("align"), context, bytes(32))] * 4)
        assert len(set(found)) == 1
        salts.add(found[0])
    assert len(salts) == 2
    told = ended(
        (0, 3), [X, Y], cheat=2, alter=lambda _, peer, payload: flipped(payload) if peer == 3 else None
    )
    assert "told this one different salts" in told[3], told


def test_some_messages() -> None:
    """A bit of an AND while lists are merged, of a shuffle, and of the opening: somebody honest stops, nobody
    is told otherwise. All messages: the campaign."""
    stopped = altered_runs((20, 90), 2, (0, 1), 0)
    assert len(stopped) == 2
