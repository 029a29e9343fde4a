"""The groups against published vectors and the group laws; hashing against its standard; permutations."""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mpc_protocols.psu.groups import ristretto
from mpc_protocols.psu.groups.group import Group, InvalidElement, has_duplicates
from mpc_protocols.psu.groups.hashing import digest, expander, names, row_names
from mpc_protocols.psu.groups.residues import RFC3526_2048, Residues, jacobi
from mpc_protocols.psu.groups.ristretto import Ristretto255
from mpc_protocols.psu.randomness import below, permutation
from tests.mpc_protocols.psu.owners import SAFE_PRIME, small_residues

MULTIPLES = [
    "e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76",
    "6a493210f7499cd17fecb510ae0cea23a110e8d5b901f8acadd3095c73a3b919",
    "94741f5d5d52755ece4f23f044ee27d5d1ea1e2bd196b462166b16152a9d0259",
    "da80862773358b466ffadfe0b3293ab3d9fd53c5ea6c955358f568322daf6a57",
    "e882b131016b52c1d3337080187cf768423efccbb517bb495ab812c4160ff44e",
    "f64746d3c92b13050ed8d80236a7f0007c3b3f962f5ba793d19a601ebb1df403",
    "44f53520926ec81fbd5a387845beb7df85a96a24ece18738bdcfa6a7822a176d",
    "903293d8f2287ebe10e2374dc1a53e0bc887e592699f02d077d5263cdd55601c",
    "02622ace8f7303a31cafc63f8fc48fdc16e1c8c8d234b2f0d6685282a9076031",
    "20706fd788b2720a1ed2a5dad4952b01f413bcf0e7564de8cdc816689e2db95f",
    "bce83f8ba5dd2fa572864c24ba1810f9522bc6004afe95877ac73241cafdab42",
    "e4549ee16b9aa03099ca208c67adafcafa4c3f3e4e5303de6026e3ca8ff84460",
    "aa52e000df2e16f55fb1032fc33bc42742dad6bd5a8fc0be0167436c5948501f",
    "46376b80f409b29dc2b5f6f0c52591990896e5716f41477cd30085ab7f10301e",
    "e0c418f7c8d9c4cdd7395b93ea124f3ad99021bb681dfc3302a9d99a2e53e64e",
]
"""RFC 9496 A.1: 1 to 15 times the generator."""

BAD_ENCODINGS = [
    "00ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "f3ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "01ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "ed57ffd8c914fb201471d1c3d245ce3c746fcbe63a3679d51b6a516ebebe0e20",
    "c34c4e1826e5d403b78e246e88aa051c36ccf0aafebffe137d148a2bf9104562",
    "c940e5a4404157cfb1628b108db051a8d439e1a421394ec4ebccb9ec92a8ac78",
    "47cfc5497c53dc8e61c91d17fd626ffb1c49e2bca94eed052281b510b1117a24",
    "f1c6165d33367351b0da8f6e4511010c68174a03b6581212c71c0e1d026c3c72",
    "87260f7a2f12495118360f02c26a470f450dadf34a413d21042b43b9d93e1309",
    "26948d35ca62e643e26a83177332e6b6afeb9d08e4268b650f1f5bbd8d81d371",
    "4eac077a713c57b4f4397629a4145982c661f48044dd3f96427d40b147d9742f",
    "de6a7b00deadc788eb6b6c8d20c0ae96c2f2019078fa604fee5b87d6e989ad7b",
    "bcab477be20861e01e4a0e295284146a510150d9817763caf1a6f4b422d67042",
    "2a292df7e32cababbd9de088d1d1abec9fc0440f637ed2fba145094dc14bea08",
    "f4a9e534fc0d216c44b218fa0c42d99635a0127ee2e53c712f70609649fdff22",
    "8268436f8c4126196cf64b3c7ddbda90746a378625f9813dd9b8457077256731",
    "2810e5cbc2cc4d4eece54f61c6f69758e289aa7ab440b3cbeaa21995c2f4232b",
    "3eb858e78f5a7254d8c9731174a94f76755fd3941c0ac93735c07ba14579630e",
    "a45fdc55c76448c049a1ab33f17023edfb2be3581e9c7aade8a6125215e04220",
    "d483fe813c6ba647ebbfd3ec41adca1c6130c2beeee9d9bf065c8d151c5f396e",
    "8a2e1d30050198c65a54483123960ccc38aef6848e1ec8f5f780e8523769ba32",
    "32888462f8b486c68ad7dd9610be5192bbeaf3b443951ac1a8118419d9fa097b",
    "227142501b9d4355ccba290404bde41575b037693cef1f438c47f8fbf35d1165",
    "5c37cc491da847cfeb9281d407efc41e15144c876e0170b499a96a22ed31e01e",
    "445425117cb8c90edcbc7c1cc0e74f747f2c1efa5630a967c64f287792a48a4b",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
]
"""RFC 9496 A.2: not canonical, negative, not on the curve."""

