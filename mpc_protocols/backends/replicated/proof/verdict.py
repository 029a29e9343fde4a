"""Verdicts: no party opens anything before it has heard from both others that they found nothing.

1 round, 33 bytes from each party to each other. A party that has found something says so to both others
before it stops, so that they stop too. Who lies nobody can tell: not the third whether the accuser does, and
not the accuser whether the prover sent wrong products or the right verifier, whose share no tag covers, a
wrong share. A sentence names the two others first, then what was said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mpc_protocols.backends.replicated.sharing.blame import one_of
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.prg import binding
from mpc_protocols.errors import ProtocolAborted

_FINE, _PRODUCTS, _COPIES = 0, 1, 2
PRODUCTS: Final = "sent it products that are not those of its shares"
VERDICT_BYTES = 33
_NOT_HERE = "nothing was opened at this party, another one may have opened it, so the release counts as spent; stop the run"


@dataclass(frozen=True)
class Finding:
    """What a left verifier found: the products of its right neighbour are wrong, or what its neighbours sent
    does not match."""

    code: int = _FINE

    @classmethod
    def of(cls, matches: bool, holds: bool) -> Finding:
        """matches: prover and right verifier sent the same. holds: the equation of the proof."""
        return cls(_FINE if matches and holds else _PRODUCTS if matches else _COPIES)


def exchange(trio: Trio, finding: Finding, public: bytes, wrong: str = PRODUCTS) -> None:
    """Tell and hear findings about a batch that `public` names. Raises `ProtocolAborted` unless all three
    found nothing.

    wrong: what a party has done, to the one who says so, of whose messages an equation does not hold.
    """
    trio.wire.count_proof()
    name = binding(b"verdict", public)
    for peer in (trio.left, trio.right):
        trio.wire.send(peer, bytes([finding.code]) + name)
    trio.turn()
    heard = {peer: bytes(trio.wire.receive(peer, VERDICT_BYTES)) for peer in (trio.left, trio.right)}
    if finding.code != _FINE:
        raise ProtocolAborted(_sentence(trio.me, trio.me, finding.code, wrong))
    for peer, said in heard.items():
        if said[0] in (_PRODUCTS, _COPIES):
            raise ProtocolAborted(_sentence(trio.me, peer, said[0], wrong))
        if said != bytes([_FINE]) + name:
            raise ProtocolAborted(
                f"Party {peer} did not follow the protocol: it sent party {trio.me} a verdict on another batch; stop the run."
            )


def _sentence(me: int, accuser: int, code: int, wrong: str) -> str:
    accused, other = (accuser + 1) % 3, (accuser + 2) % 3
    said = (
        f"party {accused} {wrong}"
        if code == _PRODUCTS
        else f"parties {accused} and {other} told it different things about the same proof"
    )
    return f"{one_of(range(3), me)}. Party {accuser} says that {said}; {_NOT_HERE}."
