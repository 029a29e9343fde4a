"""Descriptor of `additive`: two parties on CrypTen's shares and a dealer of correlations, semi-honest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpc_protocols.backend import KEYED, EngineBackend, OracleParts, semi_honest
from mpc_protocols.process.later import Later

if TYPE_CHECKING:
    from mpc_protocols.backends.additive import blank, oracle
    from mpc_protocols.in_memory.engine_dry_run import BlankParts
else:
    blank = Later("mpc_protocols.backends.additive.blank")
    oracle = Later("mpc_protocols.backends.additive.oracle")

_ONE_OF_THREE = (
    "At most one of the three computing parties is corrupted, together with any number of recipients and contributors. Any two "
    "of them that pool what they hold can reconstruct {pooled}: the first two hold shares, and the third, the dealer, "
    "knows the masks under which they open values to each other."
)
_OWNERS = (
    "Two of the three own the columns and send them to each other under masks that the remaining one knows, which receives none "
    "of them."
)
_ASSUMPTION = f"The protection rests on {KEYED}, for the masks, and on nothing else; CrypTen's own random numbers are not used."
_NOISE = (
    "The noise is drawn inside the protocol from random bits of the first two computing parties: neither of them nor the dealer "
    "knows any part of it. The dealer sees no message between these two, and hears a result when it has been opened."
)


class Additive(EngineBackend):
    """Two parties and a dealer: CrypTen's protocols over our links."""

    name = "additive"
    rank = 40
    summary = "two parties on CrypTen's shares, and a third that deals"
    computing = (3, 3)
    by_default = 3
    two_owners = True
    unchecked = ""
    extra, requires = "crypten", ("torch", "crypten")
    together = "no two of them work together"
    assumption = KEYED
    known_traffic = (129594, 134)
    shows = "random-looking shares"
    how = (
        "Two parties computed these statistics on secret shares, with correlated randomness from a third: nobody gathered the "
        "data, and only noisy results were opened."
    )

    def threat(self, vertical: bool) -> tuple[str, ...]:
        return semi_honest(vertical, _ONE_OF_THREE, *[_OWNERS] * vertical, _ASSUMPTION, _NOISE)

    def parts(self) -> OracleParts:
        return OracleParts.of(oracle.ROLES, oracle.contribute)

    def blank_parts(self, computing: int, contributing: int) -> BlankParts:
        return blank.blank_parts()


BACKEND = Additive()