MAPPED = {
    "Ristretto is traditionally a short shot of espresso coffee": "3066f82a1a747d45120d1740f14358531a8f04bbffe6a819f86dfe50f44a0a46",
    "made with the normal amount of ground coffee but extracted with": "f26e5b6f7d362d2d2a94c5d0e7602cb4773c95a2e5c31a64f133189fa76ed61b",
    "about half the amount of water in the same amount of time": "006ccd2a9e6867e6a2c5cea83d3302cc9de128dd2a9a57dd8ee7b9d7ffe02826",
    "by using a finer grind.": "f8f0c87cf237953c5890aec3998169005dae3eca1fbb04548c635953c817f92a",
    "This produces a concentrated shot of coffee per volume.": "ae81e7dedf20a497e10c304a765c1767a42d6e06029758d2d7e8ef7cc4c41179",
    "Just pulling a normal shot short will produce a weaker shot": "e2705652ff9f5e44d3e841bf1c251cf7dddb77d140870d1ab2ed64f1a9ce8628",
    "and is not a Ristretto as some believe.": "80bd07262511cdde4863f8a7434cef696750681cb9510eea557088f76d9e5065",
}
"""RFC 9496 A.3: the map of SHA-512 of a text."""


def rows(group: Group, *encodings: str) -> np.ndarray:
    return group.parse(bytes.fromhex("".join(encodings)))


def test_multiples_of_the_generator() -> None:
    group = Ristretto255()
    base = group.parse(group.generator * 15)
    assert [r.tobytes().hex() for r in group.power_each(base, range(1, 16))] == MULTIPLES
    assert group.power(group.parse(group.generator), group.order - 1).tobytes() != bytes(32)
    assert [group.product(base[:k]).tobytes().hex() for k in range(1, 16)] == MULTIPLES


@pytest.mark.parametrize("bad", [*BAD_ENCODINGS, "00" * 32])
def test_bad_encodings_and_the_identity_are_refused(bad: str) -> None:
    group = Ristretto255()
    for position in (0, 1, 2):
        encodings = [MULTIPLES[0], MULTIPLES[1]]
        encodings.insert(position, bad)
        for operation in (group.check, lambda e: group.power(e, 5), lambda e: group.power_each(e, [1, 2, 3])):
            with pytest.raises(InvalidElement):
                operation(rows(group, *encodings))
    group.check(rows(group, *MULTIPLES))


def test_the_map_to_the_group() -> None:
    group = Ristretto255()
    uniform = np.frombuffer(
        b"".join(hashlib.sha512(text.encode()).digest() for text in MAPPED), np.uint8
    ).reshape(-1, 64)
    out = group.rows(len(MAPPED))
    group._map(uniform, out)
    assert [r.tobytes().hex() for r in out] == list(MAPPED.values())


def test_expand_message() -> None:
    """RFC 9380 K.3, and several blocks against a direct transcription of 5.3.1."""
    assert expander(b"QUUX-V01-CS02-with-expander-SHA512-256", 32)(b"").hex() == (
        "6b9a7312411d92f921c6f68ca0b6380730a1a4d982c507211a90964c394179ba"
    )
    dst, message, size = b"tag", b"message", 150
    prime = dst + bytes([len(dst)])
    first = hashlib.sha512(bytes(128) + message + size.to_bytes(2, "big") + b"\0" + prime).digest()
    blocks = [hashlib.sha512(first + b"\1" + prime).digest()]
    for i in (2, 3):
        blocks.append(
            hashlib.sha512(
                bytes(a ^ b for a, b in zip(first, blocks[-1], strict=True)) + bytes([i]) + prime
            ).digest()
        )
    assert expander(dst, size)(message) == b"".join(blocks)[:size]
    for bad in ((b"", 32), (bytes(256), 32), (b"x", 0), (b"x", 16321)):
        with pytest.raises(ValueError, match="expand_message_xmd takes"):
            expander(*bad)


