"""Proofs of one exponent: the RFC's vectors, completeness, soundness, and why the lists must enter the
weights."""

from __future__ import annotations

import numpy as np
import pytest

from mpc_protocols.psu.groups import dleq
from mpc_protocols.psu.groups.group import Elements, Group
from mpc_protocols.psu.groups.residues import Residues
from mpc_protocols.psu.groups.ristretto import Ristretto255
from tests.mpc_protocols.psu.owners import safe_prime, small_residues

KEY = "e6f73f344b79b379f1a0dd37e07ff62e38d9f71345ce62ae3a9bc60b04ccd909"
PUBLIC = "c803e2cc6b05fc15064549b5920659ca4a77b2cca6f04f6b357009335476ad4e"
RFC_CONTEXT = b"OPRFV1-\x01-ristretto255-SHA512"
VECTORS = [
    (
        ["863f330cc1a1259ed5a5998a23acfd37fb4351a793a5b3c090b642ddc439b945"],
        ["aa8fa048764d5623868679402ff6108d2521884fa138cd7f9c7669a9a014267e"],
        "222a5e897cf59db8145db8d16e597e8facb80ae7d4e26d9881aa6f61d645fc0e",
        "ddef93772692e535d1a53903db24367355cc2cc78de93b3be5a8ffcc6985dd066d4346421d17bf5117a2a1ff0fcb2a759f58a539dfbe857a40bce4cf49ec600d",
    ),
    (
        ["cc0b2a350101881d8a4cba4c80241d74fb7dcbfde4a61fde2f91443c2bf9ef0c"],
        ["60a59a57208d48aca71e9e850d22674b611f752bed48b36f7a91b372bd7ad468"],
        "222a5e897cf59db8145db8d16e597e8facb80ae7d4e26d9881aa6f61d645fc0e",
        "401a0da6264f8cf45bb2f5264bc31e109155600babb3cd4e5af7d181a2c9dc0a67154fabf031fd936051dec80b0b6ae29c9503493dde7393b722eafdf5a50b02",
    ),
    (
        [
            "863f330cc1a1259ed5a5998a23acfd37fb4351a793a5b3c090b642ddc439b945",
            "90a0145ea9da29254c3a56be4fe185465ebb3bf2a1801f7124bbbadac751e654",
        ],
        [
            "aa8fa048764d5623868679402ff6108d2521884fa138cd7f9c7669a9a014267e",
            "cc5ac221950a49ceaa73c8db41b82c20372a4c8d63e5dded2db920b7eee36a2a",
        ],
        "419c4f4f5052c53c45f3da494d2b67b220d02118e0857cdbcf037f9ea84bbe0c",
        "cc203910175d786927eeb44ea847328047892ddf8590e723c37205cb74600b0a5ab5337c8eb4ceae0494c2cf89529dcf94572ed267473d567aeed6ab873dee08",
    ),
]
"""RFC 9497 A.1.2: blinded elements, evaluations, random scalar, proof."""


def scalar(text: str) -> int:
    return int.from_bytes(bytes.fromhex(text), "little")


@pytest.mark.parametrize("vector", VECTORS, ids=["one", "another", "batch of two"])
def test_rfc_9497(vector: tuple[list[str], list[str], str, str]) -> None:
    group = Ristretto255()
    inputs, outputs = (group.parse(bytes.fromhex("".join(part))) for part in vector[:2])
    public = bytes.fromhex(PUBLIC)
    proof = dleq._generate(
        group, scalar(KEY), group.generator, public, inputs, outputs, RFC_CONTEXT, scalar(vector[2])
    )
    assert proof.hex() == vector[3]
    assert dleq._verify(group, group.generator, public, inputs, outputs, RFC_CONTEXT, proof)


def instance(group: Group, count: int) -> tuple[int, bytes, Elements, Elements]:
    key = group.random_exponents(1)[0]
    inputs = group.hash_many([b"%d" % i for i in range(count)], bytes(32))
    return key, group.power(group.parse(group.generator), key).tobytes(), inputs, group.power(inputs, key)


@pytest.mark.parametrize("make", [Ristretto255, small_residues], ids=["ristretto255", "residues"])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_true_statements_are_accepted(make: type[Group], count: int) -> None:
    group = make()
    key, public, inputs, outputs = instance(group, count)
    proof = dleq.prove(group, key, group.generator, public, inputs, outputs, b"context")
    assert len(proof) == dleq.proof_bytes(group)
    assert dleq.verify(group, group.generator, public, inputs, outputs, b"context", proof)


