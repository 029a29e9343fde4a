"""Descriptor of `shamir`: three to nine parties on Shamir shares, semi-honest, of whom a minority may work
together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpc_protocols.backend import KEYED, EngineBackend, OracleParts, semi_honest
from mpc_protocols.process.later import Later

if TYPE_CHECKING:
    from mpc_protocols.backends.shamir import blank, oracle
    from mpc_protocols.in_memory.engine_dry_run import BlankParts
else:
    blank = Later("mpc_protocols.backends.shamir.blank")
    oracle = Later("mpc_protocols.backends.shamir.oracle")

_MINORITY = (
    "Of m computing parties at most t may be corrupted, together with any number of recipients and contributors: the largest "
    "minority, one of three or four, two of five or six, three of seven or eight, four of nine. One more that pool what they "
    "hold can reconstruct {pooled}."
)
_ASSUMPTION = f"The protection rests on {KEYED}, for what parties draw from shared keys, and on nothing else."
_NOISE = (
    "The noise is drawn inside the protocol: no minority of the computing parties knows any part of it, so nobody can "
    "subtract it."
)


class Shamir(EngineBackend):
    """Three to nine parties on shares of bits over GF(8) or GF(16)."""

    name = "shamir"
    rank = 10
    summary = "three to nine parties on Shamir shares, of whom any minority may be bad"
    computing = (3, 9)
    by_default = None
    unchecked = ""
    together = "fewer than half of them work together"
    assumption = KEYED
    known_traffic = (157122, 136)
    shows = "random-looking shares"
    how = (
        "The computing parties added up these statistics on Shamir shares: nobody gathered the data, and only noisy results "
        "were opened."
    )

    def coalition(self, computing: int) -> int:
        return (computing + 1) // 2

    def threat(self, vertical: bool) -> tuple[str, ...]:
        return semi_honest(vertical, _MINORITY, _ASSUMPTION, _NOISE)

    def parts(self) -> OracleParts:
        return OracleParts.of(oracle.ROLES, oracle.contribute)

    def blank_parts(self, computing: int, contributing: int) -> BlankParts:
        return blank.blank_parts(computing)


BACKEND = Shamir()