def test_oprf_vector() -> None:
    """RFC 9497 A.1.1: hash-to-group with the RFC's tag, blinded and evaluated, from `docs/design/psu.md` 6."""
    group = Ristretto255()
    expand = expander(b"HashToGroup-OPRFV1-\x00-ristretto255-SHA512", 64)
    out = group.rows(1)
    group._map(np.frombuffer(expand(b"\x00"), np.uint8).reshape(1, 64), out)
    blind = int.from_bytes(
        bytes.fromhex("64d37aed22a27f5191de1c1d69fadb899d8862b58eb4220029e036ec4c1f6706"), "little"
    )
    key = int.from_bytes(
        bytes.fromhex("5ebcea5ee37023ccb9fc2d2019f9d7737be85591ae8652ffa9ef0f4d37063b0e"), "little"
    )
    blinded = group.power(out, blind)
    assert blinded.tobytes().hex() == "609a0ae68c15a3cf6903766461307e5c8bb2f95e7e6550e1ffa2dc99e412803c"
    assert (
        group.power(blinded, key).tobytes().hex()
        == "7ec6578ae5120958eb2db1745758ff379e77cb64fe77b0b2d8cc917ea0869c7e"
    )


@pytest.mark.parametrize("make", [Ristretto255, small_residues], ids=["ristretto255", "residues"])
def test_group_laws(make: type[Group]) -> None:
    group = make()
    elements = group.hash_many([b"a", b"b", b"c"], bytes(32))
    a, b = group.random_exponents(2)
    assert (group.power(group.power(elements, a), b) == group.power(group.power(elements, b), a)).all()
    assert (group.power(elements, a * b % group.order) == group.power(group.power(elements, a), b)).all()
    each = group.random_exponents(3)
    assert (group.power_each(group.power_each(elements, each), group.inverses(each)) == elements).all()
    total = group.product(group.power_each(elements[[0, 0]], [a, group.order - a]))
    assert (
        group.product(np.concatenate([total, elements[:1]])) == elements[:1]
    ).all()  # the identity as a factor
    assert (group.product(elements) == group.product(elements[[2, 0, 1]])).all()
    assert len(group.hash_many([], bytes(32))) == 0 and group.inverses([]) == []
    other = group.hash_many([b"a"], bytes(31) + b"\1")
    assert (other != elements[:1]).any() and (group.hash_many([b"a"], bytes(32)) == elements[:1]).all()
    for bad in (0, group.order):
        with pytest.raises(ValueError, match="between 1 and the group's order"):
            group.power(elements, bad)
    with pytest.raises(ValueError, match="exponents were given"):
        group.power_each(elements, [1])
    with pytest.raises(InvalidElement):
        group.parse(b"x" * (group.element_bytes + 1))
    with pytest.raises(InvalidElement):
        group.power(elements[:, :-1], 3)


def test_operations_are_counted() -> None:
    group = Ristretto255()
    elements = group.hash_many([b"%d" % i for i in range(5)], bytes(32))
    group.product(group.power_each(group.power(elements, 7), [1, 2, 3, 4, 5]))
    assert (group.operations.hashes, group.operations.powers, group.operations.products) == (5, 10, 5)


