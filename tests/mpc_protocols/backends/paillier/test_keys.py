"""Keys and ciphertexts against `phe`, and what is refused."""

from __future__ import annotations

import secrets

import gmpy2
import pytest
from phe.paillier import PaillierPrivateKey, PaillierPublicKey

from mpc_protocols.backends.paillier.backend import BACKEND, KEY_BITS, PaillierOptions
from mpc_protocols.backends.paillier.keys import WINDOWS, Encryption, PrivateKey, PublicKey
from mpc_protocols.errors import ProtocolAborted
from tests.mpc_protocols.backends.paillier.conftest import BITS

SIZE = BITS // 8 - 1


def oracle(key: PrivateKey) -> PaillierPrivateKey:
    """`phe`'s key from the factors alone."""
    p = int(key._parts[0][0])
    n = int(key.public.n)
    return PaillierPrivateKey(PaillierPublicKey(n), p, n // p)


def plaintexts(count: int) -> list[bytes]:
    drawn = [secrets.token_bytes(SIZE) for _ in range(count)]
    return [bytes(SIZE), b"\xff" * SIZE, *drawn]


@pytest.mark.parametrize("expected", [1, 30, 400, 10**6])
def test_phe_decrypts_what_is_encrypted_with_any_table(key: PrivateKey, expected: int) -> None:
    encryption, known = Encryption(key.public), oracle(key)
    encryption.expect(expected)
    values = plaintexts(3)
    for value, ciphertext in zip(values, encryption.encrypt(values), strict=True):
        assert known.raw_decrypt(int(ciphertext)) == int.from_bytes(value, "little")


def test_tables_grow_with_what_they_are_for(key: PrivateKey) -> None:
    encryption, windows = Encryption(key.public), []
    for plaintexts in (0, 1, 3, 2, 100, 10_000, 1):
        encryption.expect(plaintexts)
        windows.append(encryption._window)
    assert windows == sorted(windows) and set(windows) == set(WINDOWS)


def test_what_phe_encrypts_is_decrypted(key: PrivateKey) -> None:
    values, public = plaintexts(4), PaillierPublicKey(int(key.public.n))
    ciphertexts = [gmpy2.mpz(public.raw_encrypt(int.from_bytes(value, "little"))) for value in values]
    assert key.decrypt(ciphertexts, SIZE) == values


def test_sums_are_those_of_phe(key: PrivateKey) -> None:
    [left], [right] = plaintexts(0)[1:], [secrets.token_bytes(SIZE)]
    encryption = Encryption(key.public)
    total = key.public.add(*encryption.encrypt([left, right]))
    expected = int.from_bytes(left, "little") + int.from_bytes(right, "little")
    assert oracle(key).raw_decrypt(int(total)) == expected % int(key.public.n)


def test_a_plaintexts_factor_is_as_long_for_no_counts_as_for_many(key: PrivateKey) -> None:
    """Whoever waits for ciphertexts must not see by the time how many of a custodian's cells are empty."""
    encryption = Encryption(key.public)
    packed = [bytes(SIZE), b"\1" + bytes(SIZE - 1), b"\xff" * (SIZE // 2), b"\xff" * SIZE]
    assert {-(-encryption._lifted(plaintext).bit_length() // 64) for plaintext in packed} == {2 * BITS // 64}


def test_equal_plaintexts_have_different_ciphertexts(key: PrivateKey) -> None:
    encryption = Encryption(key.public)
    assert len({*encryption.encrypt([bytes(SIZE)] * 20), *encryption.encrypt([bytes(SIZE)] * 20)}) == 40


def test_keys_are_what_the_encryption_rests_on(key: PrivateKey) -> None:
    (p, _, _), (q, _, _) = key._parts
    assert key.public.bits == BITS and p % 4 == q % 4 == 3 and gmpy2.gcd(p - 1, q - 1) == 2
    assert gmpy2.is_prime(p) and gmpy2.is_prime(q) and p != q
    base = key.public.base()
    order = (p - 1) * (q - 1) // 2  # of the n-th residues modulo n^2
    assert gmpy2.powmod(base, order, key.public.square) == 1 and gmpy2.jacobi(base, key.public.n) == 1
    assert PublicKey(int(key.public.n)).base() == base


def test_a_fresh_key_every_time(key: PrivateKey) -> None:
    assert gmpy2.gcd(PrivateKey.generate(512).public.n, PrivateKey.generate(512).public.n) == 1


def test_public_keys_travel(key: PrivateKey) -> None:
    encoded = key.public.to_bytes()
    assert len(encoded) == BITS // 8 and PublicKey.parse(encoded, BITS).n == key.public.n


def test_what_is_no_key_is_refused(key: PrivateKey) -> None:
    blum = gmpy2.next_prime(gmpy2.mpz(1) << BITS - 1)
    while blum % 4 != 1:
        blum = gmpy2.next_prime(blum)
    half = gmpy2.next_prime(gmpy2.mpz(3) << BITS // 2 - 2)
    for n in (0, key.public.n >> 1, key.public.n + 2, blum, half**2):
        with pytest.raises(ProtocolAborted, match="too short, a prime, a power or has a small factor"):
            PublicKey.parse(int(n).to_bytes(BITS // 8, "big"), BITS)


@pytest.mark.parametrize("factor", [3, 7, 257, 65_521])
def test_a_small_factor_is_seen(factor: int) -> None:
    """n = f p with a prime p, of the right length and residue: who made it reads every residue modulo f."""
    prime = gmpy2.next_prime((gmpy2.mpz(3) << BITS - 2) // factor)
    while factor * prime % 4 != 1:
        prime = gmpy2.next_prime(prime)
    n = int(factor * prime)
    assert n.bit_length() == BITS
    with pytest.raises(ProtocolAborted, match="too short, a prime, a power or has a small factor"):
        PublicKey.parse(n.to_bytes(BITS // 8, "big"), BITS)


def test_what_is_no_ciphertext_is_refused(key: PrivateKey) -> None:
    public, (p, _, _) = key.public, key._parts[0]
    good = Encryption(public).encrypt([bytes(SIZE)])[0]
    size = public.ciphertext_bytes
    assert public.decode(public.encode([good, good]), 3) == [good, good]
    for bad in (0, public.square, (1 << 8 * size) - 1, public.n, p, good * p % public.square):
        with pytest.raises(ProtocolAborted, match="Party 3 sent a number that is no ciphertext"):
            public.decode(public.encode([good]) + int(bad).to_bytes(size, "big") + public.encode([good]), 3)


def test_studies_cannot_choose_a_short_key() -> None:
    assert set(PaillierOptions.options()) == {"input"} and KEY_BITS == 3072
    assert BACKEND._key_bits == KEY_BITS
