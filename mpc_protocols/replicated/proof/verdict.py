"""Verdicts: no party opens anything before it has heard from both others that they found nothing.

1 round, 33 bytes from each party to each other. A party that has found something says so to both others before it stops, so that
they stop too, with a sentence that names whom it accuses and who accuses: which of the two lies the third cannot tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mpc_protocols.engine.prg import binding
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.replicated.sharing.trio import Trio

_FINE, _PRODUCTS, _COPIES = 0, 1, 2
PRODUCTS: Final = "sent party {accuser} products that are not those of its shares"
VERDICT_BYTES = 33
_NOT_HERE = "nothing was opened at this party, another one may have opened it, so the release counts as spent; stop the run"


@dataclass(frozen=True)
class Finding:
    """What a left verifier found: the products of its right neighbour are wrong, or what its neighbours sent does not match."""

    code: int = _FINE

    @classmethod
    def of(cls, matches: bool, holds: bool) -> Finding:
        """matches: prover and right verifier sent the same. holds: the equation of the proof."""
        return cls(_FINE if matches and holds else _PRODUCTS if matches else _COPIES)


def exchange(trio: Trio, finding: Finding, public: bytes, wrong: str = PRODUCTS) -> None:
    """Tell and hear findings about a batch that `public` names. Raises `ProtocolAborted` unless all three found nothing.

    wrong: what a party has done of whose messages an equation does not hold; {accuser} is who says so.
    """
    trio.wire.count_proof()
    name = binding(b"verdict", public)
    for peer in (trio.left, trio.right):
        trio.wire.send(peer, bytes([finding.code]) + name)
    trio.turn()
    heard = {peer: bytes(trio.wire.receive(peer, VERDICT_BYTES)) for peer in (trio.left, trio.right)}
    if finding.code != _FINE:
        raise ProtocolAborted(_sentence(trio.me, finding.code, wrong))
    for peer, said in heard.items():
        if said[0] in (_PRODUCTS, _COPIES):
            raise ProtocolAborted(_sentence(peer, said[0], wrong))
        if said != bytes([_FINE]) + name:
            raise ProtocolAborted(
                f"Party {peer} sent party {trio.me} a verdict on another batch; one of the two did not follow the protocol; "
                "stop the run."
            )


def _sentence(accuser: int, code: int, wrong: str) -> str:
    accused, other = (accuser + 1) % 3, (accuser + 2) % 3
    if code == _PRODUCTS:
        return (
            f"Party {accused} {wrong.format(accuser=accuser)}, as party {accuser} says: one of the two did not follow the "
            f"protocol, party {other} cannot tell which; {_NOT_HERE}."
        )
    return (
        f"Parties {accused} and {other} told party {accuser} different things about the same proof, as party {accuser} says: one "
        f"of the three did not follow the protocol; {_NOT_HERE}."
    )
