"""Descriptor of `paillier`: the two parties of `pair`, to whom contributors send ciphertexts instead of
shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpc_protocols.backend import Backend, OracleParts
from mpc_protocols.backends.pair.backend import Pair
from mpc_protocols.options import Options, option
from mpc_protocols.process.later import Later

if TYPE_CHECKING:
    from mpc_protocols.backends.paillier import blank, oracle, run_keys
    from mpc_protocols.in_memory.engine_dry_run import BlankParts
else:
    blank = Later("mpc_protocols.backends.paillier.blank")
    oracle = Later("mpc_protocols.backends.paillier.oracle")
    run_keys = Later("mpc_protocols.backends.paillier.run_keys")

KEY_BITS = 3072
"""Of the modulus in every study."""


@dataclass(frozen=True)
class PaillierOptions(Options):
    """[paillier]"""

    input: str = option(
        "paillier",
        "word",
        words=("paillier", "shares"),
        help="what contributors send: ciphertexts, to one of the two computing parties; or shares, to both",
        meaning="what custodians that do not compute send: ciphertexts, to one of the two computing parties "
        '([paillier](../design/paillier.md)). Or `"shares"`, to both: then it is `pair` in all but its name, as it is with '
        '`partition = "vertical"`, where the two own the columns',
    )


class PaillierOfShares(Pair):
    """`input = "shares"`: the two-party engine and its own input."""

    name = "paillier"
    rank = 30
    options = PaillierOptions


class Paillier(PaillierOfShares):
    """`input = "paillier"`."""

    summary = "two parties, to whom contributors send Paillier ciphertexts"
    known_traffic = (1016276, 107)
    assumption = (
        f"{Pair.assumption}, and deciding n-th residues modulo n^2 (Paillier's cryptosystem) at 3,072 bits, also with exponents "
        "of half the length"
    )
    extra, requires = "paillier", ("phe", "gmpy2")
    unchecked = (
        'ciphertexts of all are added up before they are shared; [paillier] input = "shares" has them checked'
    )
    shows = "ciphertexts and random-looking shares"
    how = (
        "Contributors encrypted their counts; two parties computed these statistics on sums that neither of them saw: nobody "
        "gathered the data, and only noisy results were opened."
    )

    def __init__(self, key_bits: int = KEY_BITS) -> None:
        """key_bits: of the modulus; only tests take another number than the studies'."""
        self._key_bits = key_bits

    def configured(self, options: Options, partition: str = "horizontal") -> Backend:
        """Columns of two owners are joined by these two, who compute: then nobody has anything to encrypt."""
        return PaillierOfShares() if options == PaillierOptions("shares") or partition == "vertical" else self

    def threat(self, vertical: bool) -> tuple[str, ...]:
        return (*super().threat(vertical), *(() if vertical else _CIPHERTEXTS))

    def parts(self) -> OracleParts:
        return oracle.parts(run_keys.RunKeys(self._key_bits))

    def blank_parts(self, computing: int, contributing: int) -> BlankParts:
        return blank.blank_parts(self._key_bits, contributing)


_CIPHERTEXTS = (
    "Contributors send Paillier ciphertexts to the computing party that does not lead; the leading one holds the private key and "
    "decrypts sums only, masked within a statistical distance of 2^-40 over the whole run. It proves to all of them that its key "
    "is a product of different primes above 2^16, none of which divides another one minus 1 (a lie passes with 2^-128 a try, "
    "with SHAKE256 as a random oracle); that there are two of them, long enough, is taken on trust.",
    "A contributor that sends other plaintexts than counts can do what false counts do: it adds numbers of its choice to cells. "
    "And with a chance below 2^-30 for each cell that another's record touches, that record counts in one cell more.",
)

BACKEND = Paillier()
