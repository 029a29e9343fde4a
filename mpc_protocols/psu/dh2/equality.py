"""Private equality test of two owners: whether both hold the same bytes, and nothing else, whatever one of
them does.

    1  X_i = H(value_i)^{r_i}, fresh r_i, H a random oracle into the group              exchanged; refused if it is the identity
    2  hash(i, X_0, X_1, K_i), K_i = X_{1-i}^{r_i}                                      exchanged, compared with the hash due

Equal values give K_0 = K_1. Threat model: one party MALICIOUS, and it may wait for the other's message in
both steps. X_i is uniform, whatever the value. In step 2 the honest party shows a hash of X^{r}, X being
whatever the other sent. To recognise K, or to answer with the hash due, the other must find X^{r} from
H(value)^{r}: with X = H(guess)^e that is (H(value)^{r})^e exactly if the guess is right, and otherwise a
Diffie-Hellman problem among independent elements. So it has ONE guess at the honest value, chosen before step
1 ends, and a wrong one is noticed: the honest party finds the values different. A comparison of hashes, even
committed ones, would let it try any number of guesses afterwards. (Commitments add nothing here: the guess
lies in X.)

Cost: one hash to the group, 2 exponentiations, element_bytes + 32 bytes, 2 rounds.
"""

from __future__ import annotations

from mpc_protocols.psu.groups.group import Group
from mpc_protocols.psu.groups.hashing import digest
from mpc_protocols.psu.randomness import Entropy
from mpc_protocols.psu.two_owners.exchange import Exchange

HASH_BYTES = 32


def equal(exchange: Exchange, group: Group, value: bytes, entropy: Entropy) -> bool:
    """Whether the other owner holds the same `value`. Raises `ProtocolAborted` for an invalid element."""
    secret = group.random_exponents(1, entropy)[0]
    blinded = group.power(group.hash_many([value], digest(b"psu equality", exchange.sid)), secret).tobytes()
    theirs = exchange.swap(blinded)
    with exchange.judging("an element to compare by"):
        key = group.power(group.parse(theirs), secret).tobytes()
    both = (blinded, theirs) if exchange.side == 0 else (theirs, blinded)
    mine, due = (
        digest(b"psu equal", exchange.sid, bytes([side]), *both, key)
        for side in (exchange.side, 1 - exchange.side)
    )
    return exchange.swap(mine) == due