def test_threads_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in many small items on three threads, an invalid element in the last one."""
    one = Ristretto255(threads=1)
    elements = one.hash_many([b"%d" % i for i in range(50)], bytes(32))
    want = one.power(elements, 12345), one.power_each(elements, range(1, 51)), one.product(elements)
    monkeypatch.setattr(ristretto, "WORK_ITEM", 4)
    three = Ristretto255(threads=3)
    assert (three.hash_many([b"%d" % i for i in range(50)], bytes(32)) == elements).all()
    got = three.power(elements, 12345), three.power_each(elements, range(1, 51)), three.product(elements)
    assert all((g == w).all() for g, w in zip(got, want, strict=True))
    broken = elements.copy()
    broken[49] = 0xFF
    for operation in (three.check, lambda e: three.power(e, 3), three.product):
        with pytest.raises(InvalidElement):
            operation(broken)


def test_residues_refuse_what_is_no_residue() -> None:
    group = small_residues()
    p, size = SAFE_PRIME, group.element_bytes
    squares = {x * x % 23 for x in range(1, 23)}
    assert [jacobi(a, 23) for a in range(23)] == [0] + [1 if a in squares else -1 for a in range(1, 23)]
    for bad in (0, 1, p - 1, p, p + 4, group.order * 0 + next(a for a in range(2, 50) if jacobi(a, p) == -1)):
        with pytest.raises(InvalidElement):
            group.check(group.parse(bad.to_bytes(size, "big")))
    assert (
        Residues().element_bytes == 256
        and Residues().prime == RFC3526_2048
        and RFC3526_2048.bit_length() == 2048
    )
    assert pow(4, RFC3526_2048 >> 1, RFC3526_2048) == 1  # the generator's order divides q, a prime
    with pytest.raises(ValueError, match="safe prime"):
        Residues(29)


def test_duplicates() -> None:
    rng = np.random.default_rng(5)
    rows32 = rng.integers(0, 256, (200, 32), dtype=np.uint8)
    assert not has_duplicates(rows32) and not has_duplicates(rows32[:0]) and not has_duplicates(rows32[:1])
    rows32[150, :8] = rows32[20, :8]  # the same prefix only
    assert not has_duplicates(rows32)
    rows32[170] = rows32[20]
    assert has_duplicates(rows32)


def test_hashes_are_separated() -> None:
    assert (
        len({digest(b"a", b"xy"), digest(b"b", b"xy"), digest(b"a", b"x", b"y"), digest(b"a", b"", b"xy")})
        == 4
    )
    assert (
        len({names(sid, domain, [b"v"])[0] for sid in (bytes(32), b"\1" * 32) for domain in (b"d", b"e")})
        == 4
    )
    values = np.arange(64, dtype=np.uint8).reshape(2, 32)
    assert (
        row_names(bytes(32), b"d", values)
        == names(bytes(32), b"d", [values[0].tobytes(), values[1].tobytes()])
    ).all()


def test_permutations_are_uniform() -> None:
    """24 orders of 4 elements, 2,400 draws: chi-square below its 1 - 10^-6 quantile, 68.9 for 23 degrees of
    freedom."""
    counts = dict.fromkeys(itertools.permutations(range(4)), 0)
    for _ in range(2400):
        counts[tuple(permutation(4).tolist())] += 1
    assert sum((c - 100) ** 2 / 100 for c in counts.values()) < 68.9
    assert permutation(0).tolist() == [] and sorted(permutation(1000).tolist()) == list(range(1000))


def test_below() -> None:
    """Rejection: 6 and 7 of three bits are drawn again."""
    draws = iter([b"\x06", b"\xff", b"\x05"])
    assert below(6, lambda n: next(draws)) == 5
    assert {below(3) for _ in range(200)} == {
        0,
        1,
        2,
    }  # misses a value with probability below 3 (2/3)^200 < 10^-34
    assert math.isclose(below(1), 0)
    with pytest.raises(ValueError, match="no integer below 0"):
        below(0)


def test_the_tests_own_prime() -> None:
    """Fermat tests to several bases of p and (p - 1) / 2, as the search for one makes them."""
    assert SAFE_PRIME >> 256 == 1 and SAFE_PRIME % 4 == 3
    assert all(pow(b, n - 1, n) == 1 for n in (SAFE_PRIME, SAFE_PRIME >> 1) for b in (2, 3, 5, 7, 11))


def test_the_library_leaves_no_file(tmp_path: Path) -> None:
    """Of a process that computes in ristretto255; one that aligns without the group does not even load it."""
    program = (
        "import os, sys; import mpc_protocols.psu.align; assert 'rbcl' not in sys.modules; "
        "from mpc_protocols.psu.groups.ristretto import Ristretto255; hashed = Ristretto255(1).hash_many([b'x'], bytes(32)); "
        "print(len(hashed), flush=True); os._exit(0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "") and not list(tmp_path.iterdir())
