"""Descriptor of `pair`: two parties and nobody else, on additive shares and oblivious transfers, semi-honest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpc_protocols.backend import KEYED, EngineBackend, OracleParts, semi_honest
from mpc_protocols.process.later import Later

if TYPE_CHECKING:
    from mpc_protocols.backends.pair import blank, oracle
    from mpc_protocols.in_memory.engine_dry_run import BlankParts
else:
    blank = Later("mpc_protocols.backends.pair.blank")
    oracle = Later("mpc_protocols.backends.pair.oracle")

_ONE_OF_TWO = (
    "At most one of the two computing parties is corrupted, together with any number of recipients and contributors. Two "
    "computing parties that pool what they hold can reconstruct {pooled}."
)
_ASSUMPTION = (
    f"{KEYED}, AES under public keys as an ideal permutation, "
    "and Diffie-Hellman on ristretto255 with BLAKE2b as a random oracle"
)
_ASSUMPTIONS = (
    f"The protection is computational: it rests on {_ASSUMPTION}, for the keys agreed on at the start."
)
_NOISE = "The noise is drawn inside the protocol from random bits of both computing parties: neither knows any part of it."


class Pair(EngineBackend):
    """Two parties, no dealer: Goldreich-Micali-Wigderson over SoftSpokenOT extension."""

    name = "pair"
    rank = 20
    summary = "two parties on secret shares, without a third"
    computing = (2, 2)
    by_default = 2
    two_owners = True
    unchecked = ""
    together = "the two of them do not work together"
    assumption = _ASSUMPTION
    known_traffic = (1137300, 127)
    shows = "random-looking shares"
    how = "Two parties computed these statistics on secret shares: nobody gathered the data, and only noisy results were opened."

    def threat(self, vertical: bool) -> tuple[str, ...]:
        return semi_honest(vertical, _ONE_OF_TWO, _ASSUMPTIONS, _NOISE)

    def parts(self) -> OracleParts:
        return OracleParts.of(oracle.ROLES, oracle.contribute)

    def blank_parts(self, computing: int, contributing: int) -> BlankParts:
        return blank.blank_parts()


BACKEND = Pair()
