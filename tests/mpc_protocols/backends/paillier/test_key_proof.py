"""Who made a key badly cannot prove it well made; a proof is of one key, run and owner."""

from __future__ import annotations

from collections.abc import Sequence

import gmpy2
import pytest

from mpc_protocols.backends.paillier import key_proof
from mpc_protocols.backends.paillier.backend import Paillier
from mpc_protocols.backends.paillier.key_proof import check, prove
from mpc_protocols.backends.paillier.keys import PrivateKey, PublicKey
from mpc_protocols.backends.paillier.packing import key_bytes, proof_bytes
from mpc_protocols.errors import PeerLost, ProtocolAborted
from mpc_protocols.functionality import unobserved
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.wire import Wire
from runner.review.audit.subjects.in_memory.bent_wire import Way, bent
from runner.review.conformance.guards import Recorder
from tests.mpc_protocols.backends.paillier.conftest import BITS
from tests.worlds.tables import CONTRIBUTORS, PARTS, counter, facts

SESSION = bytes(range(32))
REFUSED = (
    "Party 1 has not proved that its public key is a product of different primes above 2\\^16; stop the run."
)


def prime(bits: int, of: Sequence[gmpy2.mpz] = (), step: int = 2) -> gmpy2.mpz:
    """A prime of so many bits that is 1 modulo `step` and none of these."""
    found = gmpy2.mpz(3) << bits - 2
    found += -found % step + 1
    while not gmpy2.is_prime(found) or found in of:
        found += step
    return found


def best_proof(n: int, factors: Sequence[gmpy2.mpz]) -> tuple[PublicKey, bytes]:
    """What somebody who knows the distinct prime factors of n can say: roots modulo each of them, where
    raising to n is a bijection, put together by the Chinese remainder theorem, and lifted to powers of p
    where it is not (1 else)."""
    key, size, said = PublicKey(n), key_bytes(BITS), b""
    for number in key_proof._challenges(key, SESSION, 1):
        root, modulus = gmpy2.mpz(0), gmpy2.mpz(1)
        for factor in factors:
            exponent = gmpy2.gcd(key.n, factor - 1) == 1 and gmpy2.invert(key.n, factor - 1)
            part = gmpy2.powmod(number, exponent, factor) if exponent else gmpy2.mpz(1)
            root += modulus * ((part - root) * gmpy2.invert(modulus, factor) % factor)
            modulus *= factor
        said += int(root % key.n).to_bytes(size, "big")
    return key, said


def test_an_honest_key_is_proved(key: PrivateKey) -> None:
    proof = prove(key, SESSION, 1)
    assert len(proof) == proof_bytes(BITS) == 8 * BITS // 8
    check(key.public, proof, SESSION, 1)


def test_a_proof_is_of_one_key_run_and_owner(key: PrivateKey) -> None:
    proof, other = prove(key, SESSION, 1), PrivateKey.generate(BITS).public
    with pytest.raises(ProtocolAborted, match=REFUSED):
        check(other, proof, SESSION, 1)
    with pytest.raises(ProtocolAborted, match=REFUSED):
        check(key.public, proof, bytes(32), 1)
    with pytest.raises(ProtocolAborted, match=REFUSED.replace("1 has", "0 has")):
        check(key.public, proof, SESSION, 0)


@pytest.mark.parametrize("root", range(8))
def test_each_root_is_looked_at(key: PrivateKey, root: int) -> None:
    proof = bytearray(prove(key, SESSION, 1))
    proof[(root + 1) * key_bytes(BITS) - 1] ^= 1
    with pytest.raises(ProtocolAborted, match=REFUSED):
        check(key.public, bytes(proof), SESSION, 1)


def test_roots_are_below_n(key: PrivateKey) -> None:
    """n + s and n - s are other encodings or roots of other numbers: one proof, one encoding."""
    size, proof = key_bytes(BITS), prove(key, SESSION, 1)
    first = int.from_bytes(proof[:size], "big")
    for other in (0, int(key.public.n) - first, first + int(key.public.n)):
        if other < 1 << 8 * size:
            with pytest.raises(ProtocolAborted, match=REFUSED):
                check(key.public, other.to_bytes(size, "big") + proof[size:], SESSION, 1)


def test_a_square_factor_cannot_be_proved() -> None:
    """n = p^2 q: of no use to raise to n, though no factor is small."""
    p = prime(BITS // 4)
    q = prime(BITS // 2, step=4)
    key, proof = best_proof(int(p * p * q), [p, q])
    with pytest.raises(ProtocolAborted, match=REFUSED):
        check(key, proof, SESSION, 1)


def test_a_factor_that_divides_another_one_minus_1_cannot_be_proved() -> None:
    """n = p q with q = 1 modulo p: as 1 + n X is no unit of its own, a ciphertext has several plaintexts."""
    p = prime(BITS // 4)
    q = prime(3 * BITS // 4, step=int(2 * p))
    key, proof = best_proof(int(p * q), [p, q])
    with pytest.raises(ProtocolAborted, match=REFUSED):
        check(key, proof, SESSION, 1)


def test_many_primes_are_proved_for_all_the_proof_says() -> None:
    """It does not cover their number: known, and said in claims."""
    factors: list[gmpy2.mpz] = []
    while len(factors) < 4:
        factors.append(prime(BITS // 4, factors))
    n = int(gmpy2.mpz(1))
    for factor in factors:
        n *= int(factor)
    key, proof = best_proof(n, factors)
    check(key, proof, SESSION, 1)


def test_challenges_that_share_a_divisor_with_n_are_refused(key: PrivateKey) -> None:
    p = int(key._parts[0][0])
    assert not key.public.are_roots([p], [pow(p, int(key.public.n), int(key.public.n))])


@pytest.mark.parametrize("victim", [0, 2, 3], ids=["aggregator", "contributor", "last contributor"])
def test_everybody_who_is_handed_a_key_looks_at_its_proof(victim: int) -> None:
    """The leader's first message to one party alters one bit of one root: that party refuses."""
    tables = [*PARTS[:2], *CONTRIBUTORS[:2]]
    size = key_bytes(BITS) + proof_bytes(BITS)

    def spoil(way: Way, number: int, payload: bytes) -> bytes:
        spoilt = way == (1, victim) and len(payload) == size
        return payload[:-1] + bytes([payload[-1] ^ 1]) if spoilt else payload

    def party(plain: Wire) -> str:
        wire = bent(plain, spoil)
        of, mine, backend = facts(session=SESSION), counter(tables[wire.me]), Paillier(BITS)
        try:
            if wire.me == of.leader:
                with backend.lead(wire, of, mine, Recorder(), unobserved):
                    return ""
            if wire.me < 2:
                backend.follow(wire, of, mine, Recorder(), unobserved)
            else:
                backend.contribute(wire, of, mine)
        except (ProtocolAborted, PeerLost) as error:
            return error.sentence
        return ""

    found = MemoryNetwork(4, 2).run([party] * 4)
    assert found[victim].startswith("Party 1 has not proved")
