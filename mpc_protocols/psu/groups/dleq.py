"""Proof that every element of a list was raised to one and the same committed exponent (batched
Chaum-Pedersen).

RFC 9497, section 2.2: for a public pair (A, B = A^k) and lists C, D the prover convinces the verifier that
D_j = C_j^k for all j, revealing nothing about k: both fold the lists into M = prod C_j^{d_j}, Z = prod
D_j^{d_j} with weights d_j from a hash, and the prover shows log_A B = log_M Z. 64 bytes per list, two scalars
of the group's order.

Departure. In the RFC each d_j hashes its own pair (C_j, D_j) only. A prover who chooses D_j = C_j^k T^{e_j}
then needs sum d_j e_j = 0 with every term in its own hands: a generalised birthday problem, about 2^31 work
for lists of 2^15 (Wagner 2002). So the context, which enters every hash, must bind the whole lists: `prove`
and `verify` append the hash of C and D to it, and the weights are drawn after the lists are fixed. What is
left is 2 / order per attempt. `tests` hold both: the RFC's vectors on `_generate`, and the bound form.

Threat model: malicious prover, honest verifier or transcript; special soundness and zero knowledge in the
random-oracle model. Cost: prover n + 3 exponentiations and n products; verifier 2n + 4 and 2n + 2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

import numpy as np

from mpc_protocols.psu.groups.group import Elements, Group, InvalidElement, concatenated
from mpc_protocols.psu.groups.hashing import expander
from mpc_protocols.psu.randomness import Entropy, system

MAX_LIST = 1 << 16
"""Pairs of one proof: positions are hashed as two bytes."""


def proof_bytes(group: Group) -> int:
    """Length of a proof: two scalars."""
    return 2 * scalar_bytes(group)


def scalar_bytes(group: Group) -> int:
    """Length of an encoded exponent (little-endian)."""
    return -(-group.order.bit_length() // 8)


def prove(
    group: Group,
    key: int,
    base: bytes,
    public: bytes,
    inputs: Elements,
    outputs: Elements,
    context: bytes,
    entropy: Entropy = system,
) -> bytes:
    """Proof of outputs = inputs^key and public = base^key. One to 65,536 pairs; context: public, names the
    list and the run."""
    nonce = group.random_exponents(1, entropy)[0]
    return _generate(group, key, base, public, inputs, outputs, _bound(context, inputs, outputs), nonce)


def verify(
    group: Group,
    base: bytes,
    public: bytes,
    inputs: Elements,
    outputs: Elements,
    context: bytes,
    proof: bytes,
) -> bool:
    """Whether the proof holds. All arguments may come from an adversary; never raises for what they contain."""
    return _verify(group, base, public, inputs, outputs, _bound(context, inputs, outputs), proof)


def _bound(context: bytes, inputs: Elements, outputs: Elements) -> bytes:
    state = hashlib.sha512()
    for part in (context, concatenated(inputs), concatenated(outputs)):
        state.update(len(part).to_bytes(8, "big"))
        state.update(part)
    return b"cosynth-psu-dleq-v1-" + state.digest()


def _generate(
    group: Group,
    key: int,
    base: bytes,
    public: bytes,
    inputs: Elements,
    outputs: Elements,
    context: bytes,
    nonce: int,
) -> bytes:
    """GenerateProof of RFC 9497, 2.2.1, with the context string as its last word on domain separation."""
    folded = _fold(group, inputs, list(_weights(group, public, inputs, outputs, context)))
    image = group.power(folded, key)
    first = group.power(group.parse(base), nonce)
    second = group.power(folded, nonce)
    challenge = _challenge(group, context, public, folded, image, first, second)
    answer = (nonce - challenge * key) % group.order
    size = scalar_bytes(group)
    return challenge.to_bytes(size, "little") + answer.to_bytes(size, "little")


def _verify(
    group: Group,
    base: bytes,
    public: bytes,
    inputs: Elements,
    outputs: Elements,
    context: bytes,
    proof: bytes,
) -> bool:
    """VerifyProof of RFC 9497, 2.2.2."""
    size = scalar_bytes(group)
    if len(proof) != 2 * size or inputs.shape != outputs.shape:
        return False
    challenge, answer = (int.from_bytes(part, "little") for part in (proof[:size], proof[size:]))
    if not (0 < challenge < group.order and 0 < answer < group.order):
        return False
    try:
        weights = list(_weights(group, public, inputs, outputs, context))
        folded, image = _fold(group, inputs, weights), _fold(group, outputs, weights)
        first = group.product(
            np.concatenate(
                [group.power(group.parse(base), answer), group.power(group.parse(public), challenge)]
            )
        )
        second = group.product(np.concatenate([group.power(folded, answer), group.power(image, challenge)]))
    except InvalidElement:
        return False
    return challenge == _challenge(group, context, public, folded, image, first, second)


def _fold(group: Group, elements: Elements, weights: list[int]) -> Elements:
    """The product of all elements to their weights."""
    return group.product(group.power_each(elements, weights))


def _weights(
    group: Group, public: bytes, inputs: Elements, outputs: Elements, context: bytes
) -> Iterator[int]:
    """d_j of ComputeComposites; zero, which never happens, would be replaced by one."""
    if not 1 <= len(inputs) <= MAX_LIST or inputs.shape != outputs.shape:
        raise ValueError(f"A proof covers two lists of the same length, 1 to {MAX_LIST}.")
    seed = hashlib.sha512(_prefixed(public, b"Seed-" + context)).digest()
    scalar = _to_scalar(group, context)
    head = _prefixed(seed)
    for j, (c, d) in enumerate(zip(inputs, outputs, strict=True)):
        yield scalar(head + j.to_bytes(2, "big") + _prefixed(c.tobytes(), d.tobytes()) + b"Composite") or 1


def _challenge(group: Group, context: bytes, public: bytes, *elements: Elements) -> int:
    parts = [public, *(e.tobytes() for e in elements)]
    return _to_scalar(group, context)(_prefixed(*parts) + b"Challenge")


def _to_scalar(group: Group, context: bytes) -> Callable[[bytes], int]:
    """HashToScalar: 64 bytes (128 surplus bits for larger groups), little-endian, reduced."""
    expand = expander(b"HashToScalar-" + context, max(64, scalar_bytes(group) + 16))
    return lambda message: int.from_bytes(expand(message), "little") % group.order


def _prefixed(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(2, "big") + part for part in parts)