def test_false_statements_are_refused() -> None:
    """One wrong element among a thousand, another key, swapped order, another context, a changed or malformed
    proof."""
    group = Ristretto255()
    key, public, inputs, outputs = instance(group, 1000)
    proof = dleq.prove(group, key, group.generator, public, inputs, outputs, b"context")
    wrong = outputs.copy()
    wrong[500] = inputs[500]
    swapped = outputs.copy()
    swapped[[3, 4]] = swapped[[4, 3]]
    invalid = outputs.copy()
    invalid[7] = 0xFF
    other = group.power(group.parse(group.generator), key + 1).tobytes()
    check = lambda **c: dleq.verify(  # noqa: E731
        group,
        c.get("base", group.generator),
        c.get("public", public),
        c.get("inputs", inputs),
        c.get("outputs", outputs),
        c.get("context", b"context"),
        c.get("proof", proof),
    )
    assert check()
    for changes in (
        {"outputs": wrong},
        {"outputs": swapped},
        {"outputs": invalid},
        {"public": other},
        {"base": other},
        {"context": b"another run"},
        {"public": bytes(32)},
        {"outputs": outputs[:-1]},
        {"proof": proof[:-1]},
        {"proof": bytes(64)},
        {"proof": b"\xff" * 64},
        {"proof": proof[:40] + bytes([proof[40] ^ 1]) + proof[41:]},
        {"proof": bytes([proof[0] ^ 1]) + proof[1:]},
    ):
        assert not check(**changes), changes.keys()
    # proven honestly for the wrong list: the statement is false, so no challenge fits
    lie = dleq.prove(group, key, group.generator, public, inputs, wrong, b"context")
    assert not check(outputs=wrong, proof=lie)


def test_weights_of_single_pairs_can_be_solved_for() -> None:
    """Why the lists enter the context. In the RFC's form d_0 depends on the first pair only and d_1 on the
    second, so a prover finds errors e, f with d_0 e + d_1 f = 0 by a birthday search, here 8,000 hashes in a
    group of order above 2^19 (it fails with probability e^-30); with n pairs the search becomes a k-sum. In
    the bound form the same list is refused.
    """
    group = Residues(safe_prime(20))
    key, public, inputs, outputs = instance(group, 2)
    shifts = group.power_each(group.parse(group.generator * 4000), range(1, 4001))

    def shifted(position: int, e: int) -> Elements:
        lie = outputs.copy()
        lie[position] = group.product(np.concatenate([outputs[[position]], shifts[[e - 1]]]))[0]
        return lie

    def term(position: int, e: int) -> int:
        return (
            list(dleq._weights(group, public, inputs, shifted(position, e), b"fixed"))[position]
            * e
            % group.order
        )

    first = {term(0, e): e for e in range(1, 4001)}
    e, f = next(
        (first[group.order - t], f) for f in range(1, 4001) if group.order - (t := term(1, f)) in first
    )
    lie = shifted(0, e)
    lie[1] = shifted(1, f)[1]
    proof = dleq._generate(group, key, group.generator, public, inputs, lie, b"fixed", 5)
    assert (lie != outputs).any(axis=1).all() and dleq._verify(
        group, group.generator, public, inputs, lie, b"fixed", proof
    )
    bound = dleq.prove(group, key, group.generator, public, inputs, lie, b"fixed")
    assert not dleq.verify(
        group, group.generator, public, inputs, lie, b"fixed", bound
    )  # holds but for 2 / order


def test_cost() -> None:
    """n + 3 and 2 n + 4 exponentiations, as the cost of dh2 assumes."""
    group = Ristretto255()
    key, public, inputs, outputs = instance(group, 10)
    before = group.operations.powers
    proof = dleq.prove(group, key, group.generator, public, inputs, outputs, b"context")
    assert group.operations.powers - before == 13
    dleq.verify(group, group.generator, public, inputs, outputs, b"context", proof)
    assert group.operations.powers - before == 13 + 24


def test_empty_and_too_long_lists_have_no_proof() -> None:
    group = Ristretto255()
    key, public, inputs, outputs = instance(group, 1)
    with pytest.raises(ValueError, match="1 to 65536"):
        dleq.prove(group, key, group.generator, public, inputs[:0], outputs[:0], b"context")
