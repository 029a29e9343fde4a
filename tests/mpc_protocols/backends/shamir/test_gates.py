"""Products, openings and inputs of shared bits against plaintext; rounds and bytes to the unit; views; wrong
sizes."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from mpc_protocols.backends.shamir.circuits.gates import ShamirGates
from mpc_protocols.backends.shamir.sharing.field import Field, Scheme
from mpc_protocols.backends.shamir.sharing.mesh import Mesh, slices
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.errors import ProtocolAborted, StudyInvalid
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.wire import Wire
from tests.mpc_protocols.backends.shamir.mesh_run import run_mesh, share_words
from tests.trio import Trio
from tests.worlds.words import random_words

EVERY = range(3, 10)


@pytest.mark.parametrize("degree", [3, 4])
def test_the_field_is_a_field(degree: int) -> None:
    field = Field(degree)
    elements = range(1 << degree)
    for x, y, z in product(elements, repeat=3):
        assert field.product(x, y ^ z) == field.product(x, y) ^ field.product(x, z)
        assert field.product(x, field.product(y, z)) == field.product(field.product(x, y), z)
    for x in elements[1:]:
        assert field.product(x, field.inverse(x)) == 1
        assert sorted(field.product(x, y) for y in elements) == list(elements)


@pytest.mark.parametrize("parties", EVERY)
def test_the_bilinear_forms_are_the_products(parties: int) -> None:
    for me in range(parties):
        scheme = Scheme(me, parties)
        for x, y in product(range(1 << scheme.planes), repeat=2):
            found = 0
            for a, planes in enumerate(scheme.bilinear):
                for b in planes:
                    found ^= (x >> a & 1) & (y >> b & 1)
            assert found == scheme.opened(scheme.field.product(x, y))


@pytest.mark.parametrize("parties", EVERY)
def test_shares_of_a_set_s_key_open_to_it_and_are_zero_outside(parties: int) -> None:
    schemes = [Scheme(me, parties) for me in range(parties)]
    for members in combinations(range(parties), parties - schemes[0].threshold):
        values = [scheme.at_me(members) for scheme in schemes]
        assert all((value == 0) == (me not in members) for me, value in enumerate(values))
        opened = 0
        for scheme, value in zip(schemes, values, strict=True):
            opened ^= scheme.field.product(scheme.weight, value)
        assert opened == 1


@pytest.mark.parametrize("parties", [3, 5])
def test_t_shares_of_0_and_of_1_are_alike(parties: int) -> None:
    """A share is an XOR of words times f_A: a coalition misses one set's word, which flips the secret and no
    share of theirs."""
    schemes = [Scheme(me, parties) for me in range(parties)]
    for coalition in combinations(range(parties), schemes[0].threshold):
        missing = tuple(me for me in range(parties) if me not in coalition)
        assert missing not in {members for me in coalition for members in schemes[me].sets}
        assert all(schemes[me].at_me(missing) == 0 for me in coalition)


@pytest.mark.parametrize("parties", [2, 10])
def test_other_numbers_of_parties_are_refused(parties: int) -> None:
    with pytest.raises(StudyInvalid, match="3 to 9"):
        Scheme(0, parties)


@pytest.mark.parametrize("parties", EVERY)
@pytest.mark.parametrize("shape", [(1,), (5, 7), (2, 3, 65), (3, 9000)])
def test_and(parties: int, shape: tuple[int, ...]) -> None:
    """In both forms of openings: everybody to everybody, where rounds are dear, and by way of collectors."""
    x, y = random_words(*shape), random_words(*shape)
    xs, ys = share_words(x, parties), share_words(y, parties)
    for latency_bytes in (1 << 40, 1):
        ran = run_mesh(
            parties,
            lambda gates: gates.reveal_bits(gates.and_bits(xs[gates.mesh.me], ys[gates.mesh.me])),
            latency_bytes,
        )
        for found in ran.results:
            np.testing.assert_array_equal(found, x & y)
        if latency_bytes > 1:
            assert ran.rounds == 2
            assert ran.sent == [2 * 8 * x.size * (parties - 1)] * parties
        else:
            own = [8 * (place.stop - place.start) for place in slices(x.size, parties)]
            assert ran.rounds == 4
            assert ran.sent == [2 * (8 * x.size + (parties - 2) * mine) for mine in own]


@pytest.mark.parametrize("parties", [3, 6, 7, 9])
def test_public_bits_pairs_and_sums(parties: int) -> None:
    x, y, z = random_words(1, 4), random_words(3, 4), random_words(2, 4)
    xs, ys, zs = (share_words(of, parties) for of in (x, y, z))
    public = random_words(4)

    def body(gates: ShamirGates) -> list[np.ndarray]:
        me = gates.mesh.me
        pairs = gates.and_pairs([(xs[me], xs[me]), (zs[me], ys[me][:2])])
        terms = [
            (
                (slice(0, 2), slice(0, 4)),
                ys[me],
                gates.factor(Bits(*(np.stack([p, p]) for p in ys[me].parts))).parts,
            )
        ]
        shared = [
            gates.and_bits(xs[me], ys[me]),
            *pairs,
            gates.complement(xs[me]),
            gates.xor_public(ys[me], public),
            gates.and_sums((2, 4), terms),
            gates.and_bits(gates.public(public), xs[me]),
        ]
        return [gates.reveal_bits(of) for of in shared]

    total = np.bitwise_xor.reduce(y, axis=0)
    wanted = [x & y, x, z & y[:2], ~x, y ^ public, np.stack([total, total]), x & public]
    for found in run_mesh(parties, body).results:
        for mine, value in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(mine, value)


@pytest.mark.parametrize("parties", [3, 4, 5, 7, 9])
def test_zero_rows_open_which_vectors_are_zero(parties: int) -> None:
    bits = (np.random.default_rng().random((2, 40, 9)) < 0.1).astype(np.uint8)
    bits[0, 0] = bits[1, 39] = 0
    bits[0, 1] = 1
    shares = share_words(bits, parties)

    def body(gates: ShamirGates) -> np.ndarray:
        mine = shares[gates.mesh.me]
        rows = ((slice(s, s + 15), mine[:, s : s + 15]) for s in range(0, 40, 15))
        return gates.zero_rows((2, 40), rows)

    ran = run_mesh(parties, body)
    for found in ran.results:
        np.testing.assert_array_equal(found, (bits == 0).all(axis=2))
    assert ran.rounds == 1 and ran.sent == [16 * 80 * (parties - 1)] * parties


@pytest.mark.parametrize("parties", EVERY)
def test_owners_share_their_words(parties: int) -> None:
    words = [random_words(3, 5) for _ in range(parties)]
    owners = [0, parties - 1]

    def body(gates: ShamirGates) -> list[np.ndarray]:
        own = words[gates.mesh.me] if gates.mesh.me in owners else None
        return [gates.reveal_bits(of) for of in gates.inputs(owners, own, (3, 5))]

    ran = run_mesh(parties, body)
    for found in ran.results:
        np.testing.assert_array_equal(found, [words[owner] for owner in owners])
    assert ran.rounds == 3


@pytest.mark.parametrize("coalition", [(0, 1), (1, 3)])
def test_what_two_of_five_see_does_not_depend_on_the_inputs(coalition: tuple[int, int]) -> None:
    """An owner's two inputs, their AND: masked inputs, the coalition's shares of x, the parts that it gets.
    Two samples of 2^17 lanes each; a false alarm has probability 1e-9 for each pair of inputs."""
    lanes = 1 << 17

    def patterns(x: int, y: int) -> np.ndarray:
        words = [np.full(lanes // 64, -bit % 2**64, np.uint64) for bit in (x, y)]

        def body(gates: ShamirGates) -> Bits:
            own = words if gates.mesh.me == 4 else [None, None]
            shares = [gates.inputs([4], of, (lanes // 64,))[0] for of in own]
            gates.and_bits(*shares)
            return shares[0]

        ran = run_mesh(5, body)
        seen = [
            frame.payload
            for frame in sorted(ran.frames, key=lambda frame: (frame.sender, frame.clock))
            if frame.receiver == coalition[0] and frame.sender not in coalition
        ]
        assert len(seen) == 5
        seen += [part.tobytes() for me in coalition for part in ran.results[me].parts]
        bits = [np.unpackbits(np.frombuffer(of, np.uint8)).astype(np.int64) for of in seen]
        return np.bincount(sum(of << j for j, of in enumerate(bits)), minlength=1 << len(bits))

    reference = patterns(0, 0)
    for x, y in ((0, 1), (1, 0), (1, 1)):
        both = np.stack([reference, patterns(x, y)])
        assert stats.chi2_contingency(both[:, both.sum(axis=0) > 0]).pvalue > 1e-9


@pytest.mark.parametrize("change", [-8, 8])
@pytest.mark.parametrize("liar", [0, 4])
def test_a_part_of_another_size_aborts(change: int, liar: int) -> None:
    shares = share_words(random_words(6), 5)

    def party(wire: Wire) -> object:
        gates = ShamirGates(Mesh(wire))
        if wire.me == liar:
            for peer in gates.mesh.peers:
                wire.send(peer, bytes(48 + change))
            return [bytes(wire.receive(peer, 48)) for peer in gates.mesh.peers]
        return gates.and_bits(shares[wire.me], shares[wire.me])

    with pytest.raises(ProtocolAborted, match="bytes"):
        MemoryNetwork(5, 5).run([party] * 5)


def test_no_mask_repeats() -> None:
    """Two operations, the fork and another session with the same keys: all masked parts of zeros differ."""
    zeros = Bits(*(np.zeros(4, np.uint64) for _ in range(3)))
    seen: list[bytes] = []
    first = MemoryNetwork(5, 5)
    for _ in range(2):
        network = MemoryNetwork(
            5, 5, tap=lambda frame: seen.append(frame.payload) if frame.receiver == 0 else None
        )
        network.share_keys(first)

        def party(wire: Wire) -> None:
            gates = ShamirGates(Mesh(wire))
            for of in (gates, gates, ShamirGates(gates.mesh.fork("beside"))):
                of.and_bits(zeros, zeros)

        network.run([party] * 5)
    assert len(seen) == len(set(seen)) == 2 * 3 * 4


def keys_of(wire: Wire) -> dict[tuple[int, ...], bytes]:
    scheme = Scheme(wire.me, wire.computing)
    with pytest.raises(ValueError, match="key"):
        wire.set_key((wire.me,))
    with pytest.raises(ValueError, match="key"):
        wire.set_key(tuple(each for each in range(5) if each != wire.me)[:3])
    return {members: wire.set_key(members) for members in scheme.sets}


def test_five_processes_share_the_sets_keys(five: Trio) -> None:
    found = five.run(keys_of)
    assert [len(of) for of in found] == [6] * 5
    every = [key for of in found for key in of.items()]
    assert len(set(every)) == len({key for _, key in every}) == 10


def test_a_release_repeats_its_bits_and_nothing_else_does() -> None:
    def body(gates: ShamirGates) -> list[np.ndarray]:
        sources = [gates.release_bits(name) for name in (b"one", b"one", b"two")]
        return [gates.reveal_bits(of((2,))) for of in (*sources, sources[0])]

    for first, again, other, later in run_mesh(5, body).results:
        np.testing.assert_array_equal(first, again)
        assert not (first == other).any() and not (first == later).any()


@pytest.mark.parametrize("parties", EVERY)
@pytest.mark.parametrize("words", [1, 2, 20, 41])
def test_large_openings_go_by_way_of_collectors(parties: int, words: int) -> None:
    """The same words in 2 rounds; each party sends the others their slices and returns its own."""
    secret = random_words(words)
    shares = share_words(secret, parties)

    def body(gates: ShamirGates) -> bytes:
        return gates.reveal_bits(shares[gates.mesh.me]).tobytes()

    ran = run_mesh(parties, body, latency_bytes=0)
    assert set(ran.results) == {secret.tobytes()}
    own = [place.stop - place.start for place in slices(words, parties)]
    assert ran.rounds == 2 and sum(own) == words
    assert ran.sent == [8 * (words - mine + (parties - 1) * mine) for mine in own]
    assert run_mesh(parties, body).rounds == 1
