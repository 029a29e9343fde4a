"""A bundle opens for whom it is sealed, nowhere else, and not when one byte of it differs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from mpc_protocols.backends.bundles.bundle import (
    MAGIC,
    Bundle,
    Header,
    Letter,
    content_of,
    file_bytes,
    letters_of,
    parse,
    part_bytes,
    seal_bundle,
)
from mpc_protocols.backends.bundles.sealing import ReceiverSecret, seal, verifies
from mpc_protocols.errors import ProtocolAborted

RECEIVERS = [ReceiverSecret.generate() for _ in range(2)]
SIGNER = Ed25519PrivateKey.generate()
COUNTS = np.array([0, 5, 7, 2**31 - 1, 1], np.int64)
HEADER = Header(
    b"s" * 32,
    b"l" * 32,
    len(COUNTS),
    "clinic",
    b"k" * 32,
    b"i" * 32,
    ("north", "south"),
    datetime(2026, 11, 1, tzinfo=UTC),
    datetime(2027, 1, 1, tzinfo=UTC),
)
LETTERS: tuple[Letter, Letter] = ("a", "b")


def sealed(header: Header = HEADER, counts: np.ndarray = COUNTS) -> Bundle:
    return seal_bundle(header, counts, [secret.public for secret in RECEIVERS], SIGNER.sign)


def parts_of(bundle: Bundle) -> list[np.ndarray]:
    return [
        content_of(bundle.header, letter, bundle.opened(letter, secret))
        for letter, secret in zip(LETTERS, RECEIVERS, strict=True)
    ]


def good(bundle: Bundle) -> bool:
    """What every receiver checks before it keeps a bundle, as far as the file alone tells."""
    return verifies(SIGNER.public_key().public_bytes_raw(), bundle.signature, bundle.signed)


def test_a_bundle_survives_its_file_and_its_parts_add_up_to_the_counts() -> None:
    bundle = sealed()
    read = parse(bundle.to_bytes())
    assert read == bundle and read.header == HEADER and good(read)
    first, second = parts_of(read)
    assert np.array_equal(first + second, COUNTS.astype(np.uint32))
    assert {letter: len(part) for letter, part in read.parts.items()} == part_bytes(HEADER.cells)
    assert len(bundle.to_bytes()) <= file_bytes(HEADER.cells)


def test_the_same_table_twice_gives_two_bundles_that_share_nothing() -> None:
    one, other = sealed(), sealed()
    assert one.name != other.name and not set(one.parts.values()) & set(other.parts.values())
    assert not np.array_equal(parts_of(one)[0], parts_of(other)[0])


CONTENT = sealed().to_bytes()


@pytest.mark.parametrize("start", range(0, len(CONTENT), 64))
def test_every_flipped_byte_is_noticed(start: int) -> None:
    for place in range(start, min(start + 64, len(CONTENT))):
        bad = bytearray(CONTENT)
        bad[place] ^= 1 << place % 8
        try:
            bundle = parse(bytes(bad))
        except ProtocolAborted:
            continue
        assert not good(bundle), place


def test_a_file_that_is_cut_or_lengthened_is_noticed() -> None:
    for size in [*range(0, 700, 7), len(CONTENT) - 1]:
        with pytest.raises(ProtocolAborted):
            parse(CONTENT[:size])
    with pytest.raises(ProtocolAborted, match="longer"):
        parse(CONTENT + b"\0")


def test_no_part_opens_in_another_place_or_bundle() -> None:
    bundle, other = sealed(), sealed(replace(HEADER, id=b"j" * 32))
    swapped = replace(bundle, parts={"a": bundle.parts["b"], "b": bundle.parts["a"]})
    with pytest.raises(ProtocolAborted, match="damaged, or belongs to another"):
        parse(swapped.to_bytes())
    with pytest.raises(ProtocolAborted, match="damaged, or belongs to another"):
        parse(replace(bundle, parts={**bundle.parts, "a": other.parts["a"]}).to_bytes())
    for moved in (swapped, replace(bundle, parts=other.parts)):
        for letter, secret in zip(LETTERS, RECEIVERS, strict=True):
            with pytest.raises(ProtocolAborted, match="not sealed to the key"):
                moved.opened(letter, secret)


def test_only_its_receiver_opens_a_part() -> None:
    bundle, stranger = sealed(), ReceiverSecret.generate()
    for letter, secret in (("a", RECEIVERS[1]), ("b", RECEIVERS[0]), ("a", stranger), ("b", stranger)):
        with pytest.raises(ProtocolAborted, match="not sealed to the key"):
            bundle.opened("a" if letter == "a" else "b", secret)
    closed = RECEIVERS[0].signing_only()
    assert not closed.opens and closed.public.signing == RECEIVERS[0].public.signing
    with pytest.raises(ProtocolAborted, match="not sealed to the key"):
        bundle.opened("a", closed)


def test_a_file_for_one_party_holds_its_part_only() -> None:
    bundle = sealed()
    for receiver, letters in (("north", ("a",)), ("south", ("b",)), ("west", ())):
        own = parse(bundle.for_receiver(receiver).to_bytes())
        assert tuple(own.parts) == letters == letters_of(own.header, receiver)
        assert own.name == bundle.name and good(own)


@pytest.mark.parametrize(
    "encoded",
    [
        b"",
        b"[]",
        b"null",
        b"{}",
        HEADER.to_bytes() + b" ",
        HEADER.to_bytes().replace(b'"runs":1', b'"runs":1,"more":2'),
        HEADER.to_bytes().replace(b'"runs":1', b'"runs":true'),
        HEADER.to_bytes().replace(b'"cells":5', b'"cells":5.0'),
        HEADER.to_bytes().replace(b'"cells":5', b'"cells":-5'),
        HEADER.to_bytes().replace(b"73" * 32, b"7S" * 32),
        HEADER.to_bytes().replace(b"2027-01-01T", b"2027-13-01T"),
        HEADER.to_bytes().replace(b"2027-01-01T", b"9500-01-01T"),
        HEADER.to_bytes().replace(b'["north","south"]', b'["north"]'),
        b"[" * 3000,
    ],
)
def test_a_header_has_one_encoding(encoded: bytes) -> None:
    with pytest.raises(ProtocolAborted, match="header cannot be read"):
        Header.from_bytes(encoded)


def test_a_length_in_a_file_is_never_believed() -> None:
    for size in (2**32 - 1, 5000):
        with pytest.raises(ProtocolAborted):
            parse(MAGIC + size.to_bytes(4, "big") + CONTENT[len(MAGIC) + 4 :])


def test_who_leaves_a_bundle_out_gets_the_same_sum_or_noise() -> None:
    """Three bundles; one of the two receivers of the last one drops its part."""
    counts = [np.arange(5) + 10 * number for number in range(3)]
    bundles = [sealed(replace(HEADER, id=bytes([number]) * 32), counts[number]) for number in range(3)]
    parts = [parts_of(bundle) for bundle in bundles]
    agreed = np.sum(counts, axis=0).astype(np.uint32)
    for dropped in (0, 1):
        opened = agreed - parts[2][dropped]
        assert np.array_equal(
            opened + parts[2][dropped], agreed
        )  # with what it holds: the agreed sum, no other group's
        assert not np.array_equal(opened, agreed - counts[2].astype(np.uint32))


def test_each_part_alone_is_uniform() -> None:
    """Chi-square of the low bytes of both parts, 2^18 draws each over 256 values. False alarm: a statistic
    above 255 + 9 sqrt(510), 1e-13 each."""
    cells = 1 << 18
    header = replace(HEADER, cells=cells)
    for part in parts_of(sealed(header, np.full(cells, 12345))):
        observed = np.bincount(part & 255, minlength=256)
        expected = cells / 256
        assert ((observed - expected) ** 2 / expected).sum() < 255 + 9 * 510**0.5


def test_a_receiver_key_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"."):
        seal(b"text", replace(RECEIVERS[0].public, sealing=b"short"), b"info")
    assert not verifies(b"short", b"", b"") and not verifies(b"\0" * 32, b"\0" * 64, b"message")
